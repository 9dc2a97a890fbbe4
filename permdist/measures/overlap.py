"""Rank-biased overlap of two runs, query by query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice
from permdist._result import Result
from permdist._text import text_table
from permdist.data.trec import Names, Run, id_array, number_all
from permdist.measures.rbp import persistence
from permdist.rankings.overlap import TIES, Overlap, overlap_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RunOverlap(Result):
    """The similarity of two runs, for each query that both have.

    Attributes
    ----------
    qids : array of str, shape (queries,)
    values, lower, upper : arrays of float, shape (queries,)
        As in `permdist.rankings.rbo`.
    p : float
    ties : str
    """

    qids: NDArray[Any]
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    p: float
    ties: str

    def mean(self) -> Overlap:
        """Return the means over queries."""
        return Overlap(
            float(self.values.mean()), float(self.lower.mean()), float(self.upper.mean())
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a data frame, a row per query.

        Returns
        -------
        DataFrame
            Indexed by ``qid``, with the columns ``value``, ``lower`` and ``upper``.
        """
        import pandas as pd

        columns = {"value": self.values, "lower": self.lower, "upper": self.upper}
        return pd.DataFrame(columns, index=pd.Index(self.qids, name="qid"))

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], list[list[str]]]:
        mean = self.mean()
        row = [f"rbo[p={self.p:g},ties={self.ties}]", *(f"{value:.4f}" for value in mean)]
        header = ("measure", "mean", "at least", "at most", "queries")
        return header, [[*row, f"{len(self.qids):,}"]][:most]

    def __str__(self) -> str:
        return text_table(*self._cells())


def compare_runs(a: Run, b: Run, *, p: float = 0.9, ties: str = "a") -> RunOverlap:
    """Compare two runs by rank-biased overlap, query by query.

    Parameters
    ----------
    a, b : Run
        Queries that only one of them has are left out.
    p : float
        The persistence, between 0 and 1.
    ties : {"a", "w", "b"}
        What equal scores say, see `permdist.rankings.rbo`.

    Returns
    -------
    RunOverlap

    Examples
    --------
    >>> from permdist.data import Run
    >>> a = Run.from_dict({"q": {"x": 3, "y": 2, "z": 1}})
    >>> b = Run.from_dict({"q": {"x": 3, "z": 2, "y": 1}})
    >>> print(compare_runs(a, b, p=0.5))
    measure              mean  at least  at most  queries
    rbo[p=0.5,ties=a]  0.8750    0.8294   0.8750        1
    """
    persistence(p)
    choice("ties", ties, TIES)
    in_b = {qid: number for number, qid in enumerate(b.qids)}
    shared = [(q, in_b[qid]) for q, qid in enumerate(a.qids) if qid in in_b]
    if not shared:
        raise ValueError("b: expected a run with queries of the other one, got none in common")
    by_hash, n_items = number_all(_joined(a.index.as_names(), b.index.as_names()))
    number = np.empty_like(by_hash)
    number[np.concatenate([a.index.rows, a.n_documents + b.index.rows])] = by_hash
    first, last = (np.concatenate(parts) for parts in zip(_spans(a), _spans(b), strict=True))
    left, right = np.array(shared, dtype=np.int64).T
    shift = a.n_documents
    ends = [a.ptr[left], a.ptr[left + 1], shift + b.ptr[right], shift + b.ptr[right + 1]]
    table = overlap_batch(
        number, first, last, np.stack(ends, axis=1), n_items, float(p), TIES.index(ties)
    )
    qids = id_array([a.qids[q] for q, _ in shared])
    values, lower, upper = np.ascontiguousarray(table.T)
    return RunOverlap(qids, values, lower, upper, float(p), ties)


def _spans(run: Run) -> tuple[IntArray, IntArray]:
    """Return the first and last rank of the tie of each document, from 0 in its query."""
    n = run.n_documents
    starts = np.ones(n, bool)
    starts[1:] = run.keys[1:] != run.keys[:-1]
    starts[run.ptr[:-1]] = True
    begin = np.flatnonzero(starts)
    sizes = np.diff(np.append(begin, n))
    offset = np.repeat(run.ptr[:-1], np.diff(run.ptr))
    return np.repeat(begin, sizes) - offset, np.repeat(begin + sizes - 1, sizes) - offset


def _joined(a: Names, b: Names) -> Names:
    """Put two lists of names into one text."""
    shift = len(a.text)
    return Names(
        np.concatenate([a.text, b.text]),
        np.concatenate([a.start, b.start + shift]),
        np.concatenate([a.stop, b.stop + shift]),
        np.concatenate([a.hashes, b.hashes]),
    )
