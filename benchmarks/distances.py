"""Distances between rankings: time for each pair, beside scipy, and their growth with n.

python benchmarks/distances.py
"""

from __future__ import annotations

import harness
from scipy import stats

from permdist import rankings


def main():
    print(harness.machine())
    orders = rankings.random_orders(100, 1000, rng=0)
    ranks = rankings.order_to_ranks(orders)
    rows = {
        "permdist.kendall, 1,000 against one": harness.seconds(
            lambda: rankings.kendall(orders, orders[0])
        )
        / 1000,
        "permdist.distance_matrix, all pairs of 1,000": harness.seconds(
            lambda: rankings.distance_matrix(orders), repeat=3
        )
        / 499_500,
        "scipy.stats.kendalltau": harness.seconds(
            lambda: [stats.kendalltau(row, ranks[0]) for row in ranks[:100]], repeat=3
        )
        / 100,
    }
    harness.table("Kendall, 100 items, for each pair", rows, unit="us")
    for name in rankings.DISTANCES:
        growth = {}
        for n in (10, 100, 1000, 10_000):
            count = max(10, 200_000 // n)
            batch = rankings.random_orders(n, count, rng=0)
            function = getattr(rankings, name)
            took = harness.seconds(lambda f=function, b=batch: f(b, b[0]), repeat=5)
            growth[f"n = {n:,}"] = took / count
        harness.table(f"{name}, for each pair", growth, unit="us")


if __name__ == "__main__":
    main()
