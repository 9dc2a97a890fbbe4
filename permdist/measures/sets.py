"""What a run retrieved as a set: set measures, counts, and how much of it is judged."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from permdist._check import finite
from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.measures.judged import JudgedQueries, RunMeasure
from permdist.measures.rbp import persistence


def _ratio(above: Any, below: Any) -> FloatArray:
    """Divide, 0 where there is nothing to divide by."""
    return above / np.where(np.asarray(below) == 0, np.inf, below)


@dataclass(frozen=True, kw_only=True, repr=False)
class SetPrecision(RunMeasure):
    """The share of relevant documents among all that were retrieved: ``set_P``.

    Parameters
    ----------
    empty, ties
        See `RunMeasure`.
    """

    aliases: ClassVar[tuple[str, ...]] = ("set_p",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _ratio(judged.relevant_retrieved, judged.retrieved)


@dataclass(frozen=True, kw_only=True, repr=False)
class SetRecall(RunMeasure):
    """The share of the relevant documents that were retrieved: ``set_recall``.

    Parameters
    ----------
    empty, ties
        See `RunMeasure`.
    """

    aliases: ClassVar[tuple[str, ...]] = ("set_recall",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _ratio(judged.relevant_retrieved, judged.relevant)


@dataclass(frozen=True, kw_only=True, repr=False)
class SetF(RunMeasure):
    """The weighted harmonic mean of set precision P and set recall R: ``set_F``.

    ``(1 + x) P R / (R + x P)``, 0 where nothing relevant was retrieved.

    Parameters
    ----------
    x : float
        The relative importance of recall, at least 0, as in trec_eval.
    empty, ties
        See `RunMeasure`.
    """

    x: float = 1.0

    aliases: ClassVar[tuple[str, ...]] = ("set_f",)

    def __post_init__(self) -> None:
        super().__post_init__()
        x = float(finite("x", self.x, ndim=0))
        if x < 0.0:
            raise ValueError(f"x: expected a number of at least 0, got {x}")
        object.__setattr__(self, "x", x)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        precision = _ratio(judged.relevant_retrieved, judged.retrieved)
        recall = _ratio(judged.relevant_retrieved, judged.relevant)
        return _ratio((self.x + 1.0) * precision * recall, self.x * precision + recall)


@dataclass(frozen=True, kw_only=True, repr=False)
class SetAP(RunMeasure):
    """Set precision times set recall: ``set_map``.

    Parameters
    ----------
    empty, ties
        See `RunMeasure`.
    """

    aliases: ClassVar[tuple[str, ...]] = ("set_ap", "set_map")

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        squared = judged.relevant_retrieved.astype(np.float64) ** 2
        return _ratio(squared, judged.retrieved * judged.relevant)


@dataclass(frozen=True, kw_only=True, repr=False)
class SetRelativePrecision(RunMeasure):
    """Set precision over the best possible for so many documents: ``set_relative_P``.

    Parameters
    ----------
    empty, ties
        See `RunMeasure`.
    """

    aliases: ClassVar[tuple[str, ...]] = ("set_relative_p",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _ratio(judged.relevant_retrieved, np.minimum(judged.retrieved, judged.relevant))


@dataclass(frozen=True, kw_only=True, repr=False)
class Utility(RunMeasure):
    """A weighted sum of what was retrieved and what was not: ``utility``.

    Parameters
    ----------
    hit, noise, miss : float
        What a relevant document retrieved, another one retrieved, and a relevant one not
        retrieved are worth. trec_eval's fourth weight needs the size of the collection.
    empty, ties
        See `RunMeasure`; no query is empty.
    """

    hit: float = 1.0
    noise: float = -1.0
    miss: float = 0.0

    aliases: ClassVar[tuple[str, ...]] = ("utility",)
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hit", "noise", "miss"):
            object.__setattr__(self, name, float(finite(name, getattr(self, name), ndim=0)))

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        found = judged.relevant_retrieved
        others, left = judged.retrieved - found, judged.relevant - found
        return self.hit * found + self.noise * others + self.miss * left

    def _empty(self, judged: JudgedQueries) -> Any:
        return np.zeros(len(judged.retrieved), bool)


@dataclass(frozen=True, kw_only=True, repr=False)
class Count(RunMeasure):
    """A number of documents or queries; over queries, numbers are added up.

    Its kinds are known by trec_eval's names: ``num_q``, ``num_ret``, ``num_rel``,
    ``num_rel_ret`` and ``num_nonrel_judged_ret``.

    Parameters
    ----------
    empty, ties
        See `RunMeasure`; no query is empty.
    """

    range: ClassVar[tuple[float, float]] = (0.0, np.inf)

    @abstractmethod
    def _number(self, judged: JudgedQueries) -> IntArray:
        """Count for every query."""

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return self._number(judged).astype(np.float64)

    def _empty(self, judged: JudgedQueries) -> Any:
        return np.zeros(len(judged.retrieved), bool)

    def average(self, values: FloatArray) -> float:
        """Return the sum."""
        return float(values.sum())

    def average_error(self, values: FloatArray) -> float:
        """Return NaN: a count is no estimate."""
        return float("nan")


@dataclass(frozen=True, kw_only=True, repr=False)
class _Queries(Count):
    """The number of queries: ``num_q``."""

    aliases: ClassVar[tuple[str, ...]] = ("num_q",)

    def _number(self, judged: JudgedQueries) -> IntArray:
        return np.ones_like(judged.retrieved)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Retrieved(Count):
    """The number of documents retrieved: ``num_ret``."""

    aliases: ClassVar[tuple[str, ...]] = ("num_ret",)

    def _number(self, judged: JudgedQueries) -> IntArray:
        return judged.retrieved


@dataclass(frozen=True, kw_only=True, repr=False)
class _Relevant(Count):
    """The number of relevant documents, retrieved or not: ``num_rel``."""

    aliases: ClassVar[tuple[str, ...]] = ("num_rel",)

    def _number(self, judged: JudgedQueries) -> IntArray:
        return judged.relevant


@dataclass(frozen=True, kw_only=True, repr=False)
class _RelevantRetrieved(Count):
    """The number of relevant documents retrieved: ``num_rel_ret``."""

    aliases: ClassVar[tuple[str, ...]] = ("num_rel_ret",)

    def _number(self, judged: JudgedQueries) -> IntArray:
        return judged.relevant_retrieved


@dataclass(frozen=True, kw_only=True, repr=False)
class _NonrelevantJudgedRetrieved(Count):
    """The number of documents retrieved and judged not relevant: ``num_nonrel_judged_ret``."""

    aliases: ClassVar[tuple[str, ...]] = ("num_nonrel_judged_ret",)

    def _number(self, judged: JudgedQueries) -> IntArray:
        return judged.judged_retrieved - judged.relevant_retrieved


@dataclass(frozen=True, repr=False)
class Judged(RunMeasure):
    """The share of the first k documents retrieved that have a grade.

    Where fewer than k were retrieved, it is the share of those; 0 where nothing was.

    Parameters
    ----------
    k : int, optional
        All retrieved documents if left out.
    empty, ties
        See `RunMeasure`; no query is empty.
    """

    k: int | None = None

    aliases: ClassVar[tuple[str, ...]] = ("judged",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        ptr, keys, judgement, _, _ = judged.arrays
        longest = int(judged.retrieved.max(initial=0))
        weights = (np.arange(longest) < self._cut).astype(np.float64)
        found = _weigh(ptr, keys, judgement >= 0, weights, self.ties == "average")
        return _ratio(found, np.minimum(judged.retrieved, self._cut))

    def _empty(self, judged: JudgedQueries) -> Any:
        return np.zeros(len(judged.retrieved), bool)


@dataclass(frozen=True, repr=False)
class RBPResidual(RunMeasure):
    """By how much `RBP` would rise if all that is not judged, or not retrieved, were relevant.

    The weights of unjudged documents, plus ``p`` to the number retrieved.

    Parameters
    ----------
    p : float
        The persistence, see `RBP`.
    empty, ties
        See `RunMeasure`; no query is empty.

    References
    ----------
    Moffat and Zobel: Rank-biased precision for measurement of retrieval effectiveness (2008).
    """

    p: float = 0.8

    aliases: ClassVar[tuple[str, ...]] = ("rbp_residual",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", persistence(self.p))

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        ptr, keys, judgement, _, _ = judged.arrays
        longest = int(judged.retrieved.max(initial=0))
        weights: FloatArray = (1.0 - self.p) * np.power(self.p, np.arange(longest))
        open_ = _weigh(ptr, keys, judgement < 0, weights, self.ties == "average")
        return open_ + self.p**judged.retrieved

    def _empty(self, judged: JudgedQueries) -> Any:
        return np.zeros(len(judged.retrieved), bool)


@kernel
def _weigh(
    ptr: IntArray, keys: FloatArray, chosen: Any, weights: FloatArray, share: bool
) -> FloatArray:
    """Add up the weights of the positions of chosen documents; tied ones share their mean."""
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        i = ptr[q]
        while i < ptr[q + 1]:
            end = i + 1
            if share:
                while end < ptr[q + 1] and keys[end] == keys[i]:
                    end += 1
            found, weight = 0, 0.0
            for t in range(i, end):
                found += chosen[t]
                weight += weights[t - ptr[q]]
            out[q] += found * weight / (end - i)
            i = end
    return out
