"""Conditional models and their baselines: Figure 3 of Dubey et al., with its wins counted.

All conditional models sum over one space, ``--space``; C, and kappa where there is one, are chosen
by MAP on validation. Collections are cleaned as the paper does, the last column weights them by
their queries, and everything is repeated for several seeds of the data and of the learners. Below
are the counts of section 5.2: as claimed, as counted in the paper's own table (of other
collections), and here. ``--data`` takes folders with LETOR folds.
"""

import warnings

import numpy as np
from common import read_folds, read_options, save, size_of, tell, turned
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from published import CLAIMED, FIGURE_THREE, count_wins, stack_cells
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from permdist import data, models
from permdist.comparison import compare

MEASURES = {
    "MAP": "map",
    "NDCG@1": "ndcg@1",
    "NDCG@5": "ndcg@5[discount=jk]",
    "NDCG@10": "ndcg@10[discount=jk]",
}
SHADES = {"best": "#9ed39e", "second": "#f7eda0", "third": "#e3cda8", "others": "white"}
SUMS, HINGES = {"C": [1e-4, 1e-3, 1e-2, 0.1]}, {"C": [0.1, 1.0, 10.0]}
SIMULATED = {
    "short": {"n_documents": (8, 40)},
    "long": {"n_documents": (60, 120), "relevant": 0.1},
    "few good": {"n_documents": (60, 120), "relevant": 0.02},
}


def learners(space, seed):
    """Return the learners of the figure with the settings to choose from."""
    found = {
        "SVMMap": (models.SVMMap(), HINGES),
        "RankBoost": (models.RankBoost(thresholds=50, early_stopping=30), {}),
        "RankSVM": (models.RankSVM(), HINGES),
        "ListNet": (models.ListNet(), HINGES),
        "BoltzRank": (models.BoltzRank("ndcg@10", sample_size=50, random_state=seed), {}),
        "MLE": (models.MLE(graded=False), SUMS),
    }
    with_kappa = SUMS | {"kappa": [1.0, 100.0]}
    grids = {models.ExpectedGain: SUMS, models.L3: with_kappa, models.ConvexLoss: with_kappa}
    for kind, grid in grids.items():
        for name, measure in (("AUC", "auc"), ("MAP", "ap"), ("NDCG", "ndcg@10")):
            over = "pairs" if space == "rows" and name == "AUC" else space
            one = kind(measure, space=over, random_state=seed)
            found[f"{kind.__name__}-{name}"] = (one, grid)
    return found


def main():
    options = read_options(
        __file__,
        __doc__,
        ["folders with LETOR folds"],
        queries=60,
        seeds=(2, "seeds of the data and of the learners"),
        space=("rows", "what conditional models sum over, such as rows or interleavings"),
    )
    warnings.simplefilter("ignore", ConvergenceWarning)  # of RankBoost, which is stopped early
    real = dict(read_folds(options, path)[::-1] for path in options.data or ())
    columns = [*(real or SIMULATED), "all"]
    names = list(learners(options.space, 0))
    table = np.empty((options.seeds, len(MEASURES), len(names), len(columns)))
    by = {"select": "map", "measures": tuple(MEASURES.values())}
    for seed in range(options.seeds):
        collections = real or {
            name: turned(data.make_letor(3 * options.queries, rng=seed, **settings))
            for name, settings in SIMULATED.items()
        }
        cleaned = [[[part.clean() for part in fold] for fold in f] for f in collections.values()]
        sizes = [size_of(*(fold[2] for fold in folds)) for folds in cleaned]
        about = "; ".join(f"{name}, {size}" for name, size in zip(collections, sizes, strict=True))
        tell(options, f"cleaned of queries without a relevant document and conflicts: {about}")
        found = [compare(folds, learners(options.space, seed), **by) for folds in cleaned]
        for number, measure in enumerate(MEASURES.values()):
            values = [result.values(measure) for result in found]
            for column, one in enumerate((*values, np.concatenate(values, axis=1))):
                table[seed, number, :, column] = one.mean(axis=1)
    wins = [
        count_wins(dict(zip(names, np.concatenate(one, axis=1).round(3), strict=True)))
        for one in table
    ]
    report(names, columns, table, wins)
    figure = Figure(figsize=(16, 9.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.35, 1])
    draw_table(upper, names, columns, table.mean(axis=0))
    draw_wins(lower.subplots(), wins, table[0, :, 0].size)
    save(figure, options, rules=MEASURES.values())


def report(names, columns, table, wins):
    """Print means with half the range over seeds, and the counts."""
    means, ranges = table.mean(axis=0), np.ptp(table, axis=0) / 2
    for number, measure in enumerate(MEASURES):
        print(f"\n{measure:<20}" + "".join(f"{one:>15}" for one in columns))
        for row, name in enumerate(names):
            cells = zip(means[number, row], ranges[number, row], strict=True)
            print(f"{name:<20}" + "".join(f"  {mean:.3f} +- {half:.3f}" for mean, half in cells))
    print(f"\nwins, out of {table[0, :, 0].size} (claimed and paper: out of 32)")
    paper = count_wins(stack_cells(FIGURE_THREE.values()))
    for statement in wins[0]:
        ours = ", ".join(str(one[statement]) for one in wins)
        print(f"{statement:<58} {CLAIMED.get(statement, ''):>3} {paper[statement]:>3}  here {ours}")


def draw_table(figure, names, columns, table):
    """Draw the means of each measure, the best three of each column shaded."""
    for ax, title, values in zip(figure.subplots(1, 4, sharey=True), MEASURES, table, strict=True):
        place = rankdata(-values.round(3), method="min", axis=0)
        ax.imshow(np.minimum(place, 4), ListedColormap([*SHADES.values()]), vmin=1, vmax=4)
        for row, column in np.ndindex(values.shape):
            text = f"{values[row, column]:.3f}"
            ax.text(column, row, text, ha="center", va="center", fontsize=8)
        ax.set(title=title, aspect="auto", xticks=range(len(columns)), xticklabels=columns)
        ax.set_yticks(range(len(names)), names)
    keys = [Patch(color=color, label=name) for name, color in SHADES.items()]
    figure.legend(handles=keys[:3], loc="outside lower center", ncols=3, frameon=False)


def draw_wins(ax, wins, cells):
    """Draw the share of cells that each statement holds in: claimed, in the paper, and here."""
    paper = count_wins(stack_cells(FIGURE_THREE.values()))
    for place, statement in enumerate(wins[0]):
        shares = [one[statement] / cells for one in wins]
        ax.plot([min(shares), max(shares)], [place, place], color="#4c72b0", linewidth=4, alpha=0.5)
        ax.plot(np.mean(shares), place, "o", color="#4c72b0", label="here, range over seeds")
        ax.plot(paper[statement] / 32, place, "s", color="#dd8452", label="in the paper's table")
        if statement in CLAIMED:
            ax.plot(CLAIMED[statement] / 32, place, "|", color="black", ms=12, label="claimed")
    labels = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend(labels.values(), labels.keys(), frameon=False, bbox_to_anchor=(1.0, 1.0))
    ax.set(xlim=(-0.02, 1.02), xlabel="share of cells (collections x measures)")
    ax.set_yticks(range(len(wins[0])), list(wins[0]), fontsize=8)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
