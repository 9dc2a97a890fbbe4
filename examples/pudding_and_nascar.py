"""How sure is a ranking? Puddings compared with ties, and a season of races.

Six brands of pudding were compared in pairs, with many ties (Davidson 1970); the season has 36
races of some of 24 drivers each. For both, the picture shows the scores with 95% intervals, the
comparison intervals of quasi-variances and the places that each item can truly have. With
``--data FILE`` it reads a CSV file of races instead, such as NASCAR's season of 2002.
"""

import csv

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from permdist import Ballots, DavidsonLuce, PlackettLuce
from permdist.inference import PseudoWins

# The two brands, how often the first was preferred, how often the second, and ties.
PUDDING = """
1 2 19 22 16   1 3 16 19 12   2 3 19 19 10   1 4 18 23 13   2 4 23 19  9
3 4 19 20 15   1 5 13 19 18   2 5 16 20 12   3 5 16 15 17   4 5 17 14 16
1 6 18 21 12   2 6 22 20 12   3 6 13 18 10   4 6 14 19 18   5 6 11 21 12
"""
BLUE, ORANGE, GRAY = "#2b6ca3", "#d9772b", "#b8c4ce"


def pudding():
    """Fit Davidson's model to the counts."""
    rows = np.array(PUDDING.split(), dtype=int).reshape(-1, 5)
    first, second = rows[:, 0] - 1, rows[:, 1] - 1
    ballots = Ballots.from_pairs(
        np.concatenate([first, second, first]),
        np.concatenate([second, first, second]),
        ties=np.repeat([False, False, True], len(rows)),
        weights=rows[:, 2:].T.ravel(),
        names=[f"brand {k}" for k in range(1, 7)],
    )
    return DavidsonLuce.fit(ballots)


def season(races, rng):
    """Simulate races: half of the drivers take part in all of them, the others now and then."""
    skill = PlackettLuce(np.linspace(1.6, -1.6, 24))
    part = rng.random((races, 24)) < np.where(np.arange(24) % 2 == 0, 1.0, 0.35)
    every = skill.sample(races, rng=rng)
    return [
        [f"driver {item + 1}" for item in order if there[item]]
        for order, there in zip(every, part, strict=True)
    ]


def read_races(path):
    """Read a file with a row per race: its number, then the drivers by place.

    A file ``..._drivers.csv`` beside it has the names that the drivers' numbers stand for.
    """
    names = {}
    beside = path.with_name(f"{path.stem}_drivers.csv")
    if beside.is_file():
        names = dict(row[:2] for row in csv.reader(beside.read_text().splitlines()[1:]))
    rows = csv.reader(path.read_text().splitlines()[1:])
    races = [[driver.removesuffix(".0") for driver in row[1:] if driver] for row in rows]
    return [[names.get(driver, driver) for driver in race] for race in races]


def draw(result, left, right, most):
    """Draw intervals on the left and sets of true places on the right."""
    order = np.argsort(-result.scores, kind="stable")[:most]
    heights = np.arange(len(order))
    own, quasi = result.intervals()[order], result.quasi_variances().intervals(result.scores)[order]
    sets = result.rank_sets()[order]
    left.hlines(heights, *own.T, color=BLUE, linewidth=1.5)
    left.hlines(heights, *quasi.T, color=ORANGE, linewidth=6, alpha=0.35)
    left.plot(result.scores[order], heights, "o", color=BLUE, markersize=5)
    left.axvline(0.0, color=GRAY, linewidth=0.8, zorder=0)
    left.set_yticks(heights, [result.names[item] for item in order])
    left.set_xlabel("score (log-worth, 0 is the mean)")
    right.hlines(heights, *sets.T, color=GRAY, linewidth=9)
    right.plot(heights + 1, heights, "|", color=BLUE, markersize=11, markeredgewidth=2.5)
    chances = result.prob_best()[order]
    for height in np.flatnonzero(chances >= 0.005):
        right.annotate(
            f"{chances[height]:.0%}",
            (1.0, height),
            xycoords=right.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    right.set_yticks(heights, [])
    right.set_xlim(0.3, len(result.names) + 0.7)
    right.set_xlabel("true place")
    right.set_title("truly the best", loc="right", fontsize=8)
    for axes in (left, right):
        axes.set_ylim(len(order) - 0.4, -0.6)
    plain(left, right)


def main():
    options = read_options(
        __file__,
        __doc__,
        "a CSV file: in each row a race and its drivers by place",
        races=(36, "races to simulate"),
    )
    brands = pudding()
    print(brands.fit_result.leaderboard())
    best = int(np.argmax(brands.scores))
    first, truly = brands.rank_marginals()[best, 0], brands.fit_result.prob_best()[best]
    print(
        f"{brands.names[best]}: first in one ranking of all {first:.2f}, truly the best {truly:.2f}"
    )
    races = (
        read_races(options.data)
        if options.data
        else season(options.races, np.random.default_rng(3))
    )
    ballots = Ballots.from_orders(races, subset=True)
    drivers = PlackettLuce.fit(ballots, prior=PseudoWins(0.5)).fit_result
    print(f"\n{drivers.leaderboard()}")

    figure = Figure(figsize=(11, 9.5), layout="constrained")
    axes = figure.subplots(2, 2, height_ratios=[6, 20], width_ratios=[3, 2])
    draw(brands.fit_result, *axes[0], 6)
    draw(drivers, *axes[1], 24)
    axes[0, 0].set_title("Pudding, 745 comparisons, 27% ties: Davidson's model", loc="left")
    what = "Races" if options.data else "A simulated season"
    axes[1, 0].set_title(f"{what}, {len(races)} races: Plackett-Luce", loc="left")
    for row in axes:
        row[1].set_title("95% sets of true places", loc="left")
    lines = [Line2D([], [], color=BLUE, marker="o", linewidth=1.5)]
    lines += [Line2D([], [], color=ORANGE, linewidth=6, alpha=0.35)]
    lines += [
        Line2D([], [], color=BLUE, marker="|", markersize=11, markeredgewidth=2.5, linestyle="")
    ]
    figure.legend(
        lines,
        ["score with 95% interval", "to compare two items: quasi-variances", "place by score"],
        loc="outside lower left",
        ncols=3,
        frameon=False,
    )
    save(figure, options)


if __name__ == "__main__":
    main()
