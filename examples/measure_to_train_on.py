"""Which measure should be trained on? Six smooth measures, each tested by all six.

Approx maximizes a smooth version of each measure, with settings chosen by that measure on the
validation part of every fold. Columns compare with the learner that was trained on the tested
measure itself, paired by query. ``--data`` takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, load_folds, read_options, save, settings_text, standard_error
from matplotlib.figure import Figure

from permdist.comparison import compare
from permdist.models import Approx

MEASURES = ["ap", "ndcg", "ndcg@5", "p@5", "rr", "tau"]
GRID = {"alpha": [10.0, 100.0], "C": [0.1, 1.0, 100.0]}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    folds = load_folds(options)
    print(
        "trained on" + "".join(f"{measure:>9}" for measure in MEASURES) + "  alpha/C of the folds"
    )
    values = []
    for trained in MEASURES:
        learner = Approx(trained, beta=1.0 if "@" in trained else 10.0)
        found = compare(folds, {trained: (learner, GRID)}, select=trained, measures=MEASURES)
        values.append([found.values(measure)[0] for measure in MEASURES])
        means = "".join(f"{one.mean():9.4f}" for one in values[-1])
        print(f"{trained:<10}{means}  {settings_text(found, trained)}", flush=True)
    values = np.array(values)  # trained on, tested by, query
    more = values - values[np.arange(len(MEASURES)), np.arange(len(MEASURES))]
    means = more.mean(axis=2)
    errors = standard_error(more)
    ratios = means / np.where(errors > 0.0, errors, 1.0)
    print(f"\nThe largest difference from the diagonal: {np.abs(ratios).max():.1f} standard errors")
    figure = Figure(figsize=(8.5, 5.6), layout="constrained")
    ax = figure.add_subplot()
    image = ax.imshow(ratios, cmap="RdBu", vmin=-4.0, vmax=4.0)
    for row, column in np.ndindex(means.shape):
        shown = f"{means[row, column]:+.4f}" if row != column else f"{values[row, row].mean():.4f}"
        style = {"weight": "bold"} if row == column else {}
        color = "white" if abs(ratios[row, column]) > 2.5 else "black"
        ax.text(column, row, shown, ha="center", va="center", color=color, **style)
    ax.set(xlabel="tested by", ylabel="trained on")
    ax.set_xticks(range(len(MEASURES)), MEASURES)
    ax.set_yticks(range(len(MEASURES)), MEASURES)
    figure.colorbar(image, ax=ax, label="difference from the diagonal, in standard errors")
    save(figure, options)


if __name__ == "__main__":
    main()
