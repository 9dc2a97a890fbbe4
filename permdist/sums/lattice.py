"""The dynamic program under exact sums over orders: any log-weight per state and next class.

`shape.py` has the states. `levels.py` and `two_classes.py` do the same for the good-bad pair
model's weights alone, in a fraction of the time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pointers, row_blocks
from permdist.sums.shape import count_down, count_up

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.sums.shape import Shape

# Sums of log-weights are rounded to about 1e-16 of their size, and probabilities are as wrong as
# the sums are: up to this size to 1e-9.
MAX_EXPONENT = 4e6


class NotExactError(ValueError):
    """No exact answer: the problem is too large, or too few digits would be left."""

    __module__ = "permdist.distributions"  # where users find it


class Lattice:
    """Exact sums over all paths of a lattice with given log-weights.

    Parameters
    ----------
    shape : Shape
    weights : array of float, shape (states, classes)
        The log-weight of placing the next item of a class in a state.
    """

    def __init__(self, shape: Shape, weights: FloatArray) -> None:
        self.shape, self.weights = shape, weights
        self._geometry = (shape.sizes, shape.strides)

    @cached_property
    def forward(self) -> FloatArray:
        """The log of the sum over all ways to reach each state."""
        return _forward(self.weights, *self._geometry)

    @property
    def log_partition(self) -> float:
        """The log of the sum over all paths."""
        total = float(self.forward[-1])
        if not np.isfinite(total):
            raise ValueError(f"log-weights: no order has a positive, finite weight (sum {total})")
        return total

    @cached_property
    def flows(self) -> FloatArray:
        """The probability of each step, shape (states, classes)."""
        _ = self.log_partition
        nothing = np.zeros(0)
        return self._adjoint(1.0, nothing, nothing, 0.0)

    @cached_property
    def entropy(self) -> float:
        """The entropy of the path, in nats: a sum of entropies of single steps.

        Log-partition less expected weight would be the same in exact arithmetic; there both may
        be large, and their difference is what rounding left of them.
        """
        return self._steps_added(self)[0]

    def divergence(self, other: Lattice) -> float:
        """Return the Kullback-Leibler divergence to another lattice of the same shape."""
        return self._steps_added(other)[1]

    def _steps_added(self, other: Lattice) -> tuple[float, float]:
        _ = self.log_partition, other.log_partition
        theirs = other.weights, other.forward
        inputs = self.weights, self.forward, *theirs, *self._geometry, other is not self
        entropy, divergence, largest = _entropies(*inputs)
        check_digits(largest)
        return entropy, divergence

    def _adjoint(
        self, of_sum: float, steps: FloatArray, means: FloatArray, of_mean: float
    ) -> FloatArray:
        table = steps if steps.size else np.zeros((1, 1))
        along = means if means.size else np.zeros(1)
        inputs = self.weights, self.forward, *self._geometry, table, along, of_sum, of_mean
        result, largest = _adjoint(*inputs)
        check_digits(largest)
        return result

    def expect(self, steps: FloatArray) -> float:
        """Return the mean of a sum of steps along the path."""
        return float(np.sum(self.flows * steps))

    def expect_gradient(self, steps: FloatArray) -> FloatArray:
        """Differentiate `expect` by every log-weight, shape (states, classes)."""
        means = _means(self.weights, self.forward, *self._geometry, steps)
        return self._adjoint(0.0, steps, means, 1.0)

    def rank_marginals(self) -> FloatArray:
        """Return the probability of each position for each item."""
        found = _marginals(self.flows, *self.shape.geometry)
        return np.minimum(found, 1.0)

    def pairwise(self) -> FloatArray:
        """Return the probability that one item is above another."""
        shape = self.shape
        slots = pointers(shape.sizes + 1)
        table = _counts_when_placed(self.flows, *shape.geometry, slots)
        result = np.zeros((len(shape.items),) * 2)
        for number, members in enumerate(shape.classes):
            own = table[:, slots[number] : slots[number + 1]]
            # Item k of the class is above if more than k of its class are.
            more = own[:, ::-1].cumsum(axis=1)[:, ::-1]
            result[members] = more[:, 1:].T
        np.fill_diagonal(result, 0.0)
        return np.minimum(result, 1.0)

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders by walking back from the complete state, shape (size, n)."""
        _ = self.log_partition  # there must be something to draw
        n = len(self.shape.items)
        inputs = self.weights, self.forward, *self._geometry
        taken = np.empty((size, n), dtype=np.int64)
        for a, b in row_blocks(size, n):
            taken[a:b], largest = _walk_back(*inputs, rng.random((b - a, n)))
            check_digits(largest)
        return self._orders(taken)

    def best(self) -> IntArray:
        """Find the path of largest weight."""
        _ = self.log_partition
        taken = _best_path(self.weights, *self._geometry)
        return self._orders(taken[None, :])[0]

    def best_ahead(self) -> FloatArray:
        """Return the largest weight of a path from each state to the end, shape (states,)."""
        return _best_ahead(self.weights, *self._geometry)

    def _orders(self, taken: IntArray) -> IntArray:
        """Turn sequences of classes into orders of items."""
        orders = np.empty_like(taken)
        for number, members in enumerate(self.shape.classes):
            mine = taken == number
            orders[mine] = np.broadcast_to(members, (len(taken), len(members))).ravel()
        return orders


