"""How steep should smooth positions be? MAP against alpha, and why C must be named with it.

Smooth positions see alpha times the scores, so that alpha and the penalty |w|^2 / C act through
alpha^2 C alone: the curves of three C are one curve, shifted, until steep objectives have too many
optima to find the same one. ``--data`` takes a folder with LETOR folds, of which the first is used.
"""

import warnings

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save, smooth_values, with_pairs
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist.models import ApproxAP

ALPHAS, PENALTIES = 10.0 ** np.arange(-1.0, 3.1, 0.5), (0.01, 1.0, 100.0)
COLORS = ["#dd8452", "#4c72b0", "#55a868"]
CURVES = {"smooth AP, training": ":", "MAP, training": "--", "MAP, test": "-"}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=200)
    train, test = load_halves(options)
    train, test = (part.clean(conflicts=None) for part in (train, test))  # the others teach nothing
    pairs = with_pairs(train)
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the steepest
    table = np.empty((len(PENALTIES), len(ALPHAS), len(CURVES)))
    print(f"{'C':>6} {'alpha':>7}  " + "  ".join(CURVES))
    for row, C in enumerate(PENALTIES):
        for column, alpha in enumerate(ALPHAS):
            learner = ApproxAP(alpha=alpha, C=C, max_iter=300).fit(train)
            smooth = smooth_values(learner, pairs, learner.predict(pairs)).mean()
            table[row, column] = smooth, learner.score(train), learner.score(test)
            shown = "  ".join(
                f"{value:{len(name)}.4f}"
                for name, value in zip(CURVES, table[row, column], strict=True)
            )
            print(f"{C:6g} {alpha:7.4g}  {shown}", flush=True)
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row, (C, color) in enumerate(zip(PENALTIES, COLORS, strict=True)):
        for curve, style in zip(table[row].T, CURVES.values(), strict=True):
            right.plot(ALPHAS * np.sqrt(C), curve, "o" + style, color=color, markersize=3)
            if style != ":":
                left.plot(ALPHAS, curve, "o" + style, color=color, markersize=3)
        left.plot([], [], color=color, label=f"C = {C:g}")
    for name, style in CURVES.items():
        right.plot([], [], style, color="0.3", label=name)
    left.set(xlabel="alpha", ylabel="MAP, training (dashed) and test")
    right.set(xlabel="alpha times the square root of C", ylabel="average over queries")
    for ax in (left, right):
        ax.set_xscale("log")
        plain(ax)
        ax.legend(frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
