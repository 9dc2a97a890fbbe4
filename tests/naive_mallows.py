"""Mallows' models by listing all orders: distances by their definitions, n <= 7."""

import functools
import itertools

import numpy as np


def relative(order, center):
    """Return the places in the center of the items of an order, from the top."""
    return [list(center).index(item) for item in order]


def kendall_stages(order, center):
    """Count, at each position but the last, the later items that the center ranks higher."""
    places = relative(order, center)
    return [sum(later < here for later in places[k + 1 :]) for k, here in enumerate(places)][:-1]


def cayley_stages(order, center):
    """Return 0 or 1 for each place of the center but the last: is it the last of its cycle?"""
    places, result = relative(order, center), []
    for j in range(len(places) - 1):
        cycle, at = [j], places[j]
        while at != j:
            cycle.append(at)
            at = places[at]
        result.append(int(max(cycle) != j))
    return result


def longest_increasing(values):
    """Try all subsequences, the longest first."""
    for length in range(len(values), 0, -1):
        for some in itertools.combinations(values, length):
            if list(some) == sorted(some):
                return length
    return 0


def distance(kind, order, center):
    places = relative(order, center)
    moves = [abs(place - k) for k, place in enumerate(places)]
    if kind == "kendall":
        return sum(kendall_stages(order, center))
    if kind == "cayley":
        return sum(cayley_stages(order, center))
    if kind == "hamming":
        return sum(move > 0 for move in moves)
    if kind == "footrule":
        return sum(moves)
    if kind == "spearman":
        return sum(move**2 for move in moves)
    return len(places) - longest_increasing(places)


class Distances:
    """The distances of all orders, with their probabilities under Mallows' model."""

    def __init__(self, kind, center, theta):
        self.orders = np.array(list(itertools.permutations(range(len(center)))))
        self.values = np.array([distance(kind, order, center) for order in self.orders.tolist()])
        weights = np.exp(-theta * self.values)
        self.prob = weights / weights.sum()

    @property
    def mean(self):
        return float(self.prob @ self.values)

    @property
    def variance(self):
        return float(self.prob @ (self.values - self.mean) ** 2)

    def distribution(self):
        return np.bincount(self.values, weights=self.prob)


# ---- ballots that say less than a full ranking --------------------------------------------------


def agrees(order, buckets, rest):
    """Check that an order has every listed bucket above the next, and all others below with `rest`.

    `buckets` are lists of items; the order inside a bucket does not matter.
    """
    place = {item: at for at, item in enumerate(order)}
    listed = {item for bucket in buckets for item in bucket}
    levels = [list(bucket) for bucket in buckets]
    if rest and len(listed) < len(order):
        levels.append([item for item in order if item not in listed])
    return all(
        place[a] < place[b]
        for upper, lower in itertools.pairwise(levels)
        for a in upper
        for b in lower
    )


@functools.lru_cache
def _agreeing(n, buckets, rest):
    orders = np.array(list(itertools.permutations(range(n))))
    return orders, np.array([agrees(order, buckets, rest) for order in orders.tolist()])


def agreeing_orders(n, buckets, rest):
    """Return all orders of n items, and which of them agree with a ballot."""
    return _agreeing(n, tuple(tuple(bucket) for bucket in buckets), rest)


def chance_to_agree(model, buckets, rest):
    """Return the log-probability that a draw agrees with a ballot, by listing all orders."""
    orders, kept = agreeing_orders(model.n_items, buckets, rest)
    return float(np.log(np.exp(model.log_prob(orders[kept])).sum()))


# ---- all distances of many orders at once -------------------------------------------------------


def distances_of(kind, orders):
    """Return the distance of each order from 0, 1, ..., by definition; orders (rankings, n)."""
    n = orders.shape[1]
    moves = orders - np.arange(n)
    if kind in ("footrule", "spearman", "hamming"):
        cost = {"footrule": np.abs, "spearman": np.square, "hamming": lambda x: x != 0}[kind]
        return cost(moves).sum(axis=1)
    if kind == "kendall":
        return sum((orders[:, :k] > orders[:, k : k + 1]).sum(axis=1) for k in range(1, n))
    if kind == "cayley":
        least, at = np.tile(np.arange(n), (len(orders), 1)), orders
        for _ in range(n):
            least = np.minimum(least, at)
            at = np.take_along_axis(orders, at, axis=1)
        return n - (least == np.arange(n)).sum(axis=1)
    longest = np.ones_like(orders)  # increasing subsequence that ends here
    for k in range(1, n):
        before = np.where(orders[:, :k] < orders[:, k : k + 1], longest[:, :k], 0)
        longest[:, k] = before.max(axis=1) + 1
    return n - longest.max(axis=1)


def footrule_counts(n):
    """Count permutations by half of their total displacement, in whole numbers.

    Polynomials are packed into one integer each, a coefficient per 512 bits.
    """
    bits, states = 512, {0: 1}
    for _ in range(n):
        following = {}
        for k, polynomial in states.items():
            for to, ways in ((k + 1, 1), (k, 2 * k + 1), (k - 1, k * k)):
                if ways and to <= n // 2:
                    moved = polynomial * ways << bits * to
                    following[to] = following.get(to, 0) + moved
        states = following
    packed, counts = states[0], []
    while packed:
        counts.append(packed & ((1 << bits) - 1))
        packed >>= bits
    return counts
