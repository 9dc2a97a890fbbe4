"""What incomplete judgements and tied scores do to the figures of one and the same run.

Left: judgements are taken away at random. Right: scores are rounded, so that document ids decide.
"""

import numpy as np
from common import FILE, load_queries, plain, read_options, save
from matplotlib.figure import Figure

from permdist import data, measures

NAMES = {"map": "MAP", "p@10": "P@10", "bpref": "bpref", "infap": "infAP", "rbp": "RBP, p = 0.8"}


def evaluate(queries, scores, labels, wanted, ids=None):
    """Evaluate a run against labels; negative ones say: in the pool, not judged."""
    names = np.arange(queries.n_documents) if ids is None else ids
    run = data.Run(queries.qid, names, scores)
    return measures.evaluate_run(run, data.Qrels(queries.qid, names, labels), wanted)


def main():
    options = read_options(__file__, __doc__, FILE, queries=200)
    rng = np.random.default_rng(0)
    queries = load_queries(options, n_documents=(40, 120))
    quality = [
        measures.evaluate(column, queries.y, queries.qid, "map").mean("map")
        for column in queries.X.T
    ]
    scores = queries.X[:, int(np.argmax(quality))]
    shares = np.linspace(1.0, 0.1, 10)
    draw = rng.random(queries.n_documents)
    wanted = [*NAMES, "rbp_residual"]
    labels = [np.where(draw <= share, queries.y, -1) for share in shares]
    table = np.array([evaluate(queries, scores, y, wanted).table.mean(axis=0) for y in labels])
    means = dict(zip(wanted, table.T, strict=True))
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, text in NAMES.items():
        left.plot(100 * shares, means[name], marker="o", markersize=3, label=text)
    highest = means["rbp"] + means["rbp_residual"]
    left.fill_between(100 * shares, means["rbp"], highest, color="C4", alpha=0.15, lw=0)
    left.set(xlabel="judged documents, %", ylabel="mean over queries", ylim=(0, 1), xlim=(101, 9))
    left.set_title("Fewer judgements of the same ranking", loc="left")
    left.legend(frameon=False, fontsize=8, title="shaded: what RBP leaves open", title_fontsize=8)

    levels = [2, 3, 5, 10, 30, 100]
    spread, exact = [], []
    place = np.argsort(np.argsort(scores)) / queries.n_documents
    for level in levels:
        rounded = np.floor(place * level)
        ways = [rng.permutation(queries.n_documents) for _ in range(20)]
        found = [evaluate(queries, rounded, queries.y, "map", ids).mean("map") for ids in ways]
        spread.append((min(found), max(found)))
        exact.append(evaluate(queries, rounded, queries.y, "map[ties=average]").table.mean())
    right.vlines(
        range(len(levels)), *np.array(spread).T, color="0.6", lw=6, label="by id: 20 draws"
    )
    right.plot(exact, "o", color="C0", label="averaged over ties, exactly")
    right.set(xticks=range(len(levels)), xticklabels=levels, xlabel="different scores in the run")
    right.set_title("MAP of rounded scores", loc="left")
    right.legend(frameon=False, fontsize=8)
    plain(left)
    plain(right)
    save(figure, options, dpi=150)


if __name__ == "__main__":
    main()
