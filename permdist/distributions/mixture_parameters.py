"""The real parameters of a component of a mixture, for errors and for extrapolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.distributions.gaussian import GaussianScores
from permdist.distributions.mallows import GeneralizedMallows, Mallows
from permdist.distributions.plackett_luce import PlackettLuce

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.distributions.base import Distribution

STEP = 1e-3  # of difference quotients, relative to 1 plus the size of the parameter


class Parameters(NamedTuple):
    """The real parameters of a distribution.

    Attributes
    ----------
    values : array of float, shape (q,)
    rebuild : callable
        Returns the distribution with other values.
    discrete : object
        All else that makes up the distribution, such as the center of Mallows' model.
    """

    values: FloatArray
    rebuild: Callable[[FloatArray], Distribution]
    discrete: Any = None


def parameters_of(model: Any) -> Parameters | None:
    """Return the real parameters of a distribution, or None if it does not tell them.

    Known are the scores of `PlackettLuce` and `GaussianScores` and the thetas of `Mallows` and
    `GeneralizedMallows`. Others tell theirs by an attribute ``parameters``, an array of floats, and
    a method ``with_parameters(values)``, which returns a distribution.

    Parameters
    ----------
    model : Distribution
    """
    names = model.names if model.is_named else None
    if hasattr(model, "parameters") and hasattr(model, "with_parameters"):
        values = np.atleast_1d(np.asarray(model.parameters, dtype=np.float64))
        return Parameters(values, model.with_parameters)
    if type(model) is PlackettLuce:
        return Parameters(np.array(model.scores), lambda scores: PlackettLuce(scores, names))
    if type(model) is GaussianScores:
        scale = model.scale
        return Parameters(
            np.array(model.scores), lambda scores: GaussianScores(scores, scale, names), scale
        )
    if type(model) in (Mallows, GeneralizedMallows):
        center, distance = model.center, model.distance
        discrete = (distance, center.tobytes())
        kind, shape = type(model), np.shape(model.theta)
        return Parameters(
            np.array(model.theta).reshape(-1),
            lambda thetas: kind(center, np.reshape(thetas, shape), distance, names),
            discrete,
        )
    return None


def differences(
    function: Callable[[Distribution], FloatArray], point: Parameters
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Differentiate log-probabilities by difference quotients.

    Parameters
    ----------
    function : callable
        Returns the log-probability of each ballot.
    point : Parameters

    Returns
    -------
    slopes : array of float, shape (ballots, q)
    information : callable
        Returns minus the second derivatives of the sum by some weights, shape (q, q).
    """
    steps = np.diag(STEP * (1.0 + np.abs(point.values)))
    q = len(steps)

    def at(move: FloatArray) -> FloatArray:
        return function(point.rebuild(point.values + move))

    ahead = [at(step) for step in steps]
    behind = [at(-step) for step in steps]
    sizes = np.diagonal(steps)
    slopes = np.stack([a - b for a, b in zip(ahead, behind, strict=True)], axis=1) / (2.0 * sizes)

    def information(counts: FloatArray) -> FloatArray:
        here, used = at(np.zeros(q)), counts > 0.0
        mass = counts[used]
        result = np.empty((q, q))
        for i in range(q):
            result[i, i] = mass @ (2.0 * here - ahead[i] - behind[i])[used] / sizes[i] ** 2
            for j in range(i):
                bend = at(steps[i] + steps[j]) + at(-steps[i] - steps[j])
                bend -= at(steps[i] - steps[j]) + at(steps[j] - steps[i])
                result[i, j] = result[j, i] = -(mass @ bend[used]) / (4.0 * sizes[i] * sizes[j])
        return result

    return slopes, information
