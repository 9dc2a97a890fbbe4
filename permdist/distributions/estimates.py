"""Numbers, and arrays of them, with their standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._result import block, note, record_frame

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray


class Estimate(float):
    """A float with its standard error, which is 0 if it was computed exactly.

    Attributes
    ----------
    standard_error : float
        0 if exact; also 0 if all draws agree.
    draws : int
        The number of draws it was estimated from; 0 if exact.

    Examples
    --------
    >>> Estimate(0.5)
    0.5
    >>> Estimate(0.5, standard_error=0.01, draws=100)
    0.5 ± 0.01
    """

    standard_error: float
    draws: int

    def __new__(cls, value: float, standard_error: float = 0.0, draws: int = 0) -> Estimate:
        """Make a float that carries its standard error."""
        self = super().__new__(cls, value)
        self.standard_error, self.draws = float(standard_error), draws
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row: ``value``, ``standard_error`` and ``draws``."""
        own = {"standard_error": self.standard_error, "draws": self.draws}
        return record_frame({"value": float(self), **own})

    def _repr_html_(self) -> str:
        how = "exact" if self.draws == 0 else f"from {self.draws:,} draws"
        return block(repr(self), note(how))

    def __repr__(self) -> str:
        if self.draws == 0:
            return float.__repr__(self)
        return f"{float(self):.6g} ± {self.standard_error:.2g}"


class _Plain(np.ndarray):
    """An array that says something about itself; what is made from it is a plain array."""

    draws: int

    def __array_finalize__(self, made_from: Any) -> None:
        self.draws = getattr(made_from, "draws", 0)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return results of functions as plain arrays and numbers."""
        del context
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def copy(self, order: Any = "C") -> Any:
        """Return the values alone, as a plain array."""
        return np.array(self, order=order)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __deepcopy__(self, memo: Any) -> Any:
        rebuilt: Any = self.__reduce__()
        return rebuilt[0](*rebuilt[1])


class Estimates(_Plain):
    """An array with the standard errors of its entries, which are 0 if it was computed exactly.

    Whatever is made from it (parts, sums, copies) is a plain array, whose errors are not known.

    Parameters
    ----------
    values : array of float
    standard_error : array of float, optional
        Of the same shape; by default 0 if exact, and NaN, not known, if drawn.
    draws : int
        The number of draws that the values were estimated from; 0 if exact.

    Attributes
    ----------
    standard_error : array of float
    draws : int

    Examples
    --------
    >>> chances = Estimates([0.25, 0.75], [0.01, 0.01], draws=1875)
    >>> chances
    array([0.25, 0.75])
    >>> chances.standard_error
    array([0.01, 0.01])
    >>> type(chances + 1.0).__name__
    'ndarray'
    """

    _errors: FloatArray | None = None

    def __new__(
        cls, values: ArrayLike, standard_error: ArrayLike | None = None, draws: int = 0
    ) -> Estimates:
        """Make an array that carries standard errors."""
        self = np.array(values, dtype=np.float64).view(cls)
        self._errors = None if standard_error is None else np.array(standard_error)
        self.draws = draws
        return self

    @classmethod
    def exact(cls, values: FloatArray) -> Estimates:
        """Return values that were computed exactly; the array itself, not a copy."""
        return values.view(cls)

    @property
    def standard_error(self) -> FloatArray:
        """The standard error of each entry: 0 if exact, NaN if it is not known."""
        if self._errors is None:
            return np.full(self.shape, np.nan if self.draws else 0.0)
        return self._errors

    def __reduce__(self) -> Any:
        return Estimates, (np.asarray(self), self._errors, self.draws)


class EstimatedOrder(_Plain):
    """The most probable order, and how it was found.

    Parameters
    ----------
    order : array of int, shape (n,)
    share : Estimate, optional
        The share of the draws that are this order, with its standard error.
    draws : int
        The number of draws that the search started from; 0 if the order is known to be the mode.

    Attributes
    ----------
    share : Estimate or None
        None if exact.
    draws : int

    Examples
    --------
    >>> best = EstimatedOrder([2, 0, 1], Estimate(0.31, 0.02, draws=500), draws=500)
    >>> best, best.share
    (array([2, 0, 1]), 0.31 ± 0.02)
    >>> type(best + 1).__name__
    'ndarray'
    """

    share: Estimate | None = None

    def __new__(
        cls, order: ArrayLike, share: Estimate | None = None, draws: int = 0
    ) -> EstimatedOrder:
        """Make an order that says how it was found."""
        self = np.array(order, dtype=np.int64).view(cls)
        self.share, self.draws = share, draws
        return self

    def __reduce__(self) -> Any:
        return EstimatedOrder, (np.asarray(self), self.share, self.draws)


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of draws with its standard error."""
    draws = len(values)
    if np.isinf(values).any():
        return Estimate(float(values.mean()), np.inf, draws)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws)), draws)


def means_of(total: FloatArray, squares: FloatArray, draws: int) -> Estimates:
    """Return means of draws with standard errors, from sums and sums of squares."""
    mean = total / draws
    spread = np.maximum(squares / draws - mean**2, 0.0) / (draws - 1)
    return Estimates(mean, np.sqrt(spread), draws)
