"""Posteriors of Mallows' model against enumeration of centers and quadrature over theta."""

import numpy as np
import pytest

from permdist import Ballots, Mallows, rankings
from permdist.posterior.mallows import MallowsPosterior, MallowsPrior
from permdist.posterior.priors import Gamma

DISTANCES = sorted(rankings.DISTANCES)
EVERY = pytest.mark.parametrize("distance", DISTANCES)
THETAS = {"kendall": 0.6, "footrule": 0.4, "spearman": 0.15, "hamming": 0.8, "cayley": 1.0,
          "ulam": 1.2}  # fmt: skip


def exact(ballots, distance, prior, n):
    """Return rank marginals of the center and moments of theta, by listing and quadrature."""
    orders = rankings.enumerate_orders(n)
    grid = np.exp(np.linspace(-9.0, 3.0, 400))
    table = np.empty((len(orders), len(grid)))
    for column, theta in enumerate(grid):
        for row, center in enumerate(orders):
            found = Mallows(center, theta, distance).log_prob(ballots) @ ballots.weights
            table[row, column] = found
    return orders, grid, table


def quick_exact(ballots, distance, prior, n):
    orders = rankings.enumerate_orders(n)
    grid = np.exp(np.linspace(-9.0, 3.0, 600))
    every = rankings.distance_matrix(orders, orders, distance=distance)  # center, order
    from permdist.ballots import levels_of
    marks = levels_of(ballots)[:, orders]  # ballot, order, place
    agrees = ((marks < 0) | (marks == np.maximum.accumulate(marks, axis=2))).all(axis=2)
    table = np.empty((len(orders), len(grid)))
    for column, theta in enumerate(grid):
        weights = np.exp(-theta * every)
        chances = (weights @ agrees.T) / weights.sum(axis=1, keepdims=True)
        table[:, column] = np.log(chances) @ ballots.weights
    table += prior.theta.log_density_of_values(grid) + np.log(grid)
    table += prior.log_center(orders)[:, None]
    shares = np.exp(table - table.max())
    shares /= shares.sum()
    ranks = np.argsort(orders, axis=1)
    centers = shares.sum(axis=1)
    marginals = np.array([[centers[ranks[:, i] == r].sum() for r in range(n)] for i in range(n)])
    theta = shares.sum(axis=0)
    return centers, marginals, theta @ grid, np.sqrt(theta @ grid**2 - (theta @ grid) ** 2)


def run(problem, draws, seed):
    rng = np.random.default_rng(seed)
    table, values = np.empty((draws, problem.size)), np.empty(draws)
    problem.advance(problem.start(rng), table, values, rng)
    return table[draws // 10 :], values[draws // 10 :]


if __name__ == "__main__":
    import time
    for kind in ["none", "full", "top", "some", "ties"]:
        for distance in DISTANCES:
            n = 4
            orders = Mallows([2, 0, 3, 1], THETAS[distance], distance).sample(6, rng=1)
            ballots = {"none": lambda: Ballots.of(np.zeros((0, 4), int), n_items=4),
              "full": lambda: Ballots.from_orders(orders),
              "top": lambda: Ballots.from_orders(orders[:, :1], n_items=4, subset=False),
              "some": lambda: Ballots.from_orders(orders[:, [0, 2]], n_items=4, subset=True),
              "ties": lambda: Ballots.from_orders([[[a, b], [c, d]] for a, b, c, d in orders.tolist()] )}[kind]()
            prior = MallowsPrior(Gamma(2.0, 2.0), Mallows([0, 1, 2, 3], 0.3))
            problem = MallowsPosterior(ballots, distance, prior)
            c, m, mean, sd = quick_exact(ballots, distance, prior, n)
            t = time.process_time()
            draws, values = run(problem, 40000, 0)
            t = time.process_time() - t
            est = np.array([[(draws[:, i] == r).mean() for r in range(n)] for i in range(n)])
            print(kind, distance, "marg err", abs(est - m).max().round(4), "theta", mean.round(4), draws[:, -1].mean().round(4), sd.round(4), draws[:, -1].std().round(4), "us/draw", round(t / 40000 * 1e6, 1))
