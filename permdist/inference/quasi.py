"""Quasi-variances: one number per item from which the error of any difference follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from permdist._check import finite
from permdist._result import Result
from permdist.inference.normal import check_covariance, check_level, difference_errors

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray

MAX_ITER = 200
TOL = 1e-12


@dataclass(frozen=True, eq=False)
class QuasiVariances(Result):
    """Quasi-variances of estimated scores, and how well they do.

    ``sqrt(values[i] + values[j])`` approximates the standard error of the difference of the
    scores of i and j, so that a table with one error per item, or a picture with one bar per item,
    serves for all comparisons. They say how sure the estimates are, not where an item may stand in
    a future ranking.

    Attributes
    ----------
    values : array of float, shape (n,)
        They can be negative for items whose differences are known much better than the rest.
    worst_error : float
        The largest relative error of a standard error of a difference that is computed from them:
        0.02 means that all are within 2%.

    Examples
    --------
    >>> import numpy as np
    >>> found = quasi_variances(np.diag([0.01, 0.04, 0.09]))
    >>> found.values.round(6)
    array([0.01, 0.04, 0.09])
    >>> found.standard_errors.round(6)
    array([0.1, 0.2, 0.3])
    >>> bool(found.worst_error < 1e-9)
    True
    """

    values: FloatArray
    worst_error: float

    @property
    def standard_errors(self) -> FloatArray:
        """The roots of the quasi-variances; NaN where one is negative."""
        return np.sqrt(np.where(self.values < 0.0, np.nan, self.values))

    def to_frame(self) -> pd.DataFrame:
        """Return the quasi-variances as a data frame, a row per item, by number.

        Returns
        -------
        DataFrame
            Indexed by ``item``, with the columns ``quasi_variance`` and ``quasi_error``, its root.
        """
        import pandas as pd

        columns = {"quasi_variance": self.values, "quasi_error": self.standard_errors}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.values), name="item"))

    def _facts(self) -> dict[str, Any]:
        return {"worst relative error of a difference": self.worst_error}

    def intervals(self, scores: ArrayLike, level: float = 0.95) -> FloatArray:
        """Return comparison intervals: scores plus and minus a multiple of their quasi-errors.

        They are for comparing items with each other by eye. They are not confidence intervals of
        single scores, which depend on what the scores are measured against.

        Parameters
        ----------
        scores : array of float, shape (n,)
        level : float
            Of a normal with the quasi-variance.

        Returns
        -------
        array of float, shape (n, 2)

        Examples
        --------
        >>> import numpy as np
        >>> quasi_variances(np.diag([0.01, 0.04, 0.09])).intervals([1.0, 0.0, 0.0]).round(2)
        array([[ 0.8 ,  1.2 ],
               [-0.39,  0.39],
               [-0.59,  0.59]])
        """
        centers = finite("scores", scores, ndim=1)
        if len(centers) != len(self.values):
            raise ValueError(f"scores: expected {len(self.values)} numbers, got {len(centers)}")
        reach = special.ndtri(0.5 + 0.5 * check_level(level)) * self.standard_errors
        return np.column_stack([centers - reach, centers + reach])


def quasi_variances(covariance: ArrayLike) -> QuasiVariances:
    """Compute quasi-variances of estimated scores.

    They minimize the sum over pairs of the squares of ``log(q_i + q_j) - log var(s_i - s_j)``, as
    R's package qvcalc does. With three items the fit is exact; with two, only ``q_0 + q_1`` is
    determined and both are half of it.

    Parameters
    ----------
    covariance : array of float, shape (n, n)
        Of the scores, relative to their mean or to any one of them: only differences count.

    Returns
    -------
    QuasiVariances

    References
    ----------
    Firth and de Menezes, Quasi-variances, Biometrika 91 (2004), 65-80.

    Examples
    --------
    >>> import numpy as np
    >>> against_first = np.array([[0.0, 0.0, 0.0], [0.0, 0.5, 0.2], [0.0, 0.2, 0.7]])
    >>> quasi_variances(against_first).values.round(4)
    array([0.2, 0.3, 0.5])
    """
    matrix = check_covariance(covariance)
    errors, n = difference_errors(matrix), len(matrix)
    if n == 1:
        return QuasiVariances(np.zeros(1), 0.0)
    pairs = ~np.eye(n, dtype=bool)
    if not (errors[pairs] > 0.0).all():
        i, j = (int(k) for k in np.argwhere(pairs & (errors == 0.0))[0])
        raise ValueError(
            f"covariance: the difference of items {i} and {j} has variance 0, so that there are no "
            "quasi-variances"
        )
    scale = float(np.mean(errors[pairs] ** 2))
    squares = errors**2 / scale
    values = _start(squares) if n > 2 else np.full(2, 0.5 * squares[0, 1])
    if n > 2:
        values = _descend(values, np.where(pairs, squares, 1.0), pairs)
    fitted = np.sqrt(np.add.outer(values, values)[pairs])
    worst = float(np.abs(fitted / np.sqrt(squares[pairs]) - 1.0).max())
    return QuasiVariances(scale * values, worst)


def _start(squares: FloatArray) -> FloatArray:
    """Return least squares on the variances themselves, if they can be a start."""
    n = len(squares)
    rows = squares.sum(axis=1)
    values = (rows - rows.sum() / (2.0 * (n - 1))) / (n - 2)
    two = np.partition(values, 1)[:2].sum()
    return values if two > 1e-3 else np.full(n, 0.5)


def _descend(values: FloatArray, squares: FloatArray, pairs: BoolArray) -> FloatArray:
    """Minimize half the sum of squared logarithms by damped Newton steps."""
    logs = np.where(pairs, np.log(squares), 0.0)

    def residuals(at: FloatArray) -> FloatArray:
        sums = np.where(pairs, np.add.outer(at, at), 1.0)
        return np.log(sums) - logs if sums.min() > 0.0 else np.full_like(logs, np.inf)

    current = residuals(values)
    for _ in range(MAX_ITER):
        slopes = np.where(pairs, 1.0 / np.where(pairs, np.add.outer(values, values), 1.0), 0.0)
        gradient = (slopes * current).sum(axis=1)
        step = None
        # Newton's matrix where it is positive definite, that of Gauss and Newton elsewhere.
        for curved in (True, False):
            second = slopes**2 * (1.0 - current if curved else 1.0)
            matrix = second + np.diag(second.sum(axis=1))
            try:
                lower = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
            step = -np.linalg.solve(lower.T, np.linalg.solve(lower, gradient))
            break
        if step is None:
            break
        value, share = float((current**2).sum()), 1.0
        slope = float(gradient @ step)
        while share > 1e-10:
            found = residuals(values + share * step)
            # Each pair is in the sum twice, and the gradient is that of half the squares.
            if (found**2).sum() <= value + 4e-4 * share * slope + 1e-15:
                break
            share *= 0.5
        else:
            break
        values, current = values + share * step, found
        if float(np.abs(share * step).max()) <= TOL * float(np.abs(values).max()):
            break
    return values
