"""Consensus rankings by listing all orders, and rules of voting as they are defined.

A ballot is a pair of its buckets, the best first, and its weight; items that are in no bucket are
not on the ballot.
"""

import itertools

import numpy as np


def places(buckets):
    """Return the mean position of every item on a ballot."""
    result, above = {}, 0
    for bucket in buckets:
        for item in bucket:
            result[item] = above + (len(bucket) - 1) / 2
        above += len(bucket)
    return result


def kendall_cost(order, ballots, penalty=0.5):
    """Add up the disagreements of an order with the ballots, pair by pair."""
    total = 0.0
    for buckets, weight in ballots:
        place = places(buckets)
        for above, below in itertools.combinations(order, 2):
            if above in place and below in place:
                gap = place[above] - place[below]
                total += weight * (penalty if gap == 0 else gap > 0)
    return total


def position_cost(order, ballots, power):
    """Add up how far items are from their positions on the ballots, or the squares of that."""
    return sum(
        weight * abs(places(buckets)[item] - k) ** power
        for buckets, weight in ballots
        for k, item in enumerate(order)
    )


def lowest(cost, n):
    """Return the lowest cost of all orders, and the orders that have it."""
    costs = {order: cost(order) for order in itertools.permutations(range(n))}
    least = min(costs.values())
    return least, {order for order, value in costs.items() if value < least + 1e-9}


def lowest_by_sets(wins):
    """Return the lowest Kendall cost from the best orders of all sets of items, n <= 15 or so."""
    n = len(wins)
    best = np.full(2**n, np.inf)
    best[0] = 0.0
    for chosen in range(2**n):
        inside = (chosen >> np.arange(n)) & 1 == 1
        # The next item goes below those chosen, above all others.
        for item in np.flatnonzero(~inside):
            cost = best[chosen] + wins[item, inside].sum()
            following = chosen | 1 << int(item)
            best[following] = min(best[following], cost)
    return best[-1]


def wins(ballots, n):
    """Return the weight of the ballots that put i above j."""
    table = np.zeros((n, n))
    for buckets, weight in ballots:
        place = places(buckets)
        for i, j in itertools.permutations(place, 2):
            table[i, j] += weight * (place[i] < place[j])
    return table


def borda(ballots, n):
    """Return points: for each ballot and other item 1 if that is below, 1/2 if it does not say."""
    points = np.zeros(n)
    for buckets, weight in ballots:
        place = places(buckets)
        for i, j in itertools.permutations(range(n), 2):
            known = i in place and j in place and place[i] != place[j]
            points[i] += weight * (place[i] < place[j] if known else 0.5)
    return points


def copeland(ballots, n):
    """Return the number of items that each one beats, even majorities as half."""
    table = wins(ballots, n)
    return np.array(
        [
            sum(
                1.0 if table[i, j] > table[j, i] else 0.5 * (table[i, j] == table[j, i])
                for j in range(n)
                if j != i
            )
            for i in range(n)
        ]
    )


def schulze(ballots, n):
    """Return how many items each one beats by strongest paths, out of all simple paths."""
    margins = wins(ballots, n) - wins(ballots, n).T

    def strongest(start, end):
        rest = [item for item in range(n) if item not in (start, end)]
        paths = (
            (start, *middle, end)
            for size in range(n - 1)
            for middle in itertools.permutations(rest, size)
        )
        return max(max(0.0, min(margins[a, b] for a, b in itertools.pairwise(p))) for p in paths)

    return np.array(
        [sum(strongest(i, j) > strongest(j, i) for j in range(n) if j != i) for i in range(n)]
    )


def ranked_pairs(ballots, n):
    """Return how many items are below each one when majorities are fixed from the largest on."""
    margins = wins(ballots, n) - wins(ballots, n).T
    pairs = [(i, j) for i in range(n) for j in range(n) if margins[i, j] > 0]
    fixed = set()

    def reached(start):
        found, waiting = set(), [start]
        while waiting:
            one = waiting.pop()
            new = {j for i, j in fixed if i == one} - found
            found |= new
            waiting += new
        return found

    for i, j in sorted(pairs, key=lambda pair: (-margins[pair], pair)):
        if i not in reached(j):
            fixed.add((i, j))
    return np.array([len(reached(item)) for item in range(n)])
