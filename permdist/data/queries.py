"""`Queries`: documents with features and labels, grouped by query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import PIECE, choice, finite, frozen, grades, integers, pieces
from permdist.data.description import Description, clashes, describe
from permdist.data.missing import FILLS, fill, has_missing
from permdist.data.normalize import NORMALIZATIONS, normalize_rows, pieces_of
from permdist.data.tables import (
    as_frame,
    check_no_texts,
    check_same_rows,
    column_names,
    differing_columns,
    group_queries,
)
from permdist.data.view import QueriesView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import FloatArray, IntArray


class Query(NamedTuple):
    """One query: its documents' features and labels, its id and their ids."""

    X: FloatArray
    y: IntArray
    qid: Any
    doc_ids: NDArray[Any] | None


class Queries(QueriesView):
    """Documents with features and relevance labels, grouped by query.

    Rows are taken as they come: pandas objects with the same index in another order are refused.
    Arrays are validated and kept as read-only views; they are copied only where necessary, so do
    not modify them afterwards. Features of float32 stay what they are, and so does the order of
    rows and columns in memory; other numbers become float64. Indexing (``queries[3]``) and
    iterating return `Query` views.

    Parameters
    ----------
    X : array, data frame or sparse matrix of float, shape (documents, features)
        Finite, or NaN with ``missing="allow"``. The column names of a data frame become
        `feature_names`: of pandas, or a table of polars, pyarrow and others that offers the Arrow
        PyCapsule interface or the data frame interchange protocol. A scipy sparse matrix or array
        is made dense, which is refused beyond 4 GiB.
    y : array of int, shape (documents,)
        Labels: 0 is bad, anything above is relevant.
    qid : array, shape (documents,), optional
        Whole numbers or strings, also as categories; the documents of a query must be contiguous.
        Without it all documents are one query, if there are no more than 1,000 of them.
    doc_ids : array of str, shape (documents,), optional
    feature_names : sequence of str, optional
        The names of the columns of X, if X is not a data frame.
    regroup : bool
        Gather the documents of queries that are not contiguous, instead of refusing them.
    missing : {"error", "allow"}
        Whether features may be missing, NaN. Learners take such queries with their parameter
        `missing`; `fill_missing` replaces the missing values.

    Attributes
    ----------
    X, y, qid, doc_ids
        As given, in the order kept.
    feature_names : tuple of str or None
    ptr : array of int, shape (queries + 1,)
        Query ``q`` owns documents ``ptr[q]:ptr[q + 1]``.
    qids : array, shape (queries,)
    rows : array of int, shape (documents,)
        The index of each document in the input: 0, 1, 2, ... unless queries were gathered.
    has_missing : bool
        Whether any feature is NaN.
    store : Path or None
        The folder of the store that the collection was opened from.

    Examples
    --------
    >>> queries = Queries([[0.1], [0.7], [0.3]], [0, 1, 0], [1, 1, 2])
    >>> queries
    Queries(2 queries, 3 documents, 1 feature)
    >>> queries[0].y
    array([0, 1])
    >>> [query.qid for query in queries.where(queries.n_relevant > 0)]
    [1]
    """

    _order: IntArray | None = None

    store: Path | None = None

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        doc_ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        regroup: bool = False,
        missing: str = "error",
    ) -> None:
        choice("missing", missing, ("error", "allow"))
        allow = missing == "allow"
        remedy = "missing='allow' accepts missing values"
        check_same_rows(X=X, y=y, qid=qid, doc_ids=doc_ids)
        X = as_frame("X", X)
        check_no_texts("X", X)
        features = finite("X", X, ndim=2, nan=allow, remedy=remedy, single=True)
        labels = grades("y", y)
        self.feature_names = _names(X, feature_names, features.shape[1])
        if labels.ndim != 1:
            raise ValueError(f"y: expected 1 dimension(s), got shape {labels.shape}")
        if len(labels) != len(features):
            raise ValueError(f"y: expected {len(features)} labels as rows in X, got {len(labels)}")
        groups = group_queries(qid, len(labels), regroup=regroup)
        ids = None if doc_ids is None else np.asarray(doc_ids)
        if ids is not None and ids.shape != labels.shape:
            raise ValueError(f"doc_ids: expected {len(labels)} ids, got shape {ids.shape}")
        if groups.order is not None:
            features, labels = features[groups.order], labels[groups.order]
            ids = ids if ids is None else ids[groups.order]
        self.X, self.y = frozen(features), frozen(labels)
        self.has_missing = allow and has_missing(features)
        self.doc_ids = None if ids is None else frozen(ids)
        self.qids, self.ptr = frozen(groups.qids), frozen(groups.ptr)
        self._order = groups.order

    @classmethod
    def trusted(
        cls,
        X: FloatArray,
        y: IntArray,
        ptr: IntArray,
        qids: NDArray[Any],
        *,
        doc_ids: NDArray[Any] | None = None,
        feature_names: tuple[str, ...] | None = None,
        has_missing: bool = False,
    ) -> Queries:
        """Make a collection of arrays that are known to be right, without any check or copy.

        Parameters
        ----------
        X : array of float32 or float64, shape (documents, features)
            Finite, or NaN with `has_missing`; memory-mapped arrays are as good as any.
        y : array of int64, shape (documents,)
        ptr : array of int64, shape (queries + 1,)
            Query ``q`` owns documents ``ptr[q]:ptr[q + 1]``; none is empty.
        qids : array, shape (queries,)
            All different.
        doc_ids : array of str, shape (documents,), optional
        feature_names : tuple of str, optional
        has_missing : bool
            Whether any feature is NaN.

        Examples
        --------
        >>> Queries.trusted(np.eye(3), np.array([1, 0, 0]), np.array([0, 2, 3]), np.array([7, 9]))
        Queries(2 queries, 3 documents, 3 features)
        """
        result = cls.__new__(cls)
        result.X, result.y = frozen(X), frozen(y)
        result.ptr, result.qids = frozen(ptr), frozen(qids)
        result.doc_ids = None if doc_ids is None else frozen(doc_ids)
        result.feature_names, result.has_missing = feature_names, has_missing
        return result

    @property
    def rows(self) -> IntArray:
        """The index of each document in the input."""
        order = np.arange(self.n_documents) if self._order is None else self._order
        return frozen(order)

    @property
    def qid(self) -> NDArray[Any]:
        """The query id of each document."""
        return np.repeat(self.qids, self.sizes)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.qids)

    @property
    def n_documents(self) -> int:
        """The number of documents of all queries."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.X.shape[1]

    @property
    def sizes(self) -> IntArray:
        """The number of documents of each query."""
        return np.diff(self.ptr)

    @property
    def n_relevant(self) -> IntArray:
        """The number of relevant documents of each query."""
        return np.add.reduceat((self.y > 0).astype(np.int64), self.ptr[:-1])

    def __len__(self) -> int:
        return self.n_queries

    def __sizeof__(self) -> int:
        # What a scheduler asks before it decides to send a collection once or with every task.
        return object.__sizeof__(self) + self.X.nbytes + self.y.nbytes + self.ptr.nbytes

    def __getitem__(self, number: int) -> Query:
        if not isinstance(number, int | np.integer):
            raise TypeError(f"expected the number of one query, got {number!r}; see where()")
        if not -len(self) <= number < len(self):
            raise IndexError(f"query {number} of {len(self)}")
        number %= len(self)
        own = slice(self.ptr[number], self.ptr[number + 1])
        ids = None if self.doc_ids is None else self.doc_ids[own]
        return Query(self.X[own], self.y[own], self.qids[number : number + 1].tolist()[0], ids)

    def __iter__(self) -> Iterator[Query]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Queries):
            return NotImplemented
        if (self.doc_ids is None) != (other.doc_ids is None):
            return False
        if self.feature_names != other.feature_names:
            return False
        if not np.array_equal(self.X, other.X, equal_nan=True):
            return False
        pairs = [(self.y, other.y), (self.qid, other.qid)]
        if self.doc_ids is not None and other.doc_ids is not None:
            pairs.append((self.doc_ids, other.doc_ids))
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]

    def where(self, keep: ArrayLike) -> Queries:
        """Keep some of the queries.

        Parameters
        ----------
        keep : array of bool, shape (queries,), or array of int
            A mask, or query numbers in the order wanted.
        """
        given = np.asarray(keep)
        if given.dtype.kind == "b":
            if given.shape != (len(self),):
                raise ValueError(f"keep: expected {len(self)} entries, got shape {given.shape}")
            given = np.flatnonzero(given)
        chosen = integers("keep", given, what="query numbers")
        if chosen.ndim != 1:
            raise ValueError(f"keep: expected 1 dimension(s), got shape {chosen.shape}")
        if chosen.size == 0:
            raise ValueError("keep: expected to keep at least one query, got none")
        if not (-len(self) <= chosen.min() and chosen.max() < len(self)):
            raise ValueError(f"keep: expected query numbers below {len(self)}, got {given}")
        chosen = chosen % len(self)
        if len(np.unique(chosen)) < len(chosen):
            raise ValueError("keep: expected each query once, got one twice")
        spans = [np.arange(self.ptr[q], self.ptr[q + 1]) for q in chosen]
        return self._take(np.concatenate(spans))

    def normalize(self, method: str | Sequence[str] = "minmax") -> Queries:
        """Scale every feature within each query.

        Parameters
        ----------
        method : {"minmax", "zscore", "rank", "raw"}, or several of them
            ``"minmax"``: to the range 0 to 1, as LETOR does. ``"zscore"``: to mean 0 and standard
            deviation 1. ``"rank"``: to the rank in the query, scaled to 0 to 1, with the mean rank
            for equal values. ``"raw"``: unchanged. A feature that is constant in a query becomes 0
            there, except with ``"raw"``. Several methods yield as many copies of all features,
            side by side, named ``minmax:name`` and so on if the features have names.

        Examples
        --------
        >>> queries = Queries([[1.0], [9.0], [3.0]], [0, 1, 0])
        >>> queries.normalize().X.ravel()
        array([0.  , 1.  , 0.25])
        >>> queries.normalize(["raw", "rank"]).X
        array([[1. , 0. ],
               [9. , 1. ],
               [3. , 0.5]])
        """
        if not isinstance(method, str):
            if not isinstance(method, list | tuple):
                raise TypeError(f"method: expected one or several names, got {method!r}")
            if not len(method):
                raise ValueError("method: expected at least one")
            if len(method) == 1:
                return self.normalize(method[0])
            views = [self.normalize(one).X for one in method]
            names = self.feature_names
            if names is not None and len(method) > 1:
                names = tuple(f"{one}:{name}" for one in method for name in names)
            return self._with_features(np.concatenate(views, axis=1), names)
        choice("method", method, NORMALIZATIONS)
        if method == "raw":
            return self
        if self.has_missing:
            raise ValueError("normalize: features are missing (NaN); call fill_missing first")
        scaled = np.empty(self.X.shape)
        for first, last in pieces_of(self.ptr, PIECE // max(1, self.n_features)):
            rows, ptr = slice(self.ptr[first], self.ptr[last]), self.ptr[first : last + 1]
            normalize_rows(self.X[rows], ptr - ptr[0], method, scaled[rows])
        return self._with_features(scaled, self.feature_names)

    def fill_missing(self, method: str = "mean") -> Queries:
        """Replace the missing values (NaN) of features.

        Parameters
        ----------
        method : {"zero", "mean"}
            By 0, or by the mean of the values that the documents of the query have of the feature;
            0 where none of them has one.

        Examples
        --------
        >>> queries = Queries([[1.0], [np.nan], [3.0]], [0, 1, 0], missing="allow")
        >>> queries.fill_missing().X.ravel()
        array([1., 2., 3.])
        """
        choice("method", method, FILLS)
        if not self.has_missing:
            return self
        return self._with_features(fill(self.X, self.ptr, method), self.feature_names)

    def clean(self, *, conflicts: str | None = "features", irrelevant: bool = True) -> Queries:
        """Leave out documents with conflicting labels and queries without a relevant document.

        Parameters
        ----------
        conflicts : {"features", "ids", None}
            Documents of one query conflict if they have equal features (or equal document ids)
            and different labels; all of them are removed.
        irrelevant : bool
            Then leave out queries that have no relevant document.

        References
        ----------
        Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 5.1.1.
        """
        result = self
        if conflicts is not None:
            choice("conflicts", conflicts, ("features", "ids"))
            if conflicts == "ids" and self.doc_ids is None:
                raise ValueError("conflicts: these queries have no document ids to compare")
            clash = clashes(self, conflicts)
            if clash.all():
                raise ValueError("clean: every document has conflicting labels")
            result = self._take(np.flatnonzero(~clash)) if clash.any() else self
        if irrelevant and not (result.n_relevant > 0).any():
            raise ValueError("clean: no query has a relevant document")
        return result.where(result.n_relevant > 0) if irrelevant else result

    def describe(self) -> Description:
        """Summarize the collection: queries, documents, features, labels and irregularities."""
        return describe(self)

    @classmethod
    def concatenate(cls, parts: Iterable[Queries]) -> Queries:
        """Join collections with the same features; no query may be in two of them.

        Names of features, and of documents, are kept where all parts have them.
        """
        several = list(parts)
        if not several:
            raise ValueError("parts: expected at least one collection, got none")
        widths = sorted({part.n_features for part in several})
        if len(widths) > 1:
            raise ValueError(f"parts: expected equal numbers of features, got {widths}")
        names = [part.feature_names for part in several]
        given = [entry for entry in names if entry is not None]
        for entry in given[1:]:
            wrong = differing_columns("parts", entry, given[0], "in the first part")
            if wrong is not None:
                raise ValueError(wrong)
        seen: set[Any] = set()
        for part in several:
            again = seen.intersection(part.qids.tolist())
            if again:
                raise ValueError(f"parts: query {again.pop()} is in two of the collections")
            seen.update(part.qids.tolist())
        ids = [part.doc_ids for part in several]
        known = [entry for entry in ids if entry is not None]
        return cls(
            np.concatenate([part.X for part in several]),
            np.concatenate([part.y for part in several]),
            np.concatenate([part.qid for part in several]),
            doc_ids=np.concatenate(known) if len(known) == len(ids) else None,
            feature_names=given[0] if len(given) == len(names) else None,
            missing="allow" if any(part.has_missing for part in several) else "error",
        )

    def __repr__(self) -> str:
        def plural(number: int, word: str, words: str) -> str:
            return f"{number:,} {word if number == 1 else words}"

        parts = (
            plural(self.n_queries, "query", "queries"),
            plural(self.n_documents, "document", "documents"),
            plural(self.n_features, "feature", "features"),
        )
        return f"Queries({', '.join(parts)})"

    def _take(self, documents: IntArray) -> Queries:
        ids = None if self.doc_ids is None else self.doc_ids[documents]
        return Queries(
            self.X[documents],
            self.y[documents],
            self.qid[documents],
            doc_ids=ids,
            feature_names=self.feature_names,
            missing="allow" if self.has_missing else "error",
        )

    def _with_features(self, X: FloatArray, names: tuple[str, ...] | None) -> Queries:
        """Return the same queries with other features."""
        if self.has_missing or not all(np.isfinite(part).all() for _, part in pieces(X)):
            allow = "allow" if self.has_missing else "error"
            ids = self.doc_ids
            return Queries(X, self.y, self.qid, doc_ids=ids, feature_names=names, missing=allow)
        arrays = X, self.y, self.ptr, self.qids
        return Queries.trusted(*arrays, doc_ids=self.doc_ids, feature_names=names)


def _names(X: Any, given: Sequence[str] | None, width: int) -> tuple[str, ...] | None:
    """Return the names of the features: those given, or the column names of X."""
    if given is None:
        return column_names(X)
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"feature_names: expected a text for each feature, got {given!r}")
    if len(given) != width:
        raise ValueError(f"feature_names: expected {width} names, got {len(given)}")
    return tuple(given)
