"""The estimate of a ranking model, its errors by kind, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, stats

from permdist._check import choice
from permdist.inference.answers import Answers
from permdist.inference.comparisons import check_contrasts
from permdist.inference.leaderboard import quick_leaderboard
from permdist.inference.likelihood import free_directions
from permdist.inference.normal import check_level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.ballots import Ballots
    from permdist.inference.bootstrap import Bootstrap
    from permdist.inference.fit import Optimum
    from permdist.inference.likelihood import Likelihood

KINDS = ("observed", "penalized", "sandwich", "bootstrap")
# Beyond this size there are no matrices of items by items.
MAX_MATRIX = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Answers):
    """An estimate of scores and how good it is.

    Two questions are kept apart. Where an item may stand in *one future ranking* is a matter of
    the distribution: `rank_marginals` and `pairwise` of the model. How sure we are of its *true
    place* is a matter of the errors of the estimate, and answered here: `rank_sets`,
    `prob_above`, `prob_best`.

    Errors have a kind: ``"observed"`` (from the information of the data alone, whatever the
    prior), ``"penalized"`` (with the prior's part), ``"sandwich"`` (right even where the model is
    not, and for clusters of dependent ballots) and ``"bootstrap"``. For the last two the units
    that are independent are ballots as they were given, or clusters; see `Ballots.units`.

    Attributes
    ----------
    names : tuple of str
    scores : array of float, shape (n,)
        They add up to 0.
    ties : array of float
        The logarithms of delta_2, delta_3, ..., up to the largest tie; -inf where a size does
        not occur.
    log_likelihood : float
        At the estimate, without the penalty.
    n_iter : int
    gradient : float
        The largest component of the gradient, relative to the total weight.
    accuracy : float
        How far any score, and what covariates add to it, may be from the exact maximum.
    """

    names: tuple[str, ...]
    scores: FloatArray
    ties: FloatArray
    log_likelihood: float
    n_iter: int
    gradient: float
    accuracy: float
    parameters: FloatArray = field(default_factory=lambda: np.zeros(0))
    penalty: Any = None
    feature_names: tuple[str, ...] = ()
    _make: Callable[[], Likelihood] | None = None
    _observed: FloatArray | None = None

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        penalty: Any,
        found: Optimum,
        ballots: Ballots,
        feature_names: tuple[str, ...] | None,
    ) -> Fit:
        """Make one from an optimum."""
        n = ballots.n_items
        scores, _, deltas = likelihood.split(found.parameters)
        with np.errstate(divide="ignore"):
            ties = np.log(deltas[2:])
        value = likelihood(found.parameters)[0]
        centered = scores[:n] - scores[:n].mean()
        centered.flags.writeable = False
        total = float((ballots.weights * likelihood.importance).sum())
        if likelihood.design is not None and feature_names is None:
            feature_names = tuple(f"feature {k}" for k in range(likelihood.design.shape[1]))
        result = cls(
            ballots.names,
            centered,
            ties,
            value,
            found.n_iter,
            float(np.abs(found.gradient).max()) / total,
            found.accuracy,
            found.parameters,
            penalty,
            feature_names or (),
        )
        result.__dict__["likelihood"] = likelihood
        return result

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood that was maximized, as a function of all parameters."""
        if self._make is None:
            raise ValueError("fit_result: the ballots behind these estimates are not known")
        return self._make()

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.names)

    @property
    def ballots(self) -> Ballots:
        """The ballots, equal ones counted together, without imagined contests."""
        found = self.likelihood.ballots
        return found if found.n_items == self.n_items else replace(found, names=self.names)

    @property
    def n_ballots(self) -> float:
        """How many ballots were cast."""
        return float(self.ballots.weights.sum())

    def __repr__(self) -> str:
        return (
            f"Fit({self.n_items} items, log-likelihood {self.log_likelihood:.6g}, "
            f"{self.n_iter} steps)"
        )

    def __str__(self) -> str:
        return str(self.leaderboard())

    def to_frame(self, level: float = 0.95, kind: str = "observed") -> pd.DataFrame:
        """Return the scores with their errors and intervals, as `leaderboard` has them.

        Parameters
        ----------
        level : float
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        return self.leaderboard(level, kind).to_frame()

    def _repr_html_(self) -> str:
        return quick_leaderboard(self)._repr_html_()

    # ---- errors ------------------------------------------------------------------------------

    @cached_property
    def _covariances(self) -> dict[str, FloatArray]:
        return {}

    def parameter_covariance(self, kind: str = "observed") -> FloatArray:
        """Return the covariance of all parameters, in the order of `Likelihood`.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        choice("kind", kind, KINDS)
        known = self._covariances
        if kind == "bootstrap" and kind not in known:
            known[kind] = np.atleast_2d(np.cov(self._last_bootstrap().parameters.T))
        if kind not in known:
            known[kind] = self._curvature_covariance(kind)
        return known[kind]

    def _curvature_covariance(self, kind: str) -> FloatArray:
        likelihood = self.likelihood
        information = likelihood(self.parameters)[2]
        whole = information
        if self.penalty is not None:
            whole = information + self.penalty(self.parameters)[2]
        if kind == "observed":
            return pseudo_inverse(information, likelihood.free_directions(), self._ghost)
        bread = pseudo_inverse(whole, free_directions(likelihood, self.penalty), None)
        if kind == "penalized":
            return bread
        result: FloatArray = bread @ likelihood.spread(self.parameters) @ bread
        return result * self._group_factor()

    def _group_factor(self) -> float:
        """Return what makes up for the number of clusters in a sandwich."""
        if self.ballots.clusters is None:
            return 1.0
        groups = int(self.ballots.cluster_numbers.max()) + 1
        if groups < 2:
            raise ValueError("kind: a sandwich needs at least two clusters, got one")
        return groups / (groups - 1.0)

    @property
    def _ghost(self) -> int | None:
        """The parameter that plays no part in the data."""
        ghost = self.likelihood.ballots.n_items > self.n_items
        return self.likelihood.n_scores - 1 if ghost else None

    def covariance(self, kind: str = "observed") -> FloatArray:
        """Return the covariance of the scores, which add up to 0, shape (n, n).

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
            What the errors come from; see the class.
        """
        choice("kind", kind, KINDS)
        if kind == "observed" and self._observed is not None:
            return self._observed
        if kind == "bootstrap":
            return np.atleast_2d(np.cov(self._last_bootstrap().scores.T))
        likelihood = self.likelihood
        k = likelihood.n_scores
        result = self.parameter_covariance(kind)[:k, :k]
        if likelihood.design is not None:
            result = likelihood.design @ result @ likelihood.design.T
        result = result[: self.n_items, : self.n_items]
        result = result - result.mean(axis=0)
        return result - result.mean(axis=1)[:, None]

    def standard_errors(self, kind: str = "observed") -> FloatArray:
        """Return the standard error of each score; differences need `compare` or `covariance`.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
            See the class. The weight 3 is three independent ballots; the weight 2.5 is one whose
            log-likelihood, and so its part in ``"observed"``, is multiplied by 2.5.
        """
        return np.sqrt(np.maximum(np.diagonal(self.covariance(kind)), 0.0))

    def errors_of(self, items: Sequence[int | str], kind: str = "observed") -> FloatArray:
        """Return the standard errors of the scores of some items.

        With many items, where there is no `covariance`, each of them takes a solution of the
        equations.

        Parameters
        ----------
        items : sequence of int or str
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        which = [self.index(item) for item in items]
        contrasts = np.full((len(which), self.n_items), -1.0 / self.n_items)
        contrasts[np.arange(len(which)), which] += 1.0
        return np.sqrt(np.maximum(np.diagonal(self.contrast_covariance(contrasts, kind)), 0.0))

    def contrast_covariance(self, contrasts: ArrayLike, kind: str = "observed") -> FloatArray:
        """Return the covariance of weighted sums of the scores, shape (r, r).

        Parameters
        ----------
        contrasts : array of float, shape (r, n)
            The weights; only differences of scores are estimated, so that each row adds up to 0.
        kind : {"observed", "penalized", "sandwich", "bootstrap"}

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> found = PlackettLuce.fit([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]]).fit_result
        >>> first_two = found.contrast_covariance([[1.0, -1.0, 0.0]])
        >>> bool(abs(first_two[0, 0] ** 0.5 - found.compare(0, 1).standard_error) < 1e-9)
        True
        """
        rows = check_contrasts(contrasts, self.n_items)
        result: FloatArray = rows @ self._covariance_times(rows.T, kind)
        return (result + result.T) / 2.0

    def _covariance_times(self, columns: FloatArray, kind: str) -> FloatArray:
        """Multiply the covariance of the scores with columns that add up to 0, (n, r)."""
        return self.covariance(kind) @ columns

    def contrast_errors(self, reference: int | str, kind: str = "observed") -> FloatArray:
        """Return the standard error of each score's difference to that of one item.

        Parameters
        ----------
        reference : int or str
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        covariance, r = self.covariance(kind), self.index(reference)
        own = np.diagonal(covariance)
        return np.sqrt(np.maximum(own + own[r] - 2.0 * covariance[:, r], 0.0))

    def tie_errors(self, kind: str = "observed") -> FloatArray:
        """Return the standard error of each entry of `ties`; NaN for a size that does not occur.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        likelihood = self.likelihood
        result = np.full(len(self.ties), np.nan)
        which = np.arange(likelihood.size - likelihood.n_ties, likelihood.size)
        sizes = np.array(likelihood.tie_sizes, dtype=np.int64)
        result[sizes - 2] = self._errors_at(which, kind)
        return result

    def _errors_at(self, which: IntArray, kind: str) -> FloatArray:
        """Return the standard errors of some parameters that are no scores."""
        return np.sqrt(np.diagonal(self.parameter_covariance(kind))[which])

    def intervals(self, level: float = 0.95, kind: str = "observed") -> FloatArray:
        """Return an interval for each score, shape (n, 2).

        Parameters
        ----------
        level : float
            The coverage of each interval by itself.
        kind : {"observed", "penalized", "sandwich", "bootstrap", "profile"}
            Normal intervals from the errors of a kind, quantiles of the bootstrap, or the range
            of a score in which the profile likelihood is not too low.
        """
        level = check_level(level)
        choice("kind", kind, (*KINDS, "profile"))
        if kind == "profile":
            from permdist.inference.profile import profile_intervals

            return profile_intervals(self, level)
        if kind == "bootstrap":
            tails = [50.0 * (1.0 - level), 50.0 * (1.0 + level)]
            return np.percentile(self._last_bootstrap().scores, tails, axis=0).T
        reach = stats.norm.ppf(0.5 + level / 2.0) * self.standard_errors(kind)
        return np.column_stack([self.scores - reach, self.scores + reach])

    @property
    def coefficients(self) -> pd.DataFrame:
        """The coefficients of covariates with their errors (observed), as a data frame."""
        return self.coefficient_table()

    def coefficient_table(self, kind: str = "observed") -> pd.DataFrame:
        """Return the coefficients of covariates with their errors.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}

        Returns
        -------
        pandas.DataFrame
            A row per covariate: estimate, standard error, z and two-sided p-value.
        """
        import pandas as pd

        likelihood = self.likelihood
        k, q = likelihood.n_scores, likelihood.n_covariates
        names, which = list(likelihood.ballots.feature_names[:q]), np.arange(k, k + q)
        if likelihood.design is not None:
            own = k - (self._ghost is not None)
            names = [*self.feature_names[:own], *names]
            which = np.concatenate([np.arange(own), which])
        errors = self._errors_at(which, kind)
        estimate = self.parameters[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = estimate / errors
        return pd.DataFrame(
            {
                "estimate": estimate,
                "standard_error": errors,
                "z": z,
                "p_value": 2.0 * stats.norm.sf(np.abs(z)),
            },
            index=pd.Index(names, name="covariate"),
        )

    def bootstrap(
        self,
        replicates: int = 1000,
        *,
        by: str | None = None,
        rng: RandomState = 0,
        n_jobs: int = -1,
        progress: bool = False,
    ) -> Bootstrap:
        """Fit again to ballots drawn with replacement.

        Parameters
        ----------
        replicates : int
        by : {"ballot", "cluster"}, optional
            What is drawn: ballots as they were given, one by one where a whole weight counts
            them, each with its weight where that is not whole; or clusters, if there are any.
        rng : int, Generator or None
        n_jobs : int
            How many threads; -1 is one for each core. The result does not depend on it.
        progress : bool
            Whether to show a progress bar.

        Returns
        -------
        Bootstrap
            The last one is what ``kind="bootstrap"`` means elsewhere; a first one is made where
            there is none.
        """
        from permdist.inference.bootstrap import draw

        known = self.__dict__.setdefault("_drawn", {})
        key = (replicates, by, rng)
        if not isinstance(rng, int) or key not in known:
            found = draw(self, replicates, by=by, rng=rng, n_jobs=n_jobs, progress=progress)
            known.clear()
            known[key] = found
            self._covariances.pop("bootstrap", None)
        result: Bootstrap = known[key]
        return result

    def _last_bootstrap(self) -> Bootstrap:
        drawn: dict[Any, Bootstrap] = self.__dict__.get("_drawn", {})
        return next(iter(drawn.values())) if drawn else self.bootstrap()


def pseudo_inverse(matrix: FloatArray, free: FloatArray, absent: int | None) -> FloatArray:
    """Invert a symmetric matrix across its free directions; `absent` is a row of zeros."""
    if absent is not None:
        rest = np.delete(np.arange(len(matrix)), absent)
        # Without it, the free direction is that of the others.
        inner = free[rest]
        inner = inner / np.maximum(np.linalg.norm(inner, axis=0), 1e-300)
        result = np.zeros_like(matrix)
        result[np.ix_(rest, rest)] = pseudo_inverse(matrix[np.ix_(rest, rest)], inner, None)
        return result
    diagonal = np.diagonal(matrix)
    across = np.eye(len(matrix)) - free @ free.T
    try:
        if diagonal.min() <= 0.0:
            raise linalg.LinAlgError
        # In units in which the diagonal is 1, whatever the units of covariates are.
        scale = 1.0 / np.sqrt(diagonal)
        ground = free / scale[:, None]
        ground /= np.maximum(np.linalg.norm(ground, axis=0), 1e-300)
        factor = linalg.cho_factor(matrix * scale[:, None] * scale + ground @ ground.T)
        # A pivot of the size of rounding errors is none.
        if np.diagonal(factor[0]).min() ** 2 < 1e-14 * len(matrix):
            raise linalg.LinAlgError
    except linalg.LinAlgError:
        raise ValueError(
            "kind: the ballots alone do not determine all parameters, so that there are no errors "
            "of this kind; use kind='penalized'"
        ) from None
    across *= scale
    result = across @ linalg.cho_solve(factor, across.T)
    return (result + result.T) / 2.0
