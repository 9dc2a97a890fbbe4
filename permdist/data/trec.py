"""TREC runs and relevance judgements, and the join of the two."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import choice, finite, frozen, integers
from permdist._parallel import pointers
from permdist.data.trec_scan import (
    Hashes,
    Words,
    find_twice,
    hash_names,
    judge_rows,
    number_names,
    pack_names,
    rank_rows,
    sort_hashes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import FloatArray, IntArray
    from permdist.data.letor_scan import Bytes
    from permdist.data.queries import Queries

UNKNOWN, UNJUDGED = -1, -2  # not among the judgements; there, but with a negative grade


class Names(NamedTuple):
    """Names as slices of one text, of bytes or of packed words, with their hashes."""

    text: Any
    start: IntArray
    stop: IntArray
    hashes: Hashes

    def strings(self, rows: Iterable[int]) -> list[str]:
        """Return some names as strings; bytes that are no UTF-8 are replaced."""
        raw = memoryview(self.text)
        ends = ((int(self.start[i]), int(self.stop[i])) for i in rows)
        return [bytes(raw[start:stop]).decode(errors="replace") for start, stop in ends]

    def take(self, rows: IntArray) -> Names:
        """Return some names, in the order asked for."""
        return Names(self.text, self.start[rows], self.stop[rows], self.hashes[rows])


def slice_names(text: Bytes, start: IntArray, stop: IntArray) -> Names:
    """Make names of slices of a text."""
    hashes = np.empty(len(start), np.uint64)
    start, stop = np.ascontiguousarray(start), np.ascontiguousarray(stop)
    hash_names(frozen(text), start, stop, hashes)
    return Names(frozen(text), start, stop, hashes)


def _encode(what: str, ids: Iterable[Any]) -> Names:
    """Make names of strings or whole numbers."""
    entries = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    wrong = next((e for e in entries if isinstance(e, bool) or not isinstance(e, str | int)), None)
    if wrong is not None:
        raise TypeError(f"{what}: expected names or whole numbers, got {type(wrong).__name__}")
    if not entries:
        raise ValueError(f"{what}: expected at least one document, got none")
    encoded = [str(entry).encode() for entry in entries]
    ptr = pointers([len(name) for name in encoded])
    return slice_names(np.frombuffer(b"".join(encoded), np.uint8), ptr[:-1], ptr[1:])


def _encode_both(
    qid: ArrayLike, doc_ids: ArrayLike, what: str, values: NDArray[Any]
) -> tuple[Names, Names]:
    """Make names of queries and documents, one for each of the values."""
    queries, documents = _encode("qid", _flat(qid)), _encode("doc_ids", _flat(doc_ids))
    for name, names in (("qid", queries), ("doc_ids", documents)):
        if len(names.start) != len(values):
            raise ValueError(
                f"{name}: expected {len(values)} entries as in {what}, got {len(names.start)}"
            )
    return queries, documents


class Index(NamedTuple):
    """The names of each query by their hashes, so that two collections are matched by merging.

    The k-th name is ``words[offsets[k]:offsets[k + 1]]``, its length in bytes and then eight of
    them per word; it stands in row ``rows[k]`` and has the hash ``ordered[k]``. Hashes ascend in
    each query.
    """

    words: Words
    offsets: IntArray
    rows: IntArray
    ordered: Hashes

    def strings(self, low: int, high: int) -> list[str]:
        """Return the names of the rows of one query, row by row."""
        names = [""] * (high - low)
        for row, name in zip(self.rows[low:high].tolist(), range(low, high), strict=True):
            names[row - low] = self.string(name)
        return names

    def string(self, k: int) -> str:
        """Return the k-th name as a string; bytes that are no UTF-8 are replaced."""
        packed = self.words[self.offsets[k] : self.offsets[k + 1]]
        return packed[1:].astype("<u8").tobytes()[: int(packed[0])].decode(errors="replace")

    def as_names(self) -> Names:
        """Return the names as slices, by their hashes."""
        return Names(self.words, self.offsets[:-1], self.offsets[1:], self.ordered)


class Grouped(NamedTuple):
    """Rows in queries: their ids, where they start, and in which order the rows are taken."""

    qids: list[str]
    ptr: IntArray
    order: IntArray


def _group(queries: Names) -> Grouped:
    """Gather the rows of each query, queries in the order of their first rows."""
    n = len(queries.start)
    number, found = number_all(queries)
    order = np.argsort(number, kind="stable") if (number[1:] < number[:-1]).any() else np.arange(n)
    ptr = pointers(np.bincount(number, minlength=found))
    return Grouped(queries.strings(order[ptr[:-1]]), ptr, order.astype(np.int64))


def number_all(names: Names) -> tuple[IntArray, int]:
    """Assign numbers to the different names by first appearance; also return how many there are."""
    number = np.empty(len(names.start), np.int64)
    slots = np.zeros(_table_size(len(names.start)), np.int64)
    return number, number_names(*names, slots, number)


def _table_size(n: int) -> int:
    return 1 << max(1, int(2 * n - 1).bit_length())


def _index(names: Names, ptr: IntArray) -> Index:
    """Sort the names of each query by their hashes."""
    rows, ordered = np.empty(len(names.start), np.int64), np.empty(len(names.start), np.uint64)
    sort_hashes(names.hashes, ptr, rows, ordered)
    sizes = 1 + (names.stop - names.start + 7)[rows] // 8
    offsets = pointers(sizes)
    words = np.zeros(int(offsets[-1]), np.uint64)
    pack_names(names.text, names.start, names.stop, rows, offsets, words)
    return Index(frozen(words), frozen(offsets), frozen(rows), frozen(ordered))


class _ByQuery:
    """Rows with the names of documents, query by query."""

    qids: list[str]
    ptr: IntArray
    index: Index

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.qids)

    def _own(self, qid: str) -> tuple[int, list[str]]:
        """Return the first row of a query, and the names of all of its rows."""
        if str(qid) not in self.qids:
            raise KeyError(f"{qid!r} is not a query of this {type(self).__name__.lower()}")
        q = self.qids.index(str(qid))
        return int(self.ptr[q]), self.index.strings(int(self.ptr[q]), int(self.ptr[q + 1]))


class Run(_ByQuery):
    """What a system retrieved: documents with scores, query by query, the best first.

    Documents are kept in the order in which trec_eval looks at them: by score, and those with
    equal scores by their ids, the last id first, compared byte by byte.

    Parameters
    ----------
    qid : array of str or int, shape (documents,)
        The query of each document; those of one query need not stand together.
    doc_ids : array of str or int, shape (documents,)
    scores : array of float, shape (documents,)
        Finite; higher is better.
    precision : {"single", "double"}
        Which scores are equal: those that are in single precision, as for trec_eval (up to
        version 9) and pytrec_eval, or those that are in double precision.

    Attributes
    ----------
    qids : list of str
        In the order of their first documents.
    ptr : array of int, shape (queries + 1,)
        Query ``q`` owns documents ``ptr[q]:ptr[q + 1]``.
    scores : array of float, shape (documents,)
    keys : array of float, shape (documents,)
        The scores in the chosen precision: equal keys are ties.
    precision : str

    Examples
    --------
    >>> run = Run(["q1", "q1", "q1"], ["a", "b", "c"], [0.5, 0.9, 0.5])
    >>> run
    Run(1 query, 3 documents)
    >>> run.documents("q1")
    ['b', 'c', 'a']
    """

    def __init__(
        self, qid: ArrayLike, doc_ids: ArrayLike, scores: ArrayLike, *, precision: str = "single"
    ) -> None:
        values = finite("scores", scores, ndim=1)
        self._fill(*_encode_both(qid, doc_ids, "scores", values), values, precision, None)

    @classmethod
    def of_names(
        cls,
        queries: Names,
        documents: Names,
        scores: FloatArray,
        precision: str,
        where: Callable[[int], str],
    ) -> Run:
        """Make a run of rows already scanned; `where` says in words where a row stands."""
        run = cls.__new__(cls)
        cls._fill(run, queries, documents, scores, precision, where)
        return run

    @classmethod
    def from_dict(
        cls, scores: Mapping[Any, Mapping[Any, float]], *, precision: str = "single"
    ) -> Run:
        """Make a run of ``{query: {document: score}}``, as pytrec_eval takes it.

        Examples
        --------
        >>> Run.from_dict({"q1": {"a": 0.5, "b": 0.9}}).documents("q1")
        ['b', 'a']
        """
        qid, ids, values = _columns(scores)
        return cls(qid, ids, np.array(values, dtype=np.float64), precision=precision)

    @classmethod
    def from_queries(cls, queries: Queries, scores: ArrayLike, *, precision: str = "single") -> Run:
        """Make a run of all documents of a collection; those without ids are numbered from 1."""
        return cls(queries.qid, document_names(queries), scores, precision=precision)

    def _fill(
        self,
        queries: Names,
        documents: Names,
        scores: FloatArray,
        precision: str,
        where: Callable[[int], str] | None,
    ) -> None:
        self.precision = choice("precision", precision, ("single", "double"))
        groups = _group(queries)
        keys = scores
        if precision == "single":
            with np.errstate(over="ignore"):
                keys = scores.astype(np.float32).astype(np.float64)
        order = groups.order.copy()
        rank_rows(documents.text, documents.start, documents.stop, keys, groups.ptr, order)
        self.qids, self.ptr = groups.qids, frozen(groups.ptr)
        self.index = _index(documents.take(order), self.ptr)
        _refuse_twice(self.index, groups, order, where, "comes")
        self.scores, self.keys = frozen(scores[order]), frozen(keys[order])

    @property
    def n_documents(self) -> int:
        """The number of documents retrieved for all queries."""
        return len(self.scores)

    @property
    def n_merged(self) -> int:
        """How many documents tie in the chosen precision with one of a different score."""
        close = (self.keys[1:] == self.keys[:-1]) & (self.scores[1:] != self.scores[:-1])
        close[self.ptr[1:-1] - 1] = False
        return int(close.sum())

    def documents(self, qid: str) -> list[str]:
        """Return the ids of the documents retrieved for a query, the best first."""
        return self._own(qid)[1]

    def __repr__(self) -> str:
        return f"Run({_shown(self.qids)}, {self.n_documents:,} documents)"


class Qrels(_ByQuery):
    """Relevance judgements: grades of documents, query by query.

    Parameters
    ----------
    qid : array of str or int, shape (judgements,)
    doc_ids : array of str or int, shape (judgements,)
    grades : array of int, shape (judgements,)
        0 is judged not relevant, above is relevant. A negative grade says that a document was
        in the pool but not judged, which matters to `InfAP` and `Judged`.

    Attributes
    ----------
    qids : list of str
        In the order of their first judgements.
    ptr : array of int, shape (queries + 1,)
        Query ``q`` owns judgements ``ptr[q]:ptr[q + 1]``.
    grades : array of int, shape (judgements,)

    Examples
    --------
    >>> qrels = Qrels(["q1", "q1"], ["a", "b"], [1, 0])
    >>> qrels.grade("q1", "a"), qrels.grade("q1", "c")
    (1, None)
    """

    def __init__(self, qid: ArrayLike, doc_ids: ArrayLike, grades: ArrayLike) -> None:
        values = integers("grades", grades)
        if values.ndim != 1:
            raise ValueError(f"grades: expected 1 dimension(s), got shape {values.shape}")
        self._fill(*_encode_both(qid, doc_ids, "grades", values), values, None)

    @classmethod
    def of_names(
        cls, queries: Names, documents: Names, grades: IntArray, where: Callable[[int], str]
    ) -> Qrels:
        """Make judgements of rows already scanned; `where` says in words where a row stands."""
        qrels = cls.__new__(cls)
        cls._fill(qrels, queries, documents, grades, where)
        return qrels

    @classmethod
    def from_dict(cls, grades: Mapping[Any, Mapping[Any, int]]) -> Qrels:
        """Make judgements of ``{query: {document: grade}}``, as pytrec_eval takes them."""
        qid, ids, values = _columns(grades)
        return cls(qid, ids, np.array(values) if values else np.empty(0, np.int64))

    @classmethod
    def from_queries(cls, queries: Queries) -> Qrels:
        """Take the labels of a collection; documents without ids are numbered from 1."""
        return cls(queries.qid, document_names(queries), queries.y)

    def _fill(
        self,
        queries: Names,
        documents: Names,
        grades: IntArray,
        where: Callable[[int], str] | None,
    ) -> None:
        groups = _group(queries)
        self.qids, self.ptr = groups.qids, frozen(groups.ptr)
        self.index = _index(documents.take(groups.order), self.ptr)
        _refuse_twice(self.index, groups, groups.order, where, "is judged")
        self.grades: IntArray = frozen(grades[groups.order])

    @property
    def n_judgements(self) -> int:
        """The number of judgements of all queries."""
        return len(self.grades)

    def grade(self, qid: str, doc_id: str) -> int | None:
        """Return the grade of a document, None if it is not among the judgements."""
        first, ids = self._own(qid)
        return int(self.grades[first + ids.index(doc_id)]) if doc_id in ids else None

    def judge(self, run: Run, *, complete: bool = False, judged_only: bool = False) -> JudgedRun:
        """Look up what a run retrieved.

        Parameters
        ----------
        run : Run
        complete : bool
            Take queries that the run lacks as if nothing had been retrieved for them (option
            ``-c`` of trec_eval), instead of leaving them out.
        judged_only : bool
            Take retrieved documents without a judgement out of the run (option ``-J``).

        Returns
        -------
        JudgedRun
        """
        in_run = {qid: number for number, qid in enumerate(run.qids)}
        numbers = np.fromiter(map(in_run.get, self.qids, repeat(-1)), np.int64, self.n_queries)
        query = np.arange(self.n_queries) if complete else np.flatnonzero(numbers >= 0)
        run_query = numbers[query]
        sizes = np.where(run_query >= 0, np.diff(run.ptr)[run_query], 0)
        ptr = pointers(sizes)
        judgement = np.empty(int(ptr[-1]), np.int64)
        rest_ptr = np.zeros(len(query) + 1, np.int64)
        rest = np.empty(len(self.grades), np.int64)
        judge_rows(
            *run.index,
            run.ptr,
            run_query,
            *self.index,
            self.ptr,
            query,
            self.grades,
            ptr,
            judgement,
            rest_ptr,
            rest,
        )
        keys = run.keys
        if not np.array_equal(run_query, np.arange(run.n_queries)):
            found = run_query[run_query >= 0]
            offset = np.repeat(run.ptr[found] - ptr[:-1][run_query >= 0], sizes[run_query >= 0])
            keys = run.keys[np.arange(len(judgement)) + offset]
        known = set(self.qids) if (numbers >= 0).sum() < run.n_queries else set(run.qids)
        judged = JudgedRun(
            qids=[self.qids[q] for q in query.tolist()],
            ptr=ptr,
            keys=keys,
            judgement=judgement,
            rest_ptr=rest_ptr,
            rest=rest[: rest_ptr[-1]].copy(),
            missing=tuple(self.qids[q] for q in np.flatnonzero(numbers < 0).tolist()),
            unknown=tuple(qid for qid in run.qids if qid not in known),
            merged=run.n_merged,
        )
        return judged.only_judged() if judged_only else judged

    def __repr__(self) -> str:
        return f"Qrels({_shown(self.qids)}, {self.n_judgements:,} judgements)"


class JudgedRun(NamedTuple):
    """A run and its judgements: what was retrieved, best first, and what was not.

    Attributes
    ----------
    qids : list of str
    ptr : array of int, shape (queries + 1,)
        Query ``q`` retrieved the entries ``ptr[q]:ptr[q + 1]`` of `keys` and `judgement`.
    keys : array of float
        Scores, descending in each query; equal ones are ties.
    judgement : array of int
        The grade; -1 for a document that is not among the judgements, -2 for one that is, but
        with a negative grade.
    rest_ptr : array of int, shape (queries + 1,)
    rest : array of int
        The grades of the documents that were judged but not retrieved.
    missing : tuple of str
        Judged queries that the run lacks.
    unknown : tuple of str
        Queries of the run that have no judgements; they are left out.
    merged : int
        How many documents tie in the run's precision with one of a different score.
    """

    qids: list[str]
    ptr: IntArray
    keys: FloatArray
    judgement: IntArray
    rest_ptr: IntArray
    rest: IntArray
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    merged: int

    @property
    def n_unjudged(self) -> int:
        """How many retrieved documents have no grade."""
        return int((self.judgement < 0).sum())

    @property
    def n_left_out(self) -> int:
        """How many relevant documents (grade above 0) were not retrieved."""
        return int((self.rest > 0).sum())

    @property
    def is_complete(self) -> bool:
        """Whether exactly the judged documents were retrieved."""
        return self.n_unjudged == 0 and len(self.rest) == 0

    def only_judged(self) -> JudgedRun:
        """Take out the retrieved documents that have no grade."""
        keep = self.judgement >= 0
        return self._replace(
            ptr=pointers(keep)[self.ptr], keys=self.keys[keep], judgement=self.judgement[keep]
        )


def _refuse_twice(
    index: Index,
    groups: Grouped,
    order: IntArray,
    where: Callable[[int], str] | None,
    what: str,
) -> None:
    """Refuse a document that comes twice in a query, by the earliest row that repeats one."""
    again = int(find_twice(*index, groups.ptr, order))
    if again >= 0:
        query = groups.qids[int(np.searchsorted(groups.ptr, again, side="right")) - 1]
        at = "doc_ids" if where is None else where(int(order[index.rows[again]]))
        raise ValueError(f"{at}: document {index.string(again)!r} of query {query} {what} twice")


def document_names(queries: Queries) -> list[str]:
    """Return the ids of a collection's documents, or their numbers in the query, from 1."""
    if queries.doc_ids is None:
        sizes = np.diff(queries.ptr)
        number = np.arange(queries.n_documents) - np.repeat(queries.ptr[:-1], sizes)
        return [str(i) for i in (number + 1).tolist()]
    return [str(name) for name in queries.doc_ids.tolist()]


def id_array(ids: list[str]) -> NDArray[Any]:
    """Make an array of ids: of fixed width, unless one is so long that this would waste memory."""
    widest = max(map(len, ids), default=0)
    return np.array(ids, dtype=object if widest * len(ids) > 10_000_000 else None)


def _columns(table: Mapping[Any, Mapping[Any, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Flatten ``{query: {document: value}}``."""
    qid = [query for query, entries in table.items() for _ in entries]
    ids = [name for entries in table.values() for name in entries]
    return qid, ids, [value for entries in table.values() for value in entries.values()]


def _flat(ids: ArrayLike) -> Any:
    """Make sure that ids are a list or an array of one dimension."""
    if isinstance(ids, str) or (isinstance(ids, np.ndarray) and ids.ndim != 1):
        raise ValueError("qid, doc_ids: expected one id for each document")
    return ids


def _shown(qids: list[str]) -> str:
    return f"{len(qids):,} {'query' if len(qids) == 1 else 'queries'}"
