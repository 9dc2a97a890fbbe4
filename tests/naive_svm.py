"""Slow, obvious versions of the hinges of RankSVM and of structural SVMs."""

from fractions import Fraction
from itertools import combinations, pairwise, permutations

import numpy as np

from permdist.measures import AUC, NDCG


def best_order(labels):
    return sorted(range(len(labels)), key=lambda i: -labels[i])


def sum_of_pairs(scores, labels, order):
    """Add up ``s_i - s_j`` over pairs of different labels with i above j."""
    pairs = combinations(order, 2)
    return sum(scores[i] - scores[j] for i, j in pairs if labels[i] != labels[j])


def ranking_hinge(scores, labels, measure, factor, auc_weight=0.0):
    """Try all rankings."""
    best = sum_of_pairs(scores, labels, best_order(labels))
    orders = list(permutations(range(len(labels))))
    losses = 1.0 - measure(orders, labels) + auc_weight * (1.0 - AUC()(orders, labels))
    return max(
        loss + factor * (sum_of_pairs(scores, labels, order) - best)
        for order, loss in zip(orders, losses, strict=True)
    )


def different_pairs(labels):
    return sum(a != b for a, b in combinations(labels, 2))


def threshold_weights(labels, measure):
    """Return a weight per threshold; NDCG's come from DCG item by item."""
    values = np.unique(labels)
    if not isinstance(measure, NDCG):
        return [1.0 / (len(values) - 1)] * (len(values) - 1)
    discounts = measure.discounts(len(labels))

    def ideal(gains):
        return sum(g * d for g, d in zip(sorted(gains, reverse=True), discounts, strict=True))

    gain = {value: float(measure.gains(value)) for value in values}
    whole = ideal([gain[label] for label in labels])
    return [
        (gain[high] - gain[low]) * ideal([float(label >= high) for label in labels]) / whole
        for low, high in pairwise(values)
    ]


def split(labels, measure, factor):
    """Return weight, labels and factor of each threshold."""
    weights = threshold_weights(labels, measure)
    for weight, value in zip(weights, np.unique(labels)[1:], strict=True):
        above = (labels >= value).astype(int)
        yield weight, above, factor * different_pairs(labels) / different_pairs(above)


def threshold_hinge(scores, labels, measure, factor, auc_weight=0.0):
    """Add up the hinges of all thresholds."""
    return sum(
        weight * ranking_hinge(scores, above, measure, own, auc_weight)
        for weight, above, own in split(labels, measure, factor)
    )


def log_sum_of_interleavings(scores, labels, measure, factor, kappa):
    """Sum over rankings with documents of equal labels sorted by score."""
    best = sum_of_pairs(scores, labels, best_order(labels))
    exponents = []
    for order in permutations(range(len(labels))):
        pairs = [(i, j) for i, j in combinations(order, 2) if labels[i] == labels[j]]
        if all(scores[i] > scores[j] for i, j in pairs):
            exponent = factor * (sum_of_pairs(scores, labels, order) - best)
            exponents.append(exponent + kappa * (1.0 - measure(order, labels)))
    return np.logaddexp.reduce(exponents)


def pair_hinges(scores, labels, power):
    """Return the sum of hinges and its gradient, in exact arithmetic."""
    exact = [Fraction(float(score)) for score in scores]
    value, slopes = Fraction(0), [Fraction(0)] * len(exact)
    for i in range(len(exact)):
        for j in range(len(exact)):
            missing = 1 - exact[i] + exact[j]
            if labels[i] > labels[j] and missing > 0:
                value += missing**power
                slope = power * missing ** (power - 1)
                slopes[i] -= slope
                slopes[j] += slope
    return float(value), np.array([float(slope) for slope in slopes])
