"""Learners that add feature rankings against linear ones, on strictly ordered lists.

Settings are chosen by Kendall's tau on the validation part of every fold. SVMMap needs good and bad
documents: it is trained with those above the median label of their query as good. Differences from
DiffRank are paired by query. ``--data`` takes a folder with LETOR folds of strict lists.
"""

import numpy as np
from common import load_folds, plain, read_options, save, settings_text, standard_error
from matplotlib.figure import Figure

from permdist import data, models
from permdist.comparison import compare

CYCLES, WIDE = {"intervals": [8, 1], "cycles": [1, 4]}, {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
LEARNERS = {
    "DiffRank": (models.DiffRank(), {"prec": [None, 10], **CYCLES}),
    "BLFeatureRank": (models.BLFeatureRank(), CYCLES),
    "FeatureRank": (models.FeatureRank(), CYCLES),
    "ListMLE": (models.ListMLE(), WIDE),
    "SVMMap": (models.SVMMap(), WIDE),
    # The cosine does not see the length of w: C would change nothing.
    "RankCosine": (models.RankCosine(C=np.inf), {}),
}
NDCG = [f"ndcg@{k}[gain=linear]" for k in range(1, 11)]


def split(part):
    """Turn labels into 1 above the median of their query and 0 below."""
    good = np.concatenate([query.y > np.median(query.y) for query in part])
    return data.Queries(part.X, good.astype(int), part.qid)


def main():
    options = read_options(
        __file__, __doc__, "a folder with LETOR folds of strict lists", queries=100
    )
    folds = load_folds(options, n_documents=(20, 150), strict=True)
    left, right = (figure := Figure(figsize=(12, 4.4), layout="constrained")).subplots(1, 2)
    print(f"{'':<15}Kendall distance    less DiffRank's     top-10 persistence  chosen, by fold")
    rows, first = [], None
    for place, (name, (learner, grid)) in enumerate(LEARNERS.items()):
        used = [(split(one), *rest) for one, *rest in folds] if name == "SVMMap" else folds
        by = {"select": "tau", "measures": ["tau", "persistence@10", *NDCG]}
        found = compare(used, {name: (learner, grid)}, **by)
        table = np.array([found.values(measure)[0] for measure in by["measures"]])
        table[0] = (1.0 - table[0]) / 2.0
        first = table[:1] if first is None else first
        table = np.concatenate([table[:1], table[:1] - first, table[1:]])
        means, errors = table.mean(axis=1), standard_error(table)
        shown = "".join(f"{means[i]:7.4f} +- {errors[i]:.4f}   " for i in range(3))
        print(f"{name:<14}{shown}{'/'.join(grid)} {settings_text(found, name)}".rstrip(" ,"))
        curve = "".join(f"{mean:7.4f}" for mean in means[3:])
        rows.append(f"{name:<14}{curve}  {errors[3:].max():.4f}")
        (line,) = left.plot(np.arange(1, 11), means[3:], "o-", markersize=3, label=name)
        right.errorbar(means[0], place, xerr=errors[0], fmt="o", color=line.get_color())
    print(f"\n{'NDCG@':<14}" + "".join(f"{k:7}" for k in range(1, 11)) + "  largest s.e.")
    print("\n".join(rows))
    left.set(xlabel="k", ylabel="NDCG@k, linear gain, test queries")
    left.legend(frameon=False)
    right.set(xlabel="Kendall distance on test queries, with one standard error")
    right.set_yticks(range(len(LEARNERS)), list(LEARNERS))
    right.invert_yaxis()
    for ax in (left, right):
        plain(ax)
    save(figure, options, rules=["Kendall distance is (1 - tau) / 2", NDCG[-1]])


if __name__ == "__main__":
    main()
