"""What a chain has to know of a distribution: the log-weight when two neighbors change places.

Every kernel is made of swaps of neighbors. A target answers two questions about them, `peek` (the
log-weight that a swap would lead to) and `swap` (do it), both in constant time for the models of
the library. A user's own log-weight answers by computing it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.distributions import Distribution, GoodBad, PlackettLuce, WeightedOrders
from permdist.distributions.lattice import MAX_CELLS, MAX_EXPONENT, grade_table
from permdist.rankings import random_orders

# What the numbers of a target mean. In LEVELS two neighbors of different labels change the
# log-weight by the difference of their scores, and by the tilt's table; in SORTED, besides, like
# items never pass each other. LUCE and LUCE_LOGS keep the sums of the worths from each position
# on, or their logs where worths would overflow. In MATRIX entry [i, j] is what i above j adds.
LEVELS, SORTED, LUCE, LUCE_LOGS, MATRIX, FUNCTION = range(6)
LARGEST_WORTH = 300.0
# Nanoseconds or about for `peek` and `swap`, to compare kernels by.
COSTS = {
    LEVELS: (2.8, 2.3),
    SORTED: (2.8, 2.3),
    LUCE: (16.0, 2.3),
    LUCE_LOGS: (18.0, 22.0),
    MATRIX: (3.0, 3.0),
    FUNCTION: (1000.0, 1.0),
}


class Target(NamedTuple):
    """The constants of a target, as kernels take them."""

    kind: int
    offset: float
    scores: FloatArray  # (n,)
    levels: IntArray  # (n,), the number of each item's label
    strides: IntArray  # (levels,), as in the tilt's table
    table: FloatArray  # (levels, counts of labels above), (n, n), or one column if not used


class State(NamedTuple):
    """What a chain carries from step to step; `value[0]` is the log-weight of `order`."""

    order: IntArray
    number: IntArray  # (n + 1,), where in the tilt's table each position looks
    sums: FloatArray  # (n + 1,), worths from each position on
    value: FloatArray  # (1,)
    weights: FloatArray  # (n,), free for kernels to use
    shares: FloatArray  # (n,), too
    counts: IntArray  # (levels,), free for `restore`


@dataclass(frozen=True)
class Problem:
    """A target with what is needed around its kernels.

    Attributes
    ----------
    dist : Distribution
    target : Target
    normalizer : float or None
        The log of the sum of all weights, where it is known.
    function, change : callables, optional
        The log-weight of one order, and what a swap changes, for a target without a form of its
        own.
    compiled : bool
        Whether the kernels are compiled for it.
    """

    dist: Distribution
    target: Target
    normalizer: float | None
    function: Callable[..., float] | None = None
    change: Callable[..., float] | None = None
    compiled: bool = True

    @property
    def has_levels(self) -> bool:
        """Whether items of equal labels can change places freely, as the block flip needs."""
        return self.target.kind == LEVELS

    def start(self, order: IntArray) -> State:
        """Make the state of a chain at an order."""
        n = len(order)
        return State(
            np.array(order, dtype=np.int64),
            np.zeros(n + 1, dtype=np.int64),
            np.zeros(n + 1),
            np.zeros(1),
            np.zeros(n),
            np.zeros(n),
            np.zeros(max(1, len(self.target.strides)), dtype=np.int64),
        )

    def random_start(self, rng: np.random.Generator) -> IntArray:
        """Draw an order of positive weight to start from, spread wider than the target."""
        if self.target.kind == SORTED:  # a random merge of the sorted classes
            classes = [list(members) for members in self.dist._shape.classes]
            pattern = rng.permutation(np.repeat(np.arange(len(classes)), [*map(len, classes)]))
            taken = [iter(members) for members in classes]
            return np.array([next(taken[c]) for c in pattern], dtype=np.int64)
        for _ in range(100):
            order = random_orders(self.dist.n_items, rng=rng)
            if self.function is None or self.function(order) > -np.inf:
                return order
        raise ValueError(
            "start: 100 random orders all have weight 0; give orders of positive weight as start"
        )


def problem_of(dist: Distribution) -> Problem:
    """Find the fastest form in which a distribution can be sampled step by step."""
    if isinstance(dist, GoodBad):
        return _good_bad(dist)
    if isinstance(dist, PlackettLuce):
        scores = dist._centered
        if np.ptp(scores) <= LARGEST_WORTH:
            return Problem(dist, _target(LUCE, np.exp(scores)), 0.0)
        return Problem(dist, _target(LUCE_LOGS, scores), 0.0)
    if isinstance(dist, WeightedOrders):
        normalizer = dist.log_partition() if dist._is_small or dist._is_listed else None
        if dist.pair_weights is not None:
            table = dist._pair_losses if is_wide(dist) else dist.pair_weights
            return Problem(dist, _target(MATRIX, table=table), _normalizer(dist))
        function, compiled = dist.single_log_weight()
        target = _target(FUNCTION)
        return Problem(dist, target, normalizer, function, dist.swap_change, compiled)

    def log_prob(order: IntArray) -> float:
        return float(dist.log_prob(order))

    return Problem(dist, _target(FUNCTION), 0.0, log_prob, compiled=False)


def is_wide(dist: Distribution) -> bool:
    """Check whether log-weights are so large that chains must leave out what all orders share."""
    return abs(dist._reference) > MAX_EXPONENT


def _normalizer(dist: Distribution) -> float | None:
    """Return the log-partition function, less what chains leave out; None where unknown."""
    if not dist._is_small:
        return None
    return dist.log_partition() if not is_wide(dist) else dist._relative_partition


def _good_bad(dist: GoodBad) -> Problem:
    dist._need_orders("run_chains")
    scores, shift = dist.scores, 0.0
    if is_wide(dist):
        # The same probabilities, with scores as close together as these allow.
        scores = dist._narrowed * (0.5 / dist.scale)
        shift = GoodBad(scores, dist.labels, scale=dist.scale)._reference
    grades, level_of, totals = np.unique(dist.labels, return_inverse=True, return_counts=True)
    table, offset = np.zeros((len(grades), 1)), 0.0
    if dist.tilt is not None and dist.kappa != 0.0:
        cells = float(np.prod(totals + 1.0)) * len(grades)
        if cells > MAX_CELLS:
            raise ValueError(
                f"tilt: its table would have {cells:,.0f} entries, the limit is {MAX_CELLS:,}; "
                "merge grades"
            )
        found = grade_table(dist.tilt, tuple(grades.tolist()), tuple(totals.tolist()))
        table, offset = -dist.kappa * found, dist.kappa * (1.0 - dist.tilt.offset(grades, totals))
    target = Target(
        SORTED if dist.space == "interleavings" else LEVELS,
        offset - shift,
        2.0 * dist.scale * (scores - scores.max()),
        level_of.astype(np.int64),
        np.concatenate([[1], np.cumprod(totals + 1)[:-1]]).astype(np.int64),
        table,
    )
    return Problem(dist, target, _normalizer(dist))


def _target(kind: int, scores: FloatArray | None = None, table: FloatArray | None = None) -> Target:
    nothing = np.zeros(0, dtype=np.int64)
    return Target(
        kind,
        0.0,
        np.zeros(0) if scores is None else scores,
        nothing,
        nothing,
        np.zeros((1, 1)) if table is None else np.array(table),
    )


# ---- kernels ------------------------------------------------------------------------------------


@kernel(inline=True)
def peek(target: Target, state: State, k: int) -> float:
    """Give the log-weight after a swap of positions k and k + 1."""
    a, b = state.order[k], state.order[k + 1]
    if target.kind <= SORTED:
        above, below = target.levels[a], target.levels[b]
        if above == below:
            return state.value[0] if target.kind == LEVELS else -np.inf
        change = target.scores[b] - target.scores[a]
        if target.table.shape[1] > 1:
            here = state.number[k]
            after = target.table[below, here] + target.table[above, here + target.strides[below]]
            before = target.table[above, here] + target.table[below, here + target.strides[above]]
            change += after - before
        return state.value[0] + change
    if target.kind == LUCE:
        rest = state.sums[k + 2] if k + 2 < len(state.sums) else 0.0
        return state.value[0] + np.log((rest + target.scores[b]) / (rest + target.scores[a]))
    if target.kind == LUCE_LOGS:
        return state.value[0] + state.sums[k + 1] - _log_add(state.sums[k + 2], target.scores[a])
    return state.value[0] + target.table[b, a] - target.table[a, b]


@kernel(inline=True)
def swap(target: Target, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    a, b = state.order[k], state.order[k + 1]
    state.order[k], state.order[k + 1] = b, a
    state.value[0] = value
    if target.kind <= SORTED:
        if target.table.shape[1] > 1:
            state.number[k + 1] = state.number[k] + target.strides[target.levels[b]]
    elif target.kind == LUCE:
        state.sums[k + 1] = state.sums[k + 2] + target.scores[a]
    elif target.kind == LUCE_LOGS:
        state.sums[k + 1] = _log_add(state.sums[k + 2], target.scores[a])


@kernel(inline=True)
def restore(target: Target, state: State) -> None:
    """Compute everything that follows from the order, so that rounding does not add up."""
    n, order = len(state.order), state.order
    value = 0.0
    if target.kind <= SORTED:
        placed, number = state.counts, 0
        for level in range(len(placed)):
            placed[level] = 0
        for k in range(n):
            level = target.levels[order[k]]
            state.number[k] = number
            value -= target.scores[order[k]] * (k - placed[level])  # others above
            if target.table.shape[1] > 1:
                value += target.table[level, number]
            placed[level] += 1
            number += target.strides[level]
        state.number[n] = number
        # 0.5 s (below - above) = 0.5 s (others - 2 above): the first part does not change.
        for item in range(n):
            value += 0.5 * target.scores[item] * (n - placed[target.levels[item]])
    elif target.kind == LUCE:
        state.sums[n] = 0.0
        for k in range(n - 1, -1, -1):
            state.sums[k] = state.sums[k + 1] + target.scores[order[k]]
            value += np.log(target.scores[order[k]] / state.sums[k])
    elif target.kind == LUCE_LOGS:
        state.sums[n] = -np.inf
        for k in range(n - 1, -1, -1):
            state.sums[k] = _log_add(state.sums[k + 1], target.scores[order[k]])
            value += target.scores[order[k]] - state.sums[k]
    else:
        for k in range(n):
            for later in range(k + 1, n):
                value += target.table[order[k], order[later]]
    state.value[0] = value + target.offset


@kernel(inline=True)
def _log_add(x: float, y: float) -> float:
    """log(exp x + exp y)."""
    large, small = max(x, y), min(x, y)
    return large if small == -np.inf else large + np.log1p(np.exp(small - large))
