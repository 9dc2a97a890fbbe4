"""What is known before the ballots are: priors on worths, so that there is always an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from permdist._check import finite
from permdist.ballots import Ballots

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray

Terms = tuple[float, "FloatArray", "FloatArray"]


class Prior(Protocol):
    """Minus the logarithm of a prior density of the items' parameters and of covariates."""

    def terms(self, items: FloatArray, covariates: FloatArray) -> Terms:
        """Return its value, its gradient (k + q,) and its second derivatives (k + q, k + q)."""
        ...


@dataclass(frozen=True)
class Ridge:
    """Penalties of half the strength times squares.

    Parameters
    ----------
    strength : float
        For the scores of the items, relative to their mean; for the coefficients of features of
        items where these replace the scores.
    covariates : float
        For the coefficients of covariates of ballots.

    Examples
    --------
    >>> Ridge(0.1)
    Ridge(strength=0.1, covariates=0.0)
    """

    strength: float = 1.0
    covariates: float = 0.0

    def __post_init__(self) -> None:
        for name in ("strength", "covariates"):
            value = float(finite(f"prior: {name}", getattr(self, name), ndim=0))
            if value < 0.0:
                raise ValueError(f"prior: expected a non-negative {name}, got {value:g}")
            object.__setattr__(self, name, value)

    def terms(self, items: FloatArray, covariates: FloatArray) -> Terms:
        """Return its value, its gradient (k + q,) and its second derivatives (k + q, k + q)."""
        everything = np.concatenate([items, covariates])
        strengths = np.repeat([self.strength, self.covariates], [len(items), len(covariates)])
        pull = strengths * everything
        return 0.5 * float(pull @ everything), pull, np.diag(strengths)


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal prior of the scores.

    Parameters
    ----------
    mean : array of float, shape (n,)
        In the order of the items.
    covariance : float or array of float, shape (n,) or (n, n)
        A variance of all, variances, or the covariance matrix.
    """

    mean: ArrayLike
    covariance: ArrayLike

    def __post_init__(self) -> None:
        mean = finite("prior: mean", self.mean, ndim=1)
        matrix = finite("prior: covariance", self.covariance)
        if matrix.ndim < 2:
            matrix = np.diag(np.broadcast_to(matrix, mean.shape))
        if matrix.shape != (len(mean), len(mean)):
            raise ValueError(
                f"prior: expected a covariance of shape ({len(mean)}, {len(mean)}), got "
                f"{matrix.shape}"
            )
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0.0:
            raise ValueError("prior: expected a symmetric, positive definite covariance")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", matrix)

    def terms(self, items: FloatArray, covariates: FloatArray) -> Terms:
        """Return its value, its gradient (k + q,) and its second derivatives (k + q, k + q)."""
        mean = np.asarray(self.mean)
        if len(mean) != len(items):
            raise ValueError(f"prior: expected a mean of {len(items)} scores, got {len(mean)}")
        size = len(items) + len(covariates)
        gradient, second = np.zeros(size), np.zeros((size, size))
        precision = np.linalg.inv(np.asarray(self.covariance))
        away = items - mean
        gradient[: len(items)] = precision @ away
        second[: len(items), : len(items)] = precision
        return 0.5 * float(away @ precision @ away), gradient, second


@dataclass(frozen=True)
class PseudoWins:
    """Imagined contests of every item with a ghost, some won and as many lost.

    The ghost's worth is estimated along and then forgotten.

    Parameters
    ----------
    number : float
        How many wins and how many losses; 0.5 is usual.
    """

    number: float = 0.5

    def __post_init__(self) -> None:
        value = float(finite("prior: number", self.number, ndim=0))
        if value <= 0.0:
            raise ValueError(f"prior: expected a positive number of pseudo-wins, got {value:g}")
        object.__setattr__(self, "number", value)

    def ballots(self, n_items: int) -> Ballots:
        """Return the imagined contests; the ghost is the last item."""
        everyone, ghost = np.arange(n_items), np.full(n_items, n_items)
        return Ballots.from_pairs(
            np.concatenate([everyone, ghost]),
            np.concatenate([ghost, everyone]),
            n_items=n_items + 1,
            weights=np.full(2 * n_items, self.number),
        )


def as_prior(prior: Any) -> Prior | PseudoWins | None:
    """Return a prior from a number (the strength of a ridge), a prior or None.

    Examples
    --------
    >>> as_prior(0.5)
    Ridge(strength=0.5, covariates=0.0)
    >>> as_prior("weak")
    Traceback (most recent call last):
    TypeError: prior: expected a number, Ridge, Normal or PseudoWins, got 'weak'
    """
    if prior is None or isinstance(prior, PseudoWins) or hasattr(prior, "terms"):
        return prior
    if isinstance(prior, bool) or not isinstance(prior, int | float | np.number):
        raise TypeError(f"prior: expected a number, Ridge, Normal or PseudoWins, got {prior!r}")
    return Ridge(float(prior)) if prior else None
