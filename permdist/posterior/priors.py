"""Priors: densities of scores, coefficients and the other parameters of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri

from permdist import inference
from permdist._check import finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray


class Prior(ABC):
    """The prior density of a vector of parameters.

    Subclasses say its logarithm with derivatives, and how to draw from it. `settles` says whether
    it tells apart scores that differ by a constant, which ballots never do.
    """

    settles: bool = True

    @abstractmethod
    def derivatives(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the log-density of values (k,), its gradient, and minus its second derivatives."""

    @abstractmethod
    def draw(self, size: int, length: int, rng: np.random.Generator) -> FloatArray:
        """Draw vectors, shape (size, length).

        Parameters
        ----------
        size, length : int
            How many vectors, of how many parameters.
        rng : Generator
        """

    def log_density(self, values: FloatArray) -> float:
        """Return the log-density of values (k,)."""
        return self.derivatives(values)[0]

    def relative(self, length: int) -> Prior | None:
        """Return the prior of scores relative to each other; None where that is not known.

        It is the largest density among scores that differ by a constant; `levels` draws that
        constant. So chains need not move in it, which no data say anything about.

        Parameters
        ----------
        length : int
        """
        del length
        return None if self.settles else self

    def levels(self, scores: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw what is added to all scores, given these up to a constant.

        Parameters
        ----------
        scores : array of float, shape (draws, k)
        uniforms : array of float, shape (draws,)
            From 0 to 1.

        Returns
        -------
        levels : array of float, shape (draws,)
        gains : array of float, shape (draws,)
            The log-densities then, less those of `relative`.
        """
        del uniforms
        return np.zeros(len(scores)), np.zeros(len(scores))


@dataclass(frozen=True, eq=False)
class Relative(Prior):
    """The prior of scores relative to each other, from a quadratic or a Dirichlet density.

    Parameters
    ----------
    constant : float
    mean : array of float, shape (k,)
    matrix : array of float, shape (k, k)
        Minus the second derivatives of the quadratic part.
    shape : float
        Of a gamma prior of each worth; 0 if it is a normal prior.
    """

    constant: float
    mean: FloatArray
    matrix: FloatArray
    shape: float = 0.0

    settles = False

    def derivatives(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the log-density of values (k,), its gradient, and minus its second derivatives."""
        away = values - self.mean
        pull = self.matrix @ away
        value, gradient, second = self.constant - 0.5 * float(away @ pull), -pull, self.matrix
        if self.shape:
            total = self.shape * len(values)
            high = float(values.max())
            worths = np.exp(values - high)
            shares = worths / worths.sum()
            value += self.shape * float(values.sum()) - total * (high + np.log(worths.sum()))
            value += total * (np.log(total) - 1.0)
            gradient = gradient + self.shape - total * shares
            second = second + total * (np.diag(shares) - np.outer(shares, shares))
        return value, gradient, second

    def draw(self, size: int, length: int, rng: np.random.Generator) -> FloatArray:
        """Refuse to draw: levels belong to it."""
        del size, length, rng
        raise TypeError("prior: what gamma priors say beside the level has no draws of its own")


@dataclass(frozen=True, eq=False)
class Normal(Prior):
    """A normal prior.

    Parameters
    ----------
    mean : float or array of float, shape (k,)
    covariance : float or array of float, shape (k,) or (k, k)
        A variance, variances, or the covariance matrix.
    centered : bool
        Whether it is the prior of scores relative to their mean, which says nothing about a
        constant that is added to all of them. The density is then one of scores that add up to 0.

    Examples
    --------
    >>> round(Normal(0.0, 4.0).log_density(np.zeros(1)), 4)
    -1.6121
    """

    mean: ArrayLike = 0.0
    covariance: ArrayLike = 1.0
    centered: bool = False

    def __post_init__(self) -> None:
        mean, matrix = (
            finite("prior: mean", self.mean),
            finite("prior: covariance", self.covariance),
        )
        if mean.ndim > 1:
            raise ValueError(f"prior: expected a number or a vector as mean, got {mean.shape}")
        if matrix.ndim > 2 or (matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]):
            raise ValueError(
                f"prior: expected a variance, variances or a square matrix as covariance, got "
                f"shape {matrix.shape}"
            )
        if matrix.ndim and mean.ndim and len(matrix) != len(mean):
            raise ValueError(
                f"prior: expected a covariance for {len(mean)} parameters, got {len(matrix)}"
            )
        positive = (matrix > 0.0).all() if matrix.ndim < 2 else _is_positive(matrix)
        if not positive:
            raise ValueError(
                "prior: expected positive variances, or a symmetric, positive definite covariance"
            )
        if self.centered and matrix.ndim:
            raise ValueError("prior: expected a single variance of centered scores")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(self, "settles", not self.centered)

    def parts(self, length: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean (k,) and the precisions, (k,) or (k, k).

        Parameters
        ----------
        length : int
            The number k of parameters.
        """
        mean, matrix = np.asarray(self.mean), np.asarray(self.covariance)
        for what, array in (("mean", mean), ("covariance", matrix)):
            if array.ndim and len(array) != length:
                raise ValueError(
                    f"prior: expected a {what} for {length} parameters, got {len(array)}"
                )
        mean = np.broadcast_to(mean, (length,)).astype(np.float64)
        if self.centered:
            mean = mean - mean.mean()
        if matrix.ndim == 2:
            precision = np.linalg.inv(matrix)
            return mean, 0.5 * (precision + precision.T)
        return mean, np.broadcast_to(1.0 / matrix, (length,)).astype(np.float64)

    def constant(self, length: int) -> float:
        """Return the log-density at the mean."""
        _, precision = self.parts(length)
        if precision.ndim == 2:
            logs = float(np.linalg.slogdet(precision)[1])
        else:
            logs = float(np.log(precision[: length - 1 if self.centered else length]).sum())
        return 0.5 * logs - 0.5 * (length - self.centered) * float(np.log(2.0 * np.pi))

    def derivatives(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the log-density of values (k,), its gradient, and minus its second derivatives."""
        mean, precision = self.parts(len(values))
        matrix = precision if precision.ndim == 2 else np.diag(precision)
        away = values - mean
        if self.centered:
            away = away - away.mean()
            matrix = matrix - precision[0] / len(values)
        pull = matrix @ away
        return self.constant(len(values)) - 0.5 * float(away @ pull), -pull, matrix

    def relative(self, length: int) -> Prior | None:
        """Return the prior of scores relative to each other."""
        if self.centered:
            return self
        mean, precision = self.parts(length)
        matrix = precision if precision.ndim == 2 else np.diag(precision)
        rows = matrix.sum(axis=1)
        return Relative(self.constant(length), mean, matrix - np.outer(rows, rows) / rows.sum())

    def levels(self, scores: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw what is added to all scores, given these up to a constant."""
        if self.centered:
            return super().levels(scores, uniforms)
        mean, precision = self.parts(scores.shape[1])
        rows = precision.sum(axis=1) if precision.ndim == 2 else precision
        normals = ndtri(uniforms)
        # Not a product of matrices, whose bits depend on the number of rows.
        levels = ((mean - scores) * rows).sum(axis=1) / rows.sum() + normals / np.sqrt(rows.sum())
        return levels, -0.5 * normals**2

    def draw(self, size: int, length: int, rng: np.random.Generator) -> FloatArray:
        """Draw vectors, shape (size, length)."""
        mean, _ = self.parts(length)
        normals, matrix = rng.standard_normal((size, length)), np.asarray(self.covariance)
        if matrix.ndim == 2:
            result: FloatArray = mean + normals @ np.linalg.cholesky(matrix).T
            return result
        result = mean + normals * np.sqrt(matrix)
        return result - result.mean(axis=1, keepdims=True) if self.centered else result


@dataclass(frozen=True)
class Gamma(Prior):
    """Independent gamma priors of worths, which are the exponentials of scores.

    Of other parameters with positive values, such as theta of `Mallows`, it is the prior itself.

    Parameters
    ----------
    shape : float
    rate : float
        The mean is shape / rate. Rankings say nothing about the unit of worths: the rate matters
        only for what is reported.

    Examples
    --------
    >>> Gamma(2.0, 1.0).draw(2, 3, np.random.default_rng(0)).shape
    (2, 3)
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            value = float(finite(f"prior: {name}", getattr(self, name), ndim=0))
            if value <= 0.0:
                raise ValueError(f"prior: expected a positive {name}, got {value:g}")
            object.__setattr__(self, name, value)

    def derivatives(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the log-density of scores (k,), its gradient, and minus its second derivatives."""
        worths = self.rate * np.exp(values)
        value = float((self.shape * values - worths).sum()) + self.constant(len(values))
        return value, self.shape - worths, np.diag(worths)

    def constant(self, length: int) -> float:
        """Return the logarithm of what normalizes the density of so many scores."""
        return length * float(self.shape * np.log(self.rate) - gammaln(self.shape))

    def relative(self, length: int) -> Prior | None:
        """Return the prior of scores relative to each other."""
        constant = self.constant(length) - self.shape * length * float(np.log(self.rate))
        return Relative(constant, np.zeros(length), np.zeros((length, length)), self.shape)

    def levels(self, scores: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw what is added to all scores, given these up to a constant."""
        # The sum of all worths is a gamma variable, whatever their ratios.
        total = self.shape * scores.shape[1]
        sums = gammaincinv(total, uniforms)
        small = (np.log(uniforms) + gammaln(total + 1.0)) / total
        logs = np.where(sums > 1e-280, np.log(np.maximum(sums, 1e-290)), small)
        levels = logs - np.log(self.rate) - logsumexp(scores, axis=1)
        return levels, total * (logs - np.log(total)) - (np.exp(logs) - total)

    def draw(self, size: int, length: int, rng: np.random.Generator) -> FloatArray:
        """Draw scores, logarithms of gamma variables, shape (size, length)."""
        # Those of a small shape would be rounded to 0.
        larger = np.log(rng.gamma(self.shape + 1.0, size=(size, length)))
        return larger - rng.exponential(size=(size, length)) / self.shape - np.log(self.rate)

    def log_density_of_values(self, values: ArrayLike) -> FloatArray:
        """Return the log-density of positive values themselves, of any shape."""
        array = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (self.shape - 1.0) * np.log(array) - self.rate * array + self.constant(1)
        return np.where(array > 0.0, found, -np.inf)

    def draw_values(self, size: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw positive values themselves."""
        return rng.gamma(self.shape, 1.0 / self.rate, size=size)


@dataclass(frozen=True)
class UniformCenter:
    """The uniform prior of the central ranking of `Mallows` and its relatives.

    Examples
    --------
    >>> round(UniformCenter().log_density(3), 4)
    -1.7918
    """

    def log_density(self, n_items: int) -> float:
        """Return the log-probability of each ranking of so many items."""
        return -float(gammaln(n_items + 1.0))

    def draw(self, size: int, n_items: int, rng: np.random.Generator) -> IntArray:
        """Draw orders, shape (size, n_items)."""
        return np.argsort(rng.random((size, n_items)), axis=1)


@dataclass(frozen=True)
class Flat(Prior):
    """No prior: a constant density, which is proper only together with enough data."""

    settles = False

    def derivatives(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return zeros."""
        return 0.0, np.zeros(len(values)), np.zeros((len(values), len(values)))

    def draw(self, size: int, length: int, rng: np.random.Generator) -> FloatArray:
        """Refuse to draw."""
        del size, length, rng
        raise ValueError(
            "prior: expected a proper prior to draw from, got a flat one; set prior=Normal(...)"
        )


def as_prior(name: str, prior: Any, *, relative: bool = False) -> Prior:
    """Return a prior from a prior, a number (the precision of a normal prior) or None.

    Parameters
    ----------
    name : str
        Of the parameters, for errors.
    prior : Prior, float, permdist.inference.Ridge, permdist.inference.Normal or None
    relative : bool
        Whether a number is meant for scores relative to their mean.

    Examples
    --------
    >>> as_prior("scores", 0.25)
    Normal(mean=array(0.), covariance=array(4.), centered=False)
    """
    if prior is None:
        return Flat()
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, inference.Normal):
        return Normal(prior.mean, prior.covariance)
    if isinstance(prior, inference.Ridge):
        prior = prior.strength
    if isinstance(prior, bool) or not isinstance(prior, int | float | np.number):
        raise TypeError(
            f"prior: expected a Prior, a number, or None for {name}, got {type(prior).__name__}"
        )
    precision = float(finite("prior", prior, ndim=0))
    if precision < 0.0:
        raise ValueError(f"prior: expected a non-negative precision of {name}, got {precision:g}")
    return Normal(0.0, 1.0 / precision, centered=relative) if precision else Flat()


def _is_positive(matrix: FloatArray) -> bool:
    size = float(np.abs(matrix).max())
    symmetric = np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-10 * size)
    return bool(symmetric and np.linalg.eigvalsh(matrix)[0] > 0.0)
