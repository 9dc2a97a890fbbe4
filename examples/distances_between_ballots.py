"""How far apart voters are: distances between ballots with ties and open ends.

Simulates two camps of voters who rank their favorites only and draws the Kendall distances
between all ballots: the camps appear as blocks. With ``--data FILE`` it reads a PrefLib file and
draws the most frequent ballots instead.
"""

import numpy as np
from common import read_options, save
from matplotlib.figure import Figure

from permdist import data, plots, rankings


def simulate(n_voters, n_items, rng):
    """Return two camps with opposite tastes and top-k ballots of different length."""
    names, ballots = [], []
    for voter in range(n_voters):
        camp = voter % 2
        taste = np.linspace(5.0, 0.0, n_items)[:: 1 if camp == 0 else -1]
        order = rankings.order_by_scores(taste + rng.gumbel(size=n_items))
        ballots.append(rankings.TopK.from_order(order, int(rng.integers(3, n_items + 1))))
        names.append("AB"[camp] + str(voter // 2 + 1))
    return names, ballots


def main():
    options = read_options(
        __file__, __doc__, "a PrefLib file (.soc .soi .toc .toi)", voters=(40, "how many voters")
    )
    if options.data:
        votes = data.load_preflib(options.data)
        print(votes.describe())
        often = np.argsort(-votes.counts, kind="stable")[: options.voters]
        every = votes.bucket_orders()
        ballots = [every[i] for i in often]
        names = [f"{votes.counts[i]} voters" for i in often]
    else:
        names, ballots = simulate(options.voters, 8, np.random.default_rng(0))
    matrix = rankings.distance_matrix(ballots, distance="kendall", normalize=True)
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    print(f"\n{len(ballots)} ballots, mean Kendall distance {pairs.mean():.3f}")
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = plots.distances(matrix, names, label="Kendall distance", ax=figure.add_subplot())
    axes.set_title("Kendall distances between ballots, alike ones side by side", loc="left")
    save(figure, options, dpi=150)


if __name__ == "__main__":
    main()
