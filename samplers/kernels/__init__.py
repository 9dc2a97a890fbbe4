"""The steps that chains are made of: one kernel a file, and a line in each of the lists here.

A kernel takes a target, a state and a generator, changes the state, and tells whether it moved.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from permdist._check import short_text
from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.samplers import targets
from permdist.samplers.kernels.adjacent import adjacent
from permdist.samplers.kernels.flip import flip
from permdist.samplers.kernels.randomness import accept, draw, pick, weigh
from permdist.samplers.kernels.relocation import relocation
from permdist.samplers.kernels.transposition import _exchange, transposition
from permdist.samplers.targets import Problem, State, Target, peek, restore, swap

REFRESH = 256  # draws after which everything is computed anew from the order


class Kernel(NamedTuple):
    """What there is to know about a kernel.

    `operations` tells what a step costs for n items if so large a share of steps moves: how many
    times it calls `peek` and `swap`, and nanoseconds or about for the rest.
    """

    function: Any
    sweep: float  # steps for each item that make one draw
    operations: Callable[[int, float], tuple[float, float, float]]
    needs_levels: bool = False


KERNELS = {
    "adjacent": Kernel(adjacent, 1.0, lambda n, share: (1, share, 15)),
    "transposition": Kernel(
        transposition, 0.5, lambda n, share: (n * (2 - share) / 1.5, n * (2 - share) / 1.5, 40)
    ),
    "relocation": Kernel(relocation, 0.25, lambda n, share: (n, 2 * n, 70 + 3 * n)),
    "flip": Kernel(flip, 0.5, lambda n, share: (1, share, 80 + 1.8 * n), needs_levels=True),
}


@kernel(inline=True)
def step(which: int, target: Target, state: State, rng: Any) -> bool:
    """Take one step with the kernel of this number."""
    if which == 0:
        return adjacent(target, state, rng)
    if which == 1:
        return transposition(target, state, rng)
    if which == 2:
        return relocation(target, state, rng)
    return flip(target, state, rng)


@kernel(inline=True)
def advance(
    mixture: FloatArray,
    target: Target,
    state: State,
    rng: Any,
    first: int,
    draws: int,
    thin: int,
    orders: IntArray,
    values: FloatArray,
    moved: IntArray,
) -> None:
    """Take `thin` steps before each of the draws ``first, first + 1, ...``, and note them.

    mixture (kernels,) sums up the chances of the kernels; orders (draws, n), values (draws,);
    moved (kernels, 2) counts the steps and the moves of each kernel.
    """
    only = -1
    for which in range(len(mixture)):
        if mixture[which] == 1.0 and (which == 0 or mixture[which - 1] == 0.0):
            only = which
    for d in range(draws):
        if (first + d) % REFRESH == 0:
            restore(target, state)
        for _ in range(thin):
            which = only
            if only < 0:
                u = rng.random()
                which = 0
                while mixture[which] <= u:
                    which += 1
            moved[which, 0] += 1
            moved[which, 1] += step(which, target, state, rng)
        values[d] = state.value[0]
        for k in range(len(state.order)):
            orders[d, k] = state.order[k]


def advancer(problem: Problem) -> Callable[..., None]:
    """Give `advance` for a problem: the library's own code, or the same code around a function."""
    if problem.function is None:
        return advance
    if problem.compiled:
        return _compiled(problem.function, problem.change)
    return rebind(_plain_target(problem.function, problem.change), lambda made: made)["advance"]


def rebind(replaced: dict[str, Any], decorate: Callable[[Any], Any]) -> dict[str, Any]:
    """Build the kernels again, from the same code, with some of their helpers replaced.

    Parameters
    ----------
    replaced : dict
        Functions to be used in place of those of the same name: `peek`, `swap`, `restore`, `pick`,
        `accept`, `draw`.
    decorate : callable
        What to do with each function: compile it, or leave it to the interpreter.
    """
    parts = (pick, accept, weigh, draw, peek, swap, restore, targets._log_add, _exchange)
    made = dict(replaced)
    for part in (*parts, *(entry.function for entry in KERNELS.values()), step, advance):
        source = part.py_func
        if source.__name__ not in made:
            scope = {**source.__globals__, **made}
            function = types.FunctionType(source.__code__, scope, source.__name__)
            made[source.__name__] = decorate(function)
    return made


@lru_cache(maxsize=16)
def _compiled(function: Any, change: Any) -> Callable[..., None]:
    compile_it = numba.njit(nogil=True, error_model="numpy")
    return rebind(_plain_target(function, change, compile_it), compile_it)["advance"]


def _plain_target(
    function: Any, change: Any, decorate: Callable[[Any], Any] = lambda made: made
) -> dict[str, Any]:
    """Answer a target's questions with a user's functions."""

    @decorate
    def peek_anew(target: Target, state: State, k: int) -> float:
        order = state.order
        order[k], order[k + 1] = order[k + 1], order[k]
        value = function(order)
        order[k], order[k + 1] = order[k + 1], order[k]
        return value

    @decorate
    def peek_change(target: Target, state: State, k: int) -> float:
        if state.value[0] == -np.inf:  # from an order of weight 0 differences do not lead back
            return peek_anew(target, state, k)
        value = state.value[0] + change(state.order, k)
        return value if np.isfinite(value) else peek_anew(target, state, k)

    @decorate
    def swap_only(target: Target, state: State, k: int, value: float) -> None:
        order = state.order
        order[k], order[k + 1] = order[k + 1], order[k]
        state.value[0] = value

    @decorate
    def restore_value(target: Target, state: State) -> None:
        state.value[0] = function(state.order)

    @decorate
    def no_flip(target: Target, state: State, rng: Any) -> bool:
        return False  # a function says nothing of classes of items, and this compiles faster

    looked = peek_anew if change is None else peek_change
    return {"peek": looked, "swap": swap_only, "restore": restore_value, "flip": no_flip}


def parts_of(name: str) -> dict[str, float]:
    """Read the kernels of a mixture and their shares, ``"adjacent+relocation"`` or with numbers."""
    parts: dict[str, float] = {}
    for part in short_text("kernel", name).split("+"):
        share, _, kernel_name = part.strip().rpartition(" ")
        try:
            weight = float(share) if share else 1.0
        except ValueError:
            weight = np.nan
        if not (np.isfinite(weight) and weight > 0.0):
            raise ValueError(f"kernel: expected kernels with positive shares, got {name!r}")
        parts[kernel_name] = parts.get(kernel_name, 0.0) + weight
    return parts


def mixture_of(parts: dict[str, float]) -> FloatArray:
    """Sum up the chances of the kernels of a mixture."""
    chances = np.array([parts.get(name, 0.0) for name in KERNELS])
    sums = np.cumsum(chances / chances.sum())
    sums[np.flatnonzero(chances)[-1] :] = 1.0
    return sums
