"""Learners as (pseudo-)posteriors of their coefficients."""

from __future__ import annotations

import threading
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from permdist._check import finite
from permdist._parallel import bounds, pointers, rows_of
from permdist.data import Queries
from permdist.models import ListMLE
from permdist.models.batch import teaching
from permdist.models.scaling import spread_within
from permdist.posterior.priors import Flat, Normal, Prior, as_prior
from permdist.posterior.problem import Variable
from permdist.posterior.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.distributions import Distribution
    from permdist.models.descent import Descent

# The step of difference quotients of gradients, in units of a coefficient's standard deviation.
STEP = 1e-4


class LinearPosterior(Smooth):
    """What a linear learner minimizes, read as minus the logarithm of a posterior density.

    A learner minimizes ``sum_q loss_q(w) + |w|^2 / C``. The density of w is proportional to
    ``exp(-inverse_temperature sum_q loss_q(w) - |w|^2 / C)``: the penalty is a normal prior with
    the variance C / 2 of each coefficient, in the units in which the learner penalizes. The
    posterior's mode is what the learner fits.

    Only where losses are minus log-likelihoods of a model of the labels is it a posterior in the
    strict sense: `ListMLE`, of the order of the labels. The likelihood of `MLE` multiplies pairs
    as if they were independent, and that of `ConvexLoss` is a bound; these are pseudo-posteriors,
    usually too narrow, which an inverse temperature below 1 widens.

    The only variable is ``coefficients``, in units of the features as they were given to the
    learner (after its `normalize`). Features that never differ within a query are left out.

    Parameters
    ----------
    learner : MLE, ConvexLoss or ListMLE
    data : Queries, or a tuple (X, y, qid)
    prior : Prior, float or None
        Of the coefficients, in place of the learner's C; a number is a precision.
    inverse_temperature : float

    Examples
    --------
    >>> from permdist import data
    >>> from permdist.models import ListMLE
    >>> problem = LinearPosterior(ListMLE(C=10.0), data.make_letor(40, rng=0))
    >>> problem.size  # 25 features, two of which never differ within a query
    23
    """

    def __init__(
        self, learner: Descent, data: Any, prior: Any = None, *, inverse_temperature: float = 1.0
    ) -> None:
        if data is None:
            raise ValueError("data: expected Queries or (X, y, qid) for the posterior of a learner")
        queries = data if isinstance(data, Queries) else Queries(*data)
        if queries.has_missing:
            raise ValueError("data: expected features without missing values; use fill_missing")
        heat = float(finite("inverse_temperature", inverse_temperature, ndim=0))
        if heat <= 0.0:
            raise ValueError(f"inverse_temperature: expected a positive number, got {heat:g}")
        if getattr(learner, "reweight", 0):
            raise ValueError("model: reweighted losses have no posterior; set reweight=0")
        if isinstance(learner, type):
            learner = learner()
        with warnings.catch_warnings():  # the fit is only where the search for the mode begins
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.heat, self.learner = heat, clone(learner).fit(queries)
        views = self.learner.views_
        if tuple(views) != ("raw",):
            queries = queries.normalize(list(views))
        labels = queries.y
        if not getattr(learner, "graded", True):  # it tells relevant documents from others only
            labels = (labels > 0).astype(np.int64)
        useful = teaching(labels, queries.ptr)
        if not useful.any():
            raise ValueError("data: expected at least one query with different labels")
        self.query_ids = tuple(np.asarray(queries.qids)[useful].tolist())
        rows = np.repeat(useful, np.diff(queries.ptr))
        self.labels = np.ascontiguousarray(labels[rows])
        self.ptr = pointers(np.diff(queries.ptr)[useful])
        features = np.asarray(queries.X, dtype=np.float64)[rows]
        spread = spread_within(features, self.ptr)
        self.varying = spread > 0.0
        if not self.varying.any():
            raise ValueError("data: expected a feature that differs within a query")
        self.spread = spread[self.varying]
        names = queries.feature_names or tuple(f"x{i}" for i in range(len(spread)))
        self.feature_names = tuple(
            name for name, kept in zip(names, self.varying, strict=True) if kept
        )
        # Differences within queries are all that counts; means would only cost digits.
        owner = rows_of(self.ptr)
        table = features[:, self.varying]
        sizes = np.diff(self.ptr)[:, None]
        means = np.add.reduceat(table, self.ptr[:-1], axis=0) / sizes
        self._features = np.ascontiguousarray((table - means[owner]) / self.spread)
        self.prior = self._prior_of(prior)
        self._fitted = self.learner.coef_[self.varying] * self.spread
        self._objective = self.learner.build_objective().settle(self.labels, self.ptr)
        self._local = threading.local()

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return type(self.learner).__name__

    @property
    def n_parameters(self) -> int:
        """The number p of parameters: coefficients of standardized features."""
        return len(self.spread)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are recorded."""
        return (Variable("coefficients", (len(self.spread),), ("feature",)),)

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The coordinates of the dims of the variables and of `observation`."""
        return {"feature": self.feature_names, "observation": self.query_ids}

    @property
    def first_guess(self) -> FloatArray:
        """What the learner has fitted."""
        return np.asarray(self._fitted, dtype=np.float64)

    def record(self, parameters: FloatArray) -> FloatArray:
        """Return the coefficients in units of the features, (..., p)."""
        return parameters / self.spread

    def value(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times (pseudo-)likelihood.

        The prior is a density of coefficients of standardized features, as the parameters are.
        """
        values, _ = self._bound(self._features @ parameters)
        return -self.heat * float(values.sum()) + self._log_prior(parameters)

    def _log_prior(self, parameters: FloatArray) -> float:
        volume = float(np.log(self.spread).sum())
        return self.prior.log_density(parameters / self.spread) - volume

    def parameters_of(self, draws: FloatArray) -> FloatArray:
        """Return coefficients of standardized features, for draws (..., p)."""
        return draws * self.spread

    def derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and minus the second derivatives (p, p)."""
        _, slope, second = self.prior.derivatives(parameters / self.spread)
        inner = self._log_prior(parameters)
        value, gradient = self._loss(parameters)
        steps = STEP / np.sqrt(1.0 + np.abs(gradient))
        curvature = np.empty((len(parameters), len(parameters)))
        for i in range(len(parameters)):
            forth, back = parameters.copy(), parameters.copy()
            forth[i] += steps[i]
            back[i] -= steps[i]
            curvature[i] = (self._loss(forth)[1] - self._loss(back)[1]) / (forth[i] - back[i])
        curvature = 0.5 * self.heat * (curvature + curvature.T)
        curvature += second / self.spread[:, None] / self.spread
        return inner - self.heat * value, slope / self.spread - self.heat * gradient, curvature

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return minus the loss of each query times the inverse temperature, (draws, queries)."""
        return np.stack(
            [-self.heat * self._bound(self._features @ (w * self.spread))[0] for w in draws]
        )

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size); an improper prior raises a ValueError."""
        return self.prior.draw(size, len(self.spread), rng)

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> IntArray:
        """Draw labels of all documents: those of each query, in an order of Plackett-Luce."""
        if not isinstance(self.learner, ListMLE):
            raise ValueError(
                f"replicate: the loss of {self.family} is no model of labels to draw from; use "
                "ListMLE for predictive checks"
            )
        keys = self._features @ (draw * self.spread) + rng.gumbel(size=len(self.labels))
        result = np.empty_like(self.labels)
        for a, b in bounds(self.ptr):
            result[a:b][np.argsort(-keys[a:b])] = -np.sort(-self.labels[a:b])
        return result

    def model(self, draw: FloatArray) -> Distribution | None:
        """Return None: every query has a distribution of its own."""
        del draw
        return None

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The data as variables of the group ``observed_data``: dims and values by name."""
        return {
            "labels": (("document",), self.labels),
            "label_observation": (("document",), rows_of(self.ptr)),
        }

    @cached_property
    def _sorted_by(self) -> FloatArray:
        """The scores that spaces sort by that need a pilot: those of the fit."""
        return np.asarray(self._features @ self._fitted, dtype=np.float64)

    @property
    def _bound(self) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """The objective, ready for calls; each thread has its own, with its own buffers."""
        found = getattr(self._local, "bound", None)
        if found is None:
            batch = self._objective.batch(self.labels, self.ptr)
            found = self._objective.bind(batch, 1)
            sums: Any = getattr(found, "sums", None)
            if hasattr(sums, "resort"):
                sums.resort(self._sorted_by)
            self._local.bound = found
        return found

    def _loss(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        values, gradient = self._bound(self._features @ parameters)
        return float(values.sum()), self._features.T @ gradient

    def _prior_of(self, prior: Any) -> Prior:
        if prior is not None:
            chosen = as_prior("coefficients", prior)
            if isinstance(chosen, Flat):
                return chosen
            chosen.log_density(np.zeros(len(self.spread)))  # checks lengths
            return chosen
        variance = 0.5 * float(self.learner.C)
        if self.learner.standardize:
            return Normal(0.0, variance / self.spread**2)
        return Normal(0.0, np.full(len(self.spread), variance))


def linear_problem(model: Any, data: Any, prior: Any, **options: Any) -> LinearPosterior:
    """Return the (pseudo-)posterior of a learner's coefficients; as `LinearPosterior`."""
    return LinearPosterior(model, data, prior, **options)
