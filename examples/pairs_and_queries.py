"""Boosting by the measure against boosting by pairs: which pairs, and which queries, go better.

AdaRank on NDCG@10 against RankBoost on the test queries of every fold: pairs of documents in the
right order by their labels, how many pairs queries have, and the mean AP by the number of pairs.
``--data`` takes a folder with LETOR folds.
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import AP
from permdist.models import AdaRank, RankBoost

LEARNERS = {
    "AdaRank": AdaRank("ndcg@10", directions="both", early_stopping=30),
    "RankBoost": RankBoost(measure="ndcg@10", thresholds=50, early_stopping=30),
}
YLABELS = "share of pairs in the right order", "test queries", "mean AP, with one standard error"
EDGES = [0, *(step * 10**power for power in range(1, 7) for step in (1, 2, 5))]


def judge(queries, scores, ordered, precision):
    """Add each query's AP to one, and pairs by labels to the other: 1 if right, 0.5 if tied."""
    for query, score in zip(queries, np.split(scores, queries.ptr[1:-1]), strict=True):
        precision.append(AP().from_scores(score, query.y))
        for low, high in combinations(np.unique(query.y).tolist(), 2):
            ahead = score[query.y == high][:, None] - score[query.y == low]
            ordered.setdefault(f"{high}-{low}", []).extend(0.5 + 0.5 * np.sign(ahead).ravel())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=200, help="simulated queries of each part")
    parser.add_argument("--output", type=Path, default=Path("pairs_and_queries.png"))
    options = parser.parse_args(arguments)
    if options.data:
        folds = data.load_letor_folds(options.data)
    else:
        whole = data.make_letor(3 * options.queries, rng=0)
        parts = [whole.where(np.arange(len(whole)) % 3 == part) for part in range(3)]
        folds = [parts[turn:] + parts[:turn] for turn in range(3)]
    pairs, ordered, precision = [], {}, {}
    for train, validation, test in folds:
        test = test.clean(conflicts=None)
        for name, learner in LEARNERS.items():
            scores = learner.fit(train, eval_set=validation).predict(test)
            judge(test, scores, ordered.setdefault(name, {}), precision.setdefault(name, []))
        pairs += [(len(one.y) ** 2 - (np.bincount(one.y) ** 2).sum()) // 2 for one in test]
    group = np.searchsorted(EDGES, pairs, side="right")
    groups, counts = np.unique(group, return_counts=True)
    names = [f"{EDGES[g - 1]}-{EDGES[g] - 1}" for g in groups]
    kinds = sorted(ordered["AdaRank"], reverse=True)
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(2, 3, 3))
    second.bar(range(len(names)), counts, color="0.6")
    table = [[*kinds, *names], [*(len(ordered["AdaRank"][kind]) for kind in kinds), *counts]]
    for name, shift in zip(LEARNERS, (-0.2, 0.2), strict=True):
        values = [np.array(ordered[name][kind]) for kind in kinds]
        values += [np.array(precision[name])[group == g] for g in groups]
        means, errors = np.transpose([(one.mean(), one.std() / len(one) ** 0.5) for one in values])
        cut = len(kinds)
        first.bar(np.arange(cut) + shift, means[:cut], 0.38)
        third.bar(np.arange(len(names)) + shift, means[cut:], 0.38, yerr=errors[cut:], label=name)
        table.append(means)
    print("pairs         number   AdaRank RankBoost")
    for row in zip(*table, strict=True):
        print("{:<10}{:10,}{:10.4f}{:10.4f}".format(*row))
    for ax, text in zip(figure.axes, YLABELS, strict=True):
        ax.set(xlabel="pairs of the query", ylabel=text)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.spines[["top", "right"]].set_visible(False)
    first.set_xticks(range(len(kinds)), kinds, rotation=0, ha="center")
    first.set(xlabel="labels of the pair")
    third.legend(frameon=False)
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
