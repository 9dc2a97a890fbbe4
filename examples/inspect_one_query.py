"""One query under three distributions: where each document may stand, and what that is worth.

Takes one query's scores and draws, for Plackett-Luce, Gaussian scores and the good-bad pair model,
the rank marginals, the pairwise preferences and the distribution of NDCG with its exact mean. All
three agree on the mode; they differ in how sure they are, and about what.
"""

import numpy as np
from common import FILE, read_options, save
from matplotlib.figure import Figure

from permdist import GaussianScores, GoodBad, PlackettLuce, data, plots


def main():
    options = read_options(
        __file__,
        __doc__,
        FILE,
        query=(0, "which query with good documents"),
        documents=(9, "how many of its documents"),
    )
    queries = data.load_letor(options.data) if options.data else data.make_letor(60, rng=2)
    queries = queries.clean()
    query = queries[options.query]
    # The mean of the features that vary is a crude but honest score.
    scores = query.X[:, np.ptp(query.X, axis=0) > 0].mean(axis=1)
    # Keep a few of the best documents and, for the rest, bad ones.
    best = np.argsort(-query.y, kind="stable")
    few = max(1, options.documents // 3)
    chosen = np.sort(np.concatenate([best[:few], best[few:][few - options.documents :]]))
    scores = (scores[chosen] - scores[chosen].mean()) / max(scores[chosen].std(), 1e-9)
    labels = query.y[chosen]
    names = [f"document {i + 1} ({label})" for i, label in zip(chosen, labels, strict=True)]

    models = {
        "Plackett-Luce": PlackettLuce(scores, names),
        "Gaussian scores": GaussianScores(scores, 1.0, names),
        "good-bad pairs": GoodBad(scores, labels, scale=0.25, names=names),
    }
    figure = Figure(figsize=(16, 11), layout="constrained")
    axes = figure.subplots(3, 3)
    for row, (name, model) in zip(axes, models.items(), strict=True):
        plots.marginals(model, row[0]).set_title(f"{name}: rank marginals", loc="left")
        plots.pairwise(model, row[1]).set_title("who is above whom", loc="left")
        plots.measure_values(model, "ndcg", labels, ax=row[2]).set_title("NDCG", loc="left")
        shown = f"E[NDCG] = {float(model.expect('ndcg', labels)):.4f}"
        print(f"{name:<16} {shown}   entropy = {float(model.entropy(rng=0)):.3f} nats")
    save(figure, options)


if __name__ == "__main__":
    main()
