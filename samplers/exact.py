"""Independent draws from a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import batch_shape
from permdist.distributions import Distribution
from permdist.rankings import check_orders

if TYPE_CHECKING:
    from permdist._typing import IntArray, RandomState

WHERE = "permdist.identities.check_distribution looks for mistakes in a distribution"


def sample_exact(
    dist: Distribution, size: int | tuple[int, ...] | None = None, rng: RandomState = None
) -> IntArray:
    """Draw independent orders.

    Random utilities are drawn and sorted; interleavings, and orders of up to 21 items, are drawn by
    walking back through the states of an exact sum; other models of up to 8 items are drawn from
    the list of all orders.

    Parameters
    ----------
    dist : Distribution
    size : int or tuple of int, optional
        The batch shape; a single order by default.
    rng : int, Generator or None

    Returns
    -------
    array of int, shape (..., n)

    Raises
    ------
    NotExactError
        If independent draws are not affordable; the message names the limit.
    ValueError
        If a distribution of your own draws something that is not an order.

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> sample_exact(PlackettLuce([2.0, 0.0, 1.0]), 2, rng=1)
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution over orders, got {type(dist).__name__}")
    return drawn_orders(dist, size, rng)


def drawn_orders(
    dist: Distribution, size: int | tuple[int, ...] | None, rng: RandomState
) -> IntArray:
    """Draw from a distribution, and check the shape of the draws and that they are orders.

    Parameters
    ----------
    dist : Distribution
    size : int or tuple of int, optional
    rng : int, Generator or None
    """
    drawn = dist.sample(size, rng)
    name = f"{type(dist).__name__}.sample"
    shape = (*batch_shape(size), dist.n_items)
    if np.shape(drawn) != shape:
        raise ValueError(f"{name}: expected draws of shape {shape}, got {np.shape(drawn)}; {WHERE}")
    try:
        return check_orders(drawn, dist.n_items, name=name)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; {WHERE}") from error
