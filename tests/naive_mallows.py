"""Mallows' models by listing all orders: distances by their definitions, n <= 7."""

import functools
import itertools

import naive
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


def distance(kind, order, center):
    return getattr(naive, kind)(order, list(center))


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
