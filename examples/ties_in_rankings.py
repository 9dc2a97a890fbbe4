"""What ties tell: chances of positions and of pairs in rankings with ties, and scores without them.

Simulates judges who rank eight wines and call those alike that they cannot tell apart, and fits a
Davidson-Luce model. With ``--data FILE`` it reads a PrefLib file with ties instead.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist import DavidsonLuce, PlackettLuce, data, plots

WINES = ["Albariño", "Barolo", "Chablis", "Dolcetto", "Etna", "Fleurie", "Gavi", "Hock"]
SCORES = np.array([0.4, 2.2, 1.4, -0.9, 0.2, -0.4, -2.0, -0.9])
TIES = np.array([-0.3, -1.2])
BLUE, ORANGE, GREEN = "#4c72b0", "#dd8452", "#55a868"


def load(options):
    """Return the ballots, how often each was cast, and the true scores if these are known."""
    if options.data:
        votes = data.load_preflib(options.data)
        return votes.bucket_orders(), votes.counts, votes.names, None
    ballots = DavidsonLuce(SCORES, TIES).sample(options.judges, rng=1)
    return ballots, np.ones(len(ballots)), WINES, SCORES - SCORES.mean()


def draw_pairs(ax, model):
    """Draw the chances of pairs against the difference of their scores."""
    gaps = model.scores[:, None] - model.scores[None, :]
    high = 1.05 * gaps.max()
    grid = np.linspace(-high, high, 101)
    alone = np.array([DavidsonLuce([x, 0.0], model.ties).pair_chances(0, 1) for x in grid])
    seen = ~np.eye(len(gaps), dtype=bool)
    for column, color, name in ((0, BLUE, "above"), (1, ORANGE, "tied")):
        ax.plot(grid, alone[:, column], color=color, label=f"{name}, the two alone")
        chances = np.asarray(model.pairwise(rng=0) if column == 0 else model.pairwise_ties(rng=0))
        label = f"{name}, in a ranking of all"
        ax.plot(gaps[seen], chances[seen], "o", color=color, mfc="none", ms=5, label=label)
    ax.set(xlabel="difference of scores", ylabel="probability", ylim=(0, 1))
    ax.set_title("Chances of pairs", loc="left")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    plain(ax)


def draw_scores(ax, model, broken, truth):
    """Draw scores with intervals, fitted with ties and with ties broken by chance."""
    order = np.argsort(model.scores)
    places = np.arange(len(order))
    fits = ((model, BLUE, "Davidson-Luce", 0.13), (broken, GREEN, "ties broken by chance", -0.13))
    for fitted, color, name, shift in fits:
        error = 1.96 * fitted.fit_result.standard_errors()[order]
        scores = fitted.scores[order]
        ax.errorbar(scores, places + shift, xerr=error, fmt="o", color=color, ms=4, label=name)
    if truth is not None:
        ax.plot(truth[order], places, "|", color="black", ms=16, label="truth")
    ax.set_yticks(places, [plots.pictures.as_text(model.names[item]) for item in order])
    ax.set(xlabel="score, 95% interval")
    ax.set_title("Scores shrink if ties are broken by chance", loc="left")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    plain(ax)


def main():
    options = read_options(
        __file__, __doc__, "a PrefLib file with ties (.toc .toi)", judges=(400, "how many judges")
    )
    ballots, counts, names, truth = load(options)
    model = DavidsonLuce.fit(ballots, weights=counts, names=names)
    rng = np.random.default_rng(0)
    # Every voter's ties are broken anew.
    voters = np.repeat(np.arange(len(ballots)), counts.astype(int))
    broken = PlackettLuce.fit(np.stack([ballots[i].sample(rng) for i in voters]), names=names)
    ranks = np.average([len(ballot.buckets) for ballot in ballots], weights=counts)
    print(f"{len(voters)} rankings of {model.n_items} items with {ranks:.1f} ranks on average")
    print("log delta of ties of 2, 3, ...:", model.ties.round(2))
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[1.25, 1.0, 1.0])
    plots.marginals(model, ax=axes[0])
    axes[0].set_title("Positions in one ranking, a tie shared by its positions", loc="left")
    draw_pairs(axes[1], model)
    draw_scores(axes[2], model, broken, truth)
    save(figure, options)


if __name__ == "__main__":
    main()
