"""What the fitted attributes of learners may be: declared once, checked by `fit` and by `load`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.models.rules import LARGEST_COUNT, Whole, is_number, shown

if TYPE_CHECKING:
    from permdist._typing import FloatArray

LARGEST_WIDTH = 10_000_000
LARGEST_WEIGHT = 1e8  # of what is added up; learners themselves come to 15 or so


class Attribute(ABC):
    """What a fitted attribute may be, given the number of columns that the learner works on.

    Attributes
    ----------
    optional : bool
        Whether it may be None.
    """

    optional: ClassVar[bool] = False

    @abstractmethod
    def read(self, name: str, value: Any, width: int) -> Any:
        """Return the value as the learner keeps it, or raise ValueError naming the attribute."""


@dataclass(frozen=True)
class Numbers(Attribute):
    """Finite numbers.

    Parameters
    ----------
    shape : tuple of int, str or None
        ``"width"`` is the number of columns, None any number of at least one; ``()`` is a number.
    low : float
    above : bool
        Whether all must be larger than `low`.
    listed : bool
        Whether the learner keeps a list of floats; it may be empty.
    largest : float
        The largest absolute value.
    """

    shape: tuple[int | str | None, ...]
    low: float = -math.inf
    above: bool = False
    listed: bool = False
    largest: float = math.inf

    def read(self, name: str, value: Any, width: int) -> Any:
        """Return an array of float64, a list of floats or a float."""
        wanted = tuple(width if size == "width" else size for size in self.shape)
        array = numbers(name, value, len(wanted))
        for size, got in zip(wanted, array.shape, strict=True):
            short = size is None and got == 0 and not self.listed
            if short or (size is not None and got != size):
                text = " x ".join("any" if one is None else f"{one:,}" for one in wanted)
                raise ValueError(f"{name}: expected shape {text}, got {array.shape}")
        wrong = array <= self.low if self.above else array < self.low
        if wrong.any():
            bound = "above" if self.above else "of at least"
            found = float(array[wrong].flat[0])
            raise ValueError(f"{name}: expected numbers {bound} {self.low:g}, got {found!r}")
        if (np.abs(array) > self.largest).any():
            most, found = self.largest, float(array.flat[np.abs(array).argmax()])
            raise ValueError(f"{name}: expected numbers from {-most:g} to {most:g}, got {found!r}")
        if not wanted:
            return float(array)
        return array.tolist() if self.listed else array


@dataclass(frozen=True)
class Columns(Attribute):
    """Numbers of columns, from 0; with `signed`, ``-1 - k`` is column k downwards."""

    signed: bool = False

    def read(self, name: str, value: Any, width: int) -> list[int]:
        """Return a list of ints."""
        if not isinstance(value, list | tuple | np.ndarray):
            raise ValueError(f"{name}: expected a list of column numbers, got {shown(value)}")
        entries = value.tolist() if isinstance(value, np.ndarray) else list(value)
        low = -width if self.signed else 0
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int | np.integer):
                raise ValueError(f"{name}: expected column numbers, got {shown(entry)}")
            if not low <= entry < width:
                raise ValueError(
                    f"{name}: expected column numbers from {low} to {width - 1}, got {shown(entry)}"
                )
        return [int(entry) for entry in entries]


class Table(Attribute):
    """A dict of named columns, all of the same length."""

    def __init__(self, **columns: Attribute) -> None:
        self.columns = columns

    def read(self, name: str, value: Any, width: int) -> dict[str, Any]:
        """Return a dict of lists."""
        if not isinstance(value, dict) or set(value) != set(self.columns):
            text = ", ".join(self.columns)
            raise ValueError(f"{name}: expected a dict of {text}, got {shown(value)}")
        found = {
            key: rule.read(f"{name}[{key!r}]", value[key], width)
            for key, rule in self.columns.items()
        }
        lengths = {key: len(entries) for key, entries in found.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{name}: expected lists of the same length, got {lengths}")
        return found


class Truth(Attribute):
    """True or False."""

    def read(self, name: str, value: Any, width: int) -> bool:  # noqa: ARG002
        """Return a bool."""
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}: expected True or False, got {shown(value)}")
        return bool(value)


@dataclass(frozen=True)
class Count(Attribute):
    """A whole number."""

    low: int = 0
    high: int = LARGEST_COUNT

    def read(self, name: str, value: Any, width: int) -> int:  # noqa: ARG002
        """Return an int."""
        try:
            Whole(self.low, self.high).check(name, value)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return int(value)


class History(Attribute):
    """A dict of lists of numbers, one for each iteration; a measure may be undefined, NaN."""

    def read(self, name: str, value: Any, width: int) -> dict[str, list[float]]:  # noqa: ARG002
        """Return a dict of lists of floats."""
        if not isinstance(value, dict) or "objective" not in value:
            raise ValueError(f"{name}: expected a dict with 'objective', got {shown(value)}")
        found: dict[str, list[float]] = {}
        for key, entries in value.items():
            if not isinstance(entries, list):
                raise ValueError(f"{name}[{key!r}]: expected a list, got {shown(entries)}")
            found[key] = [_entry(f"{name}[{key!r}]", one) for one in entries]
        return found


def numbers(name: str, value: Any, ndim: int) -> FloatArray:
    """Return nested lists, or an array, of finite numbers as float64."""
    if isinstance(value, np.ndarray):
        array = value
    else:
        _need_numbers(name, value, ndim)
        try:
            array = np.array(value)
        except ValueError:
            raise ValueError(f"{name}: expected an array, got rows of unequal length") from None
    if array.ndim != ndim and not (array.size == 0 and ndim == 1):
        raise ValueError(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected finite numbers, got dtype {array.dtype}")
    result = np.array(array, dtype=np.float64)
    bad = ~np.isfinite(result)
    if bad.any():
        raise ValueError(f"{name}: expected finite numbers, got {float(result[bad].flat[0])}")
    return result


def need_finite(name: str, value: Any) -> None:
    """Refuse NaN and infinities anywhere in plain values or arrays."""
    if isinstance(value, dict):
        for key, entry in value.items():
            need_finite(f"{name}[{key!r}]", entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            need_finite(name, entry)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
    elif isinstance(value, float | np.floating) and not np.isfinite(value):
        raise ValueError(f"{name}: expected finite numbers, got {value}")


def _need_numbers(name: str, value: Any, depth: int) -> None:
    """Refuse what numpy would turn into numbers: booleans, texts, whole numbers beyond doubles."""
    if depth == 0 or not isinstance(value, list | tuple):
        if not is_number(value):
            text = "numbers" if depth == 0 else "a list of numbers"
            raise ValueError(f"{name}: expected {text}, got {shown(value)}")
        if isinstance(value, int) and abs(value) > 2**53:
            raise ValueError(f"{name}: expected numbers up to 2^53, got {shown(value)}")
        return
    for entry in value:
        _need_numbers(name, entry, depth - 1)


def _entry(name: str, value: Any) -> float:
    """Read a number of a history, where NaN and infinities are written as words."""
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if is_number(value):
        try:
            return float(value)
        except OverflowError:
            pass
    raise ValueError(f"{name}: expected numbers, got {shown(value)}")
