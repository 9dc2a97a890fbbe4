"""Conditional models and their baselines on several collections, the best three of each marked.

The learners of Figure 3 of Dubey et al. on cleaned collections, C chosen by MAP on validation. The
last column weights collections by their queries. ``--data`` takes folders with LETOR folds.
"""

import numpy as np
from common import read_options, save, turned
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy.stats import rankdata

from permdist import data, models
from permdist.comparison import compare

MEASURES = {"MAP": "map", "NDCG@1": "ndcg@1", "NDCG@10": "ndcg@10[discount=jk]"}
SHADES = {"best": "#9ed39e", "second": "#f7eda0", "third": "#e3cda8", "others": "white"}
SUMS, HINGES = {"C": [1e-4, 1e-3, 1e-2, 0.1]}, {"C": [0.01, 0.1, 1.0]}
LEARNERS = {
    "SVMMap": (models.SVMMap(), HINGES),
    "RankBoost": (models.RankBoost(thresholds=50, early_stopping=30), {}),
    "RankSVM": (models.RankSVM(), HINGES),
    "ListNet": (models.ListNet(), HINGES),
    "BoltzRank": (models.BoltzRank("ndcg@10", sample_size=50), {"C": [100.0]}),
    "MLE": (models.MLE(scale=False), SUMS),
}
KINDS = {models.ExpectedGain: {"n_starts": 1}, models.L3: {}, models.ConvexLoss: {}}
for kind, more in KINDS.items():
    for measure, space in (("auc", "pairs"), ("ap", "lattice"), ("ndcg@10", "lattice")):
        learner = kind(measure, space=space, scale=False, **more)
        LEARNERS[f"{kind.__name__} {measure}"] = (learner, SUMS)
SIMULATED = {
    "short": {"n_documents": (8, 40), "rng": 0},
    "long": {"n_documents": (60, 120), "relevant": 0.1, "rng": 1},
    "few good": {"n_documents": (60, 120), "relevant": 0.02, "rng": 2},
}


def main():
    options = read_options(__file__, __doc__, ["folders with LETOR folds"], queries=80)
    collections = {path.name: data.load_letor_folds(path) for path in options.data or ()}
    for name, settings in SIMULATED.items() if not collections else ():
        collections[name] = turned(data.make_letor(3 * options.queries, **settings))
    for name, folds in collections.items():
        collections[name] = [[part.clean() for part in fold] for fold in folds]
    columns, by = [*collections, "all"], {"select": "map", "measures": tuple(MEASURES.values())}
    table = np.empty((len(MEASURES), len(LEARNERS), len(columns)))
    print(" " * 21 + " ".join(f"{name:<{6 * len(columns) + 1}}" for name in MEASURES))
    print(" " * 21 + " ".join("".join(f"{one[:5]:<6}" for one in columns) + " " for _ in MEASURES))
    for row, (name, (learner, grid)) in enumerate(LEARNERS.items()):
        found = [compare(one, {name: (learner, grid)}, **by) for one in collections.values()]
        for number, measure in enumerate(MEASURES.values()):
            values = [result.values(measure)[0] for result in found]
            table[number, row] = [one.mean() for one in (*values, np.concatenate(values))]
        shown = "  ".join(" ".join(f"{v:.3f}" for v in one[row]) for one in table)
        print(f"{name:<20} {shown}", flush=True)
    figure = Figure(figsize=(15, 6.3), layout="constrained")
    for ax, title, values in zip(figure.subplots(1, 3, sharey=True), MEASURES, table, strict=True):
        place = rankdata(-values.round(3), method="min", axis=0)
        ax.imshow(np.minimum(place, 4), ListedColormap([*SHADES.values()]), vmin=1, vmax=4)
        for row, column in np.ndindex(values.shape):
            ax.text(column, row, f"{values[row, column]:.3f}", ha="center", va="center")
        ax.set(title=title, aspect="auto", xticks=range(len(columns)), xticklabels=columns)
        ax.set_yticks(range(len(LEARNERS)), list(LEARNERS))
    keys = [Patch(color=color, label=name) for name, color in SHADES.items()]
    figure.legend(handles=keys[:3], loc="outside lower center", ncols=3, frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
