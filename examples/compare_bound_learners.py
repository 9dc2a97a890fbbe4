"""Learners that minimize bounds of the loss against learners of pairs, on the same folds.

SVMMap, SVMNDCG and PermuRank (type-two bounds), AdaRank (type one), RankSVM and RankBoost (pairs).
C is chosen on the validation part of every fold, which also says when boosting stops. ``--data``
takes a folder with LETOR folds.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.models import SVMNDCG, AdaRank, PermuRank, RankBoost, RankSVM, SVMMap, cross_validate

WIDE, SMALL = {"C": [0.01, 0.1, 1.0, 10.0]}, {"C": [1e-3, 1e-2, 1e-1]}
LEARNERS = {
    "SVMMap": (SVMMap(), WIDE),
    "SVMNDCG": (SVMNDCG(), WIDE),
    "PermuRank": (PermuRank("ap", max_iter=10, early_stopping=4), SMALL),
    "AdaRank": (AdaRank("ap", early_stopping=30), None),
    "RankSVM": (RankSVM(), WIDE),
    "RankBoost": (RankBoost(thresholds=50, early_stopping=30), None),
}
COLOURS = ["#4c72b0"] * 4 + ["#dd8452"] * 2
MEASURES = {"MAP": "letor4:map", "NDCG@3": "letor4:ndcg@3"}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="simulated queries of each part")
    parser.add_argument("--output", type=Path, default=Path("compare_bound_learners.png"))
    options = parser.parse_args(arguments)
    if options.data:
        folds = data.load_letor_folds(options.data)
    else:
        whole = data.make_letor(3 * options.queries, rng=0)
        parts = [whole.where(np.arange(len(whole)) % 3 == part) for part in range(3)]
        folds = [parts[turn:] + parts[:turn] for turn in range(3)]
    by = {"select": MEASURES["MAP"], "measures": tuple(MEASURES.values())}
    found = {
        name: cross_validate(learner, folds, grid, **by)
        for name, (learner, grid) in LEARNERS.items()
    }
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    rows = {name: f"{name:<10}" for name in found}
    for ax, (title, measure) in zip(
        figure.subplots(1, 2, sharey=True), MEASURES.items(), strict=True
    ):
        means = np.array([result.mean(measure) for result in found.values()])
        values = [result.per_query(measure) for result in found.values()]
        errors = np.array([one.std(ddof=1) / np.sqrt(len(one)) for one in values])
        for place, name in enumerate(found):
            mean, error, rank = means[place], errors[place], 1 + (means > means[place]).sum()
            rows[name] += f"  {mean:.4f} +- {error:.4f} ({rank})"
            ax.errorbar(mean, place, xerr=error, fmt="o", color=COLOURS[place])
            ax.annotate(f"{rank}", (mean, place), (0, 6), textcoords="offset points", ha="center")
        ax.set(xlabel=f"{title} on test queries, with one standard error")
        ax.set_yticks(range(len(found)), list(found))
        ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(len(found) - 0.5, -0.5)
    print(f"{'':<10}  " + "  ".join(f"{title:<20}" for title in MEASURES) + "  C of the folds")
    for name, row in rows.items():
        chosen = ", ".join(f"{one['C']:g}" for one in found[name].chosen if one)
        print(f"{row}  {chosen}".rstrip())
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
