"""The likelihood of ballots about many items: second derivatives as a sparse network.

A record's second derivatives are those of a network between its alternatives: all that is kept is
a conductance for each pair of items that were ever on one ballot. Matrices of items by items are
never made; equations are solved by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from permdist._kernels import kernel
from permdist.inference.conjugate import descend
from permdist.inference.likelihood import Likelihood, Penalty
from permdist.inference.priors import PseudoWins, Ridge

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.inference.conjugate import Descent
    from permdist.sums import davidson

# Above this many items, second derivatives are sparse.
DENSE_ITEMS = 2000
# Conjugate gradients that take longer are given up.
MAX_DESCENT = 20_000
# The precision of a solution that is for its eigenvalues.
PROBE = 1e-6


class Solved(NamedTuple):
    """The solution of equations, and how far each score may be from the exact one."""

    step: FloatArray
    least: float
    error: float


@dataclass(frozen=True, eq=False)
class Information:
    """Minus the second derivatives of a likelihood by scores and by other parameters.

    Attributes
    ----------
    above : sparse array, shape (n, n)
        Conductances between items, those above the diagonal.
    border : array of float, shape (n, r)
        By a score and another parameter.
    corner : array of float, shape (r, r)
    ridge : float
        What a prior adds to the diagonal of the scores.
    """

    above: sparse.csr_array
    border: FloatArray
    corner: FloatArray
    ridge: float = 0.0

    @property
    def n_items(self) -> int:
        """The number of scores."""
        return len(self.border)

    @cached_property
    def _below(self) -> Any:
        return self.above.T

    @cached_property
    def degree(self) -> FloatArray:
        """The diagonal, without the ridge, shape (n,)."""
        ones = np.ones(self.n_items)
        result: FloatArray = self.above @ ones + self._below @ ones
        return result

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of all parameters."""
        return np.concatenate([self.degree + self.ridge, np.diagonal(self.corner)])

    def __add__(self, other: Information) -> Information:
        return Information(
            self.above + other.above if other.above.nnz else self.above,
            self.border + other.border,
            self.corner + other.corner,
            self.ridge + other.ridge,
        )

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        """Multiply with a vector of all parameters."""
        n = self.n_items
        scores, others = vector[:n], vector[n:]
        top = (self.degree + self.ridge) * scores - self.above @ scores - self._below @ scores
        return np.concatenate(
            [top + self.border @ others, self.border.T @ scores + self.corner @ others]
        )

    def under(self, design: FloatArray) -> FloatArray:
        """Return the matrix by coefficients of features and the other parameters."""
        links = self.degree[:, None] * design - self.above @ design - self._below @ design
        side = design.T @ self.border
        return np.block([[design.T @ links, side], [side.T, self.corner]])

    def solve(self, right: FloatArray, precision: float, *, certified: bool = False) -> Solved:
        """Solve for a right-hand side that the scores' shift does not change.

        Parameters
        ----------
        right : array of float, shape (p,)
        precision : float
            What remains, relative to the largest entry of the solution.
        certified : bool
            Whether the bound of the error must not rest on this right-hand side alone, which may
            have no part in the directions that the ballots say least about.
        """
        n = self.n_items
        if not (self.diagonal[:n] > 0.0).all() or not np.isfinite(self.diagonal).all():
            return Solved(np.full(len(right), np.nan), 0.0, np.inf)
        found = self._descend(right, precision)
        step, residual = found.solution, found.residual
        step[:n] -= step[:n].mean()
        least = min(found.least, self._least) if certified else found.least
        # In units in which the rough equations are the identity, the error is at most the
        # residual divided by the least eigenvalue.
        length = float(np.sqrt(max(float(residual @ self._roughly(residual)), 0.0)))
        return Solved(step, least, length / (least * float(np.sqrt(self.diagonal[:n].min()))))

    def _descend(self, right: FloatArray, precision: float) -> Descent:
        balanced = right.copy()
        balanced[: self.n_items] -= right[: self.n_items].mean()  # rounding

        def is_done(result: FloatArray, _residual: FloatArray, remains: FloatArray) -> bool:
            return bool(np.abs(remains).max() <= precision * np.abs(result).max())

        return descend(self.__matmul__, self._roughly, balanced, is_done, MAX_DESCENT)

    def _roughly(self, vector: FloatArray) -> FloatArray:
        """Solve for scores that have nothing to do with each other."""
        n = self.n_items
        return np.concatenate([vector[:n] / self.diagonal[:n], self._corner_inverse @ vector[n:]])

    @cached_property
    def _corner_inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.corner, hermitian=True), dtype=np.float64)

    @cached_property
    def _least(self) -> float:
        """The least eigenvalue met with a right-hand side that has a part in every direction."""
        anything = np.random.default_rng(0).normal(size=len(self.diagonal))
        return self._descend(anything * np.sqrt(self.diagonal), PROBE).least

    def components(self) -> int:
        """Return the number of groups of items that no conductance connects."""
        number, _ = csgraph.connected_components(self.above, directed=False)
        return int(number)


