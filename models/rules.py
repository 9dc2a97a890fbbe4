"""What the parameters of learners may be; checked by `fit`, `save` and `load`."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from permdist._check import choice
from permdist.data.normalize import NORMALIZATIONS
from permdist.measures import parse

LARGEST_COUNT = 2**31 - 1
LARGEST, SMALLEST = 1e100, 1e-100  # beyond them squares and quotients overflow
MOST_THREADS = 1024
MOST_VIEWS = 64


def shown(value: Any) -> str:
    """Return the text of a value, shortened, for an error message."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python refuses to write out whole numbers of many thousand digits
        return f"a whole number of {int(value).bit_length()} bits"


def is_number(value: Any) -> bool:
    """Check whether a value is a real number; booleans are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


class Rule(ABC):
    """What a parameter may be."""

    @abstractmethod
    def check(self, name: str, value: Any) -> None:
        """Raise ValueError or TypeError, naming the parameter, for any other value."""


@dataclass(frozen=True)
class Number(Rule):
    """A real number in a range.

    Parameters
    ----------
    low, high : float
    infinite : bool
        Whether infinity is a value too.
    words : tuple of str
        Texts that are values too.
    optional : bool
        Whether None is a value.

    Examples
    --------
    >>> Number(0.0, 1.0).check("mix", -1)
    Traceback (most recent call last):
    ValueError: mix: expected a number from 0 to 1, got -1
    """

    low: float = -LARGEST
    high: float = LARGEST
    infinite: bool = False
    words: tuple[str, ...] = ()
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError for anything else."""
        if (self.optional and value is None) or (isinstance(value, str) and value in self.words):
            return
        if is_number(value):
            try:
                number = float(value)
            except OverflowError:
                number = math.nan
            if self.low <= number <= self.high or (self.infinite and number == math.inf):
                return
        raise ValueError(f"{name}: expected {self.expected}, got {shown(value)}")

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        sign = "positive number" if self.low > 0.0 else "number"
        text = f"a {sign} from {self.low:g} to {self.high:g}"
        also = [*(repr(word) for word in self.words), *(["infinity"] if self.infinite else [])]
        return " or ".join([text, *also, *(["None"] if self.optional else [])])


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number in a range.

    Parameters
    ----------
    low, high : int
    also : tuple of int
        Other values.
    optional : bool
        Whether None is a value.
    """

    low: int = 1
    high: int = LARGEST_COUNT
    also: tuple[int, ...] = ()
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise TypeError for what is no whole number, ValueError outside the range."""
        if self.optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            text = " or None" if self.optional else ""
            raise TypeError(f"{name}: expected a whole number{text}, got {shown(value)}")
        if value in self.also:
            return
        if value < self.low:
            text = "".join(f" or {one}" for one in self.also)
            raise ValueError(f"{name}: expected at least {self.low}{text}, got {shown(value)}")
        if value > self.high:
            raise ValueError(f"{name}: expected at most {self.high:,}, got {shown(value)}")


@dataclass(frozen=True)
class Flag(Rule):
    """True or False, and nothing that merely counts as one of them."""

    def check(self, name: str, value: Any) -> None:
        """Raise TypeError for anything else."""
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}: expected True or False, got {shown(value)}")


@dataclass(frozen=True)
class OneOf(Rule):
    """One of a few words."""

    words: tuple[str, ...]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError for anything else."""
        if isinstance(value, str) and len(value) <= 100:
            choice(name, value, self.words)
        elif not (self.optional and value is None):
            known = ", ".join(self.words)
            raise ValueError(f"{name}: expected one of {known}, got {shown(value)}")


class Seed(Rule):
    """The seed of whatever is drawn: a whole number of at least 0, a generator, or None."""

    def check(self, name: str, value: Any) -> None:
        """Raise TypeError or ValueError for anything else."""
        if value is None or isinstance(value, np.random.Generator):
            return
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(
                f"{name}: expected a whole number, a numpy.random.Generator or None, got "
                f"{shown(value)}"
            )
        if value < 0:
            raise ValueError(f"{name}: expected at least 0, got {shown(value)}")


class MeasureName(Rule):
    """A measure, or its text name."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError or TypeError for what is no measure."""
        if isinstance(value, str) and len(value) > 1000:
            raise ValueError(f"{name}: expected the name of a measure, got {shown(value)}")
        parse(value)


class Views(Rule):
    """How features are scaled within queries: True, False, None, or names of methods."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError or TypeError for anything else."""
        self.read(name, value)

    def read(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the names of the methods."""
        if value is None or isinstance(value, bool | np.bool_):
            return ("minmax",) if value else ("raw",)
        if not isinstance(value, str | list | tuple):
            raise TypeError(f"{name}: expected True, False or names of methods, got {shown(value)}")
        views = (value,) if isinstance(value, str) else tuple(value)
        if not views:
            raise ValueError(f"{name}: expected at least one method")
        if len(views) > MOST_VIEWS:
            raise ValueError(f"{name}: expected at most {MOST_VIEWS} methods, got {len(views):,}")
        return tuple(choice(name, view, NORMALIZATIONS) for view in views)


POSITIVE = Number(SMALLEST)
