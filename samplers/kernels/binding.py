"""The loop around kernels, built from the same code for each target and each mixture of kernels.

Kernels call `peek`, `swap` and `restore`, which only a target has. `bind` builds a kernel again
with the functions of a target in their places, in it and in all that it calls: compiled if the
target's functions are, cached on disk if all of them are.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numba

from permdist._kernels import cache_stamp, kernel, kernel_part
from permdist.samplers.kernels.randomness import accept, divide, locate, pick, weigh
from permdist.targets import State, peek, restore, swap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.targets import Target

REFRESH = 256  # draws after which everything is computed anew from the order

Functions = dict[Any, Any]
Make = Callable[[Any, Any], Any]  # from a copy in pure Python, and the original


def first(target: Any, state: State, rng: Any) -> bool:
    """Take a step with the first kernel of a mixture; the kernel takes its place."""
    raise NotImplementedError


def others(which: int, target: Any, state: State, rng: Any) -> bool:
    """Take a step with one of the other kernels; `step` or `only_step` takes its place."""
    raise NotImplementedError


@kernel(inline=True)
def only_step(_which: int, target: Any, state: State, rng: Any) -> bool:
    """Take one step with the only kernel, or the last one."""
    return first(target, state, rng)


@kernel(inline=True)
def step(which: int, target: Any, state: State, rng: Any) -> bool:
    """Take one step with the kernel of this number in the mixture."""
    if which == 0:
        return first(target, state, rng)
    return others(which - 1, target, state, rng)


@kernel(inline=True)
def advance(
    mixture: FloatArray,
    target: Any,
    state: State,
    rng: Any,
    begin: int,
    draws: int,
    thin: int,
    orders: IntArray,
    values: FloatArray,
    moved: IntArray,
) -> None:
    """Take `thin` steps before each of the draws ``begin, begin + 1, ...``, and record them.

    mixture (kernels,) has the cumulative probabilities of the kernels; orders (draws, n), values
    (draws,); moved (kernels, 2) counts the steps and the moves of each kernel.
    """
    for d in range(draws):
        if (begin + d) % REFRESH == 0:
            restore(target, state)
        for _ in range(thin):
            which = 0
            if len(mixture) > 1:
                u = rng.random()
                while mixture[which] <= u:
                    which += 1
            moved[which, 0] += 1
            moved[which, 1] += others(which, target, state, rng)
        values[d] = state.value[0]
        for k in range(len(state.order)):
            orders[d, k] = state.order[k]


def advancer(target: Target, kernels: Sequence[Any]) -> Callable[..., None]:
    """Return `advance` for a target and the functions of the kernels of a mixture."""
    if not target.is_compiled:
        return plain_advancer(target, kernels)
    # A class of a script is another one in the next process: what is cached would not be found.
    lasting = type(target.constants).__module__ != "__main__"
    return _compiled(lasting, target.functions, tuple(kernels))


def plain_advancer(target: Target, kernels: Sequence[Any]) -> Callable[..., None]:
    """Return `advance` for a target, to be run by the interpreter."""
    return _build(plain_functions(target), kernels, lambda copy, _: copy)


def plain_functions(target: Target) -> Functions:
    """Return the functions of a target and of chance for the interpreter, and what they replace."""
    chance: tuple[Any, ...] = (pick, accept, weigh, divide, locate)
    own = [getattr(function, "py_func", function) for function in target.functions]
    found = {function: function.py_func for function in chance}
    return {**found, **dict(zip((peek, swap, restore), own, strict=True))}


@lru_cache(maxsize=64)
def _compiled(
    lasting: bool, functions: tuple[Any, Any, Any], kernels: tuple[Any, ...]
) -> Callable[..., None]:
    """Compile `advance` on its first call; cache it on disk if all its parts are cached."""
    parts = (*functions, *kernels)
    # Functions inherit from their callers that references are not counted: only if all can bear it.
    bare = all(part.targetoptions.get("_nrt") is False for part in parts)
    allowed = {} if bare else {"_nrt": True}
    cached = lasting and bare and None not in map(cache_stamp, parts)
    label = "_".join([functions[0].__module__ or "main", functions[0].__name__])
    label = re.sub(r"\W+", "_", "_".join([label, *(part.__name__ for part in kernels)]))

    def compile_copy(copy: Any, original: Any) -> Any:
        # Compiled code goes by its name, in the cache and among all that a process has loaded.
        copy.__name__ = copy.__qualname__ = f"{copy.__name__}_{label}"
        if original is advance and cached:
            return kernel(inline=True, depends=parts)(copy)
        return build(copy, original)

    def build(source: Any, original: Any) -> Any:
        # Only `advance` is cached: others would mix a user's types into what all users load.
        options = {**original.targetoptions, **allowed}
        return (numba.jit if original is advance else kernel_part)(source, **options)

    own = [build(function.py_func, function) for function in functions]
    replaced = dict(zip((peek, swap, restore), own, strict=True))
    return _build(replaced, kernels, compile_copy)


def _build(replaced: Functions, kernels: Sequence[Any], make: Make) -> Callable[..., None]:
    """Bind `advance` to the functions of a target and to a `step` that chooses among kernels."""
    chosen: Any = None
    for function in reversed(kernels):
        here = {first: bind(function, replaced, make), others: chosen}
        chosen = bind(only_step if chosen is None else step, here, make)
    return bind(advance, {**replaced, others: chosen}, make)


def bind(function: Any, replaced: Functions, make: Make) -> Any:
    """Build a function again with others in the places of some that it calls, at any depth.

    Parameters
    ----------
    function : callable
        Compiled or not.
    replaced : dict
        The functions to be replaced, and by what. What is built on the way is added.
    make : callable
        What to make of a copy in pure Python, given also the original.

    Returns
    -------
    callable
        The function itself, if it calls none of them.
    """
    if function in replaced:
        return replaced[function]
    source = function.py_func
    names, cells = source.__code__.co_names, source.__closure__ or ()
    scope = {name: source.__globals__[name] for name in names if name in source.__globals__}
    inner = [cell.cell_contents for cell in cells]
    bound = {name: _bound(value, replaced, make) for name, value in scope.items()}
    bound_inner = [_bound(value, replaced, make) for value in inner]
    same = all(bound[name] is scope[name] for name in scope)
    if same and all(a is b for a, b in zip(inner, bound_inner, strict=True)):
        replaced[function] = function
        return function
    copy = types.FunctionType(
        source.__code__,
        {**source.__globals__, **bound},
        source.__name__,
        source.__defaults__,
        tuple(map(types.CellType, bound_inner)),
    )
    replaced[function] = make(copy, function)
    return replaced[function]


def _bound(value: Any, replaced: Functions, make: Make) -> Any:
    """Bind what a function looks up by name, if it is a function that may call others."""
    is_function = hasattr(value, "py_func") or isinstance(value, types.FunctionType)
    if not is_function or (value not in replaced and not hasattr(value, "py_func")):
        return value
    return bind(value, replaced, make)
