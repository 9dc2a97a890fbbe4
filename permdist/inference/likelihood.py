"""The likelihood of ballots as a function of all parameters: scores, covariates, ties."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite
from permdist._interrupts import patiently
from permdist._ragged import rows_of
from permdist.ballots import Ballots
from permdist.ballots.reading import is_collection
from permdist.inference.priors import Prior, PseudoWins
from permdist.sums import davidson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray


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
    ) -> None:
        self.ballots, self.tie_sizes, self.design = ballots, tie_sizes, design
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
        self._ties = np.array([start + size for size in tie_sizes], dtype=np.int64)
        self._plain = design is None and tie_sizes == tuple(range(2, self._most + 1))
        widths = np.diff(ballots.ptr).astype(np.float64)
        self._cost = float((widths**2).sum()) * (10.0 + self.n_covariates)

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

    def _records(self) -> tuple[IntArray, ...]:
        data = self.ballots
        return data.items, data.ptr, data.sizes, data.stages

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
        counts = (data.weights if weights is None else weights) * self.importance
        value, gradient, information = patiently(
            self._cost,
            davidson.derivatives,
            *self.split(parameters),
            *self._records(),
            data.signs,
            counts[data.ballot],
            self.features,
            np.zeros(len(data.items)),
        )
        return value, self._pulled(gradient), self._pulled(self._pulled(information).T)

    def _pulled(self, matrix: FloatArray) -> FloatArray:
        """Turn derivatives by scores, covariates and sizes (axis 0) into those by parameters."""
        if self._plain:
            return matrix
        n, q = self.ballots.n_items, self.n_covariates
        top = matrix[:n] if self.design is None else self.design.T @ matrix[:n]
        return np.concatenate([top, matrix[n : n + q], matrix[self._ties]])

    def log_likelihoods(self, parameters: FloatArray) -> FloatArray:
        """Return the log-probability of each ballot, once cast, shape (ballots,)."""
        scores, gamma, deltas = self.split(parameters)
        data = self.ballots
        utilities = (scores[data.items] + self.features @ gamma) * data.signs[rows_of(data.ptr)]
        each = davidson.log_likelihoods(utilities, deltas, *self._records()[1:])
        return np.bincount(data.ballot, each, data.n_ballots).astype(np.float64)

    def spread(self, parameters: FloatArray) -> FloatArray:
        """Return the sum of outer squares of the slopes of independent ballots or clusters."""
        data = self.ballots
        clusters = data.clusters
        if clusters is not None:
            data = sorted_by(data, clusters)
        features = np.zeros((len(data.items), 0)) if data.features is None else data.features
        importance = self.importance
        factors, counts, group = importance[data.ballot], data.record_weights, data.ballot
        if clusters is not None:
            importance = importance[np.argsort(clusters, kind="stable")]
            factors = importance[data.ballot] * data.record_weights
            counts, group = np.ones(len(data.signs)), np.asarray(data.clusters)[data.ballot]
        full = davidson.spread_of_slopes(
            *self.split(parameters),
            data.items,
            data.ptr,
            data.sizes,
            data.stages,
            data.signs,
            factors,
            counts,
            group,
            features,
            np.zeros(len(data.items)),
        )
        return self._pulled(self._pulled(full).T)

    def free_directions(self) -> FloatArray:
        """Return an orthonormal basis (p, r) of the directions in which nothing changes."""
        n = self.ballots.n_items
        if self.design is None:
            basis = np.full((n, 1), 1.0 / np.sqrt(n))
        else:
            centered = self.design - self.design.mean(axis=0)
            _, values, rows = np.linalg.svd(centered, full_matrices=True)
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
        offset = np.append(self.offset, 0.0)
        return Likelihood(
            data, self.tie_sizes, design=design, offset=offset, importance=self.importance
        )


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
            self.contests = Likelihood(
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
        full_gradient, full = np.zeros(len(parameters)), np.zeros((len(parameters),) * 2)
        full_gradient[: k + q], full[: k + q, : k + q] = gradient, second
        return value, full_gradient, full


def free_directions(likelihood: Likelihood, penalty: Any) -> FloatArray:
    """Return an orthonormal basis of what neither the likelihood nor the penalty depends on."""
    free = likelihood.free_directions()
    return free[:, :0] if getattr(penalty, "settles", False) else free


def sorted_by(ballots: Ballots, labels: IntArray) -> Ballots:
    """Return the ballots in the order of their labels."""
    sequence = np.argsort(labels, kind="stable")
    place = np.empty_like(sequence)
    place[sequence] = np.arange(len(sequence))
    records = np.argsort(place[ballots.ballot], kind="stable")
    entries = _gathered(ballots.ptr, records)
    buckets = _gathered(ballots.stages, records)
    return dataclasses.replace(
        ballots,
        items=ballots.items[entries],
        ptr=np.append(0, np.cumsum(np.diff(ballots.ptr)[records])),
        sizes=ballots.sizes[buckets],
        stages=np.append(0, np.cumsum(np.diff(ballots.stages)[records])),
        signs=ballots.signs[records],
        ballot=place[ballots.ballot][records],
        weights=ballots.weights[sequence],
        clusters=None if ballots.clusters is None else ballots.clusters[sequence],
        times=None if ballots.times is None else ballots.times[sequence],
        features=None if ballots.features is None else ballots.features[entries],
    )


def _gathered(ptr: IntArray, rows: IntArray) -> IntArray:
    """Return the entries of some rows, one row after the other."""
    lengths = np.diff(ptr)[rows]
    starts = np.cumsum(lengths) - lengths
    return (
        np.arange(int(lengths.sum())) - np.repeat(starts, lengths) + np.repeat(ptr[rows], lengths)
    )


def check_design(features: ArrayLike | None, n_items: int) -> FloatArray | None:
    """Return the features of the items, or say what is wrong with them."""
    if features is None:
        return None
    design = finite("features", features, ndim=2)
    if len(design) != n_items or not design.shape[1]:
        raise ValueError(f"features: expected shape ({n_items}, k), got {design.shape}")
    return design


def idle_covariates(likelihood: Likelihood, information: FloatArray) -> BoolArray:
    """Return which covariates never differ between the alternatives of a ballot."""
    k, q = likelihood.n_scores, likelihood.n_covariates
    spread = np.diagonal(information)[k : k + q]
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
        data = Ballots.of(ballots, names=names, subset=subset)
    if data.is_named and data.names != names:
        data = data.renamed(names)
    elif data.n_items != items.n_items:
        raise ValueError(f"ballots: expected {items.n_items} items, got {data.n_items}")
    if data.features is not None:
        raise ValueError("ballots: covariates have no coefficients in a distribution")
    return data