class SparseLikelihood(Likelihood):
    """A likelihood whose second derivatives are an `Information`.

    With features of the items, which are few, they are a matrix by their coefficients.
    """

    @cached_property
    def edges(self) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs of items that were on one ballot: where each row starts, columns, and places.

        The last are those of the pairs of each record, one after the other.
        """
        data = self.ballots
        n = data.n_items
        codes = _pairs(data.items, data.ptr, n)
        cells, places = np.unique(codes, return_inverse=True)
        del codes
        rows = np.searchsorted(cells, np.arange(n + 1) * n)
        kind = np.int32 if max(n, len(cells)) < 2**31 else np.int64
        return rows.astype(kind), (cells % n).astype(kind), places.astype(kind)

    def _second_derivatives(self, size: int) -> Any:
        return _Sparse(self, size)

    def weighted_slopes(self, parameters: FloatArray) -> Any:
        """Return rows by parameters whose outer squares add up to those of all ballots."""
        rows = super().weighted_slopes(parameters)
        n, q = self.ballots.n_items, self.n_covariates
        others = rows[:, np.concatenate([np.arange(n, n + q), self.tie_places])]
        if self.design is None:
            return sparse.hstack([rows[:, :n], others]).tocsr()
        return np.column_stack([rows[:, :n] @ self.design, others.toarray()])

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return the sum of outer squares of the slopes, by coefficients of features."""
        rows = self.weighted_slopes(parameters)
        result: FloatArray = rows.T @ rows
        return result


