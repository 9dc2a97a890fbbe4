"""Measures of a run as a set, counts, and the share of it that is judged."""

from __future__ import annotations

import types
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite
from permdist._kernels import kernel
from permdist.measures.judged import JudgedQueries, RunMeasure, tie_end
from permdist.measures.rbp import persistence

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray


def _ratio(above: Any, below: Any) -> FloatArray:
    """Divide, 0 where there is nothing to divide by."""
    return above / np.where(np.asarray(below) == 0, np.inf, below)


class _OnEveryQuery(RunMeasure):
    """A measure of a run that is defined without relevant documents, too."""

    def _empty(self, judged: JudgedQueries) -> Any:
        return np.zeros(len(judged.retrieved), bool)


class SetPrecision(RunMeasure):
    """The share of relevant documents among all that were retrieved: ``set_P``."""

    aliases = ("set_p",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _ratio(judged.relevant_retrieved, judged.retrieved)


class SetRecall(RunMeasure):
    """The share of the relevant documents that were retrieved: ``set_recall``."""

    aliases = ("set_recall",)

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
    """

    x: float = 1.0

    aliases = ("set_f",)

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


class SetAP(RunMeasure):
    """Set precision times set recall: ``set_map``."""

    aliases = ("set_ap", "set_map")

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        squared = judged.relevant_retrieved.astype(np.float64) ** 2
        return _ratio(squared, judged.retrieved * judged.relevant)


class SetRelativePrecision(RunMeasure):
    """Set precision over the best possible for so many documents: ``set_relative_P``."""

    aliases = ("set_relative_p",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _ratio(judged.relevant_retrieved, np.minimum(judged.retrieved, judged.relevant))


@dataclass(frozen=True, kw_only=True, repr=False)
class Utility(_OnEveryQuery):
    """A weighted sum of what was retrieved and what was not: ``utility``.

    Parameters
    ----------
    hit, noise, miss : float
        The weights of relevant documents retrieved, of others retrieved, and of relevant ones not
        retrieved. trec_eval's fourth weight needs the size of the collection.
    """

    hit: float = 1.0
    noise: float = -1.0
    miss: float = 0.0

    aliases = ("utility",)
    range = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hit", "noise", "miss"):
            object.__setattr__(self, name, float(finite(name, getattr(self, name), ndim=0)))

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        found = judged.relevant_retrieved
        others, left = judged.retrieved - found, judged.relevant - found
        return self.hit * found + self.noise * others + self.miss * left


class Count(_OnEveryQuery):
    """A number of documents or queries; over queries, numbers are added up.

    Its subclasses have trec_eval's names: ``num_q``, ``num_ret``, ``num_rel``,
    ``num_rel_ret`` and ``num_nonrel_judged_ret``.
    """

    range = (0.0, np.inf)

    @abstractmethod
    def _number(self, judged: JudgedQueries) -> IntArray:
        """Count for every query."""

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return self._number(judged).astype(np.float64)

    def average(self, values: FloatArray) -> float:
        """Return the sum."""
        return float(values.sum())

    def average_error(self, _values: FloatArray) -> float:
        """Return NaN: a count has no standard error."""
        return float("nan")


def _count(
    name: str, alias: str, number: Callable[[JudgedQueries], IntArray], what: str
) -> type[Count]:
    """Define a count; `what` says of which documents."""
    members = {"aliases": (alias,), "_number": lambda _, judged: number(judged)}
    members |= {"__doc__": f"The number of {what}: ``{alias}``.", "__module__": __name__}
    return types.new_class(name, (Count,), exec_body=lambda space: space.update(members))


_Queries = _count("_Queries", "num_q", lambda judged: np.ones_like(judged.retrieved), "queries")
_Retrieved = _count("_Retrieved", "num_ret", lambda judged: judged.retrieved, "documents retrieved")
_Relevant = _count(
    "_Relevant", "num_rel", lambda judged: judged.relevant, "relevant documents, retrieved or not"
)
_RelevantRetrieved = _count(
    "_RelevantRetrieved",
    "num_rel_ret",
    lambda judged: judged.relevant_retrieved,
    "relevant documents retrieved",
)
_NonrelevantJudgedRetrieved = _count(
    "_NonrelevantJudgedRetrieved",
    "num_nonrel_judged_ret",
    lambda judged: judged.judged_retrieved - judged.relevant_retrieved,
    "documents retrieved and judged not relevant",
)


@dataclass(frozen=True, repr=False)
class Judged(_OnEveryQuery):
    """The share of the first k documents retrieved that have a grade.

    Where fewer than k were retrieved, it is the share of those; 0 where nothing was.

    Parameters
    ----------
    k : int, optional
        All retrieved documents if left out.
    """

    k: int | None = None

    aliases = ("judged",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        ptr, keys, judgement, _, _ = judged.arrays
        longest = int(judged.retrieved.max(initial=0))
        weights = (np.arange(longest) < self.cut_off).astype(np.float64)
        found = _weigh(ptr, keys, judgement >= 0, weights, self.ties == "average")
        return _ratio(found, np.minimum(judged.retrieved, self.cut_off))


@dataclass(frozen=True, repr=False)
class RBPResidual(_OnEveryQuery):
    """The amount by which `RBP` would rise if everything unjudged or not retrieved were relevant.

    The weights of unjudged documents, plus ``p`` to the number retrieved.

    Parameters
    ----------
    p : float
        The persistence, see `RBP`.

    References
    ----------
    Moffat and Zobel: Rank-biased precision for measurement of retrieval effectiveness (2008).
    """

    p: float = 0.8

    aliases = ("rbp_residual",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", persistence(self.p))

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        ptr, keys, judgement, _, _ = judged.arrays
        longest = int(judged.retrieved.max(initial=0))
        weights: FloatArray = (1.0 - self.p) * np.power(self.p, np.arange(longest))
        open_ = _weigh(ptr, keys, judgement < 0, weights, self.ties == "average")
        return open_ + self.p**judged.retrieved


@kernel
def _weigh(
    ptr: IntArray, keys: FloatArray, chosen: Any, weights: FloatArray, share: bool
) -> FloatArray:
    """Add up the weights of the positions of chosen documents; tied ones share their mean."""
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        i = ptr[q]
        while i < ptr[q + 1]:
            end = tie_end(keys, i, ptr[q + 1], share)
            found, weight = 0, 0.0
            for t in range(i, end):
                found += chosen[t]
                weight += weights[t - ptr[q]]
            out[q] += found * weight / (end - i)
            i = end
    return out
