"""The likelihood of ballots as a function of all parameters: scores, covariates, ties."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from permdist._check import finite
from permdist._parallel import rows_of
from permdist.ballots import Ballots
from permdist.ballots.reading import is_collection
from permdist.inference.priors import Prior, PseudoWins, Ridge
from permdist.sums import davidson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray

# Numbers in the matrices of a block of records.
LARGEST_BLOCK = 4_000_000


class Likelihood:
    """The log-likelihood of ballots with derivatives.

    The parameters are, in this order: a score for every item, or the coefficients of the items'
    features; the coefficients of the ballots' covariates; the logarithm of delta_t for every
    size t of a tie.

    Parameters
    ----------
    ballots : Ballots
    tie_sizes : tuple of int
        The sizes above 1 that a tie may have.
    design : array of float, shape (n, k), optional
        Features of the items: scores are their products with coefficients.
    offset : array of float, shape (n,), optional
        Known parts of the scores.
    importance : array of float, shape (ballots,), optional
        What each ballot counts, beside how often it was cast.
    shift : array of float, shape (len(ballots.items),), optional
        Known parts of the utilities of alternatives on single ballots.

    Attributes
    ----------
    n_scores, n_covariates, n_ties : int
        The numbers of parameters of each kind.
    """

    def __init__(
        self,
        ballots: Ballots,
        tie_sizes: tuple[int, ...],
        *,
        design: FloatArray | None = None,
        offset: FloatArray | None = None,
        importance: FloatArray | None = None,
        shift: FloatArray | None = None,
    ) -> None:
        self.ballots, self.tie_sizes, self.design = ballots, tie_sizes, design
        self.shift = shift
        self.importance = np.ones(ballots.n_ballots) if importance is None else importance
        n, entries = ballots.n_items, len(ballots.items)
        features = ballots.features
        self.features = np.zeros((entries, 0)) if features is None else features
        self.offset = np.zeros(n) if offset is None else offset
        self.n_scores = n if design is None else design.shape[1]
        self.n_covariates, self.n_ties = self.features.shape[1], len(tie_sizes)
        self._most = max(tie_sizes, default=1)
        # Where the parameters stand among all scores, covariates and sizes up to the largest.
        start = n + self.n_covariates - 2
        self.tie_places = np.array([start + size for size in tie_sizes], dtype=np.int64)
        self._plain = design is None and tie_sizes == tuple(range(2, self._most + 1))
        signs = ballots.signs
        self._signs = None if (signs > 0).all() else signs[rows_of(ballots.ptr)]
        self._blocks = _blocks(ballots, 3 * self._most * self._most)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.n_scores + self.n_covariates + self.n_ties

    def split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scores (n,), the coefficients (q,) and deltas from delta_0 on."""
        k, q = self.n_scores, self.n_covariates
        own = parameters[:k]
        scores = (own if self.design is None else self.design @ own) + self.offset
        deltas = np.zeros(self._most + 1)
        deltas[1] = 1.0
        with np.errstate(over="ignore"):
            deltas[list(self.tie_sizes)] = np.exp(parameters[k + q :])
        return scores, np.ascontiguousarray(parameters[k : k + q]), deltas

    def __call__(
        self, parameters: FloatArray, weights: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and minus the second derivatives (p, p).

        Parameters
        ----------
        parameters : array of float, shape (p,)
        weights : array of float, shape (ballots,), optional
            In place of the weights of the ballots.
        """
        data = self.ballots
        scores, gamma, deltas = self.split(parameters)
        counts = ((data.weights if weights is None else weights) * self.importance)[data.ballot]
        n, q = data.n_items, self.n_covariates
        value, gradient = 0.0, np.zeros(n + q + len(deltas) - 2)
        second = self._second_derivatives(len(gradient))
        utilities = self._utilities(scores, gamma)
        for a, b in self._blocks:
            found = self._terms(utilities, deltas, a, b)
            value += float(counts[a:b] @ found.values)
            if np.isnan(value):
                break
            rows = slice(data.ptr[a], data.ptr[b])
            pull = np.repeat(counts[a:b] * data.signs[a:b], np.diff(data.ptr[a : b + 1]))
            gradient[:n] += np.bincount(data.items[rows], pull * found.slopes, n)
            if q:
                gradient[n : n + q] += self.features[rows].T @ (pull * found.slopes)
            gradient[n + q :] += counts[a:b] @ found.tie_slopes[:, 2:]
            border, corner = second.add(found, a, b, counts[a:b])
            for t, r in itertools.product(range(2, len(deltas)), repeat=2):
                both = float(counts[a:b] @ found.tie_covariances[:, t, r])
                corner[q + t - 2, q + r - 2] += both
            for t in range(2, len(deltas)):
                column = pull * found.crossed[:, t]
                border[:, q + t - 2] += np.bincount(data.items[rows], column, n)
                if q:
                    corner[:q, q + t - 2] += self.features[rows].T @ column
        return value, self.pulled(gradient), second.finished()

    def _second_derivatives(self, size: int) -> Any:
        """Return what adds up minus the second derivatives."""
        return _Full(self, size)

    def utilities(self, parameters: FloatArray) -> FloatArray:
        """Return the utility of each alternative, with the sign of its record."""
        scores, gamma, _ = self.split(parameters)
        return self._utilities(scores, gamma)

    def _utilities(self, scores: FloatArray, gamma: FloatArray) -> FloatArray:
        """Return the utility of each alternative, with the sign of its record."""
        data = self.ballots
        result = scores[data.items]
        if self.n_covariates:
            result = result + self.features @ gamma
        if self.shift is not None:
            result = result + self.shift
        return result if self._signs is None else self._signs * result

    def reach(self, step: FloatArray) -> float:
        """Return the largest change of a utility, or of log delta_t, that a step makes."""
        k, q = self.n_scores, self.n_covariates
        own = step[:k] if self.design is None else self.design @ step[:k]
        changes = [float(np.ptp(own)) / 2.0, *np.abs(step[k + q :]).tolist(), 1e-300]
        if q:
            changes.append(float(np.abs(self.features @ step[k : k + q]).max()))
        return max(changes)

    def _terms(self, utilities: FloatArray, deltas: FloatArray, a: int, b: int) -> davidson.Terms:
        """Return log-probabilities and derivatives of records a to b."""
        data = self.ballots
        return davidson.terms(
            utilities[data.ptr[a] : data.ptr[b]],
            deltas,
            data.ptr[a : b + 1],
            data.sizes,
            data.stages[a : b + 1],
        )

    def pulled(self, matrix: FloatArray) -> FloatArray:
        """Turn derivatives by scores, covariates and sizes (axis 0) into those by parameters."""
        if self._plain:
            return matrix
        n, q = self.ballots.n_items, self.n_covariates
        top = matrix[:n] if self.design is None else self.design.T @ matrix[:n]
        return np.concatenate([top, matrix[n : n + q], matrix[self.tie_places]])

    def log_likelihoods(self, parameters: FloatArray) -> FloatArray:
        """Return the log-probability of each ballot, once cast, shape (ballots,)."""
        scores, gamma, deltas = self.split(parameters)
        data = self.ballots
        each = davidson.log_likelihoods(
            self._utilities(scores, gamma), deltas, data.ptr, data.sizes, data.stages
        )
        return np.bincount(data.ballot, each, data.n_ballots).astype(np.float64)

    def slopes(self, parameters: FloatArray) -> sparse.csr_matrix:
        """Return the gradient of each independent group by scores, covariates and sizes of ties.

        A group is a ballot, once cast, or a cluster of ballots with their weights.
        """
        data = self.ballots
        scores, gamma, deltas = self.split(parameters)
        utilities = self._utilities(scores, gamma)
        n, entries = data.n_items, len(data.items)
        slopes, ties = np.empty(entries), np.empty((len(data.signs), len(deltas) - 2))
        for a, b in self._blocks:
            found = self._terms(utilities, deltas, a, b)
            slopes[data.ptr[a] : data.ptr[b]], ties[a:b] = found.slopes, found.tie_slopes[:, 2:]
        owner = rows_of(data.ptr)
        slopes *= data.signs[owner]
        # A row for each independent group, with factors for how its records count.
        group, factors, groups = data.ballot, self.importance[data.ballot], data.n_ballots
        if data.clusters is not None:
            group, factors = data.cluster_numbers[data.ballot], factors * data.record_weights
            groups = int(group.max()) + 1
        by_item = sparse.csr_matrix(
            (slopes * factors[owner], (group[owner], data.items)), shape=(groups, n)
        )
        adder = sparse.csr_matrix((factors, (group, np.arange(len(group)))), (groups, len(group)))
        by_record = np.column_stack([_row_sums(self.features * slopes[:, None], data.ptr), ties])
        return sparse.hstack([by_item, sparse.csr_matrix(adder @ by_record)]).tocsr()

    def weighted_slopes(self, parameters: FloatArray) -> sparse.csr_matrix:
        """Return rows whose outer squares add up to those of all ballots or clusters."""
        rows = self.slopes(parameters)
        if self.ballots.clusters is not None:
            return rows
        counts, unit = self.ballots.units()
        return sparse.diags(np.sqrt(counts) * unit) @ rows

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return the sum of outer squares of the slopes of independent ballots or clusters."""
        rows = self.weighted_slopes(parameters)
        full = np.asarray((rows.T @ rows).todense())
        return self.pulled(self.pulled(full).T)

    def free_directions(self) -> FloatArray:
        """Return an orthonormal basis (p, r) of the directions in which nothing changes."""
        n = self.ballots.n_items
        if self.design is None:
            basis = np.full((n, 1), 1.0 / np.sqrt(n))
        else:
            triangle = np.linalg.qr(self.design - self.design.mean(axis=0), mode="r")
            _, values, rows = np.linalg.svd(triangle, full_matrices=True)
            rank = int((values > 1e-10 * max(values.max(initial=0.0), 1e-300)).sum())
            basis = rows[rank:].T
        result = np.zeros((self.size, basis.shape[1]))
        result[: self.n_scores] = basis
        return result

    def with_ghost(self) -> Likelihood:
        """Return the same likelihood with one more item, which takes part in nothing."""
        data = dataclasses.replace(self.ballots, names=(*self.ballots.names, "ghost"))
        design = self.design
        if design is not None:
            wider = np.zeros((design.shape[0] + 1, design.shape[1] + 1))
            wider[:-1, :-1], wider[-1, -1] = design, 1.0
            design = wider
        return type(self)(
            data,
            self.tie_sizes,
            design=design,
            offset=np.append(self.offset, 0.0),
            importance=self.importance,
            shift=self.shift,
        )


class _Full:
    """Minus the second derivatives of a likelihood as a matrix, block after block."""

    def __init__(self, likelihood: Likelihood, size: int) -> None:
        self.likelihood, self.matrix = likelihood, np.zeros((size, size))

    def add(
        self, found: davidson.Terms, a: int, b: int, counts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add those of records a to b; return the parts by scores and by the rest, for ties."""
        likelihood = self.likelihood
        data, q = likelihood.ballots, likelihood.n_covariates
        n = data.n_items
        self.matrix[: n + q, : n + q] += davidson.gather(
            found.covariances,
            found.starts,
            data.items,
            data.ptr[a : b + 1],
            counts,
            likelihood.features,
            n,
        )
        return self.matrix[:n, n:], self.matrix[n:, n:]

    def finished(self) -> FloatArray:
        """Return the matrix by parameters, (p, p)."""
        n, q = self.likelihood.ballots.n_items, self.likelihood.n_covariates
        self.matrix[n + q :, : n + q] = self.matrix[: n + q, n + q :].T
        return self.likelihood.pulled(self.likelihood.pulled(self.matrix).T)


class Penalty:
    """What a prior adds to minus the log-likelihood.

    Parameters
    ----------
    prior : Prior or PseudoWins
    likelihood : Likelihood
        Of the data; with a ghost for pseudo-wins.
    """

    def __init__(self, prior: Prior | PseudoWins, likelihood: Likelihood) -> None:
        self.prior, self.data = prior, likelihood
        # Whether it tells apart parameters that have the same likelihood.
        self.settles = not isinstance(prior, PseudoWins) and (
            likelihood.design is not None or hasattr(prior, "mean")
        )
        # That of a ridge on the scores; None for any other prior.
        self.strength = prior.strength if isinstance(prior, Ridge) and not self.settles else None
        self.contests: Likelihood | None = None
        if isinstance(prior, PseudoWins):
            ballots = prior.ballots(likelihood.ballots.n_items - 1)
            width = likelihood.n_covariates
            if width:
                # The ghost and whoever meets it have the same covariates.
                ballots = dataclasses.replace(
                    ballots,
                    features=np.zeros((len(ballots.items), width)),
                    feature_names=likelihood.ballots.feature_names,
                )
            self.contests = type(likelihood)(
                ballots, likelihood.tie_sizes, design=likelihood.design, offset=likelihood.offset
            )

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and the second derivatives (p, p)."""
        if self.contests is not None:
            value, gradient, information = self.contests(parameters)
            return -value, -gradient, information
        k, q = self.data.n_scores, self.data.n_covariates
        own = parameters[:k]
        prior: Any = self.prior
        if not self.settles:
            own = own - own.mean()
        value, gradient, second = prior.terms(own, parameters[k : k + q])
        if not self.settles:
            # Derivatives by scores that need not add up to 0: those of their deviations.
            gradient, second = gradient.copy(), second.copy()
            gradient[:k] -= gradient[:k].mean()
            second[:k] -= second[:k].mean(axis=0)
            second[:, :k] -= second[:, :k].mean(axis=1)[:, None]
        full_gradient, full = np.zeros(len(parameters)), np.zeros((len(parameters),) * 2)
        full_gradient[: k + q], full[: k + q, : k + q] = gradient, second
        return value, full_gradient, full


def free_directions(likelihood: Likelihood, penalty: Any) -> FloatArray:
    """Return an orthonormal basis of what neither the likelihood nor the penalty depends on."""
    free = likelihood.free_directions()
    return free[:, :0] if getattr(penalty, "settles", False) else free


def _row_sums(table: FloatArray, ptr: IntArray) -> FloatArray:
    """Add up the rows of a table that belong to each record; every record has some."""
    if not table.shape[1]:
        return np.zeros((len(ptr) - 1, 0))
    return np.add.reduceat(table, ptr[:-1], axis=0)


def _blocks(ballots: Ballots, parameters: int) -> list[tuple[int, int]]:
    """Cut records into ranges whose matrices fit into memory together."""
    size = np.cumsum(np.diff(ballots.ptr).astype(np.float64) ** 2 + parameters)
    cuts = np.searchsorted(size, np.arange(1, int(size[-1] // LARGEST_BLOCK) + 1) * LARGEST_BLOCK)
    edges = np.unique([0, *cuts.tolist(), len(size)])
    return list(itertools.pairwise(edges.tolist()))


def check_design(features: ArrayLike | None, n_items: int) -> FloatArray | None:
    """Return the features of the items, or say what is wrong with them."""
    if features is None:
        return None
    design = finite("features", features, ndim=2)
    if len(design) != n_items or not design.shape[1]:
        raise ValueError(f"features: expected shape ({n_items}, k), got {design.shape}")
    return design


def idle_covariates(likelihood: Likelihood, diagonal: FloatArray) -> BoolArray:
    """Return which covariates never differ between the alternatives of a ballot.

    `diagonal` is that of the information.
    """
    k, q = likelihood.n_scores, likelihood.n_covariates
    spread = diagonal[k : k + q]
    scale = (likelihood.features**2).sum(axis=0) if q else np.zeros(0)
    return spread <= 1e-12 * np.maximum(scale, 1e-300)


def ballot_log_prob(
    ballots: Any, items: Any, ties: tuple[float, ...], scores: FloatArray, subset: bool | None
) -> FloatArray:
    """Return the log-probability of each ballot under given scores and logarithms of deltas.

    Parameters
    ----------
    ballots : Ballots, or what `Ballots.of` accepts
        Names decide which items are meant, where the ballots have some.
    items : Distribution
        What has the names of the items.
    ties : tuple of float
        The logarithms of delta_2, delta_3, ...
    scores : array of float, shape (n,)
    subset : bool or None
        As in `Ballots.from_orders`.
    """
    likelihood = Likelihood(ballots_about(items, ballots, subset), tuple(range(2, len(ties) + 2)))
    return likelihood.log_likelihoods(np.concatenate([scores, ties]))


def ballots_about(items: Any, ballots: Any, subset: bool | None) -> Ballots:
    """Return ballots without covariates that number the items as a distribution does.

    Parameters
    ----------
    items : Distribution
        What has the names of the items.
    ballots : Ballots, or what `Ballots.of` accepts
        Names decide which items are meant, where the ballots have some.
    subset : bool or None
        As in `Ballots.from_orders`.
    """
    names = tuple(items.names)
    if isinstance(ballots, Ballots) or is_collection(ballots):
        data = Ballots.of(ballots, subset=subset)
    else:
        data = Ballots.of(ballots, n_items=items.n_items, names=names, subset=subset)
    if data.is_named and data.names != names:
        data = data.renamed(names)
    elif data.n_items != items.n_items:
        raise ValueError(f"ballots: expected {items.n_items} items, got {data.n_items}")
    if data.features is not None:
        raise ValueError("ballots: covariates have no coefficients in a distribution")
    return data
