"""Rankings with ties, listed one by one: the definition of Davidson-Luce, n <= 4 or so.

A bucket order is a tuple of tuples of items, the best first.
"""

import itertools
import math

import numpy as np


def bucket_orders(items):
    """List all rankings of some items with ties of any size."""
    items = tuple(items)
    if not items:
        yield ()
    for size in range(1, len(items) + 1):
        for first in itertools.combinations(items, size):
            rest = tuple(item for item in items if item not in first)
            for others in bucket_orders(rest):
                yield (first, *others)


def set_weight(chosen, scores, ties):
    """Return delta_t * (product of worths)^(1/t) of a set of t items."""
    log_deltas = [0.0, *ties]
    if len(chosen) > len(log_deltas):
        return 0.0
    mean = sum(scores[item] for item in chosen) / len(chosen)
    return math.exp(log_deltas[len(chosen) - 1] + mean)


def stage_chance(chosen, alternatives, scores, ties):
    """Return the chance that a set is chosen out of the alternatives."""
    total = sum(
        set_weight(other, scores, ties)
        for size in range(1, len(alternatives) + 1)
        for other in itertools.combinations(alternatives, size)
    )
    return set_weight(chosen, scores, ties) / total


def chance(buckets, scores, ties, rest=()):
    """Return the chance of buckets, from the top; `rest` are items below all of them."""
    result, left = 1.0, [item for bucket in buckets for item in bucket] + list(rest)
    for bucket in buckets:
        result *= stage_chance(bucket, left, scores, ties)
        left = [item for item in left if item not in bucket]
    return result


def log_chance(buckets, scores, ties):
    """Return the logarithm of `chance`, by sums of logarithms."""
    log_deltas = [0.0, *ties, *[-math.inf] * len(scores)]
    result, left = 0.0, [item for bucket in buckets for item in bucket]
    for bucket in buckets:
        top = max(scores[item] for item in left)
        logs = {
            other: log_deltas[size - 1] + sum(scores[item] - top for item in other) / size
            for size in range(1, len(left) + 1)
            for other in itertools.combinations(left, size)
        }
        result += logs[tuple(bucket)] - np.logaddexp.reduce(list(logs.values()))
        left = [item for item in left if item not in bucket]
    return result


class Listing:
    """All rankings with ties of n items and their chances."""

    def __init__(self, scores, ties):
        self.n = len(scores)
        every = [(one, chance(one, scores, ties)) for one in bucket_orders(range(self.n))]
        self.rankings = [one for one, p in every if p > 0.0]
        self.chances = np.array([p for _, p in every if p > 0.0])

    def mean(self, function):
        """Return the mean of a function of rankings."""
        return sum(p * function(one) for one, p in zip(self.rankings, self.chances, strict=True))

    def entropy(self):
        return float(-self.chances @ np.log(self.chances))

    def mode_chance(self):
        return float(self.chances.max())

    def pairwise(self):
        """Return the chances that i is above j, and that they are tied; diagonals 0."""
        above, tied = np.zeros((self.n, self.n)), np.zeros((self.n, self.n))
        for one, p in zip(self.rankings, self.chances, strict=True):
            number = bucket_numbers(one)
            for i, j in itertools.permutations(range(self.n), 2):
                above[i, j] += p * (number[i] < number[j])
                tied[i, j] += p * (number[i] == number[j])
        return above, tied

    def rank_marginals(self, rule):
        """Return how probable each position of each item is, ties by a rule."""
        result = np.zeros((self.n, self.n))
        for one, p in zip(self.rankings, self.chances, strict=True):
            start = 0
            for number, bucket in enumerate(one):
                last = start + len(bucket) - 1
                places = {
                    "share": range(start, last + 1),
                    "min": [start],
                    "max": [last],
                    "dense": [number],
                }[rule]
                for item, place in itertools.product(bucket, places):
                    result[item, place] += p / len(places)
                start = last + 1
        return result

    def expect(self, measure, labels):
        """Return the mean of a measure, of which each ranking has the mean over extensions."""

        def value(ranking):
            orders = list(itertools.product(*map(itertools.permutations, ranking)))
            flat = [list(itertools.chain.from_iterable(order)) for order in orders]
            return float(np.mean(measure(np.array(flat), labels)))

        return self.mean(value)


def bucket_numbers(ranking):
    """Return the number of the bucket of each item."""
    numbers = {item: number for number, bucket in enumerate(ranking) for item in bucket}
    return [numbers[item] for item in range(len(numbers))]
