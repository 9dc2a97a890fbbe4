"""How tight are the bounds that learners minimize? Both types of them, above the loss itself.

Type-one bounds over the measure, type-two bounds over F(p) - F(y), and both along all directions of
w for two sets of points, shaded where condition (9) of Theorem 3 holds: nowhere at |w| = 1. With
``--length 60`` it does for good-bad pairs; for all pairs, the order of equal labels forbids it.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist.models.bounds import BasicLoss, TypeOne, TypeTwo

LABELS = np.repeat([1, 0], [7, 14])


def draw_shapes(left, right):
    """Draw the bounds as functions of what they bound."""
    E, x, e = np.linspace(0.0, 1.0, 101), np.linspace(-1.5, 2.0, 351), 0.5
    lines = np.transpose([np.exp(-E), np.log2(1.0 + np.exp(-E))])
    left.plot(E, lines, label=["exp(-E)", "log2(1 + exp(-E))"])
    left.plot(E, 1.0 - E, color="0.3", label="basic loss, 1 - E")
    left.set(title="(a) type-one bounds", xlabel="measure E", ylabel="loss of a query")
    right.plot(x, e * np.exp(-x), label="e exp(-x)")
    right.plot(x, e * np.log2(1.0 + np.exp(-x)), label="e log2(1 + exp(-x))")
    right.plot(x, e * np.maximum(0.0, 1.0 - x), label="e max(0, 1 - x)")
    right.plot(x, np.maximum(0.0, e - x), label="max(0, e - x)")
    right.plot(x, np.where(x <= 0.0, e, 0.0), color="0.3", label="e [x <= 0]")
    right.set(title="(b) type-two bounds, e = 0.5", xlabel="x = F(p) - F(y)", ylim=(-0.05, 2.1))


def draw_plane(ax, X, angles, length):
    """Draw the bounds along all directions; print where they are least and how wide margins are."""
    scores = [length * X @ (np.cos(theta), np.sin(theta)) for theta in angles]
    basic = np.array([BasicLoss("ap").value(score, LABELS) for score in scores])
    one = np.array([TypeOne("ap").value(score, LABELS) for score in scores])
    ax.plot(angles, one, color="#4c72b0", label="type one")
    for pairs, color in (("all", "#dd8452"), ("good-bad", "#55a868")):
        loss = TypeTwo("ap", pairs=pairs)
        two, margin = (np.array([f(s, LABELS) for s in scores]) for f in (loss.value, loss.margin))
        holds, shade = margin >= 1.0 - basic, {"color": color, "alpha": 0.2, "linewidth": 0}
        ax.plot(angles, two, color=color, label=f"type two, {pairs} pairs")
        if holds.any():
            ax.fill_between(angles, -1, 3, holds, label=f"(9) holds, {pairs} pairs", **shade)
        row = f"{two.min():10.4g}{one.min():10.3f}{(two < one).mean():15.0%}{holds.mean():11.0%}"
        print(f"{ax.get_title()[:3]} {pairs:<10}{margin.max():8.3f}{row}")
    ax.plot(angles, basic, color="0.3", label="basic loss, 1 - AP")
    ax.set(xlabel="direction of w", ylabel="loss of a query", ylim=(-0.05, 2.1))
    ax.set_xticks(np.arange(5) * np.pi / 2, ["0", "π/2", "π", "3π/2", "2π"])


def main():
    options = read_options(
        __file__,
        __doc__,
        points=(200, "directions of w"),
        length=(1.0, "the length of w"),
        seed=(0, "of the points"),
    )
    rng, angles = np.random.default_rng(options.seed), np.linspace(0.0, 2 * np.pi, options.points)
    axes = (figure := Figure(figsize=(11, 8), layout="constrained")).subplots(2, 2)
    draw_shapes(*axes[0])
    print("    pairs of F  margin  type two  type one  two below one  (9) holds")
    for ax, letter, variance in zip(axes[1], "cd", (0.2, 1.3), strict=True):
        spread = np.sqrt([0.2, variance]) * rng.normal(size=(len(LABELS), 2))
        ax.set(title=f"({letter}) variances 0.2 and {variance}, |w| = {options.length:g}")
        draw_plane(ax, spread + np.where(LABELS > 0, 1.0, -1.0)[:, None], angles, options.length)
    for ax in axes.flat:
        plain(ax)
    for ax in axes[0]:
        ax.legend(frameon=False)
    handles = max((ax.get_legend_handles_labels()[0] for ax in axes[1]), key=len)
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
