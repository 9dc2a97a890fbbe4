"""Judged runs as input of measures, and the base class of measures of runs."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count, frozen
from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist._typing import FloatArray, IntArray
from permdist.measures.base import FILLS, Measure
from permdist.measures.placements import NEVER, Placements

if TYPE_CHECKING:
    from permdist.data.trec import JudgedRun

RunArrays = tuple[IntArray, FloatArray, IntArray, IntArray, IntArray]


class JudgedQueries:
    """A run with judgements and the grade from which a document is relevant.

    Parameters
    ----------
    run : JudgedRun
    level : int
        Measures of binary relevance take grades from this on as relevant (option ``-l`` of
        trec_eval); those with gains take every grade above 0 by its gain, as trec_eval does.

    Attributes
    ----------
    arrays : tuple
        What kernels of runs take: ``ptr, keys, judgement, rest_ptr, rest`` of `JudgedRun`.
    """

    def __init__(self, run: JudgedRun, level: int = 1) -> None:
        self.run, self.level = run, count("level", level)
        self.arrays: RunArrays = (
            frozen(run.ptr),
            frozen(run.keys),
            frozen(run.judgement),
            frozen(run.rest_ptr),
            frozen(run.rest),
        )
        self._placed: dict[tuple[int, str], Placements] = {}

    def placements(self, level: int, ties: str) -> Placements:
        """Place the documents of at least this grade; those not retrieved come last."""
        if (level, ties) not in self._placed:
            relevant = np.zeros(len(self.run.ptr), np.int64)
            arrays = _place_run(self.arrays, level, ties == "average", relevant)
            placed = Placements(relevant, np.diff(self.run.ptr), *arrays)
            self._placed[level, ties] = placed
        return self._placed[level, ties]

    @cached_property
    def retrieved(self) -> IntArray:
        """How many documents were retrieved for each query."""
        return np.diff(self.run.ptr)

    @cached_property
    def relevant(self) -> IntArray:
        """How many relevant documents each query has, retrieved or not."""
        return np.diff(self.placements(self.level, "index").ptr)

    @cached_property
    def relevant_retrieved(self) -> IntArray:
        """How many relevant documents were retrieved for each query."""
        return self._count(self.run.judgement >= self.level)

    @cached_property
    def judged_retrieved(self) -> IntArray:
        """How many retrieved documents of each query have a grade."""
        return self._count(self.run.judgement >= 0)

    def _count(self, mask: Any) -> IntArray:
        return np.diff(pointers(mask)[self.run.ptr])


class RunMeasure(Measure):
    """A measure of a run with judgements, not of a ranking of labelled items.

    It is computed by `permdist.measures.evaluate_run`; elsewhere it is refused.
    With ``ties="index"``, documents of equal score are numbered by their ids, the last one first.
    """

    partial = True
    additive = False

    def on_run(self, judged: JudgedQueries) -> FloatArray:
        """Evaluate every query of a run with judgements."""
        result = self._on_run(judged)
        result[self._empty(judged)] = FILLS[self.empty]
        return result

    @abstractmethod
    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        """Evaluate every query; the values of empty ones are overwritten."""

    def _empty(self, judged: JudgedQueries) -> Any:
        """Mask the queries on which the measure is undefined."""
        return judged.relevant == 0

    def _values(self, _placed: Placements) -> FloatArray:
        raise ValueError(self._refusal())

    def step(self, *_: Any) -> FloatArray:
        """Refuse: there is more to such a measure than a ranking of labelled items."""
        raise ValueError(self._refusal())

    def _refusal(self) -> str:
        return (
            f"{self.name}: measures a run against judgements, not a ranking of labelled items; "
            "use measures.evaluate_run"
        )


@kernel
def tie_end(keys: FloatArray, first: int, stop: int, share: bool) -> int:
    """Return the end of the tie that starts at an entry; of the entry alone if not shared."""
    end = first + 1
    if share:
        while end < stop and keys[end] == keys[first]:
            end += 1
    return end


@kernel
def _place_run(
    arrays: RunArrays, level: int, share: bool, relevant: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, size and grade of documents of at least a level; count them in `relevant`."""
    ptr, keys, judgement, rest_ptr, rest = arrays
    for q in range(len(ptr) - 1):
        found = 0
        for i in range(ptr[q], ptr[q + 1]):
            found += judgement[i] >= level
        for i in range(rest_ptr[q], rest_ptr[q + 1]):
            found += rest[i] >= level
        relevant[q + 1] = relevant[q] + found
    entries = relevant[-1]
    start = np.empty(entries, np.int64)
    size = np.ones(entries, np.int64)
    grade = np.empty(entries, np.int64)
    for q in range(len(ptr) - 1):
        entry, first = relevant[q], ptr[q]
        i = first
        while i < ptr[q + 1]:
            end = tie_end(keys, i, ptr[q + 1], share)
            for t in range(i, end):
                if judgement[t] >= level:
                    start[entry], size[entry], grade[entry] = i - first, end - i, judgement[t]
                    entry += 1
            i = end
        for t in range(rest_ptr[q], rest_ptr[q + 1]):
            if rest[t] >= level:
                start[entry], grade[entry] = NEVER, rest[t]
                entry += 1
    return start, size, grade
