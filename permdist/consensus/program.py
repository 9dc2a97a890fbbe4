"""The linear ordering problem as an integer program, with triangles added where they are needed.

For items i < j of the incumbent order, x_ij says whether i is above j. An order is a 0-1 vector
that satisfies ``0 <= x_ij + x_jk - x_ik <= 1`` for all i < j < k: no circle of three.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from permdist._kernels import kernel
from permdist._parallel import run_interruptible
from permdist.consensus.cuts import Cuts, odd_circles, triangle_rows
from permdist.consensus.search import search

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray

VIOLATED = 1e-6  # a triangle is violated by more than this
TOLERANCE = 1e-6  # of costs, in units of the largest margin
FAR = 0.6  # inequalities with more slack than this are dropped
MOST_CUTS = 300  # in a round
PATIENCE, PROGRESS = 8, 0.99  # rounds in which the gap must fall to this part of it
MANY_SHAKES, MANY_MOVES = 2000, 16  # of the local search where triangles leave a gap
LARGEST_WHOLE = 2.0**40  # margins up to this, if whole numbers, are added up exactly


class Solved(NamedTuple):
    """The order of one component; costs as in `permdist.consensus.kemeny.Kemeny`."""

    order: IntArray
    excess: float
    bound: float
    proved: bool


def solve(
    margins: FloatArray,
    start: IntArray,
    deadline: float,
    tell: Callable[[str], None] | None,
) -> Solved:
    """Return the best order of a component, or the best one until the deadline.

    The linear relaxation is solved by HiGHS with those triangles that its last solution violated,
    round after round. When few triangles are violated, cuts that follow from several of them are
    added, too (see `permdist.consensus.cuts`); those that the solution is far from are dropped. Any
    multipliers of these inequalities give a lower bound (Lagrange): the bound is computed from them
    and not taken from the solver. Variables whose reduced cost exceeds the gap are fixed. If the
    bound no longer rises, the integer program is solved with the inequalities found so far, again
    until its solution violates no triangle.

    If all margins are multiples of one number, costs are so, too, and a bound is rounded up.

    Parameters
    ----------
    margins : array of float, shape (n, n)
    start : array of int, shape (n,)
        An order to begin with.
    deadline : float
        On the clock of `time.monotonic`.
    tell : callable or None
        Called with a line of text in every round.

    Notes
    -----
    Proofs are exact up to the rounding of floats if margins are whole numbers, and up to 3e-6 of
    the largest margin otherwise.
    """
    state = _State(margins, start, deadline, tell)
    if state.closed() or time.monotonic() >= deadline:
        return state.result()
    state.add(_signs(state.margins))
    if not _relax(state):
        _branch(state)
    return state.result()


class _State:
    """The incumbent, the bound and the triangles so far."""

    def __init__(
        self,
        margins: FloatArray,
        start: IntArray,
        deadline: float,
        tell: Callable[[str], None] | None,
    ) -> None:
        self.unit = max(float(np.abs(margins).max()), 1e-300)
        self.whole = _step(margins)
        self.step = self.whole / self.unit
        self.base = np.array(start, dtype=np.int64)
        self.margins = margins[np.ix_(self.base, self.base)] / self.unit  # in the incumbent's order
        self.deadline, self.tell = deadline, tell
        n = len(start)
        self.first, self.second = np.triu_indices(n, 1)
        self.place = np.zeros((n, n), dtype=np.int64)
        self.place[self.first, self.second] = np.arange(len(self.first))
        self.costs = -self.margins[self.first, self.second]
        # The cost of x is above the sum of the smaller sides by costs @ x + offset.
        self.offset = float(np.maximum(-self.costs, 0.0).sum())
        self.low, self.high = np.zeros(len(self.costs)), np.ones(len(self.costs))
        self.order = np.arange(n)
        self.excess = self.cost(self.order)
        self.bound = 0.0
        self.triangles = np.zeros((0, 4), dtype=np.int64)
        self.cuts = Cuts.none(len(self.costs))
        self.proved = False

    def cost(self, order: IntArray) -> float:
        """Return the cost of an order above the sum of the smaller sides."""
        own = self.margins[np.ix_(order, order)]
        return float(np.maximum(-own[self.first, self.second], 0.0).sum())

    def closed(self) -> bool:
        """Return whether no order can be better than the incumbent."""
        least = max(self.step - TOLERANCE, 3.0 * TOLERANCE)
        self.proved = self.proved or self.excess - self.bound < least
        return self.proved

    def raise_bound(self, bound: float) -> None:
        """Take a better bound, up to the cost of the incumbent."""
        self.bound = max(self.bound, min(bound, self.excess))

    def offer(self, order: IntArray, shakes: int = 0) -> None:
        """Improve an order by local search, and keep it if it is the best one."""
        found = search(self.margins, order, shakes, moves=MANY_MOVES)
        cost = self.cost(found)
        if cost < self.excess - TOLERANCE:
            self.order, self.excess = found, cost

    def full(self, x: FloatArray) -> FloatArray:
        """Return a vector of pairs as a matrix, ``X[i, j] + X[j, i] = 1``."""
        n = len(self.margins)
        matrix = np.zeros((n, n))
        matrix[self.first, self.second] = x
        matrix[self.second, self.first] = 1.0 - x
        return matrix

    def add(self, matrix: FloatArray) -> int:
        """Add violated triangles, the worst first, and return how many."""
        most = max(1000, 2 * len(self.costs))
        found = _violated(matrix, VIOLATED, 20 * most)
        gaps, rows = found[:, 4], found[:, :4].astype(np.int64)
        # Of equal ones not the first by number, which would all have the same items.
        mixed = np.random.default_rng(len(self.triangles)).permutation(len(rows))
        chosen = mixed[np.argsort(-np.round(gaps[mixed], 3), kind="stable")][:most]
        self.triangles = np.concatenate([self.triangles, rows[chosen]])
        return len(chosen)

    def constraints(self) -> tuple[sparse.csr_array, FloatArray]:
        """Return the triangles and the cuts as ``A x <= b``."""
        rows = triangle_rows(self.triangles, self.place, len(self.costs))
        matrix = sparse.csr_array(sparse.vstack([rows.matrix, self.cuts.matrix]))
        return matrix, np.append(rows.limits, self.cuts.limits)

    def add_cuts(self, matrix: FloatArray) -> int:
        """Add cuts beyond triangles that a solution violates, and return how many."""
        found = odd_circles(matrix, self.place, MOST_CUTS)
        before = len(self.cuts.limits)
        self.cuts = self.cuts + found
        return len(self.cuts.limits) - before

    def drop(self, slack: FloatArray) -> None:
        """Drop inequalities that a solution is far from."""
        needed = np.flatnonzero(slack < FAR)
        number = len(self.triangles)
        self.triangles = self.triangles[needed[needed < number]]
        self.cuts = self.cuts.kept(needed[needed >= number] - number)

    def fix(self, bound: float, reduced: FloatArray) -> None:
        """Fix variables that have one value in all orders that are better than the incumbent."""
        slack = self.excess - max(self.step - TOLERANCE, 0.0) - bound
        self.high[(reduced > slack) & (self.low == 0.0)] = 0.0
        self.low[(reduced < -slack) & (self.high == 1.0)] = 1.0

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return min(self.deadline - time.monotonic(), 1e7)

    def report(self, what: str) -> None:
        """Report how far the search is."""
        if self.tell is not None:
            gap = (self.excess - self.bound) * self.unit
            self.tell(
                f"{len(self.order)} items, {what}: {len(self.triangles):,} triangles, "
                f"{len(self.cuts.limits):,} other cuts, gap {gap:,.6g}"
            )

    def result(self) -> Solved:
        """Return the answer in the caller's units."""
        self.closed()
        bound = self.excess if self.proved else self.bound
        excess, bound = self.excess * self.unit, bound * self.unit
        if self.whole > 0.0:
            excess = np.round(excess / self.whole) * self.whole
            bound = np.ceil((bound - TOLERANCE * self.unit) / self.whole) * self.whole
        return Solved(self.base[self.order], float(excess), float(bound), self.proved)


