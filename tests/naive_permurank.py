"""Figures 6 and 7 of Xu et al., Direct Optimization of Evaluation Measures, as loops."""

import itertools
import math

import numpy as np
from naive import ranks


def phi_of(X, labels, order, pairs):
    """Query-level features: the mean of +-(x_k - x_l) over all pairs, or those that differ."""
    place, total, number = ranks(order), np.zeros(X.shape[1]), 0
    n = len(order)
    for k, other in itertools.combinations(range(n), 2):
        if pairs == "good-bad" and labels[k] == labels[other]:
            continue
        total += (1 if place[k] < place[other] else -1) * (X[k] - X[other])
        number += 1
    return total / (number if pairs == "good-bad" else n * (n - 1))


def permurank(X, y, rows, measure, pairs, C, rounds):
    """Figure 7 with the hinge; every permutation of every query is looked at in every round.

    Returns w, the objective, the mean sizes of the sets and the mean measure of each round.
    """
    if measure.binary:
        y = (y > 0).astype(int)
    queries = []
    for at in rows:
        entries = [
            (float(measure(np.array(order), y[at])), phi_of(X[at], y[at], order, pairs))
            for order in itertools.permutations(range(len(at)))
        ]
        top = max(value for value, _ in entries)
        perfect = [entry for entry in entries if entry[0] >= top - 1e-12]
        rest = [entry for entry in entries if entry[0] < top - 1e-12]
        if rest:
            queries.append((perfect, rest))

    def in_set(found, entry):
        return any(
            abs(entry[0] - one[0]) < 1e-9 and np.allclose(entry[1], one[1], rtol=0, atol=1e-9)
            for one in found
        )

    B, D = [[] for _ in queries], [[] for _ in queries]

    def update(w):
        changed = False
        for q, (perfect, rest) in enumerate(queries):
            lowest = min(perfect, key=lambda entry: entry[1] @ w)
            highest = max(rest, key=lambda entry: entry[1] @ w)
            for found, entry in ((B[q], lowest), (D[q], highest)):
                if not in_set(found, entry):
                    found.append(entry)
                    changed = True
        return changed

    best = [phi_of(X[at], y[at], np.argsort(-y[at], kind="stable"), "good-bad") for at in rows]
    update(-np.mean(best, axis=0))
    notes = []
    for _ in range(rounds):
        terms = [
            ((p[0] - c[0]) / len(B[q]), p[1] - c[1])
            for q in range(len(queries))
            for p in B[q]
            for c in D[q]
        ]
        w, value = minimize_hinges(terms, C, X.shape[1])
        changed = update(w)
        sizes = np.mean([len(one) for one in B]), np.mean([len(one) for one in D])
        train = np.mean([float(measure.from_scores(X[at] @ w, y[at])) for at in rows])
        notes.append((w, value, *sizes, train))
        if not changed:
            break
    return notes


def minimize_hinges(terms, C, width, sweeps=20_000):
    """Minimize sum c max(0, 1 - w.d) + |w|^2 / C by coordinate ascent on its dual."""
    a, w = np.zeros(len(terms)), np.zeros(width)
    for _ in range(sweeps):
        step = 0.0
        for t, (c, d) in enumerate(terms):
            square = 0.5 * C * (d @ d)
            new = min(c, max(0.0, a[t] + (1.0 - w @ d) / square)) if square > 0.0 else c
            step = max(step, abs(new - a[t]))
            w, a[t] = w + 0.5 * C * (new - a[t]) * d, new
        if step < 1e-14:
            break
    value = sum(c * max(0.0, 1.0 - w @ d) for c, d in terms) + w @ w / C
    return w, float(value)


def adarank(X, y, rows, measure, rounds):
    """Figure 6 with single features; returns f_T, and per round (feature, alpha, P)."""

    def E(scores):
        return np.array([float(measure.from_scores(scores[at], y[at])) for at in rows])

    P, f, notes = np.full(len(rows), 1.0 / len(rows)), np.zeros(X.shape[1]), []
    for _ in range(rounds):
        merits = [P @ E(X[:, k]) for k in range(X.shape[1])]
        k = int(np.argmax(merits))
        alpha = 0.5 * math.log((P @ (1.0 + E(X[:, k]))) / (P @ (1.0 - E(X[:, k]))))
        f[k] += alpha
        notes.append((k, alpha, P))
        P = np.exp(-E(X @ f))
        P = P / P.sum()
    return f, notes
