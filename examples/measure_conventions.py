"""One ranking, many NDCGs: how much of a published figure is convention.

Ranks a collection by its best single feature and draws NDCG@k by four conventions of three tools,
for k = 1 to 20. With LETOR data (``--data FILE``) the gap between the lines is what separates
numbers in the literature that look comparable and are not.
"""

import numpy as np
from common import FILE, load_queries, plain, read_options, save
from matplotlib.figure import Figure

from permdist import measures


def main():
    options = read_options(__file__, __doc__, FILE, queries=400)
    queries = load_queries(options, n_documents=(4, 60), empty=0.25)
    print(queries.describe(), end="\n\n")

    by_feature = [
        measures.evaluate(column, queries.y, queries.qid, "map").mean("map")
        for column in queries.X.T
    ]
    best = int(np.argmax(by_feature))
    cuts = range(1, 21)
    lines = {
        "burges: gain 2^label - 1": "burges:ndcg@{}",
        "burges, queries without a relevant document left out": "burges:ndcg@{}[empty=skip]",
        "trec: linear gain": "trec:ndcg@{}",
        "letor4: undiscounted second place, 0 for short queries": "letor4:ndcg@{}",
    }
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for name, pattern in lines.items():
        wanted = [measures.parse(pattern.format(k)) for k in cuts]
        result = measures.evaluate(queries.X[:, best], queries.y, queries.qid, wanted)
        values = [result.mean(measure) for measure in wanted]
        axes.plot(cuts, values, marker="o", markersize=3, label=name)
        print(f"{name:<56} NDCG@10 = {values[9]:.4f}")
    axes.set(xlabel="cut-off k", ylabel="mean NDCG@k", xticks=[1, 5, 10, 15, 20], ylim=(0, None))
    axes.set_title(f"Feature {best + 1} as a ranking: the same order, four conventions", loc="left")
    plain(axes)
    axes.legend(frameon=False, fontsize=8)
    save(figure, options, dpi=150)


if __name__ == "__main__":
    main()
