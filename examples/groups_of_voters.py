"""Groups of voters: mixtures of Plackett-Luce models of an election, and how many groups there are.

Simulates an election with three groups of voters who rank up to five candidates. With
``--data FILE`` it reads a PrefLib file instead, such as the election of the American Psychological
Association of 1998 (18,723 ballots, five candidates).

There, BIC takes seven groups: 136,989 for five, 136,973 for six, 136,966 for seven and 136,993 for
eight, the best of 30 starts each (``--most 8 --starts 30``). Iterations that stop too early hide
this: with a `tol` of 1e-6 and four starts six and seven are equal within 1. The two largest groups
stay the same whatever their number: about a third of the voters has candidate 3 far ahead and
candidate 5 last, over a quarter candidate 1 ahead and candidate 5 last. Candidate 5 is first in
three smaller groups, two of which have candidate 3 next, a tenth has candidate 3 first and 5 next,
and the smallest but two has candidate 2, then 4. So candidate 5 divides the voters, and candidate 3
is acceptable to most. The groups overlap: ICL, which asks for groups that ballots can be told to
belong to, takes one.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist import Ballots, Mixture, PlackettLuce, data, plots
from permdist.rankings import TopK

NAMES = ["Adams", "Brown", "Clark", "Davis", "Evans"]
GROUPS = [[1.8, 1.0, -0.3, -1.0, -1.5], [-1.2, -0.5, 0.2, 0.3, 1.2], [-1.0, 0.6, 2.2, -0.4, -1.4]]
WEIGHTS = [0.5, 0.3, 0.2]


def load(options):
    """Return ballots: of the file, or the first places of draws, from two of them to all."""
    if options.data:
        return Ballots.of(data.load_preflib(options.data))
    town = Mixture([PlackettLuce(scores) for scores in GROUPS], WEIGHTS)
    rng = np.random.default_rng(1)
    orders, lengths = town.sample(options.voters, rng), rng.integers(2, 6, options.voters)
    lists = [TopK(order[:length], 5) for order, length in zip(orders, lengths, strict=True)]
    return Ballots.of(lists, names=NAMES)


def draw_criteria(ax, fits, chosen):
    """Draw BIC and ICL against the number of groups, relative to the smallest of each."""
    numbers = [model.n_components for model in fits]
    for name, color in (("bic", "#4c72b0"), ("icl", "#dd8452")):
        values = np.array([getattr(model.fit_result, name) for model in fits])
        ax.plot(numbers, values - values.min(), "o-", color=color, label=name.upper())
    ax.axvline(chosen, color="0.8", zorder=0)
    ax.set(xlabel="groups", ylabel="above the smallest", xticks=numbers)
    ax.set_title("How many groups", loc="left")
    ax.legend(frameon=False)
    plain(ax)


def draw_certainty(ax, model, ballots):
    """Draw how many ballots belong to their group with at least a given probability."""
    surest = model.responsibilities(ballots).max(axis=1)
    order = np.argsort(surest)[::-1]
    share = np.cumsum(ballots.weights[order]) / ballots.weights.sum()
    ax.plot(share, surest[order], color="#4c72b0")
    ax.set(xlabel="share of the ballots", ylabel="probability of the likeliest group")
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set_title("How surely a ballot belongs to its group", loc="left")
    plain(ax)


def main():
    options = read_options(
        __file__,
        __doc__,
        "a PrefLib file without ties (.soc .soi)",
        voters=(3000, "simulated voters"),
        most=(5, "the largest number of groups"),
        starts=(4, "starts of the EM algorithm"),
    )
    ballots = load(options).merged()
    # Where groups overlap, EM gains little per iteration long before its maximum.
    tol = 1e-8 if options.data else 1e-6
    fits = [
        Mixture.fit(ballots, k=k, n_init=options.starts, tol=tol, max_iter=5000, rng=0, n_jobs=-1)
        for k in range(1, options.most + 1)
    ]
    model = min(fits, key=lambda one: one.fit_result.bic)
    result = model.fit_result
    print(f"{result.n_ballots:.0f} ballots, {model.n_components} groups by BIC")
    errors = zip(model.weights, result.weight_errors, model.components, strict=True)
    for weight, error, part in errors:
        names = " > ".join(f"{model.names[item]} ({part.scores[item]:.1f})" for item in part.mode())
        print(f"{100 * weight:3.0f}% +- {100 * error:.0f}%  {names}")
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[0.8, 1.4, 1.0])
    draw_criteria(axes[0], fits, model.n_components)
    plots.plot_centers(model, ax=axes[1])
    axes[1].set_title("What the groups want", loc="left")
    draw_certainty(axes[2], model, ballots)
    save(figure, options)


if __name__ == "__main__":
    main()
