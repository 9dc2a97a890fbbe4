"""Boosting by the measure against boosting by pairs: which pairs, and which queries, go better.

AdaRank on NDCG@10 against RankBoost on the test queries of every fold: pairs of documents in the
right order by their labels, how many pairs queries have, and the mean AP of queries with few and
with many pairs. ``--data`` takes a folder with LETOR folds.
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
EDGES = [1, *(step * 10**power for power in range(1, 7) for step in (1, 2, 5))]


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
            found = ordered.setdefault(name, {}), precision.setdefault(name, [])
            judge(test, scores, *found)
        pairs += [(len(one.y) ** 2 - (np.bincount(one.y) ** 2).sum()) // 2 for one in test]
    group = np.searchsorted(EDGES, pairs, side="right")
    members = [group == g for g in np.unique(group)]
    names = [f"{EDGES[g - 1]}-{EDGES[g] - 1}" for g in np.unique(group)]
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(2, 3, 3))
    second.bar(names, [own.sum() for own in members], color="0.6")
    kinds = sorted(ordered["AdaRank"], reverse=True)
    sizes = [*(len(ordered["AdaRank"][kind]) for kind in kinds), *(own.sum() for own in members)]
    print(" " * 10 + "".join(f"{text:>10}" for text in (*kinds, *names)))
    print(f"{'number':<10}" + "".join(f"{size:10,}" for size in sizes))
    for name, shift in zip(LEARNERS, (-0.2, 0.2), strict=True):
        right = [np.mean(ordered[name][kind]) for kind in kinds]
        parts = [np.array(precision[name])[own] for own in members]
        means, errors = zip(
            *((part.mean(), part.std() / len(part) ** 0.5) for part in parts), strict=True
        )
        first.bar(np.arange(len(kinds)) + shift, right, 0.38, label=name)
        third.bar(np.arange(len(names)) + shift, means, 0.38, yerr=errors, label=name)
        print(f"{name:<10}" + "".join(f"{value:10.4f}" for value in (*right, *means)))
    first.set(xlabel="labels of the pair", ylabel="share of pairs in the right order")
    first.set_xticks(range(len(kinds)), kinds)
    second.set(xlabel="pairs of the query", ylabel="test queries")
    third.set(xlabel="pairs of the query", ylabel="mean AP, with one standard error")
    for ax in (second, third):
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    third.legend(frameon=False)
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
