"""Estimated scores as a multivariate normal: checks, differences of scores, draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from permdist._check import as_rng, count, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, RandomState

DRAWS = 20_000
# Draws are made, and used, so many at a time.
BLOCK = 256
# Relative to the largest eigenvalue: what rounding can leave of one that is 0.
ROUNDING = 1e-9


def check_covariance(covariance: ArrayLike) -> FloatArray:
    """Return a covariance matrix as an array, or refuse what is none.

    Parameters
    ----------
    covariance : array of float, shape (n, n)
        Symmetric; of the scores relative to their mean or to one of them.
    """
    matrix = finite("covariance", covariance, ndim=2)
    if matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"covariance: expected a square matrix, got shape {matrix.shape}")
    size = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-8 * size):
        raise ValueError("covariance: expected a symmetric matrix, got one that is not")
    if (np.diagonal(matrix) < -ROUNDING * size).any():
        place = int(np.argmin(np.diagonal(matrix)))
        raise ValueError(
            f"covariance: expected non-negative variances, got {matrix[place, place]:.6g} "
            f"for item {place}"
        )
    return 0.5 * (matrix + matrix.T)


def check_estimate(scores: ArrayLike, covariance: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return scores and their covariance as arrays of matching shapes.

    Parameters
    ----------
    scores : array of float, shape (n,)
    covariance : array of float, shape (n, n)
    """
    values, matrix = finite("scores", scores, ndim=1), check_covariance(covariance)
    if len(values) != len(matrix):
        raise ValueError(
            f"covariance: expected shape {(len(values), len(values))}, as there are "
            f"{len(values)} scores, got {matrix.shape}"
        )
    return values, matrix


def check_level(level: float) -> float:
    """Return a confidence level, or refuse what is not between 0 and 1."""
    value = float(finite("level", level, ndim=0))
    if not 0.0 < value < 1.0:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.95, got {value:g}")
    return value


def difference_errors(covariance: FloatArray) -> FloatArray:
    """Return the standard errors of all differences of scores; the diagonal is 0.

    Parameters
    ----------
    covariance : array of float, shape (n, n)

    Examples
    --------
    >>> difference_errors(np.diag([4.0, 5.0])).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    variances = np.diagonal(covariance)
    squares = variances[:, None] + variances - 2.0 * covariance
    # Rounding errors of the three terms; a difference that is known exactly has variance 0.
    noise = 8.0 * np.finfo(float).eps * (variances[:, None] + variances)
    squares = np.where(squares <= noise, 0.0, squares)
    np.fill_diagonal(squares, 0.0)
    return np.sqrt(squares)


def root(covariance: FloatArray) -> FloatArray:
    """Return the symmetric square root of a covariance matrix, singular or not.

    Parameters
    ----------
    covariance : array of float, shape (n, n)
    """
    values, vectors = linalg.eigh(covariance)
    largest = float(np.abs(values).max())
    if values[0] < -1e3 * ROUNDING * largest:
        raise ValueError(
            "covariance: expected a matrix without negative eigenvalues, got "
            f"{values[0]:.3g} beside {values[-1]:.3g}"
        )
    # The symmetric root, unlike others, does not depend on the choice of eigenvectors: the same
    # seed gives nearly the same draws for nearly the same matrix.
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def draw_blocks(covariance: FloatArray, draws: int, rng: RandomState) -> Iterator[FloatArray]:
    """Yield errors of the scores, drawn from a centered normal, in blocks of shape (draws, n).

    Parameters
    ----------
    covariance : array of float, shape (n, n)
    draws : int
        The number of draws in all blocks together.
    rng : int, numpy.random.Generator or None
    """
    draws, generator, factor = count("draws", draws), as_rng(rng), root(covariance)
    for start in range(0, draws, BLOCK):
        # Draw by draw, so that more draws begin with the same ones.
        normals = generator.standard_normal((min(BLOCK, draws - start), factor.shape[1]))
        yield normals @ factor.T
