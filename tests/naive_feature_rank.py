"""Literal versions of the algorithms of Wang et al., pair by pair and tie by tie.

A collection is a list of queries, each a pair of a list of rows (documents) and a list of labels.
"""

import itertools
import math
from statistics import NormalDist, fmean

import numpy as np


def tie_orders(labels):
    """Return all orders of the documents from the lowest label up."""
    classes = [[i for i, y in enumerate(labels) if y == one] for one in sorted(set(labels))]
    for parts in itertools.product(*(list(itertools.permutations(part)) for part in classes)):
        yield [i for part in parts for i in part]


def centers(queries, feature, k, cut, center):
    """Figure 1, as a mean over all ways to order documents of equal labels."""
    grades = sorted({y for _, labels in queries for y in labels})
    if cut == "labels" and len(grades) <= k:
        by_label = {one: [] for one in grades}
        for rows, labels in queries:
            for row, y in zip(rows, labels, strict=True):
                by_label[y].append(row[feature])
        return [fmean(by_label[one]) for one in grades]
    sums, number = [0.0] * k, [0.0] * k
    for rows, labels in queries:
        n, orders = len(rows), list(tie_orders(labels))
        for order in orders:
            for place, i in enumerate(order):
                third = {"posterior": 0, "middle": 1, "prior": 2}.get(center)
                if third is None or (3 * k * place // n) % 3 == third:
                    sums[k * place // n] += rows[i][feature] / len(orders)
                    number[k * place // n] += 1.0 / len(orders)
    return [s / m for s, m in zip(sums, number, strict=True) if m > 0.0]


def beats(values, found):
    """Equations (6) to (8): whether value i ranks above value j, as a function of both."""
    k = len(found)
    interval = [min(range(k), key=lambda c: abs(v - found[c])) for v in values]

    def better(i, j):
        if interval[i] != interval[j]:
            return interval[i] > interval[j]
        upper = max(interval[i], 1)
        slope = found[upper] - found[upper - 1] if k > 1 else 1.0
        return (values[i] - values[j]) * slope > 0

    return better


def ranks_of(n, better):
    """Return ranks from 1 at the bottom to n at the top; equal ones share their mean."""
    everything = range(n)
    return [
        1.0
        + sum(better(i, j) for j in everything)
        + 0.5 * sum(not better(i, j) and not better(j, i) for j in everything if j != i)
        for i in everything
    ]


def ranks_of_numbers(numbers):
    close = 1e-13 * (max(numbers) - min(numbers))
    return ranks_of(len(numbers), lambda i, j: numbers[i] > numbers[j] + close)


def quantiles(ranks):
    """Return the scores of ranks of kind "normal"."""
    return [NormalDist().inv_cdf((r - 0.5) / len(ranks)) for r in ranks]


def pi(numbers, kind):
    """Return the combined ranking, as scores."""
    ranks = ranks_of_numbers(numbers)
    return ranks if kind == "ranks" else quantiles(ranks)


def weak(values, found, kind):
    """Return the scores of one feature's ranking of a query."""
    ranks = ranks_of(len(values), beats(values, found))
    if kind == "ranks":
        return ranks
    if kind == "normal":
        return quantiles(ranks)
    up = -1.0 if found[-1] < found[0] else 1.0
    ordered = sorted(up * v for v in values)
    middle = fmean(ordered)
    spread = math.sqrt(fmean((v - middle) ** 2 for v in ordered))
    result = []
    for r in ranks:
        ties = ranks.count(r)
        low = round(r - 0.5 * (ties + 1))
        result.append((fmean(ordered[low : low + ties]) - middle) / spread if spread else 0.0)
    return result


def tau(scores, labels):
    """Equation (9): satisfied less violated pairs over all pairs with different labels."""
    total = pairs = 0
    for i, j in itertools.combinations(range(len(labels)), 2):
        if labels[i] != labels[j]:
            pairs += 1
            total += int(np.sign((scores[i] - scores[j]) * (labels[i] - labels[j])))
    return total / pairs


def add(a, x, b, y):
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def mean_tau(taus, quality):
    """Return the mean of equation (11), with weights exp(-E)."""
    w = [math.exp(-one) for one in quality]
    return sum(p * q for p, q in zip(w, taus, strict=True)) / sum(w)


def weight_of(mean):
    """Return the weight of equation (11), kept finite where all taus are 1."""
    return math.atanh(max(-1.0 + 1e-12, min(1.0 - 1e-12, mean)))


def weak_rankings(queries, k, cut, center, kind):
    """Return the scores h[feature][query] of all weak rankers."""
    width = len(queries[0][0][0])
    found = [centers(queries, m, k, cut, center) for m in range(width)]
    return [
        [weak([row[m] for row in rows], found[m], kind) for rows, _ in queries]
        for m in range(width)
    ]


def feature_rank(queries, h, kind, visited):
    """Figure 2: the weights, and the combined ranking of each query after every addition."""
    H = [[0.0] * len(labels) for _, labels in queries]
    w, rows = [1.0] * len(queries), []
    for m in visited:
        E = [tau(one, labels) for one, (_, labels) in zip(h[m], queries, strict=True)]
        above = sum(p * (1.0 + e) for p, e in zip(w, E, strict=True))
        below = sum(p * (1.0 - e) for p, e in zip(w, E, strict=True))
        weight = 0.5 * math.log(above / below)
        H = [pi(add(1.0, old, weight, one), kind) for old, one in zip(H, h[m], strict=True)]
        w = [math.exp(-tau(one, labels)) for one, (_, labels) in zip(H, queries, strict=True)]
        rows.append((weight, H))
    return rows


def steered(queries, h, kind, visited):
    """Figure 3 with equations (13) and (14) in every query.

    Returns the taus of the combined ranking that labels have steered, and the mean weights of H
    and h as in the proof of Lemma 2, after every addition.
    """
    H = [[0.0] * len(labels) for _, labels in queries]
    quality, rows = [0.0] * len(queries), []
    for number, m in enumerate(visited):
        chosen, taus, parts = [], [], []
        for old, new, E_H, (_, labels) in zip(H, h[m], quality, queries, strict=True):
            E_h = tau(new, labels)
            options = [(E_h, new, (0.0, 1.0))]
            if number > 0:
                total = abs(E_H) + abs(E_h)
                share = (E_H / total, E_h / total) if total else (0.5, 0.5)
                sign = -1.0 if E_H + E_h < 0.0 else 1.0
                first = pi(add(E_H, old, E_h, new) if total else add(1, old, 1, new), kind)
                options.append((tau(first, labels), first, share))
                both = E_H + E_h
                if abs(both) > 1e-12:  # beta is not defined otherwise
                    beta = E_H / both
                    second = pi(add(beta, old, 1.0 - beta, new), kind)
                    signed = sign * share[0], sign * share[1]
                    options.append((tau(second, labels), second, signed))
                options.append((E_H, old, (1.0, 0.0)))
            best = max(options, key=lambda one: one[0])  # the first of equal ones
            taus.append(best[0])
            chosen.append(best[1])
            parts.append(best[2])
        weight = weight_of(mean_tau(taus, quality))
        H = [pi(add(1.0, old, weight, one), kind) for old, one in zip(H, chosen, strict=True)]
        quality = [tau(one, labels) for one, (_, labels) in zip(H, queries, strict=True)]
        carry = 1.0 + weight * fmean(part[0] for part in parts)
        rows.append((fmean(quality), carry, weight * fmean(part[1] for part in parts)))
    return rows


def balanced(queries, h, kind, visited):
    """Balance control by the mean tau of all queries: the two weights of every addition."""
    H = [[0.0] * len(labels) for _, labels in queries]
    quality, rows = [0.0] * len(queries), []
    for m in visited:
        E = [tau(one, labels) for one, (_, labels) in zip(h[m], queries, strict=True)]
        own, so_far = mean_tau(E, quality), mean_tau(quality, quality)
        sign, own = (1.0 if own > 0 else -1.0 if own < 0 else 0.0), abs(own)
        carry, weight = 1.0, sign * weight_of(own)
        if so_far > 0.0:
            beta = so_far / (so_far + own)
            previews = [
                add(beta, old, (1.0 - beta) * sign, new) for old, new in zip(H, h[m], strict=True)
            ]
            E = [
                tau(pi(one, kind), labels)
                for one, (_, labels) in zip(previews, queries, strict=True)
            ]
            preview = mean_tau(E, quality)
            if max(own, preview) <= so_far:
                weight = 0.0
            elif preview > own:
                step = weight_of(preview)
                carry, weight = 1.0 + beta * step, sign * (1.0 - beta) * step
        if weight:
            H = [pi(add(carry, old, weight, new), kind) for old, new in zip(H, h[m], strict=True)]
            quality = [tau(one, labels) for one, (_, labels) in zip(H, queries, strict=True)]
        rows.append((carry, weight, fmean(quality)))
    return rows


def diff_rank(queries, h, units, prec, visited):
    """Figure 4 pair by pair: weights, normalizers and errors; units[feature][query] are U_q."""
    pairs, D = [], []
    for q, (_, labels) in enumerate(queries):
        orders = list(tie_orders([-y for y in labels]))
        for i, j in itertools.permutations(range(len(labels)), 2):
            top = fmean(order.index(i) < prec for order in orders)
            if labels[i] > labels[j] and top > 0.0:
                pairs.append((q, i, j))
                D.append(top)
    first = np.array(D) / sum(D)
    D, H, rows = first.copy(), np.zeros(len(pairs)), []
    for m in visited:
        gaps = np.array([(h[m][q][i] - h[m][q][j]) / units[m][q] for q, i, j in pairs])
        r = float(D @ gaps)
        weight = 0.5 * math.log((1.0 + r) / (1.0 - r))
        D = D * np.exp(-weight * gaps)
        Z = float(D.sum())
        D, H = D / Z, H + weight * gaps
        rows.append((weight, Z, float(first[H < 0.0].sum())))
    return rows
