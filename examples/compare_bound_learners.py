"""Learners that minimize bounds of the loss against learners of pairs, on the same folds.

SVMMap, SVMNDCG and PermuRank (type-two bounds), AdaRank (type one), RankSVM and RankBoost (pairs).
C is chosen on the validation part of every fold, which also says when boosting stops. ``--data``
takes a folder with LETOR folds.
"""

from common import (
    FOLDS,
    fold_means,
    load_folds,
    plain,
    read_options,
    save,
    settings_text,
    standard_error,
)
from matplotlib.figure import Figure

from permdist.comparison import compare
from permdist.models import SVMNDCG, AdaRank, PermuRank, RankBoost, RankSVM, SVMMap

WIDE, SMALL = {"C": [0.01, 0.1, 1.0, 10.0]}, {"C": [1e-3, 1e-2, 1e-1]}
LEARNERS = {
    "SVMMap": (SVMMap(), WIDE),
    "SVMNDCG": (SVMNDCG(), WIDE),
    "PermuRank": (PermuRank("ap", max_iter=10, early_stopping=4), SMALL),
    "AdaRank": (AdaRank("ap", early_stopping=30), None),
    "RankSVM": (RankSVM(), WIDE),
    "RankBoost": (RankBoost(thresholds=50, early_stopping=30), None),
}
COLORS = ["#4c72b0"] * 4 + ["#dd8452"] * 2
MEASURES = {"MAP": "letor4:map", "NDCG@3": "letor4:ndcg@3"}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    folds = load_folds(options)
    found = compare(folds, LEARNERS, measures=MEASURES.values())
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    rows = {name: f"{name:<10}" for name in LEARNERS}
    for ax, (title, measure) in zip(
        figure.subplots(1, 2, sharey=True), MEASURES.items(), strict=True
    ):
        means, errors = fold_means(found, measure), standard_error(found.values(measure))
        for place, name in enumerate(LEARNERS):
            mean, error, rank = means[place], errors[place], 1 + (means > means[place]).sum()
            rows[name] += f"  {mean:.4f} +- {error:.4f} ({rank})"
            ax.errorbar(mean, place, xerr=error, fmt="o", color=COLORS[place])
            ax.annotate(f"{rank}", (mean, place), (0, 6), textcoords="offset points", ha="center")
        ax.set(xlabel=f"{title} on test queries, with one standard error")
        ax.set_yticks(range(len(LEARNERS)), list(LEARNERS))
        plain(ax)
    ax.set_ylim(len(LEARNERS) - 0.5, -0.5)
    print(f"{'':<10}  " + "  ".join(f"{title:<20}" for title in MEASURES) + "  C of the folds")
    for name, row in rows.items():
        print(f"{row}  {settings_text(found, name)}".rstrip())
    save(figure, options, rules=MEASURES.values())


if __name__ == "__main__":
    main()
