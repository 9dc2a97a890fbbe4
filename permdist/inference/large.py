"""Estimates of many items: no matrix of items by items, errors by request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from permdist._check import choice
from permdist.inference.comparisons import difference_of
from permdist.inference.normal import check_level
from permdist.inference.results import Fit
from permdist.inference.sparse import Information, without_ghost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.inference.bootstrap import Bootstrap
    from permdist.inference.comparisons import Difference
    from permdist.inference.leaderboard import Leaderboard

# The relative precision of solutions behind errors.
PRECISION = 1e-9
KINDS = ("observed", "penalized", "sandwich")


class LargeFit(Fit):
    """An estimate of the scores of many items.

    It has no `covariance`, and what needs one: all standard errors and intervals at once, rank
    sets, quasi-variances, comparisons of all pairs, probabilities to be the best, the bootstrap.
    `errors_of`, `compare` and `contrast_covariance` solve sparse equations for what is asked of
    them, one for each item or contrast, and `leaderboard` has errors of the items that it is
    asked for.
    """

    def covariance(self, kind: str = "observed") -> FloatArray:
        """Refuse: it would be a matrix of items by items.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich"}
        """
        self._refuse(f"the covariance of {self.n_items:,} scores", kind)

    def parameter_covariance(self, kind: str = "observed") -> FloatArray:
        """Return the covariance of coefficients, where features replace the scores; else refuse.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich"}
        """
        if self.likelihood.design is None:
            self._refuse(f"the covariance of {len(self.parameters):,} parameters", kind)
        return super().parameter_covariance(kind)

    def _refuse(self, what: str, kind: str) -> NoReturn:
        choice("kind", kind, KINDS)
        raise ValueError(
            f"fit_result: {what} is a matrix of items by items, which is not made for so many; ask "
            "for errors_of(items), compare(first, second), contrast_covariance(contrasts) or "
            "leaderboard(items=...)"
        )

    def intervals(self, level: float = 0.95, kind: str = "observed") -> FloatArray:
        """Refuse: there are as many as items.

        Parameters
        ----------
        level : float
        kind : {"observed", "penalized", "sandwich"}
        """
        self._refuse(f"what intervals at level {level:g} come from", kind)

    def bootstrap(self, *args: Any, **options: Any) -> Bootstrap:
        """Refuse: a thousand fits of so many items take too long.

        Parameters
        ----------
        *args, **options
            As of `Fit.bootstrap`.
        """
        del args, options
        raise ValueError(
            f"bootstrap: not for {self.n_items:,} items; use errors of kind 'sandwich', which are "
            "right even where the model is not"
        )

    def compare(
        self, first: int | str, second: int | str, *, level: float = 0.95, kind: str = "observed"
    ) -> Difference:
        """Compare two items: the difference of their scores, its error and a p-value.

        Parameters
        ----------
        first, second : int or str
        level : float
            Of the interval.
        kind : {"observed", "penalized", "sandwich"}
        """
        i, j = self.index(first), self.index(second)
        contrast = np.zeros((1, self.n_items))
        contrast[0, i] += 1.0
        contrast[0, j] -= 1.0
        error = float(np.sqrt(self.contrast_covariance(contrast, kind)[0, 0])) if i != j else 0.0
        return difference_of(float(self.scores[i] - self.scores[j]), error, check_level(level))

    def contrast_errors(self, reference: int | str, kind: str = "observed") -> FloatArray:
        """Refuse: there are as many as items.

        Parameters
        ----------
        reference : int or str
        kind : {"observed", "penalized", "sandwich"}
        """
        self._refuse(f"what the errors of differences to {reference!r} come from", kind)

    def _errors_at(self, which: IntArray, kind: str) -> FloatArray:
        if self.likelihood.design is not None:
            return super()._errors_at(which, kind)
        columns = np.zeros((self.likelihood.size, len(which)))
        columns[which, np.arange(len(which))] = 1.0
        solved = self._solutions(columns, kind)
        return np.sqrt(np.maximum((columns * solved).sum(axis=0), 0.0))

    def _covariance_times(self, columns: FloatArray, kind: str) -> FloatArray:
        likelihood, n = self.likelihood, self.n_items
        if likelihood.design is not None:
            features = likelihood.design[:n]
            k = likelihood.n_scores
            inner = self.parameter_covariance(kind)[:k, :k]
            result: FloatArray = features @ (inner @ (features.T @ columns))
            return result
        padded = np.zeros((likelihood.size, columns.shape[1]))
        padded[:n] = columns
        return self._solutions(padded, kind)[:n]

    def _solutions(self, columns: FloatArray, kind: str) -> FloatArray:
        """Multiply the covariance of all parameters with columns."""
        choice("kind", kind, KINDS)
        likelihood = self.likelihood
        found: Any = likelihood(self.parameters)[2]
        information: Information = found
        kept = np.arange(likelihood.size)
        if kind == "observed":
            if self._ghost is not None:
                information, kept = without_ghost(information), np.delete(kept, self._ghost)
            if information.components() > 1 or not np.all(np.diagonal(information.corner) > 0.0):
                raise ValueError(
                    "kind: the ballots alone do not determine all parameters, so that there are "
                    "no errors of this kind; use kind='penalized'"
                )
        elif self.penalty is not None:
            information = information + self.penalty(self.parameters)[2]
        result = np.zeros(columns.shape)
        result[kept] = _each(information, columns[kept])
        if kind == "sandwich":
            rows = likelihood.weighted_slopes(self.parameters)
            result = _each(information, rows.T @ (rows @ result)) * self._group_factor()
        return result

    def leaderboard(
        self,
        level: float = 0.95,
        kind: str = "observed",
        *,
        elo: bool = False,
        anchor: int | str | None = None,
        items: Sequence[int | str] = (),
    ) -> Leaderboard:
        """Return a table of places and scores of all items, or of some of them with errors.

        Parameters
        ----------
        level : float
            Of the intervals.
        kind : {"observed", "penalized", "sandwich"}
        elo : bool
            Whether to show scores as Elo ratings, 400 for a tenfold worth.
        anchor : int or str, optional
            The item that has 1000 Elo points; the mean of all by default.
        items : sequence of int or str
            Those that are shown, with standard errors and intervals, which take a solution of
            the equations for each. By default all items are shown without them. Rank sets and
            probabilities to be the best are not computed for so many items.
        """
        from permdist.inference.leaderboard import make_large

        which = np.array([self.index(item) for item in items], dtype=np.int64)
        errors = self.errors_of(which.tolist(), kind) if len(which) else None
        return make_large(
            self.names,
            self.scores,
            level=check_level(level),
            counts=self.ballots.counts()[: self.n_items],
            elo=elo,
            anchor=None if anchor is None else self.names[self.index(anchor)],
            which=which if len(which) else None,
            errors=errors,
            kind=kind,
        )


def _each(information: Information, columns: FloatArray) -> FloatArray:
    """Solve for each column."""
    result = np.empty(columns.shape)
    for place, column in enumerate(columns.T):
        result[:, place] = information.solve(column, PRECISION).step
    if np.isnan(result).any():
        raise RuntimeError("kind: conjugate gradients have not converged; set a prior")
    return result