def _relax(state: _State) -> bool:
    """Solve the linear relaxation with more and more cuts; return whether this settles it."""
    from scipy.optimize import linprog

    gaps: list[float] = []
    shaken = False
    while state.left() > 0.0:
        matrix, limits = state.constraints()
        found: Any = _called(
            linprog,
            state.costs,
            A_ub=matrix,
            b_ub=limits,
            bounds=np.stack([state.low, state.high], axis=1),
            method="highs-ds",
            options={"time_limit": state.left()},
        )
        if found.status == 2:  # nothing is better than the incumbent
            state.proved = True
            return True
        if found.status != 0:
            break
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
        reduced = state.costs + matrix.T @ multipliers
        least = np.minimum(reduced * state.low, reduced * state.high)
        bound = state.offset - float(limits @ multipliers) + float(least.sum())
        state.raise_bound(bound)
        full = state.full(found.x)
        state.offer(np.argsort(-full.sum(axis=1), kind="stable"))
        state.report("linear relaxation")
        if state.closed():
            return True
        state.fix(bound, reduced)
        state.drop(found.slack)
        added = state.add(full)
        if added <= len(state.costs) // 20:  # nearly no triangle is violated
            if not shaken:
                state.offer(state.order, MANY_SHAKES)
                shaken = True
            added += state.add_cuts(full)
        if not added:
            whole = np.abs(found.x - np.round(found.x)).max() < VIOLATED
            return bool(whole) and state.closed()
        gaps.append(state.excess - bound)
        if len(gaps) > PATIENCE and gaps[-1] > PROGRESS * gaps[-1 - PATIENCE]:
            break
    return state.left() <= 0.0


