"""Rankings by single features, and what comes of adding them: FeatureRank and DiffRank.

(a) interval centers of three features, from all values of an interval and from a third of them;
(b) Kendall's tau along the additions of the paper's FeatureRank, of its balance control by the
labels of each query, and of balance control by all queries, and that of predictions, made without
labels; (c) DiffRank's bound and what it bounds. ``--data``: folds.
"""

import numpy as np
from common import load_halves, plain, read_options, save
from matplotlib.figure import Figure

from permdist.models import BLFeatureRank, DiffRank, FeatureRank
from permdist.models.feature_ranks import quasi_knn

K = 8
COLORS = ["#4c72b0", "#dd8452", "#55a868"]
STYLES = {"normal": "-", "posterior": ":", "middle": "--", "prior": "-."}
PAPER = {"intervals": K, "scores": "ranks", "order": "columns", "keep": "last"}
CURVES = {"objective": "bound, product of Z", "error": "pairs in the wrong order"}


def draw_centers(ax, train):
    """Draw the centers of the features that rise most, fall most and turn most."""
    found = [quasi_knn(train.X, train.y, train.ptr, K, center=name).centers for name in STYLES]
    whole = found[0]
    rise = whole[:, -1] - whole[:, 0]
    turn = np.ptp(whole, axis=1) - np.abs(rise)
    for feature, color in zip((rise.argmax(), rise.argmin(), turn.argmax()), COLORS, strict=True):
        for centers, style in zip(found, STYLES.values(), strict=True):
            ax.plot(np.arange(1, K + 1), centers[feature], style, color=color)
        ax.text(K + 0.15, whole[feature, -1], f"feature {feature + 1}", color=color, va="center")
    for name, style in STYLES.items():
        ax.plot([], [], style, color="0.3", label=name)
    ax.set(title=f"(a) K = {K} intervals", xlabel="from the least relevant up", ylabel="center")


def main():
    options = read_options(
        __file__,
        __doc__,
        "a folder with LETOR folds of strict lists",
        queries=150,
        cycles=(4, "rounds over all features"),
    )
    # at least three documents in every interval, one for each third
    train, test = load_halves(options, n_documents=(24, 150), strict=True, rng=9)
    axes = (figure := Figure(figsize=(14, 4.4), layout="constrained")).subplots(1, 3)
    draw_centers(axes[0], train)
    ends = np.arange(1, options.cycles + 1) * train.n_features
    heads = "".join(f"{f'cycle {cycle}':>10}" for cycle in range(1, options.cycles + 1))
    print(f"{'tau, training':<25}{heads} predicted      test")
    learners = FeatureRank(**PAPER), BLFeatureRank(balance="queries", **PAPER), BLFeatureRank()
    curves = "train", "controlled", "train"
    for learner, curve, color in zip(learners, curves, COLORS, strict=True):
        learner.set_params(cycles=options.cycles).fit(train)
        taus, name = np.array(learner.history_[curve]), type(learner).__name__
        name += " by query" if curve == "controlled" else ""
        axes[1].plot(np.arange(1, len(taus) + 1), taus, color=color, label=name)
        row = [*taus[ends - 1], learner.score(train), learner.score(test)]
        axes[1].plot(len(taus) + 5, row[-2], "o", color=color, label=f"{name}, predicted")
        print(f"{name:<25}" + "".join(f"{tau:10.4f}" for tau in row))
    axes[1].set(title="(b) three ways to add", xlabel="addition", ylabel="Kendall's tau, training")
    history = DiffRank(**PAPER, cycles=options.cycles).fit(train).history_
    for (key, name), color in zip(CURVES.items(), COLORS, strict=False):
        values = np.array(history[key])
        axes[2].plot(np.arange(1, len(values) + 1), values, color=color, label=name)
        print(f"{name:<25}" + "".join(f"{value:10.4f}" for value in values[ends - 1]))
    axes[2].set(title="(c) DiffRank", xlabel="round", ylabel="relative to all pairs, training")
    for ax in axes:
        plain(ax)
        ax.legend(frameon=False)
        for end in ends[:-1] if ax is not axes[0] else ():
            ax.axvline(end + 0.5, color="0.7", linestyle="--", linewidth=1, zorder=0)
    save(figure, options)


if __name__ == "__main__":
    main()