def check_digits(largest: float) -> None:
    """Refuse log-weights whose sums are too large to have digits left for the probabilities."""
    if not largest <= MAX_EXPONENT:
        raise NotExactError(
            f"log-weights: sums of them reach {largest:.1e} in orders that matter, which leaves "
            f"probabilities {15 - int(np.log10(largest))} digits; they are exact up to "
            f"{MAX_EXPONENT:.0e}: subtract what all orders share, or scale the weights down"
        )


# ---- kernels: weights (states, classes), sizes (classes,), strides (classes + 1,) --------------


@kernel
def _forward(weights: FloatArray, sizes: IntArray, strides: IntArray) -> FloatArray:
    """Log of the sum over all paths to each state."""
    states, classes = weights.shape
    total = np.empty(states)
    total[0] = 0.0
    counts = np.zeros(classes, np.int64)
    terms = np.empty(classes)
    for state in range(1, states):
        count_up(counts, sizes)
        largest, n, top = -np.inf, 0, 0
        for c in range(classes):
            if counts[c] > 0:
                before = state - strides[c]
                term = total[before] + weights[before, c]
                terms[n] = term
                if term > largest:
                    largest, top = term, n
                n += 1
        rest = 1.0
        for t in range(n):
            if t != top and terms[t] > largest - 40.0:
                rest += np.exp(terms[t] - largest)
        total[state] = largest if rest == 1.0 else largest + np.log(rest)
    return total


@kernel
def _means(
    weights: FloatArray,
    forward: FloatArray,
    sizes: IntArray,
    strides: IntArray,
    steps: FloatArray,
) -> FloatArray:
    """Mean of the steps so far, over the paths to each state."""
    states, classes = weights.shape
    means = np.zeros(states)
    counts = np.zeros(classes, np.int64)
    for state in range(1, states):
        count_up(counts, sizes)
        for c in range(classes):
            if counts[c] > 0 and forward[state] > -np.inf:
                before = state - strides[c]
                share = np.exp(forward[before] + weights[before, c] - forward[state])
                means[state] += share * (means[before] + steps[before, c])
    return means


@kernel
def _adjoint(
    weights: FloatArray,
    forward: FloatArray,
    sizes: IntArray,
    strides: IntArray,
    steps: FloatArray,
    means: FloatArray,
    of_sum: float,
    of_mean: float,
) -> tuple[FloatArray, float]:
    """Differentiate of_sum * forward[-1] + of_mean * means[-1] by every weight.

    The derivatives of the log-partition are the probabilities of the steps. `steps` and `means`
    are read only where of_mean is not 0. Returned besides: the largest sum, by size, in a state
    whose probability matters.
    """
    states, classes = weights.shape
    result = np.zeros((states, classes))
    by_sum, by_mean = np.zeros(states), np.zeros(states)
    by_sum[-1], by_mean[-1] = of_sum, of_mean
    counts = sizes.copy()
    with_mean = of_mean != 0.0
    largest = 0.0
    for state in range(states - 1, 0, -1):
        a, b = by_sum[state], by_mean[state]
        if (a > 1e-17 or b > 1e-17) and abs(forward[state]) > largest:
            largest = abs(forward[state])
        if (a != 0.0 or b != 0.0) and forward[state] > -np.inf:
            for c in range(classes):
                if counts[c] > 0:
                    before = state - strides[c]
                    exponent = forward[before] + weights[before, c] - forward[state]
                    if exponent < -745.0:
                        continue
                    share = np.exp(exponent)
                    flow = a * share
                    if with_mean:
                        through = means[before] + steps[before, c]
                        flow += b * share * (through - means[state])
                        by_mean[before] += b * share
                    by_sum[before] += flow
                    result[before, c] = flow
        count_down(counts, sizes)
    return result, largest


@kernel
def _log_shares(
    weights: FloatArray,
    forward: FloatArray,
    strides: IntArray,
    counts: IntArray,
    state: int,
    out: FloatArray,
) -> None:
    """Fill out (classes,) with the logs of the shares of each way into a state; -inf if none."""
    largest = -np.inf
    for c in range(len(counts)):
        out[c] = -np.inf
        if counts[c] > 0:
            before = state - strides[c]
            out[c] = forward[before] + weights[before, c]
            largest = max(largest, out[c])
    if largest == -np.inf:
        return
    total = 0.0
    for c in range(len(counts)):
        total += np.exp(out[c] - largest)
    rest = np.log(total)
    for c in range(len(counts)):
        out[c] = (out[c] - largest) - rest


