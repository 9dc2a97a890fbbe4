"""Profile likelihood intervals: the range of a score in which the likelihood is not too low."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, stats

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.inference.results import Fit


def profile_intervals(fit: Fit, level: float) -> FloatArray:
    """Return an interval for each score, relative to the mean of all, shape (n, 2).

    An end is infinite where the likelihood never falls below the limit, as it does for an item
    that has only won.

    Parameters
    ----------
    fit : Fit
    level : float
    """
    from permdist.inference.fit import NoEstimateError, maximize

    likelihood, penalty = fit.likelihood, fit.penalty
    if likelihood.design is not None:
        raise ValueError("kind: profile intervals are of scores, not of features' coefficients")
    n, size = fit.n_items, likelihood.size
    limit = 0.5 * stats.chi2.ppf(level, 1)
    errors = fit.standard_errors("observed")

    def objective(parameters: FloatArray) -> float:
        value = likelihood(parameters)[0]
        return value if penalty is None else value - penalty(parameters)[0]

    top = objective(fit.parameters)
    result = np.empty((n, 2))
    for item in range(n):
        # The score relative to the mean: the direction that is held while the others move.
        contrast = np.zeros(size)
        contrast[:n] = -1.0 / n
        contrast[item] += 1.0
        held = contrast / np.linalg.norm(contrast)
        for side, sign in enumerate((-1.0, 1.0)):
            last = fit.parameters

            def drop(shift: float, sign: float = sign, contrast: FloatArray = contrast,
                     held: FloatArray = held) -> float:  # fmt: skip
                nonlocal last
                wanted = float(contrast @ fit.parameters) + sign * shift
                start = last + contrast * (wanted - contrast @ last) / (contrast @ contrast)
                found = maximize(likelihood, penalty, start, 100, 1e-8, fixed=held[:, None])
                last = found.parameters
                return top - objective(found.parameters) - limit

            low, high = 0.0, 2.0 * float(errors[item]) + 1e-8
            try:
                while drop(high) < 0.0:
                    low, high = high, 2.0 * high
                    if high > 1e3:
                        break
                end = optimize.brentq(drop, low, high, xtol=1e-8) if high <= 1e3 else np.inf
            except NoEstimateError:
                end = np.inf
            result[item, side] = fit.scores[item] + sign * end
    return result
