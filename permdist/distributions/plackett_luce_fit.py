"""Maximum likelihood for Plackett-Luce: Newton's method on ragged rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize, sparse
from scipy.sparse import csgraph

from permdist._check import BoolArray, FloatArray, IntArray, as_array, count, finite, integers
from permdist._kernels import kernel
from permdist._limits import need_memory
from permdist.rankings import TopK
from permdist.rankings.orders import first_fault

# Newton's method needs a matrix of items by items; beyond this size L-BFGS does without.
MAX_NEWTON = 1000
# Beyond this size the comparisons are not checked beforehand: non-convergence will tell.
MAX_CHECKED = 20_000


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate of Plackett-Luce scores and how good it is.

    Attributes
    ----------
    scores : array of float, shape (n,)
        They add up to 0.
    log_likelihood : float
        At the estimate, without the penalty.
    covariance : array of float, shape (n, n), or None
        Of the estimate, from the observed information (with the penalty's part, if any); None
        beyond 1,000 items.
    n_iter : int
    gradient : float
        The largest component of the gradient, relative to the total weight.
    """

    scores: FloatArray
    log_likelihood: float
    covariance: FloatArray | None
    n_iter: int
    gradient: float

    @property
    def standard_errors(self) -> FloatArray:
        """The standard error of each score; differences of scores need the covariance."""
        if self.covariance is None:
            raise ValueError(f"standard_errors: computed up to {MAX_NEWTON} items only")
        return np.sqrt(np.diagonal(self.covariance))


class Rankings:
    """Rankings of unequal length as flat arrays; ranking r owns ``items[ptr[r]:ptr[r + 1]]``."""

    def __init__(self, orders: Any, n_items: int | None, weights: ArrayLike | None) -> None:
        if isinstance(orders, TopK):
            orders = [orders]
        if not isinstance(orders, np.ndarray):
            declared = {entry.n_items for entry in orders if isinstance(entry, TopK)}
            if len(declared | ({n_items} if n_items is not None else set())) > 1:
                raise ValueError(f"orders: top-k lists out of {sorted(declared)} items do not mix")
            n_items = declared.pop() if declared else n_items
            orders = [entry.items if isinstance(entry, TopK) else entry for entry in orders]
            for number, entry in enumerate(orders):
                if np.ndim(entry) != 1 or len(entry) == 0:
                    raise ValueError(f"orders: expected lists of items, got {entry!r} as {number}")
        ragged = (
            not isinstance(orders, np.ndarray)
            and len({len(np.atleast_1d(entry)) for entry in orders}) != 1
        )
        if not ragged:
            table = integers("orders", orders, what="item numbers")
            if table.ndim != 2 or table.size == 0:
                raise ValueError(f"orders: expected shape (rankings, k), got {table.shape}")
            flat, sizes = table.ravel(), np.full(len(table), table.shape[1])
        else:
            rows = [integers("orders", entry, what="item numbers") for entry in orders]
            if not rows:
                raise ValueError("orders: expected at least one ranking, got none")
            flat, sizes = np.concatenate(rows), np.array([len(row) for row in rows])
        self.items, self.ptr = flat, np.concatenate([[0], np.cumsum(sizes)])
        self.n_items = int(flat.max()) + 1 if n_items is None else count("n_items", n_items)
        # The estimate, its gradients and what the optimiser remembers of them.
        need_memory(f"n_items: an estimate for {self.n_items:,} items", 400.0 * self.n_items)
        self.check()
        self.weights = (
            np.ones(len(sizes)) if weights is None else finite("weights", weights, ndim=1)
        )
        if len(self.weights) != len(sizes):
            raise ValueError(f"weights: expected {len(sizes)} weights, got {len(self.weights)}")
        if (self.weights < 0).any() or self.weights.sum() == 0:
            raise ValueError("weights: expected no negative weight and one above 0")
        if not ragged:
            self._merge(sizes[0])

    def _merge(self, k: int) -> None:
        """Count equal rankings once, with their weights added up."""
        if k * np.log2(self.n_items + 1.0) > 62.0:
            return
        table = self.items.reshape(-1, k)
        code = table @ self.n_items ** np.arange(k, dtype=np.int64)
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        if len(first) < 0.7 * len(table):
            self.weights = np.bincount(which, self.weights).astype(np.float64)
            self.items = np.ascontiguousarray(table[first]).ravel()
            self.ptr = np.arange(len(first) + 1) * k

    def check(self) -> None:
        """Refuse a ranking that lists an item twice or one that there is not."""
        row = _first_bad(self.items, self.ptr, self.n_items)
        if row >= 0:
            shown = self.items[self.ptr[row] : self.ptr[row + 1]]
            at = first_fault(shown[None, :], self.n_items)
            raise ValueError(
                f"orders: ranking {row} must list different items from 0 to {self.n_items - 1}, "
                f"got {shown[at]} at index {at}"
            )


