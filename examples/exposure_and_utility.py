"""What does fairness cost? Exposure of groups and of documents against expected NDCG.

Lists of 12 documents, half of them from each of two groups; relevance depends on two features, and
the second one is lower in one group. Scores are lines in the features, trained on the exact
expected NDCG@5 under Plackett-Luce and on fairness of exposure. Left: equal exposure of both
groups, with a weight that grows along each curve, by lines that know the group and by lines that do
not. Right: one list, whose documents should be seen equally within each grade: by its ranking, and
by random rankings of lines that are trained for utility alone and for equal exposure as well.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist import PlackettLuceBatch
from permdist.distributions import position_weights
from permdist.models import solvers
from permdist.objectives import ExpectedExposure, GroupExposure

DOCUMENTS, MEASURE = 12, "ndcg@5"


def simulate(queries, rng):
    """Return features with the group last, labels and query ids."""
    groups = np.tile([0, 1], queries * DOCUMENTS // 2)
    X = rng.normal(size=(len(groups), 2))
    X[:, 1] -= 1.2 * groups
    worth = X.sum(axis=1) + rng.normal(size=len(groups))
    labels = np.digitize(worth, [0.0, 1.0, 2.0])
    return np.column_stack([X, groups]), labels, np.repeat(np.arange(queries), DOCUMENTS)


def train(objective, X, labels, qid, **groups):
    ready = objective.prepare(labels, qid, **groups)
    return X @ solvers.lbfgs(lambda scores: ready(scores)[:2], X, None, 1e4).w


def main():
    options = read_options(__file__, __doc__, queries=100, points=(9, "points per curve"))
    X, labels, qid = simulate(options.queries, np.random.default_rng(0))
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    groups, own, lists = {"groups": X[:, 2].astype(int)}, GroupExposure(k=5), (-1, DOCUMENTS)
    for name, known in (("lines that know the group", X), ("lines that do not", X[:, :2])):
        points = []
        for weight in np.geomspace(0.1, 10.0, options.points):
            objective = GroupExposure(k=5, measure=MEASURE, weight=weight)
            scores = train(objective, known, labels, qid, **groups)
            unfair = own.values(scores, labels, qid, **groups)[0].mean()
            model = PlackettLuceBatch(scores.reshape(lists))
            points.append((unfair, model.expect(MEASURE, labels.reshape(lists)).mean()))
        left.plot(*np.transpose(points), "o-", markersize=4, label=name)
        print(f"{name:<26}" + "  ".join(f"{unfair:.3f} {useful:.3f}" for unfair, useful in points))
    left.set(xlabel="disparity of the groups' exposure", ylabel="expected NDCG@5")
    left.legend(frameon=False, loc="lower right")
    useful, fair = (
        train(ExpectedExposure(measure=MEASURE, weight=weight), X, labels, qid)
        for weight in (0.01, 10.0)
    )
    useful, fair, label = useful[:DOCUMENTS], fair[:DOCUMENTS], labels[:DOCUMENTS]
    order, ranked = np.lexsort((-useful, -label)), np.argsort(np.argsort(-useful))
    seen = position_weights(n_items=DOCUMENTS)
    target = ExpectedExposure().targets(label, seen)
    right.step(range(DOCUMENTS), target[order], "k", where="mid", label="equal within grades")
    shown = {
        "ranked by the most useful line": seen[ranked],
        "at random, by the most useful line": PlackettLuceBatch(useful).exposure(),
        "by a line trained on both": PlackettLuceBatch(fair).exposure(),
    }
    for (name, exposure), marker in zip(shown.items(), "x.o", strict=True):
        right.plot(exposure[order], marker, label=name, fillstyle="none")
    right.set_xticks(range(DOCUMENTS), label[order])
    right.set(xlabel="documents of one list, by grade", ylabel="exposure")
    right.legend(frameon=False)
    plain(left, right)
    save(figure, options)


if __name__ == "__main__":
    main()
