"""A distribution with a compiled target: Mallows' model with the footrule distance."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from scipy.special import logsumexp

from permdist.distributions import Distribution
from permdist.rankings import enumerate_orders
from permdist.targets import Target, compiled


class Footrule(Distribution):
    """Mallows' model with the footrule distance to 0, 1, 2, ..., known up to its normalizer."""

    def __init__(self, n_items, theta):
        super().__init__(n_items)
        self._theta = theta

    def log_weight(self, orders):
        return -self._theta * np.abs(np.asarray(orders) - np.arange(self.n_items)).sum(axis=-1)

    def log_prob(self, orders):
        return self.log_weight(orders) - logsumexp(self.log_weight(enumerate_orders(self.n_items)))

    def _sample(self, size, rng):
        raise NotImplementedError

    def _target(self):
        constants = Constants(self._theta, np.arange(self.n_items))
        return Target(
            self.n_items,
            peek_footrule,
            restore_footrule,
            swap_footrule,
            constants,
            integers=self.n_items,
            exact=False,
        )


class Constants(NamedTuple):
    theta: float
    center: np.ndarray


@compiled
def peek_footrule(target, state, k):
    a, b = target.center[state.order[k]], target.center[state.order[k + 1]]
    change = abs(a - k) + abs(b - k - 1) - abs(b - k) - abs(a - k - 1)
    return state.value[0] + target.theta * change


@compiled
def swap_footrule(_target, state, k, value):
    a, b = state.order[k], state.order[k + 1]
    state.order[k], state.order[k + 1] = b, a
    state.integers[a], state.integers[b] = k + 1, k  # the ranks, to show that they can be kept
    state.value[0] = value


@compiled
def restore_footrule(target, state):
    value = 0.0
    for k in range(len(state.order)):
        state.integers[state.order[k]] = k
        value -= target.theta * abs(target.center[state.order[k]] - k)
    state.value[0] = value


class PlainFootrule(Footrule):
    """The same with functions of numba's own, and the default `swap`."""

    def _target(self):
        constants = Constants(self._theta, np.arange(self.n_items))
        return Target(self.n_items, njit_peek, njit_restore, constants=constants, exact=False)


njit_peek = numba.njit(peek_footrule.py_func)


@numba.njit
def njit_restore(target, state):
    state.value[0] = -target.theta * np.abs(state.order - target.center).sum()  # makes an array
