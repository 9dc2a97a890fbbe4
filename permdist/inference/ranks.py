"""What is known of the true places of items, from the errors of their estimated scores.

An item's true place is 1 plus the number of items with a higher true score. All functions here are
about what is not known of it. Where an item may stand in one future ranking, which is random even
if all scores are known, is another question: `rank_marginals` and `pairwise` of a distribution
answer that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from permdist.inference.comparisons import greatest_errors, upper_quantile, z_values
from permdist.inference.normal import (
    DRAWS,
    check_estimate,
    check_level,
    difference_errors,
    draw_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState


def rank_sets(
    scores: ArrayLike,
    covariance: ArrayLike,
    level: float = 0.95,
    *,
    step_down: bool = True,
    draws: int = DRAWS,
    rng: RandomState = 0,
    errors: Sequence[FloatArray] | None = None,
) -> IntArray:
    """Compute the best and the worst true place that each item can have, for all items at once.

    With a chance of at least `level`, the true places of all items are within their sets. An item
    is above another for sure if the simultaneous test of all differences says so; an item's best
    place is 1 plus the number of items that are above it for sure, its worst place n minus the
    number of those below it.

    The sets say how sure the estimate is of the true places; they do not hold the places in a
    future ranking, for which see `Distribution.rank_marginals`.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    level : float
    step_down : bool
        Whether to test again, with a smaller critical value, after leaving out what has been
        rejected, until nothing more is. The level still holds and the sets can only be smaller.
    draws : int
        The size of the simulation of the critical values.
    rng : int, numpy.random.Generator or None
        Of the simulation.
    errors : sequence of arrays of float, shape (draws, n), optional
        Simulated errors of the scores, where there are some already.

    Returns
    -------
    array of int, shape (n, 2)
        The best and the worst place of each item; 1 is the top.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm, Inference for ranks with applications to mobility across
    neighbourhoods and academic achievement across countries, Review of Economic Studies 91 (2024),
    476-518; the steps are those of Romano and Wolf (2005).

    Examples
    --------
    >>> import numpy as np
    >>> rank_sets([2.0, 0.1, 0.0, -3.0], 0.04 * np.eye(4)).tolist()
    [[1, 1], [2, 3], [2, 3], [4, 4]]
    """
    values, matrix = check_estimate(scores, covariance)
    level, n = check_level(level), len(values)
    if errors is None:
        errors = error_draws(matrix, draws, rng)
    z = z_values(np.subtract.outer(values, values), difference_errors(matrix))
    undecided = ~np.eye(n, dtype=bool)
    above = np.zeros((n, n), dtype=bool)
    while undecided.any():
        critical = upper_quantile(greatest_errors(matrix, undecided, errors), level).value
        found: BoolArray = undecided & (z > critical)
        above |= found
        undecided &= ~found
        if not step_down or not found.any():
            break
    return np.column_stack([1 + above.sum(axis=0), n - above.sum(axis=1)])


def error_draws(matrix: FloatArray, draws: int, rng: RandomState) -> list[FloatArray]:
    """Return simulated errors of scores with a covariance, all at once."""
    return list(draw_blocks(matrix, draws, rng))


def prob_above(scores: ArrayLike, covariance: ArrayLike) -> FloatArray:
    """Compute how sure it is that each item's true score is above each other item's.

    ``Phi((s_i - s_j) / se_ij)``: one minus the one-sided p-value, and the posterior probability
    under a flat prior where the likelihood is normal. It tends to 0 or 1 as ballots are added. The
    chance that i is above j in one ranking does not: `Distribution.pairwise` computes that.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.

    Returns
    -------
    array of float, shape (n, n)
        1/2 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> prob_above([0.3, 0.0], np.diag([0.02, 0.02])).round(3)
    array([[0.5  , 0.933],
           [0.067, 0.5  ]])
    """
    values, matrix = check_estimate(scores, covariance)
    return special.ndtr(z_values(np.subtract.outer(values, values), difference_errors(matrix)))


def prob_best(
    scores: ArrayLike,
    covariance: ArrayLike,
    *,
    draws: int = DRAWS,
    rng: RandomState = 0,
    errors: Sequence[FloatArray] | None = None,
) -> FloatArray:
    """Compute how sure it is that each item has the highest true score.

    The share of draws from the normal around the estimates in which an item is first: the posterior
    probability under a flat prior where the likelihood is normal. The chance that an item wins one
    future ranking is another, usually smaller one: ``Distribution.rank_marginals()[:, 0]``.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    draws : int
        The standard error of a share p is ``sqrt(p (1 - p) / draws)``, at most 0.0036 by default.
    rng : int, numpy.random.Generator or None
    errors : sequence of arrays of float, shape (draws, n), optional
        Simulated errors of the scores, where there are some already.

    Returns
    -------
    array of float, shape (n,)
        They add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> found = prob_best([0.3, 0.0], np.diag([0.02, 0.02]))  # 0.933 is exact
    >>> bool(abs(found[0] - 0.933) < 0.01)
    True
    """
    values, matrix = check_estimate(scores, covariance)
    totals = np.zeros(len(values))
    for block in draw_blocks(matrix, draws, rng) if errors is None else errors:
        first = np.argmax(values + block, axis=1)
        totals += np.bincount(first, minlength=len(values))
    return totals / totals.sum()


def rank_probabilities(
    scores: ArrayLike, covariance: ArrayLike, *, draws: int = DRAWS, rng: RandomState = 0
) -> FloatArray:
    """Compute how sure it is that each item has each true place.

    Shares of draws from the normal around the estimates, as in `prob_best`, which is the first
    column. They are not the chances of the places in one future ranking, which
    `Distribution.rank_marginals` computes.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    draws : int
        The standard error of a share p is ``sqrt(p (1 - p) / draws)``, at most 0.0036 by default.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    array of float, shape (n, n)
        One row per item, one column per place from the top; rows and columns add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> found = rank_probabilities([1.0, 0.0, -9.0], 0.3 * np.eye(3))
    >>> found.round(1)
    array([[0.9, 0.1, 0. ],
           [0.1, 0.9, 0. ],
           [0. , 0. , 1. ]])
    """
    values, matrix = check_estimate(scores, covariance)
    n = len(values)
    totals = np.zeros((n, n))
    places = np.arange(n)
    for block in draw_blocks(matrix, draws, rng):
        orders = np.argsort(-(values + block), axis=1, kind="stable")
        cells = orders * n + places
        totals += np.bincount(cells.ravel(), minlength=n * n).reshape(n, n)
    return totals / totals[0].sum()
