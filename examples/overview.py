"""What permdist is about, in one picture: uncertain rankings, what they are worth, who learns them.

On the left the rank marginals of the documents of one query under a Plackett-Luce model; in the
middle their expected NDCG as the noise grows, under three distributions and exactly; on the right
learners on unseen queries, with confidence intervals. The good-bad model sees the labels, and its
noise is on a scale of its own: it multiplies differences of scores by 1 / (noise x documents).
``--data`` takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, plain, read_folds, read_options, save, size_of, tell
from matplotlib.figure import Figure

from permdist import data, plots
from permdist.comparison import compare
from permdist.report.inspection import DISTRIBUTIONS, inspect_query

LEARNERS = {
    "ConvexLoss": "ConvexLoss[C=1|10|100,kappa=1|10,scale=true]",
    "MLE": "MLE[C=1|10|100]",
    "SVMMap": "SVMMap[C=1|10]",
    "RankBoost": "RankBoost[weak=feature,max_iter=100]",
    "ListNet": "ListNet[C=1|10,target=label]",
    "AdaRank": "AdaRank[accept=better]",
}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=400)
    if options.data:
        folds, source = read_folds(options, options.data)
    else:
        folds = data.make_folds(data.make_letor(options.queries, rng=0), 3, rng=0)
        source = "simulated (make_letor)"
    tests = size_of(*(fold.test for fold in folds))
    tell(options, f"{source}, {len(folds)} folds, not cleaned: {tests}")
    found = compare(folds, LEARNERS, measures="ndcg@10")
    test = folds[0].test
    mixed = (test.n_relevant > 1) & (test.n_relevant < test.sizes)
    number = int(np.argmin(np.where(mixed, np.abs(test.sizes - 10), 10**9)))
    rows = slice(test.ptr[number], test.ptr[number + 1])
    scores, labels = found.learners("MLE")[0].predict(test)[rows], test.y[rows]
    scores = (scores - scores.mean()) / max(scores.std(), 1e-9)
    names = [f"document {i + 1} ({label})" for i, label in enumerate(labels)]

    figure = Figure(figsize=(15, 4.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    looks = {kind: inspect_query(scores, labels, kind=kind, names=names) for kind in DISTRIBUTIONS}
    plots.marginals(looks["plackett-luce"].dist, left)
    left.set_title("Where each document of a query may stand", loc="left")
    for kind, look in looks.items():
        middle.plot(look.noise.index, look.noise["E[ndcg]"], marker="o", markersize=3, label=kind)
        print(f"{kind:<14} E[NDCG] = {float(look.expected['ndcg']):.4f}")
    middle.set(xlabel="noise scale", ylabel="expected NDCG", xscale="log")
    middle.set_title("What that is worth, exactly", loc="left")
    middle.legend(frameon=False)
    plain(middle)
    plots.intervals(found, ax=right)
    right.set_title("Who learns to rank them", loc="left")
    print(f"\n{found}")
    save(figure, options)


if __name__ == "__main__":
    main()
