"""Weighted sums of measures, and their text form: ``"0.5 * ap + 0.5 * ndcg@10"``."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.measures.base import Measure, Positional
from permdist.measures.judged import RunMeasure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.judged import JudgedQueries
    from permdist.measures.placements import Placements
    from permdist.measures.registry import Preset

SAME = 1e-12  # gains whose ratios differ by less are multiples of each other
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_TERM = re.compile(
    rf"(?:(?P<before>{_NUMBER})\s*\*\s*)?(?P<name>[^*/]+?)\s*(?:(?P<sign>[*/])\s*(?P<after>{_NUMBER}))?",
    re.IGNORECASE | re.DOTALL,
)
# Brackets and quotes, then the exponent of a number: plus signs inside them add nothing up.
_PLUS = re.compile(rf'(\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]|\b{_NUMBER})|([+*/()])', re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Composite(Measure):
    """A weighted sum of measures.

    Measures add up and take factors: ``0.5 * AP() + 0.5 * NDCG(10)`` is one, and so is
    ``parse("0.5 * ap + 0.5 * ndcg@10")``. A query on which one of the parts is undefined has that
    part's value for it in the sum.

    It is a sum along the ranking if all parts are, so that lattices, structured hinges and, of
    labels that all parts see as two classes, sums over rows are as exact as for its parts.

    Parameters
    ----------
    parts : tuple of Measure
    weights : tuple of float
        Positive: higher is better.
    empty : {"zero", "one", "skip"}
        The value of queries on which a part is undefined, for all parts.
    ties : {"index", "average"}
        The rule for equal scores, for all parts.

    Examples
    --------
    >>> from permdist.measures import AP, NDCG, parse
    >>> both = (AP() + NDCG(10)) / 2
    >>> both.name, both.range
    ('0.5 * ap + 0.5 * ndcg@10', (0.0, 1.0))
    >>> both == parse("0.5 * ap + 0.5 * ndcg@10")
    True
    >>> round(float(both([1, 0, 2], labels=[1, 0, 1])), 4)
    0.6384
    """

    parts: tuple[Measure, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.parts or len(self.parts) != len(self.weights):
            raise ValueError(
                f"weights: expected as many as parts, got {len(self.weights)} for "
                f"{len(self.parts)} part(s)"
            )
        for part in self.parts:
            _need_plain(part)
        weights = tuple(_weight(weight) for weight in self.weights)
        parts = tuple(
            dataclasses.replace(part, empty=self.empty, ties=self.ties) for part in self.parts
        )
        ends = np.array([part.range for part in parts]).T @ np.array(weights)
        # Frozen: this is the one moment at which fields may be set.
        for name, value in {
            "parts": parts,
            "weights": weights,
            "range": (float(ends[0]), float(ends[1])),
            "binary": all(part.binary for part in parts),
            "additive": all(part.additive for part in parts),
            "partial": all(part.partial for part in parts),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def cut_off(self) -> int:
        """The number of positions that count in any part."""
        return max(part.cut_off for part in self.parts)

    def name_under(self, preset: Preset | None) -> str:
        """Return the text name that means this measure with a preset before it, too.

        Parameters
        ----------
        preset : Preset or None
        """
        names = [part.name_under(preset) for part in self.parts]
        return " + ".join(
            name if weight == 1.0 else f"{_shown(weight)} * {name}"
            for weight, name in zip(self.weights, names, strict=True)
        )

    def values(self, placed: Placements) -> FloatArray:
        """Evaluate every query of a batch whose relevant items are placed."""
        return self._total(part.values(placed) for part in self.parts)

    def _values(self, placed: Placements) -> FloatArray:
        return self.values(placed)

    def on_run(self, judged: JudgedQueries) -> FloatArray:
        """Evaluate every query of a run with judgements."""
        return self._total(part.on_run(judged) for part in self.parts)

    def _undefined(self, placed: Placements) -> Any:
        return np.any([part._undefined(placed) for part in self.parts], axis=0)  # noqa: SLF001

    def check_grades(self, labels: IntArray) -> None:
        """Refuse labels that one of the parts cannot take."""
        for part in self.parts:
            part.check_grades(labels)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the amount that the next item adds to all parts; see `Measure.step`."""
        return self._total(part.step(labels, totals, level, above) for part in self.parts)

    def offset(self, labels: IntArray, totals: IntArray) -> float:
        """Return the constant to which the steps add; see `Measure.offset`."""
        return float(self._total(part.offset(labels, totals) for part in self.parts))

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Return the sum over positions if the gains of all parts are multiples of one another."""
        forms = [part.positional(labels) for part in self.parts]
        if any(form is None for form in forms):
            return None
        gains = forms[0].gains  # type: ignore[union-attr]
        size = float(gains @ gains)
        weights, offset = np.zeros(len(gains)), 0.0
        for factor, form in zip(self.weights, forms, strict=True):
            if form is None or size == 0.0:
                return None
            ratio = float(form.gains @ gains) / size
            if not np.allclose(form.gains, ratio * gains, rtol=SAME, atol=SAME * abs(ratio)):
                return None
            weights += factor * ratio * form.weights
            offset += factor * form.offset
        return Positional(gains, weights, offset)

    def _total(self, values: Iterable[Any]) -> Any:
        return sum(weight * value for weight, value in zip(self.weights, values, strict=True))


def combine(terms: Iterable[tuple[float, Measure]]) -> Measure:
    """Return the weighted sum of measures; sums among them are taken apart, equal ones joined."""
    found: dict[Measure, float] = {}
    for factor, measure in terms:
        weight = _weight(factor)
        inner = measure if isinstance(measure, Composite) else None
        parts = inner.parts if inner else (measure,)
        for one, part in zip(inner.weights if inner else (1.0,), parts, strict=True):
            found[part] = found.get(part, 0.0) + weight * one
    parts = tuple(found)
    for option in ("ties", "empty"):
        used = list(dict.fromkeys(getattr(part, option) for part in parts))
        if len(used) > 1:
            raise ValueError(
                f"{option}: expected the same in all measures of a sum, got "
                f"{' and '.join(map(repr, used))}"
            )
    if len(parts) == 1 and found[parts[0]] == 1.0:
        return parts[0]
    return Composite(parts, tuple(found.values()), empty=parts[0].empty, ties=parts[0].ties)


def split_terms(text: str) -> list[tuple[float, str]] | None:
    """Split the text of a sum into weights and names; None for the name of a single measure.

    Examples
    --------
    >>> split_terms("0.5 * ap + ndcg@10 / 2")
    [(0.5, 'ap'), (0.5, 'ndcg@10')]
    >>> split_terms("ndcg@10[gain=linear]") is None
    True
    """
    signs = [match.start() for match in _PLUS.finditer(text) if match[2]]
    if not signs:
        return None
    cuts = [-1, *(place for place in signs if text[place] == "+"), len(text)]
    return [_read_term(text[a + 1 : b].strip(), text) for a, b in pairwise(cuts)]


def _read_term(term: str, text: str) -> tuple[float, str]:
    match = None if set("()") & set(term.partition("[")[0]) else _TERM.fullmatch(term)
    if match is None or (match["before"] and match["after"]) or _is_number(match["name"]):
        raise ValueError(
            f"measure: cannot read {term!r} of {text!r}; expected a sum such as "
            "'0.5 * ap + 0.5 * ndcg@10'"
        )
    weight = float(match["before"] or match["after"] or 1.0)
    if match["sign"] == "/":
        weight = 1.0 / weight if weight else math.inf
    try:
        return _weight(weight), match["name"]
    except ValueError as error:
        raise ValueError(f"measure: {error} in {text!r}") from None


def _is_number(text: str) -> bool:
    return re.fullmatch(_NUMBER, text, re.IGNORECASE) is not None


def _weight(value: Any) -> float:
    """Check the weight of a measure."""
    weight = float(value)
    if not 0.0 < weight < math.inf:
        raise ValueError(f"weight: expected a positive finite number, got {value}")
    return weight


def _shown(weight: float) -> str:
    short = f"{weight:g}"
    return short if float(short) == weight else repr(weight)


def _need_plain(part: Any) -> None:
    """Refuse what cannot be added up query by query."""
    if not isinstance(part, Measure):
        raise TypeError(f"parts: expected measures, got {type(part).__name__}")
    if isinstance(part, RunMeasure | Composite):
        raise ValueError(f"parts: expected measures of labelled rankings, got {part.name!r}")
    if type(part).average is not Measure.average:
        raise ValueError(f"parts: {part.name!r} has no mean over queries that adds up")
