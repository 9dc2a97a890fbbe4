"""L-BFGS on growing sets of blocks of queries, for data where one pass takes long."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.models.scaling import Scaling
from permdist.models.solvers.quasi_newton import lbfgs
from permdist.models.solvers.solution import Solution, ignore, one_thread
from permdist.models.solvers.total import Total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray
    from permdist.models.solvers.solution import Note
    from permdist.models.solvers.total import Evaluation

FIRST = 32  # the first set has one in so many blocks
GROWTH = 8  # how many times as large each set is as the last
FEWEST = 4  # blocks of the first set
LOOSE = 1e-3  # the tolerance of all sets but the last, which is that of all blocks
STAGE = 200  # iterations on each of them, at most
WIDE = 500  # columns; to learn how more of them curve would take longer than it saves
STEP = 1e-3  # of the difference quotients, in units of spread
FLATTEST = 1e-6  # a curvature that is smaller beside the largest is taken as so large


class Blocks(Total):
    """A total that can be restricted to some of its blocks."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of blocks."""

    @abstractmethod
    def some(self, numbers: Sequence[int]) -> Total:
        """Return the sum over these blocks only."""


def growing(
    total: Blocks,
    start: FloatArray | None,
    C: float = np.inf,
    *,
    rng: np.random.Generator,
    scaling: Scaling | None = None,
    tol: float = 1e-6,
    memory: int = 20,
    max_iter: int = 1000,
    note: Note = ignore,
) -> Solution:
    """Minimize a smooth sum over blocks: on few of them first, then on more, then on all.

    Each set holds the last one, and each minimum is where the next search starts. The sum over a
    set has its share of the penalty, so that all minima are near each other. How the objective
    curves is learned from the first set, one column after the other; the searches over larger sets
    are in variables in which it curves alike in all directions, so that they take few passes. Only
    the search over all blocks is noted and certified, as by `lbfgs` from the first start.

    Parameters
    ----------
    total : BlockTotal
        With fewer than 32 blocks there is only one set, that of all.
    start : array of float, shape (features,), or None
        Where to start; from zeros by default.
    C : float
        The larger, the weaker the penalty; infinite for none.
    rng : numpy.random.Generator
        Chooses the blocks of each set.
    scaling : Scaling, optional
        Units of the features, and factors of the penalty; all 1 by default.
    tol, memory, max_iter, note
        As in `lbfgs`, for the search over all blocks.

    Returns
    -------
    Solution
    """
    plain: dict[str, Any] = {"scaling": scaling, "memory": memory}
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "note": note}
    if len(total) < FIRST:
        return lbfgs(total, start, C, **limits, **plain)
    units = scaling or Scaling.plain(total.width)
    begin = np.zeros(total.width) if start is None else np.asarray(start, dtype=np.float64)
    order = rng.permutation(len(total))
    size = max(FEWEST, len(total) // FIRST)
    part = total.some(sorted(order[:size].tolist()))
    share = part.n_documents / total.n_documents
    with one_thread():
        w = lbfgs(part, start, C / share, tol=LOOSE, max_iter=STAGE, **plain).w
        if total.width > WIDE:
            return lbfgs(total, w, C, origin=begin, **limits, **plain)
        directions = _directions(part, w, C / share, units) * np.sqrt(share)
        size *= GROWTH
        while size < len(total):
            part = total.some(sorted(order[:size].tolist()))
            share = part.n_documents / total.n_documents
            turned = _Turned(part, w, directions / np.sqrt(share), C / share, units)
            w = turned.back(lbfgs(turned, None, tol=LOOSE, max_iter=STAGE, memory=memory).w)
            size *= GROWTH
        turned = _Turned(total, w, directions, C, units)

        def noted(v: FloatArray, **values: float) -> bool:
            return note(turned.back(v), **values)

        limits |= {"note": noted, "origin": turned.forth(begin)}
        found = lbfgs(turned, None, memory=memory, **limits)
    return found._replace(w=turned.back(found.w))


class _Turned(Total):
    """A total with its penalty, in variables v with ``w = w0 + directions @ v``."""

    def __init__(
        self, total: Total, w0: FloatArray, directions: FloatArray, C: float, units: Scaling
    ) -> None:
        self.total, self.w0, self.directions = total, w0, directions
        self.width, self.n_queries = directions.shape[1], total.n_queries
        self.n_documents = total.n_documents
        self.ridge = 2.0 / C * units.penalty * (units.spread > 0.0)

    def back(self, v: FloatArray) -> FloatArray:
        """Return the coefficients of v."""
        return self.w0 + self.directions @ v

    def forth(self, w: FloatArray) -> FloatArray:
        """Return the v of coefficients, as near as there is one."""
        found = np.linalg.lstsq(self.directions, w - self.w0, rcond=None)[0]
        return np.asarray(found, dtype=np.float64)

    def __call__(self, v: FloatArray) -> Evaluation:
        w = self.back(v)
        found = self.total(w)
        value = found.value + 0.5 * float(self.ridge @ w**2)
        gradient = self.directions.T @ (found.gradient + self.ridge * w)
        return found._replace(value=value, gradient=gradient)


def _directions(total: Total, w: FloatArray, C: float, units: Scaling) -> FloatArray:
    """Return directions, one per column, along each of which the total curves by about 1 at w."""
    used = np.flatnonzero(units.spread > 0.0)
    step = STEP * units.factors
    here = total(w).gradient
    hessian = np.empty((len(used), len(used)))
    for row, k in enumerate(used):
        moved = np.array(w)
        moved[k] += step[k]
        # In units of spread.
        change = (total(moved).gradient - here) / STEP
        hessian[row] = change[used] * units.factors[used]
    hessian = 0.5 * (hessian + hessian.T)
    ridge = 2.0 / C * units.penalty[used] * units.factors[used] ** 2
    values, vectors = np.linalg.eigh(hessian + np.diag(ridge))
    values = np.maximum(np.abs(values), max(FLATTEST * float(np.abs(values).max()), 1e-300))
    directions = np.zeros((total.width, len(used)))
    directions[used] = units.factors[used][:, None] * vectors / np.sqrt(values)
    return directions
