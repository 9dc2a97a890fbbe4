"""Old names that still work for one release, with a warning that names the new one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def warn_renamed(what: str, old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that `old` is now called `new`.

    Parameters
    ----------
    what : str
        What has the name, as it starts the message: ``"permdist.models.MLE"``, say.
    old, new : str
    stacklevel : int
        As for `warnings.warn`; the default blames the caller of the function that calls this one.
    """
    warnings.warn(
        f"{what}: {old} is deprecated and will be removed in the next release; use {new}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """Let a function accept old names of keyword arguments: ``@renamed_arguments(seed="rng")``.

    Examples
    --------
    >>> @renamed_arguments(seed="rng")
    ... def draw(rng=None):
    ...     return rng
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     draw(seed=3)
    3
    >>> print(caught[0].message)
    draw: seed is deprecated and will be removed in the next release; use rng
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not names.keys().isdisjoint(kwargs):
                kwargs = current_names(function.__qualname__, kwargs, names, stacklevel=4)
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def current_names(
    what: str, values: Mapping[str, Any], names: Mapping[str, str], *, stacklevel: int = 3
) -> dict[str, Any]:
    """Return the values with old names replaced; a value under both names is refused."""
    found = dict(values)
    for old in names.keys() & found.keys():
        if names[old] in found:
            raise TypeError(f"{what}: pass {names[old]} only; {old} is its old name")
        warn_renamed(what, old, names[old], stacklevel=stacklevel)
        found[names[old]] = found.pop(old)
    return found


def renamed_attributes(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that serves old names of its public objects.

    ``__getattr__ = renamed_attributes(__name__, {"old_name": "new_name"})``
    """
    import importlib

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(module, name, names[name])
        return getattr(importlib.import_module(module), names[name])

    return get