class _Sparse:
    """Minus the second derivatives of a likelihood as an `Information`, block after block."""

    def __init__(self, likelihood: SparseLikelihood, size: int) -> None:
        self.likelihood = likelihood
        n = likelihood.ballots.n_items
        rest = size - n
        self.conductances = np.zeros(len(likelihood.edges[1]))
        self.border, self.corner = np.zeros((n, rest)), np.zeros((rest, rest))
        self.start = 0

    def add(
        self, found: davidson.Terms, a: int, b: int, counts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add those of records a to b; return the parts by scores and by the rest, for ties."""
        likelihood = self.likelihood
        data, q = likelihood.ballots, likelihood.n_covariates
        ptr = data.ptr[a : b + 1]
        self.start = _conduct(
            found.covariances,
            found.starts,
            ptr,
            counts,
            likelihood.edges[2],
            self.start,
            self.conductances,
        )
        if q:
            rows = slice(ptr[0], ptr[-1])
            features = likelihood.features[rows]
            spread = _times(found.covariances, found.starts, ptr, counts, features)
            for column in range(q):
                self.border[:, column] += np.bincount(
                    data.items[rows], spread[:, column], data.n_items
                )
            self.corner[:q, :q] += features.T @ spread
        return self.border, self.corner

    def finished(self) -> Information | FloatArray:
        """Return the information by parameters."""
        likelihood = self.likelihood
        n, q = likelihood.ballots.n_items, likelihood.n_covariates
        self.corner[q:, :q] = self.corner[:q, q:].T
        rows, columns, _ = likelihood.edges
        above = sparse.csr_array((self.conductances, columns, rows), shape=(n, n))
        # Sizes of ties that do not occur are no parameters.
        kept = np.concatenate([np.arange(q), likelihood.tie_places - n])
        border, corner = self.border[:, kept], self.corner[np.ix_(kept, kept)]
        found = Information(above, border, corner)
        return found if likelihood.design is None else found.under(likelihood.design)


class SparsePenalty(Penalty):
    """What a prior adds to a sparse likelihood: a ridge or pseudo-wins.

    Parameters
    ----------
    prior : Ridge or PseudoWins
    likelihood : SparseLikelihood
        Of the data; with a ghost for pseudo-wins.
    """

    def __init__(self, prior: Any, likelihood: Likelihood) -> None:
        if likelihood.design is None and not isinstance(prior, Ridge | PseudoWins):
            raise ValueError(
                f"prior: expected a number, Ridge or PseudoWins for {likelihood.n_scores:,} items, "
                f"got {type(prior).__name__}, whose matrix of items by items would be too large"
            )
        super().__init__(prior, likelihood)

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray, Any]:
        """Return the value, the gradient (p,) and the second derivatives."""
        if self.contests is not None or self.data.design is not None:
            return super().__call__(parameters)
        prior: Any = self.prior
        strengths = prior.strength, prior.covariates
        return ridge_terms(*strengths, self.data.n_scores, self.data.n_covariates, parameters)


def ridge_terms(
    strength: float, covariates: float, n: int, q: int, parameters: FloatArray
) -> tuple[float, FloatArray, Information]:
    """Return a ridge on n scores, relative to their mean, and on q coefficients, as a penalty.

    Parameters
    ----------
    strength, covariates : float
        As of `Ridge`.
    n, q : int
    parameters : array of float, shape (p,)

    Returns
    -------
    value, gradient, information
    """
    own, others = parameters[:n] - parameters[:n].mean(), parameters[n : n + q]
    rest = len(parameters) - n
    gradient, corner = np.zeros(len(parameters)), np.zeros((rest, rest))
    gradient[:n], gradient[n : n + q] = strength * own, covariates * others
    corner[np.arange(q), np.arange(q)] = covariates
    value = 0.5 * (strength * float(own @ own) + covariates * float(others @ others))
    nothing = sparse.csr_array((n, n), dtype=np.float64)
    return value, gradient, Information(nothing, np.zeros((n, rest)), corner, strength)


def without_ghost(information: Information) -> Information:
    """Return the information of all items but the last, which takes part in nothing."""
    above = information.above[:-1, :-1]
    return replace(information, above=above, border=information.border[:-1])


# ---- kernels: items and ptr as in Ballots; covariances and starts as in davidson.Terms -----------


@kernel
def _pairs(items: IntArray, ptr: IntArray, n: int) -> IntArray:
    """Return ``i * n + j`` for all pairs of alternatives i < j of each record."""
    number = 0
    for row in range(len(ptr) - 1):
        width = ptr[row + 1] - ptr[row]
        number += width * (width - 1) // 2
    result = np.empty(number, np.int64)
    at = 0
    for row in range(len(ptr) - 1):
        for k in range(ptr[row], ptr[row + 1]):
            for other in range(k + 1, ptr[row + 1]):
                low, high = min(items[k], items[other]), max(items[k], items[other])
                result[at] = low * n + high
                at += 1
    return result


@kernel
def _conduct(
    covariances: FloatArray,
    starts: IntArray,
    ptr: IntArray,
    weights: FloatArray,
    places: IntArray,
    start: int,
    conductances: FloatArray,
) -> int:
    """Add what pairs of alternatives contribute; return the pairs so far."""
    at = start
    for row in range(len(ptr) - 1):
        width = ptr[row + 1] - ptr[row]
        for i in range(width):
            for j in range(i + 1, width):
                covariance = covariances[starts[row] + i * width + j]
                conductances[places[at]] -= weights[row] * covariance
                at += 1
    return at


@kernel
def _times(
    covariances: FloatArray,
    starts: IntArray,
    ptr: IntArray,
    weights: FloatArray,
    features: FloatArray,
) -> FloatArray:
    """Multiply the second derivatives of each record with the features of its alternatives."""
    result = np.zeros(features.shape)
    first = ptr[0]
    for row in range(len(ptr) - 1):
        low, width = ptr[row] - first, ptr[row + 1] - ptr[row]
        for i in range(width):
            for j in range(width):
                change = weights[row] * covariances[starts[row] + i * width + j]
                for c in range(features.shape[1]):
                    result[low + i, c] += change * features[low + j, c]
    return result
