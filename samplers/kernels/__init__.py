"""The steps that chains are made of: one kernel per file, and a table of all of them.

A kernel takes the constants of a target, a state and a generator, changes the state, and returns
whether it moved. It uses the functions that are imported here, and no others that look at the
target or draw at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import short_text
from permdist._registry import Registry
from permdist.samplers.kernels.adjacent import adjacent
from permdist.samplers.kernels.binding import advancer
from permdist.samplers.kernels.block import block
from permdist.samplers.kernels.flip import flip
from permdist.samplers.kernels.randomness import accept, divide, draw, locate, pick, weigh
from permdist.samplers.kernels.relocation import relocation
from permdist.samplers.kernels.transposition import transposition
from permdist.targets import compiled, peek, restore, swap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import FloatArray
    from permdist.targets import Target

__all__ = [
    "KERNELS",
    "Kernel",
    "accept",
    "advance_with",
    "compiled",
    "divide",
    "draw",
    "locate",
    "mixture_of",
    "parts_of",
    "peek",
    "pick",
    "register_kernel",
    "restore",
    "swap",
    "weigh",
]

RESERVED = ("auto", "exact")


class Kernel(NamedTuple):
    """A kernel and what is known about it; see `register_kernel`."""

    function: Any
    sweep: float
    operations: Callable[[int, float], tuple[float, ...]] | None
    needs_levels: bool
    needs_pair_scores: bool


KERNELS: Registry[Kernel] = Registry("kernel")


def register_kernel(
    name: str,
    function: Callable[..., bool],
    *,
    sweep: float = 1.0,
    operations: Callable[[int, float], tuple[float, ...]] | None = None,
    needs_levels: bool = False,
    needs_pair_scores: bool = False,
) -> None:
    """Add a kernel, which `run_chains` and the command line then accept by its name.

    Parameters
    ----------
    name : str
        One word.
    function : callable
        ``function(target, state, rng)`` takes one step and returns whether it moved. It may read
        ``state.order`` and ``state.value[0]``, the log-weight; it changes them through `peek` and
        `swap` only, uses ``state.weights`` and ``state.shares`` as scratch space, and draws with
        `pick`, `accept`, `draw`, `weigh` or ``rng.random()``. Import these functions by name from
        `permdist.samplers.kernels`. A plain function is compiled; if it is defined at the top level
        of a module and decorated with `permdist.targets.compiled`, then the result is cached on
        disk.
    sweep : float
        The number of steps per item that make one draw, if `run_chains` is not told `thin`.
    operations : callable, optional
        The cost of one step for n items at acceptance rate `share`, ``operations(n, share)``: the
        number of peeks, the number of swaps, and the remaining nanoseconds; a fourth number, if
        there is one, is nanoseconds per ordered pair of items of different levels. Kernels without
        it are not tried by ``kernel="auto"``.
    needs_levels : bool
        Whether the kernel reads ``target.levels``: it then works for targets that have levels only.
    needs_pair_scores : bool
        Whether the kernel relies on the log-weight of the good-bad pair model: it then works for
        targets with `has_pair_scores` only.

    Examples
    --------
    A kernel that swaps the first two items or does nothing:

    >>> def top(target, state, rng):
    ...     value = peek(target, state, 0)
    ...     if pick(rng, 2) == 0 and accept(rng, value - state.value[0]):
    ...         swap(target, state, 0, value)
    ...         return True
    ...     return False
    >>> register_kernel("top", top)
    >>> from permdist import PlackettLuce
    >>> from permdist.samplers import run_chains
    >>> run_chains(PlackettLuce([1.0, 0.0, 2.0]), 100, kernel="top+adjacent", rng=0).kernel
    'top+adjacent'
    >>> KERNELS.discard("top")
    """
    word: Any = name
    if not isinstance(word, str) or len(word.split()) != 1 or "+" in word or word in RESERVED:
        raise ValueError(f"name: expected one word that is not taken, without '+', got {name!r}")
    if not callable(function):
        raise TypeError(f"function: expected a function, got {type(function).__name__}")
    if not 0.0 < sweep < np.inf:
        raise ValueError(f"sweep: expected a positive number, got {sweep!r}")
    made = function if hasattr(function, "py_func") else compiled(function)
    facts = Kernel(made, float(sweep), operations, needs_levels, needs_pair_scores)
    KERNELS.add(name, facts)


register_kernel("adjacent", adjacent, operations=lambda _, share: (1, share, 15))
register_kernel(
    "transposition",
    transposition,
    sweep=0.5,
    operations=lambda n, share: (n * (2 - share) / 1.5, n * (2 - share) / 1.5, 40),
)
register_kernel(
    "relocation", relocation, sweep=0.25, operations=lambda n, _: (n, 2 * n, 70 + 3 * n)
)
register_kernel(
    "flip",
    flip,
    sweep=0.5,
    operations=lambda n, share: (1, share, 80 + 1.8 * n),
    needs_levels=True,
)
register_kernel(
    "block",
    block,
    sweep=1e-9,  # one step moves all items
    operations=lambda n, _: (0, 0, 400 + 110 * n, 2.5),
    needs_pair_scores=True,
)


def advance_with(parts: Mapping[str, float], target: Target) -> Callable[..., None]:
    """Return the loop that takes steps with the kernels of a mixture."""
    return advancer(target, [KERNELS[name].function for name in KERNELS if name in parts])


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


def mixture_of(parts: Mapping[str, float]) -> FloatArray:
    """Return the cumulative probabilities of the kernels of a mixture, in the table's order."""
    chances = np.array([parts[name] for name in KERNELS if name in parts])
    sums = np.cumsum(chances / chances.sum())
    sums[-1] = 1.0
    return sums
