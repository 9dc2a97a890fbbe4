"""Slow and obvious versions of what comparisons and learners do with ties, nulls and NaN."""

import itertools
import math


def expected_at_random(measure, labels):
    """Average a measure over all orders of a query."""
    orders = itertools.permutations(range(len(labels)))
    values = [float(measure(list(order), labels)) for order in orders]
    return sum(values) / len(values)


def choose(values, nulls):
    """Return the number of the best setting; a null model only where all are null."""
    best = None
    for number, value in enumerate(values):
        if nulls[number] and not all(nulls):
            continue
        if best is None or value > values[best]:
            best = number
    return best


def fill(rows, qid, method):
    """Fill missing values with 0, or the mean of those present in the query."""
    filled = [list(row) for row in rows]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if not math.isnan(value):
                continue
            filled[i][j] = 0.0
            if method == "mean":
                present = [
                    rows[k][j]
                    for k in range(len(rows))
                    if qid[k] == qid[i] and not math.isnan(rows[k][j])
                ]
                if present:
                    filled[i][j] = sum(present) / len(present)
    return filled
