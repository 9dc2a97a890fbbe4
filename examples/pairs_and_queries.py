"""Boosting by the measure against boosting by pairs: which pairs, and which queries, go better.

AdaRank on NDCG@10 and RankBoost on the test queries of every fold: pairs in the right order by
their labels, and mean AP by the number of pairs. ``--data`` takes a folder with LETOR folds.
"""

from itertools import combinations

import numpy as np
from common import FOLDS, load_folds, plain, read_options, save
from matplotlib.figure import Figure

from permdist import measures
from permdist.models import AdaRank, RankBoost

LEARNERS = {
    "AdaRank": AdaRank("ndcg@10", early_stopping=30),
    "RankBoost": RankBoost(measure="ndcg@10", thresholds=50, early_stopping=30),
}
YLABELS = "share of pairs in the right order", "test queries", "mean AP, with one standard error"
EDGES = [0, *(step * 10**power for power in range(1, 7) for step in (1, 2, 5))]


def judge(learner, queries, ordered, precision):
    """Add each query's AP to one, and pairs by labels to the other: 1 if right, 0.5 if tied."""
    for query in queries:
        score = learner.predict(query.X)
        precision.append(measures.AP().from_scores(score, query.y))
        for low, high in combinations(np.unique(query.y).tolist(), 2):
            ahead = score[query.y == high][:, None] - score[query.y == low]
            ordered.setdefault(f"{high}-{low}", []).extend(0.5 + 0.5 * np.sign(ahead).ravel())


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=200)
    folds = load_folds(options)
    ordered, precision = {name: {} for name in LEARNERS}, {name: [] for name in LEARNERS}
    pairs = []
    for train, validation, test in folds:
        test = test.clean(conflicts=None)
        for name, learner in LEARNERS.items():
            judge(learner.fit(train, eval_set=validation), test, ordered[name], precision[name])
        pairs += [(len(one.y) ** 2 - (np.bincount(one.y) ** 2).sum()) // 2 for one in test]
    groups, counts = np.unique(group := np.digitize(pairs, EDGES), return_counts=True)
    names = [f"{EDGES[g - 1]}-{EDGES[g] - 1}" for g in groups]
    kinds, n = sorted(ordered["AdaRank"], reverse=True), len(ordered["AdaRank"])
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(2, 3, 3))
    second.bar(range(len(names)), counts, color="0.6")
    table = [[*kinds, *names], [*(len(ordered["AdaRank"][kind]) for kind in kinds), *counts]]
    for name, shift in zip(LEARNERS, (-0.2, 0.2), strict=True):
        values = [np.array(ordered[name][kind]) for kind in kinds]
        values += [np.array(precision[name])[group == g] for g in groups]
        means, errors = np.transpose([(one.mean(), one.std() / len(one) ** 0.5) for one in values])
        first.bar(np.arange(n) + shift, means[:n], 0.38, label=name)
        third.bar(np.arange(len(names)) + shift, means[n:], 0.38, yerr=errors[n:])
        table.append(means)
    print("pairs         number   AdaRank RankBoost")
    print(*map("{:<10}{:10,}{:10.4f}{:10.4f}".format, *table), sep="\n")
    for ax, text, ticks in zip(figure.axes, YLABELS, (kinds, names, names), strict=True):
        ax.set(xlabel="labels of the pair" if ax is first else "pairs of the query", ylabel=text)
        ax.set_xticks(range(len(ticks)), ticks, rotation=45)
        plain(ax)
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
