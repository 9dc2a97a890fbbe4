"""`Measure`: the base class of ranking measures."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from permdist._check import choice, count, finite, grades
from permdist._registry import Registry
from permdist.measures.options import default_of, with_parameters, write_option
from permdist.measures.placements import Placements, place_by_orders, place_by_scores
from permdist.rankings import check_orders

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.judged import JudgedQueries
    from permdist.measures.registry import Preset

LARGEST_CUT = 10**12
FILLS = {"zero": 0.0, "one": 1.0, "skip": np.nan}  # by `Measure.empty`
MEASURES: Registry[type[Measure]] = Registry("measure")  # by each of their aliases


EMPTY = """\
empty : {"zero", "one", "skip"}
    The value of a query on which the measure is undefined: 0, 1, or NaN and left out of means."""
TIES = """\
ties : {"index", "average"}
    Equal scores: the item with the lower number first, or the mean over all ways to break ties."""
AT_K = """\
k : int
    The number of positions looked at."""


class Positional(NamedTuple):
    """A measure written as ``offset + sum_i gains[i] * weights[rank of i]``.

    Its expectation under any distribution follows from rank marginals alone.
    """

    gains: FloatArray
    weights: FloatArray
    offset: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Measure(ABC):
    """A ranking measure: higher is better.

    A measure is an immutable value, and a weighted sum of measures is one, too: see `Composite`. It
    is called with orders and labels, or computed from scores
    with `from_scores`; `permdist.measures.evaluate` runs many measures over many queries.

    Parameters
    ----------
    empty : {"zero", "one", "skip"}
        The value of a query on which the measure is undefined (no relevant item; for `AUC` and
        `KendallTau`: no two items with different labels). With ``"skip"`` the value is NaN and
        is left out of means.
    ties : {"index", "average"}
        Equal scores: the item with the lower number first, or the mean over all ways to break
        the ties, computed exactly.
    """

    empty: str = "zero"
    ties: str = "index"

    aliases: ClassVar[tuple[str, ...]] = ()
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    binary: ClassVar[bool] = False  # whether labels matter only as good or bad
    additive: ClassVar[bool] = True  # whether the value is a sum of steps along the ranking
    partial: ClassVar[bool] = False  # whether relevant items may be missing from the ranking
    inherited_parameters: ClassVar[tuple[str, ...]] = (EMPTY, TIES)  # for docstrings

    def __init_subclass__(cls, **options: Any) -> None:
        """Register a measure under its aliases, if it has some of its own."""
        super().__init_subclass__(**options)
        aliases = cls.__dict__.get("aliases", ())
        if isinstance(aliases, str):
            raise TypeError(f"aliases: expected a tuple of names, got the text {aliases!r}")
        for alias in aliases:
            MEASURES.add(alias.lower(), cls)
        if cls.__doc__:
            cls.__doc__ = with_parameters(cls.__doc__, cls.inherited_parameters)

    def __post_init__(self) -> None:
        choice("empty", self.empty, ("zero", "one", "skip"))
        choice("ties", self.ties, ("index", "average"))
        cut = getattr(self, "k", None)
        if cut is not None:
            if count("k", cut) > LARGEST_CUT:
                raise ValueError(f"k: expected at most {LARGEST_CUT:,}, got {cut}")
            # Frozen: this is the one moment at which a field may be set.
            object.__setattr__(self, "k", int(cut))

    @property
    def cut_off(self) -> int:
        """The number of positions that count; beyond all lengths where there is no cut-off."""
        cut: int | None = getattr(self, "k", None)
        return LARGEST_CUT if cut is None else cut

    def __call__(self, orders: ArrayLike, labels: ArrayLike) -> Any:
        """Evaluate orders.

        Parameters
        ----------
        orders : array of int, shape (..., n)
        labels : array of int, shape (n,) or (..., n)
            Grades; 0 is bad, anything above is relevant.

        Returns
        -------
        float or array of float, shape (...)
        """
        order = check_orders(orders)
        label = self._labels(labels, order.shape)
        ptr = _equal_queries(order.shape)
        placed = place_by_orders(order.ravel(), label.ravel(), ptr)
        return self.values(placed).reshape(order.shape[:-1])[()]

    def from_scores(self, scores: ArrayLike, labels: ArrayLike) -> Any:
        """Evaluate the rankings by score, ties by the measure's own rule; shapes as in a call.

        Examples
        --------
        >>> from permdist.measures import AP
        >>> float(AP().from_scores([0.1, 0.7, 0.4], [1, 0, 1]))
        0.5833333333333333
        """
        score = finite("scores", scores)
        if score.ndim == 0 or score.shape[-1] == 0:
            raise ValueError(f"scores: expected at least one item, got shape {score.shape}")
        label = self._labels(labels, score.shape)
        ptr = _equal_queries(score.shape)
        placed = place_by_scores(score.ravel(), label.ravel(), ptr, self.ties)
        return self.values(placed).reshape(score.shape[:-1])[()]

    def values(self, placed: Placements) -> FloatArray:
        """Evaluate every query of a batch whose relevant items are placed."""
        self.check_grades(placed.grade)
        result = self._values(placed)
        result[self._undefined(placed)] = FILLS[self.empty]
        return result

    def on_run(self, judged: JudgedQueries) -> FloatArray:
        """Evaluate every query of a run with judgements; see `permdist.measures.evaluate_run`.

        A measure whose `partial` is true must accept relevant items that were not retrieved: their
        `Placements.start` is `NEVER`, beyond all positions, and they are tied with nothing.
        """
        if not (self.partial or judged.run.is_complete):
            raise ValueError(
                f"{self.name}: compares complete rankings only; this run leaves out judged "
                "documents or retrieves unjudged ones"
            )
        return self.values(judged.placements(judged.level if self.binary else 1, self.ties))

    def average(self, values: FloatArray) -> float:
        """Return the mean over queries, or what the measure has in its place."""
        return float(values.mean())

    def average_error(self, values: FloatArray) -> float:
        """Return the standard error of `average` over at least two queries."""
        return float(values.std(ddof=1) / np.sqrt(values.size))

    @abstractmethod
    def _values(self, placed: Placements) -> FloatArray:
        """Evaluate every query; the values of undefined ones are overwritten."""

    def _undefined(self, placed: Placements) -> Any:
        """Mask the queries on which the measure is undefined."""
        return np.diff(placed.ptr) == 0

    def check_grades(self, _labels: IntArray, /) -> None:
        """Refuse labels that the measure's conventions cannot take; by default none."""
        return

    def ideal(self, labels: ArrayLike) -> float:
        """Return the best value that any order of these items can have.

        Examples
        --------
        >>> from permdist.measures import Precision
        >>> Precision(10).ideal([1, 0, 1, 0])
        0.2
        """
        label = grades("labels", labels)
        if label.ndim != 1:
            raise ValueError(f"labels: expected 1 dimension(s), got shape {label.shape}")
        return float(self(np.argsort(-label, kind="stable"), label))

    @abstractmethod
    def step(
        self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike, /
    ) -> FloatArray:
        """Return the amount that the next item adds to the value.

        The value of an order of a defined query is `offset` plus the steps of its items from the
        top down. It depends on the items above only through how many there are of each grade.

        Parameters
        ----------
        labels : array of int, shape (levels,)
            The different labels, ascending; ``[0, 1]`` is bad and good.
        totals : array of int, shape (levels,)
            The number of items of each grade.
        level : int
            The item that comes next has ``labels[level]``.
        above : array of int, shape (..., levels)
            How many items of each grade stand above it.

        Returns
        -------
        array of float, shape (...)
        """

    def offset(self, _labels: IntArray, _totals: IntArray, /) -> float:
        """Return the constant to which the steps add, for labels and totals as in `step`."""
        return 0.0

    def step_table(self, p: int, m: int) -> FloatArray:
        """Tabulate the steps for ``p`` good and ``m`` bad items.

        Returns
        -------
        array of float, shape (p, m + 1)
            Entry ``[j - 1, i]`` is the amount added by the j-th good item with i bad ones above it.

        Examples
        --------
        >>> from permdist.measures import AP
        >>> AP().step_table(2, 1)
        array([[0.5       , 0.25      ],
               [0.5       , 0.33333333]])
        """
        goods, bads = np.mgrid[0 : count("p", p), 0 : count("m", m, minimum=0) + 1]
        above = np.stack([bads, goods], axis=-1)
        return self.step(np.array([0, 1]), np.array([m, p]), 1, above)

    def positional(self, _labels: ArrayLike, /) -> Positional | None:
        """Return the measure as a sum over positions for these labels.

        Returns
        -------
        Positional or None
            None where it is no such sum, or is undefined for these labels.

        Examples
        --------
        >>> from permdist.measures import Precision
        >>> Precision(2).positional([1, 0, 1])
        Positional(gains=array([1., 0., 1.]), weights=array([0.5, 0.5, 0. ]), offset=0.0)
        """
        return None

    def defined(self, labels: ArrayLike) -> bool:
        """Return whether the measure is defined for a query with these labels."""
        label = np.atleast_1d(grades("labels", labels))
        ptr = np.array([0, len(label)])
        return not self._undefined(place_by_orders(np.arange(len(label)), label, ptr))[0]

    @property
    def name(self) -> str:
        """The text name, with every convention that is not the default; `parse` reads it back.

        Examples
        --------
        >>> from permdist.measures import NDCG
        >>> NDCG(10, gain="linear").name
        'ndcg@10[gain=linear]'
        """
        return self.name_under(None)

    def name_under(self, preset: Preset | None) -> str:
        """Return the text name that means this measure with a preset before it, too.

        Parameters
        ----------
        preset : Preset or None
            Its conventions are spelled out even where the measure has the default.

        Examples
        --------
        >>> from permdist.measures import NDCG, trec
        >>> NDCG(10).name_under(trec)
        'ndcg@10[gain=exp2]'
        """
        conventions = {} if preset is None else preset.options(type(self))
        cut, options = "", []
        for field in dataclasses.fields(self):
            value, default = getattr(self, field.name), default_of(field)
            if field.name == "k":
                cut = "" if value is None and default is None else f"@{write_option(value)}"
            elif field.init and (value != default or field.name in conventions):
                options.append(f"{field.name}={write_option(value)}")
        return self.aliases[0] + cut + (f"[{','.join(options)}]" if options else "")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        fields = sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only))
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __add__(self, other: Any) -> Measure:
        from permdist.measures.composite import combine

        if isinstance(other, Measure):
            return combine([(1.0, self), (1.0, other)])
        return self if isinstance(other, int | float) and other == 0 else NotImplemented

    __radd__ = __add__  # of 0, with which `sum` starts

    def __mul__(self, factor: Any) -> Measure:
        from permdist.measures.composite import combine

        if isinstance(factor, bool) or not isinstance(factor, Real):
            return NotImplemented
        return combine([(float(factor), self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Measure:
        if isinstance(divisor, bool) or not isinstance(divisor, Real) or divisor == 0:
            return NotImplemented
        return self * (1.0 / float(divisor))

    def _labels(self, labels: ArrayLike, shape: tuple[int, ...]) -> IntArray:
        label = grades("labels", labels)
        try:
            return np.broadcast_to(label, shape)
        except ValueError as error:
            raise ValueError(
                f"labels: expected a shape that broadcasts to {shape}, got {label.shape}"
            ) from error


@dataclass(frozen=True, kw_only=True, repr=False)
class BinaryMeasure(Measure):
    """A measure of binary relevance, labels above 0, that relevant items may be missing from."""

    binary = True
    partial = True


@dataclass(frozen=True, repr=False)
class MeasureAtK(BinaryMeasure):
    """A measure of binary relevance among the first k."""

    k: int

    inherited_parameters = (AT_K, EMPTY, TIES)


def _equal_queries(shape: tuple[int, ...]) -> IntArray:
    """Cut a flat batch of equally long rankings into queries."""
    return np.arange(int(np.prod(shape[:-1])) + 1, dtype=np.int64) * shape[-1]


def count_above(above: ArrayLike, labels: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Split the counts above into relevant items, bad items and the position, 0-based."""
    counts = np.asarray(above, dtype=np.int64)
    position = counts @ np.ones(len(labels), dtype=np.int64)
    goods = counts @ (np.asarray(labels) > 0).astype(np.int64)
    return goods, position - goods, position
