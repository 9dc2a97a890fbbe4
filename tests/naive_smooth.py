"""Slow, literal versions of smooth measures and of SoftRank, which the fast code must equal."""

import numpy as np
from scipy.stats import norm


def counts(chances):
    """Return the distribution of how many of independent events happen."""
    result = np.ones(1)
    for p in chances:
        result = np.convolve(result, [1.0 - p, p])
    return result


def exact(scores, gains, weights, noise=1.0, nodes=1001):
    """Return the expected sum of gains times weights of positions by the trapezoid rule."""
    u = np.linspace(min(scores) - 12 * noise, max(scores) + 12 * noise, nodes)
    total = 0.0
    for i, gain in enumerate(gains):
        if gain == 0.0:
            continue
        others = np.delete(scores, i)
        chances = norm.sf(u[:, None], others, noise)
        inner = [counts(row) @ weights for row in chances]
        total += gain * np.trapezoid(norm.pdf(u, scores[i], noise) * inner, u)
    return total


def recursion(scores, gains, weights, noise=1.0):
    """Return the same as if others were above a document independently."""
    total = 0.0
    for i, gain in enumerate(gains):
        above = norm.cdf((np.delete(scores, i) - scores[i]) / (np.sqrt(2.0) * noise))
        total += gain * float(counts(above) @ weights)
    return total


def smooth(scores, labels, measure, alpha, beta):
    """Return a measure at smooth positions, straight from equations (20) to (22) of Qin et al."""

    def sigmoid(x):
        return 1.0 / (1.0 + np.exp(-np.clip(x, -700, 700)))

    n, good = len(scores), np.flatnonzero(labels)
    position = np.array(
        [1 + sum(sigmoid(alpha * (scores[j] - scores[i])) for j in range(n) if j != i)
         for i in range(n)]
    )  # fmt: skip
    name, _, cut = measure.partition("@")
    inside = sigmoid(beta * (float(cut) + 0.5 - position)) if cut else np.ones(n)
    if name == "ndcg":
        gain, place = 2.0**labels - 1.0, np.arange(2, n + 2)
        ideal = (np.sort(gain)[::-1] / np.log2(place))[: int(cut or n)].sum()
        return float((gain / np.log2(1 + position) * inside).sum() / ideal)
    if name == "p":
        return float(inside[good].sum() / float(cut))
    above = sigmoid(beta * (position[:, None] - position[None, :]))  # x above y: above[y, x]
    if name == "ap":
        return sum(
            (1 + sum(above[y, x] for x in good if x != y)) / position[y] for y in good
        ) / len(good)
    return sum(np.prod([above[y, x] for y in good if y != x]) / position[x] for x in good)