@kernel
def _entropies(
    weights: FloatArray,
    forward: FloatArray,
    other_weights: FloatArray,
    other_forward: FloatArray,
    sizes: IntArray,
    strides: IntArray,
    compare: bool,
) -> tuple[float, float, float]:
    """Entropy and divergence of the step into each state, times its probability, added up.

    With shares p and q the divergence is ``sum p log(p / q) - p + q``, of which no term is
    negative but by rounding. Returned besides: the largest sum, by size, in a state that matters.
    """
    states, classes = weights.shape
    chances = np.zeros(states)
    chances[-1] = 1.0
    counts = sizes.copy()
    mine, theirs = np.empty(classes), np.empty(classes)
    entropy, divergence, largest = 0.0, 0.0, 0.0
    for state in range(states - 1, 0, -1):
        chance = chances[state]
        if chance > 0.0:
            if chance > 1e-17:
                largest = max(largest, abs(forward[state]))
            _log_shares(weights, forward, strides, counts, state, mine)
            if compare:
                _log_shares(other_weights, other_forward, strides, counts, state, theirs)
            inner, apart = 0.0, 0.0
            for c in range(classes):
                p = np.exp(mine[c]) if mine[c] > -745.0 else 0.0
                if p > 0.0:
                    inner -= p * mine[c]
                    chances[state - strides[c]] += chance * p
                if compare:
                    apart += np.exp(theirs[c]) - p
                    if p > 0.0:
                        apart += p * (mine[c] - theirs[c])
            entropy += chance * inner
            divergence += chance * max(apart, 0.0)
        count_down(counts, sizes)
    return entropy, divergence, largest


@kernel
def _marginals(
    flows: FloatArray, sizes: IntArray, _strides: IntArray, first: IntArray, items: IntArray
) -> FloatArray:
    """Add up the flows by item and position, shape (n, n)."""
    states, classes = flows.shape
    result = np.zeros((len(items), len(items)))
    counts = np.zeros(classes, np.int64)
    for state in range(states - 1):
        position = counts.sum()
        for c in range(classes):
            if counts[c] < sizes[c]:
                result[items[first[c] + counts[c]], position] += flows[state, c]
        count_up(counts, sizes)
    return result


@kernel
def _counts_when_placed(
    flows: FloatArray,
    sizes: IntArray,
    _strides: IntArray,
    first: IntArray,
    items: IntArray,
    slots: IntArray,
) -> FloatArray:
    """Probability that t of class c are placed when an item is: entry [item, slots[c] + t]."""
    states, classes = flows.shape
    result = np.zeros((len(items), slots[-1]))
    counts = np.zeros(classes, np.int64)
    for state in range(states - 1):
        for c in range(classes):
            flow = flows[state, c]
            if flow > 0.0 and counts[c] < sizes[c]:
                item = items[first[c] + counts[c]]
                for other in range(classes):
                    result[item, slots[other] + counts[other]] += flow
        count_up(counts, sizes)
    return result


@kernel
def _walk_back(
    weights: FloatArray,
    forward: FloatArray,
    sizes: IntArray,
    strides: IntArray,
    uniforms: FloatArray,
) -> tuple[IntArray, float]:
    """Draw paths, uniforms (draws, n): the class taken at each position, from the end.

    Returned besides: the largest sum, by size, of the states on the way.
    """
    draws, n = uniforms.shape
    classes = len(sizes)
    taken = np.empty((draws, n), np.int64)
    largest = 0.0
    for draw in range(draws):
        counts = sizes.copy()
        state = len(forward) - 1
        for position in range(n - 1, -1, -1):
            u = uniforms[draw, position]
            chosen = -1
            largest = max(largest, abs(forward[state]))
            for c in range(classes):
                if counts[c] > 0:
                    before = state - strides[c]
                    share = np.exp(forward[before] + weights[before, c] - forward[state])
                    if share > 0.0:
                        chosen = c
                        u -= share
                        if u < 0.0:
                            break
            taken[draw, position] = chosen
            counts[chosen] -= 1
            state -= strides[chosen]
    return taken, largest


@kernel
def _best_path(weights: FloatArray, sizes: IntArray, strides: IntArray) -> IntArray:
    """Classes along the path of largest weight; the lowest class among equals."""
    states, classes = weights.shape
    best = np.full(states, -np.inf)
    last = np.zeros(states, np.int64)
    best[0] = 0.0
    counts = np.zeros(classes, np.int64)
    for state in range(1, states):
        count_up(counts, sizes)
        for c in range(classes - 1, -1, -1):
            if counts[c] > 0:
                before = state - strides[c]
                if best[before] + weights[before, c] > best[state]:
                    best[state] = best[before] + weights[before, c]
                    last[state] = c
    n = sizes.sum()
    taken = np.empty(n, np.int64)
    state = states - 1
    for position in range(n - 1, -1, -1):
        taken[position] = last[state]
        state -= strides[last[state]]
    return taken


@kernel
def _best_ahead(weights: FloatArray, sizes: IntArray, strides: IntArray) -> FloatArray:
    """Largest weight of the rest of a path, for each state."""
    states, classes = weights.shape
    ahead = np.full(states, -np.inf)
    ahead[states - 1] = 0.0
    counts = sizes.copy()
    for state in range(states - 2, -1, -1):
        count_down(counts, sizes)
        for c in range(classes):
            if counts[c] < sizes[c]:
                ahead[state] = max(ahead[state], weights[state, c] + ahead[state + strides[c]])
    return ahead