def fit_scores(
    orders: Any,
    n_items: int | None,
    rest: bool,
    weights: ArrayLike | None,
    regularization: float,
    names: Sequence[str] | None,
    max_iter: int,
    tol: float,
) -> Fit:
    """Maximise the penalised likelihood; with `rest`, unlisted items are below the listed."""
    if not isinstance(orders, np.ndarray | list | tuple | TopK):
        orders = as_array("orders", orders)
    data = Rankings(orders, n_items, weights)
    names = check_names(names, data.n_items)
    if not 0.0 <= regularization < np.inf:
        raise ValueError(f"regularization: expected a non-negative number, got {regularization}")
    if regularization == 0.0:
        check_existence(data, rest, names)
    n, total = data.n_items, float(data.weights.sum())
    flat = (data.items, data.ptr, data.weights, rest)

    def objective(scores: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = _likelihood(scores, *flat)
        return (
            -value + 0.5 * regularization * float(scores @ scores),
            -gradient + regularization * scores,
        )

    scores, iteration = np.zeros(n), 0
    if n > MAX_NEWTON:
        options = {"maxiter": 10 * max_iter, "gtol": tol * total, "ftol": 0.0, "maxcor": 20}
        found = optimize.minimize(objective, scores, jac=True, method="L-BFGS-B", options=options)
        scores, iteration = found.x, int(found.nit)
        value, gradient = objective(scores)
    else:
        # Moving all scores alike changes nothing: this fixes their sum and touches nothing else.
        level = np.full((n, n), 1.0 / n)
        value, gradient = objective(scores)
        while np.abs(gradient).max() > tol * total and iteration < max_iter:
            information = _information(scores, *flat) + regularization * np.eye(n)
            scale = max(float(np.trace(information)) / n, 1e-300)
            step = linalg.solve(information + scale * level, gradient, assume_a="sym")
            size = 1.0
            slope = float(gradient @ step)
            while True:  # Armijo: the objective is convex, so that some step will do
                trial = scores - size * step
                new_value, new_gradient = objective(trial)
                closer = np.abs(new_gradient).max() < np.abs(gradient).max()
                # Near the optimum the value no longer resolves an improvement, the gradient does.
                level_ground = abs(new_value - value) <= 1e-11 * abs(value)
                lower = new_value <= value - 1e-4 * size * slope
                if lower or (level_ground and closer) or size < 1e-6:
                    break
                size *= 0.5
            iteration += 1
            if size < 1e-6:
                break  # nothing better can be told apart: this is the optimum
            scores, value, gradient = trial, new_value, new_gradient
    scores = scores - scores.mean()
    worst = float(np.abs(gradient).max()) / total
    if worst > max(1e3 * tol, 1e-6):
        raise RuntimeError(
            f"fit: not converged after {iteration} steps, relative gradient {worst:.1e}; "
            "raise max_iter or add regularization"
        )
    covariance = None
    if n <= MAX_NEWTON:
        level = np.full((n, n), 1.0 / n)
        information = _information(scores, *flat) + regularization * np.eye(n)
        scale = max(float(np.trace(information)) / n, 1e-300)
        inverse = np.linalg.inv(information + scale * level)
        centre = np.eye(n) - level
        covariance = centre @ inverse @ centre
    for array in (scores, covariance):
        if array is not None:
            array.flags.writeable = False
    return Fit(scores, _likelihood(scores, *flat)[0], covariance, iteration, worst)


def check_names(names: Sequence[str] | None, n_items: int) -> list[str] | None:
    """Turn names into text, one for each item."""
    if names is None:
        return None
    if len(names) != n_items:
        raise ValueError(f"names: expected {n_items} names, got {len(names)}")
    return [str(name) for name in names]


def check_existence(data: Rankings, rest: bool, names: Sequence[str] | None) -> None:
    """Say why there is no estimate: it exists iff wins connect every item with every other."""
    n = data.n_items
    if n == 1 or n > MAX_CHECKED:
        return
    graph = sparse.csr_matrix(_comparisons(data.items, data.ptr, data.weights, n, rest))
    rows, columns = graph.nonzero()
    parts, part = csgraph.connected_components(graph, connection="strong")
    if parts == 1:
        return
    shown = list(names) if names is not None else [str(i) for i in range(n)]

    def listing(which: IntArray) -> str:
        text = ", ".join(shown[i] for i in which[:5])
        return text + (f" and {len(which) - 5} more" if len(which) > 5 else "")

    islands, island = csgraph.connected_components(graph, connection="weak")
    if islands > 1:
        smallest = np.argmin(np.bincount(island))
        reason = f"never compared with the others: {listing(np.flatnonzero(island == smallest))}"
    else:
        crosses = part[rows] != part[columns]
        wins = set(part[rows[crosses]])
        losses = set(part[columns[crosses]])
        tops = [p for p in range(parts) if p in wins and p not in losses]
        bottoms = [p for p in range(parts) if p in losses and p not in wins]
        never_lose = np.flatnonzero(np.isin(part, tops))
        never_win = np.flatnonzero(np.isin(part, bottoms))
        # Name the smaller group: the other one is the rest of the field.
        if len(never_lose) <= len(never_win):
            reason = f"always above the others: {listing(never_lose)}"
        else:
            reason = f"always below the others: {listing(never_win)}"
    raise ValueError(
        f"fit: no maximum likelihood estimate exists, {reason}; "
        "leave these items out or set regularization above 0"
    )


# ---- kernels: items and ptr as in Rankings, weights (rankings,), scores (n,) -------------------


@kernel
def _first_bad(items: IntArray, ptr: IntArray, n_items: int) -> int:
    """Find the first ranking with a repeated or impossible item; -1 if there is none."""
    seen_in = np.full(n_items, -1, np.int64)
    for row in range(len(ptr) - 1):
        if ptr[row + 1] == ptr[row]:
            return row
        for k in range(ptr[row], ptr[row + 1]):
            item = items[k]
            if item < 0 or item >= n_items or seen_in[item] == row:
                return row
            seen_in[item] = row
    return -1


@kernel
def _comparisons(
    items: IntArray, ptr: IntArray, weights: FloatArray, n: int, rest: bool
) -> BoolArray:
    """Mark who was above whom, as far as needed to connect them, shape (n, n)."""
    beats = np.zeros((n, n), np.bool_)
    listed_in = np.full(n, -1, np.int64)
    for row in range(len(ptr) - 1):
        if weights[row] == 0.0:
            continue
        for k in range(ptr[row], ptr[row + 1]):
            listed_in[items[k]] = row
            if k + 1 < ptr[row + 1]:
                beats[items[k], items[k + 1]] = True
        if rest and ptr[row + 1] - ptr[row] < n:
            last = items[ptr[row + 1] - 1]
            for item in range(n):
                if listed_in[item] != row:
                    beats[last, item] = True
    return beats


@kernel
def _likelihood(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> tuple[float, FloatArray]:
    """Give the log-likelihood and its gradient (n,)."""
    n = len(scores)
    largest = scores.max()
    worths = np.exp(scores - largest)
    everything = worths.sum()
    gradient = np.zeros(n)
    everyone = 0.0  # what every item not listed owes, times its worth
    totals = np.empty(n)
    value = 0.0
    for row in range(len(ptr) - 1):
        weight = weights[row]
        low, high = ptr[row], ptr[row + 1]
        k = high - low
        total = 0.0
        partial = rest and k < n
        if partial:
            total = everything
            for place in range(low, high):
                total -= worths[items[place]]
            if total < 1e-3 * everything:
                taken = np.zeros(n, np.bool_)
                for place in range(low, high):
                    taken[items[place]] = True
                total = 0.0
                for item in range(n):
                    if not taken[item]:
                        total += worths[item]
        product, log_product, sum_scores = 1.0, 0.0, 0.0
        for place in range(k - 1, -1, -1):
            item = items[low + place]
            total += worths[item]
            if total < 1e-290:  # scores too far apart for plain numbers: the search must step back
                return -np.inf, gradient
            totals[place] = total
            sum_scores += scores[item] - largest
            product *= total
            if product < 1e-150 or product > 1e150:
                log_product += np.log(product)
                product = 1.0
        value += weight * (sum_scores - log_product - np.log(product))
        stages = 0.0
        for place in range(k):
            stages += 1.0 / totals[place]
            item = items[low + place]
            gradient[item] += weight * (1.0 - worths[item] * stages)
        if partial:
            # Unlisted items owe worth * stages; all are charged at the end, the listed paid back.
            everyone += weight * stages
            for place in range(low, high):
                gradient[items[place]] += weight * worths[items[place]] * stages
    for item in range(n):
        gradient[item] -= worths[item] * everyone
    return value, gradient


@kernel
def _information(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> FloatArray:
    """Give minus the second derivatives of the log-likelihood, shape (n, n).

    Items i and j take part together in the stages up to the earlier of the two, so that the sum
    over stages of 1 / total^2 up to there is all that a pair needs.
    """
    n = len(scores)
    worths = np.exp(scores - scores.max())
    result = np.zeros((n, n))
    position = np.empty(n, np.int64)
    squares, firsts = np.empty(n), np.empty(n)
    members = np.empty(n, np.int64)
    for row in range(len(ptr) - 1):
        low, high = ptr[row], ptr[row + 1]
        k = high - low
        size = 0
        for place in range(k):
            members[size] = items[low + place]
            position[members[size]] = place
            size += 1
        total = 0.0
        if rest and k < n:
            taken = np.zeros(n, np.bool_)
            for place in range(low, high):
                taken[items[place]] = True
            for item in range(n):
                if not taken[item]:
                    total += worths[item]
                    members[size] = item
                    position[item] = k - 1
                    size += 1
        for place in range(k - 1, -1, -1):
            total += worths[items[low + place]]
            squares[place] = weights[row] / (total * total)
            firsts[place] = weights[row] / total
        for place in range(1, k):
            squares[place] += squares[place - 1]
            firsts[place] += firsts[place - 1]
        # Members are in order of position, so that the earlier one of a pair comes first.
        for a in range(size):
            i = members[a]
            at = position[i]
            result[i, i] += worths[i] * firsts[at] - worths[i] * worths[i] * squares[at]
            factor = worths[i] * squares[at]
            for b in range(a + 1, size):
                result[i, members[b]] -= factor * worths[members[b]]
    for i in range(n):
        for j in range(i + 1, n):
            both = result[i, j] + result[j, i]
            result[i, j] = both
            result[j, i] = both
    return result
