"""What can be moved in the explorer: scores, labels, noise, the distribution and the measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from permdist._check import choice, count, finite, grades
from permdist.explorer.families import FAMILIES, MOST_ITEMS, Family
from permdist.measures import Measure, parse
from permdist.measures.judged import RunMeasure

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_MEASURES = 12
LONGEST_NAME = 80
LARGEST_SCORE = 1e6
LARGEST_LABEL = 30
LARGEST_TIES = 20.0
NOISE = (1e-3, 1e3)
MEASURES = ("ndcg", "ndcg@3", "ap", "rr", "auc")
DEFAULTS: dict[str, Any] = {
    "model": "plackett-luce",
    "noise": 1.0,
    "ties": -1.0,
    "measures": list(MEASURES),
    "seed": 0,
}
EXAMPLE: dict[str, Any] = {
    **DEFAULTS,
    "names": ["tea", "milk", "juice", "water", "cola"],
    "scores": [1.2, 0.4, 0.0, -0.3, -0.9],
    "labels": [2, 0, 1, 0, 0],
}


@dataclass(frozen=True, eq=False)
class Setting:
    """A checked setting.

    Attributes
    ----------
    family : Family
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
    names : tuple of str
    noise : float
    ties : float
        The logarithm of the prevalence of ties, for the distribution that has them.
    measures : tuple of Measure
    seed : int
    """

    family: Family
    scores: FloatArray
    labels: IntArray
    names: tuple[str, ...]
    noise: float
    ties: float
    measures: tuple[Measure, ...]
    seed: int


def read_setting(given: Any) -> Setting:
    """Check a setting as it comes from a page.

    Parameters
    ----------
    given : dict
        ``scores``, and any of ``model``, ``noise``, ``ties``, ``labels``, ``names``, ``measures``
        and ``seed``.

    Raises
    ------
    ValueError, TypeError
        Naming the entry, what was expected and what came.

    Examples
    --------
    >>> read_setting({"scores": [1.0, 0.0]}).names
    ('item 1', 'item 2')
    >>> read_setting({"scores": [1.0, float("nan")]})
    Traceback (most recent call last):
    ...
    ValueError: scores: expected finite numbers, got nan at index 1
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"setting: expected an object with scores, got {type(given).__name__}")
    known = {"scores", "labels", "names", *DEFAULTS}
    for key in given:
        choice("setting", key, sorted(known))
    values = {**DEFAULTS, **given}
    scores = _list("scores", values.get("scores"))
    n = len(scores)
    if not 2 <= n <= MOST_ITEMS:
        raise ValueError(f"scores: expected 2 to {MOST_ITEMS} items, got {n:,}")
    family = FAMILIES[choice("model", values["model"], FAMILIES)]
    if n > family.most:
        raise ValueError(
            f"scores: expected at most {family.most} items for {family.title}, which takes too "
            f"long for more, got {n}"
        )
    checked = finite("scores", scores, ndim=1)
    if abs(checked).max() > LARGEST_SCORE:
        raise ValueError(f"scores: expected numbers up to {LARGEST_SCORE:,.0f} in absolute value")
    labels = grades("labels", _list("labels", values.get("labels", [0] * n)))
    if labels.shape != (n,):
        raise ValueError(f"labels: expected {n} labels, one for each score, got {labels.size}")
    if labels.max() > LARGEST_LABEL:
        raise ValueError(f"labels: expected at most {LARGEST_LABEL}, got {labels.max()}")
    return Setting(
        family,
        checked,
        labels,
        _names(values.get("names"), n),
        _number("noise", values["noise"], *NOISE),
        _number("ties", values["ties"], -LARGEST_TIES, LARGEST_TIES),
        _measures(values["measures"]),
        min(count("seed", values["seed"], minimum=0), 2**32),
    )


def _list(name: str, value: Any) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: expected a list, got {type(value).__name__}")
    return list(value)


def _number(name: str, value: Any, least: float, largest: float) -> float:
    result = float(finite(name, value, ndim=0))
    if not least <= result <= largest:
        raise ValueError(f"{name}: expected a number from {least:g} to {largest:g}, got {result:g}")
    return result


def _names(value: Any, n: int) -> tuple[str, ...]:
    if value is None:
        return tuple(f"item {number + 1}" for number in range(n))
    names = _list("names", value)
    if len(names) != n:
        raise ValueError(f"names: expected {n} names, one for each score, got {len(names)}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"names: expected text, got {type(name).__name__}")
        if not name.strip() or len(name) > LONGEST_NAME:
            raise ValueError(f"names: expected 1 to {LONGEST_NAME} characters, got {name[:20]!r}")
        if names.count(name) > 1:
            raise ValueError(f"names: must be unique; {name!r} appears more than once")
    return tuple(names)


def _measures(value: Any) -> tuple[Measure, ...]:
    listed = _list("measures", value)
    if len(listed) > MOST_MEASURES:
        raise ValueError(f"measures: expected at most {MOST_MEASURES}, got {len(listed)}")
    found = {one.name: one for one in map(parse, listed)}
    for name, one in found.items():
        if isinstance(one, RunMeasure):
            raise ValueError(f"measures: {name!r} is for runs with judgements, not for rankings")
    return tuple(found.values())
