"""Draws from Mallows' model with Kendall's distance, beside numpy, prefsampling and the bare cost.

python benchmarks/draws_of_rankings.py

"Random numbers and insertions" is what any sampler by repeated insertion has to do: an exponential
variable for every item of every draw (from which a place follows by one division), and a compiled
loop that inserts items at places that are known already. prefsampling (``pip install
prefsampling``) is timed with a hundredth of the draws.
"""

from __future__ import annotations

import harness
import numpy as np
from numba import njit

from permdist import Mallows, rankings

DRAWS, PEER_DRAWS = 1000, 10


def stages(n, theta):
    """Draw how many items are passed over at each stage, shape (draws, n)."""
    left = np.arange(n, 0, -1)
    uniforms = np.random.default_rng(0).random((DRAWS, n))
    found = -np.log1p(uniforms * np.expm1(-left * theta)) / theta
    return np.minimum(found.astype(np.int64), left - 1)


def insert_columns(displaced):
    """Decode stages into orders with numpy, all draws at once."""
    orders = displaced.copy()
    for k in range(displaced.shape[1] - 2, -1, -1):
        orders[:, k + 1 :] += orders[:, k + 1 :] >= displaced[:, k, None]
    return orders


@njit
def insert(displaced):
    """Decode stages into orders: take each item out of the list of those that are left."""
    draws, n = displaced.shape
    orders, left = np.empty((draws, n), np.int64), np.empty(n, np.int64)
    for row in range(draws):
        for k in range(n):
            left[k] = k
        for k in range(n):
            at = k + displaced[row, k]
            orders[row, k] = left[at]
            for place in range(at, k, -1):
                left[place] = left[place - 1]
    return orders


def bare(displaced):
    """Draw random numbers, and insert at given places."""
    np.random.default_rng(0).standard_exponential(displaced.shape)
    return insert(displaced)


def peer(n, theta):
    """Return the time of prefsampling for all draws, or why there is none."""
    try:
        from prefsampling.ordinal import mallows
    except ImportError:
        return "not installed"
    ratio = DRAWS / PEER_DRAWS
    return ratio * harness.seconds(lambda: mallows(PEER_DRAWS, n, np.exp(-theta)), repeat=2)


def main():
    print(harness.machine())
    for n in (100, 1000):
        for theta in (0.001, 0.01, 0.1, 1.0):
            model, places = Mallows(range(n), theta), stages(n, theta)
            if (insert(places) != insert_columns(places)).any():
                raise RuntimeError("the two ways to insert differ")
            rows = {
                "permdist": harness.seconds(lambda m=model: m.sample(DRAWS, rng=0)),
                "random numbers and insertions": harness.seconds(lambda p=places: bare(p)),
                "numpy, vectorized over draws": harness.seconds(
                    lambda n=n, t=theta: insert_columns(stages(n, t)), repeat=2
                ),
                "prefsampling": peer(n, theta),
            }
            distance = rankings.kendall(model.sample(DRAWS, rng=1), range(n)).mean()
            title = f"{DRAWS:,} Kendall draws of {n:,} items, theta {theta:g}"
            harness.table(f"{title}, mean distance {distance:,.0f}", rows)


if __name__ == "__main__":
    main()
