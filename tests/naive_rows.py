"""Slow, literal sums over all sign vectors, with the goods in a fixed order."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np


def sign_vectors(pairs):
    """All 0/1 vectors: 1 where the lower document of a pair stands above the higher one."""
    return np.array(list(product((0, 1), repeat=pairs)))


def pairs_of(labels):
    """All pairs (upper, lower) of documents with different labels."""
    n = len(labels)
    return [(g, b) for g in range(n) for b in range(n) if labels[g] > labels[b]]


def log_weights(scores, labels, scale, signs):
    """F of each sign vector, less that of the best."""
    drop = np.array([-2.0 * scale * (scores[g] - scores[b]) for g, b in pairs_of(labels)])
    return signs @ drop


def places(pilot, good):
    """Place j = 1, 2, ... of each good by descending pilot score, which must not tie."""
    order = sorted(good, key=lambda g: -pilot[g])
    return {g: j + 1 for j, g in enumerate(order)}


def binary_values(measure, pilot, labels, signs):
    """The measure of each sign vector: the good at place j has i + j - 1 documents above it."""
    pairs = pairs_of(labels)
    good = [g for g in range(len(labels)) if labels[g] > 0]
    bad = [b for b in range(len(labels)) if labels[b] == 0]
    place = places(pilot, good)
    table = measure.step_table(len(good), len(bad))
    total = np.zeros(len(signs))
    for g in good:
        own = [k for k, (upper, lower) in enumerate(pairs) if upper == g and labels[lower] == 0]
        total += table[place[g] - 1, signs[:, own].sum(axis=1)]
    return total


def threshold_rows(measure, pilot, labels, signs):
    """For each (document, threshold) of NDCG: its share, its gain, and its discounts.

    The discounts, over the ideal, are those of each sign vector, and of the best.
    """
    pairs = pairs_of(labels)
    form = measure.positional(labels)
    gain = dict(zip(labels, form.gains, strict=True))
    grades = sorted(gain)
    rows = []
    for below, grade in pairwise(grades):
        good = [g for g in range(len(labels)) if labels[g] >= grade]
        place = places(pilot, good)
        if gain[grade] == gain[below]:
            continue
        for g in good:
            own = [k for k, (u, low) in enumerate(pairs) if u == g and labels[low] < grade]
            above = signs[:, own].sum(axis=1)
            j = place[g] - 1
            weights = form.weights
            share = gain[grade] - gain[below]
            rows.append(
                (g, share, gain[labels[g]] - gain[grades[0]], weights[j + above], weights[j])
            )
    offset = form.offset + gain[grades[0]] * form.weights.sum()
    return rows, offset


def graded_values(measure, pilot, labels, signs):
    """The measure of each sign vector, split by thresholds."""
    rows, offset = threshold_rows(measure, pilot, labels, signs)
    return np.full(len(signs), offset) + sum(share * row for _, share, _, row, _ in rows)


def log_sum(values):
    top = values.max()
    return top + np.log(np.exp(values - top).sum())


def convex_loss(logs, values, kappa):
    """``log sum exp(F - F(best) + kappa (1 - value))``."""
    return log_sum(logs + kappa * (1.0 - values))


def mean(logs, values):
    """The mean of values under ``exp F``."""
    chances = np.exp(logs - log_sum(logs))
    return float(chances @ values)


def averaged_convex_loss(measure, pilot, labels, signs, logs, kappa):
    """ConvexLoss of graded labels: rows of thresholds averaged by their shares."""
    rows, offset = threshold_rows(measure, pilot, labels, signs)
    base = log_sum(logs)
    best = offset + sum(share * ideal for _, share, _, _, ideal in rows)
    total = base + kappa * (1.0 - best)
    for _, share, whole, discounts, ideal in rows:
        tilted = log_sum(logs + kappa * whole * (ideal - discounts))
        total += share / whole * (tilted - base)
    return total


def long_row(x, x_bads, heights):
    """The mean of heights over the number of bads above, and its derivatives by x - x_bad."""
    chances = 1.0 / (1.0 + np.exp(x - x_bads))
    whole = np.ones(1)
    for chance in chances:
        whole = np.convolve(whole, [1.0 - chance, chance])
    slopes = np.empty(len(x_bads))
    for b, chance in enumerate(chances):
        rest = np.ones(1)
        for other in np.delete(chances, b):
            rest = np.convolve(rest, [1.0 - other, other])
        slopes[b] = -chance * (1.0 - chance) * (rest @ np.diff(heights))
    return float(whole @ heights), slopes


def long_query(measure, pilot, scores, labels, scale, kappa):
    """Mean and log-mean over rows of binary labels, with gradients, in O(p m^3)."""
    good, bad = np.flatnonzero(labels > 0), np.flatnonzero(labels == 0)
    place, table = places(pilot, good), measure.step_table(len(good), len(bad))
    mean, log, by_mean, by_log = 0.0, 0.0, np.zeros(len(labels)), np.zeros(len(labels))
    for g in good:
        steps = table[place[g] - 1]
        x, x_bads = 2.0 * scale * scores[g], 2.0 * scale * scores[bad]
        value, slopes = long_row(x, x_bads, steps)
        mean += value
        by_mean[g] += 2.0 * scale * slopes.sum()
        by_mean[bad] -= 2.0 * scale * slopes
        value, slopes = long_row(x, x_bads, np.exp(kappa * (steps[0] - steps)))
        log += np.log(value)
        by_log[g] += 2.0 * scale * slopes.sum() / value
        by_log[bad] -= 2.0 * scale * slopes / value
    return mean, by_mean, log, by_log