def _branch(state: _State) -> None:
    """Solve the integer program until its solution is an order."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    while state.left() > 0.0:
        matrix, limits = state.constraints()
        found: Any = _called(
            milp,
            state.costs,
            integrality=np.ones(len(state.costs)),
            bounds=Bounds(state.low, state.high),
            constraints=LinearConstraint(matrix, -np.inf, limits),
            options={"time_limit": state.left(), "mip_rel_gap": 0.0},
        )
        if found.status == 2:
            state.proved = True
            return
        if found.mip_dual_bound is not None:
            state.raise_bound(found.mip_dual_bound + state.offset - TOLERANCE)
        if found.x is None:
            return
        full = state.full(np.round(found.x))
        state.offer(np.argsort(-full.sum(axis=1), kind="stable"))
        state.report("integer program")
        if state.closed() or found.status != 0 or not state.add(full):
            return


def _called(solver: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a solver so that Ctrl-C ends it."""
    return run_interruptible(partial(solver, *args, **options))


def _signs(margins: FloatArray) -> FloatArray:
    """Return the solution without any triangle: each pair by its majority."""
    return np.where(margins > 0.0, 1.0, np.where(margins < 0.0, 0.0, 0.5))


def _step(margins: FloatArray) -> float:
    """Return the number of which all margins are multiples; 0 if they are no whole numbers."""
    whole = np.round(margins)
    if (whole != margins).any() or np.abs(whole).max() > LARGEST_WHOLE:
        return 0.0
    return float(np.gcd.reduce(np.abs(whole).astype(np.int64), axis=None))


@kernel
def _violated(matrix: FloatArray, least: float, most: int) -> FloatArray:
    """List triangles that are violated by more than `least`, as rows i, j, k, upper, violation."""
    n = len(matrix)
    found = np.empty((most, 5))
    used = 0
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                value = matrix[i, j] + matrix[j, k] - matrix[i, k]
                gap = max(value - 1.0, -value)
                if gap > least and used < most:
                    found[used, 0], found[used, 1], found[used, 2] = i, j, k
                    found[used, 3] = 1.0 if value > 1.0 else 0.0
                    found[used, 4] = gap
                    used += 1
    return found[:used]
