"""Which learners can be told apart? MAP and NDCG at four cut-offs, and all paired t-tests.

Five learners on the same folds, with settings chosen by MAP on the validation parts. The tests look
at NDCG@1, query by query, as Xu et al. do, with Holm's correction for their number. Printed is how
large a difference one test alone would see with the queries of LETOR's collections. ``--data``
takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, fold_means, load_folds, plain, read_options, save
from matplotlib.figure import Figure
from scipy.stats import ttest_rel

from permdist.comparison import adjust, compare
from permdist.models import AdaRank, PermuRank, RankBoost, RankSVM, SVMMap

WIDE, SMALL = {"C": [0.01, 0.1, 1.0, 10.0]}, {"C": [1e-3, 1e-2, 1e-1]}
LEARNERS = {
    "SVMMap": (SVMMap(), WIDE),
    "AdaRank": (AdaRank("ap", early_stopping=30), None),
    "PermuRank": (PermuRank("ap", max_iter=10, early_stopping=4), SMALL),
    "RankSVM": (RankSVM(), WIDE),
    "RankBoost": (RankBoost(thresholds=50, early_stopping=30), None),
}
COLORS = ["#4c72b0", "#55a868", "#8172b3", "#dd8452", "#c44e52"]
MEASURES = {"MAP": "letor3:map", **{f"NDCG@{k}": f"letor3:ndcg@{k}" for k in (1, 3, 5, 10)}}
COLLECTIONS = {"TD2003": 50, "TD2004": 75, "OHSUMED": 106, "MQ2008": 784, "MQ2007": 1692}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    folds = load_folds(options)
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    found = compare(folds, LEARNERS, select="map", measures=MEASURES.values())
    firsts, table = (
        found.values(MEASURES["NDCG@1"]),
        [fold_means(found, m) for m in MEASURES.values()],
    )
    print(f"{'':<10}" + "".join(f"{name:>9}" for name in MEASURES))
    for place, (name, means) in enumerate(zip(LEARNERS, np.transpose(table), strict=True)):
        bars = np.arange(len(means)) + 0.16 * (place - 2)
        left.bar(bars, means, 0.15, color=COLORS[place], label=name)
        print(f"{name:<10}" + "".join(f"{mean:9.4f}" for mean in means))
    left.set_xticks(range(len(MEASURES)), list(MEASURES))
    left.set(ylabel="mean over test queries", ylim=(0.0, left.get_ylim()[1] * 1.15))
    left.legend(frameon=False, ncols=5, loc="upper center")
    plain(left)
    p, spread, alone = np.ones((len(firsts),) * 2), [], []
    for i, j in zip(*(pairs := np.triu_indices(len(firsts), 1)), strict=True):
        spread.append((firsts[i] - firsts[j]).std(ddof=1))
        alone.append(ttest_rel(firsts[i], firsts[j]).pvalue if spread[-1] > 0 else 1.0)
    p[pairs] = p.T[pairs] = adjust(alone, "holm")
    right.imshow(np.log10(np.maximum(p, 1e-3)), cmap="viridis", vmin=-3.0, vmax=0.0)
    for i, j in zip(*np.nonzero(~np.eye(len(p), dtype=bool)), strict=True):
        color = "black" if p[i, j] > 0.1 else "white"
        right.text(j, i, f"{p[i, j]:.3f}", ha="center", va="center", color=color)
    right.set(title="p of paired t-tests, NDCG@1, by Holm")
    right.set_xticks(range(len(LEARNERS)), list(LEARNERS), rotation=30)
    right.set_yticks(range(len(LEARNERS)), list(LEARNERS))
    seen = "  ".join(f"{n} {1.96 * np.mean(spread) / m**0.5:.3f}" for n, m in COLLECTIONS.items())
    print(f"\nThe least difference of NDCG@1 with p < 0.05, at the queries of {seen}")
    save(figure, options)


if __name__ == "__main__":
    main()
