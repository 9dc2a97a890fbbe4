"""What fitted learners do with data: scores, rankings and measures of documents."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

from permdist._check import pieces
from permdist.data import Queries
from permdist.data.missing import has_missing
from permdist.data.tables import check_same_rows, group_queries
from permdist.measures import Measure, evaluate, parse
from permdist.models.blocks import Table
from permdist.models.cluster_scores import evaluate_stores, predict_stores
from permdist.models.inputs import as_queries, read_features
from permdist.models.missing import need_values
from permdist.models.prepared import Prepared
from permdist.models.stores import far_stores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.models.stores import AnyStores


class Scored(Prepared):
    """An estimator that scores documents once it has been fitted."""

    by_query: ClassVar[bool] = False  # whether a score depends on the other documents

    measure: str | Measure

    @abstractmethod
    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:
        """Score documents by their features, already normalized; ptr matters with `by_query`."""

    @property
    def judge(self) -> Measure:
        """The measure that `score` and early stopping look at."""
        return parse(self.measure)

    def need_fit(self) -> None:
        """Raise NotFittedError unless the learner has been fitted."""
        if not hasattr(self, "history_"):
            raise NotFittedError(f"{type(self).__name__}: call fit first")

    def predict(
        self,
        X: ArrayLike | Queries | AnyStores,
        qid: ArrayLike | None = None,
        *,
        client: Any = None,
        regroup: bool = False,
    ) -> FloatArray:
        """Return the scores of documents, shape (documents,), in the order of the rows of X.

        Parameters
        ----------
        X : array, data frame or sparse matrix of float, shape (documents, features), or Queries
            Features with other names than those of `fit`, or in another order, are refused. Where
            only one of the two had names there is a warning, as of scikit-learn's estimators.
        qid : array, shape (documents,), optional
            Needed only with `normalize`, by learners that add up rankings, and to replace missing
            values by means: all of them look at whole queries.
        client : distributed.Client, optional
            Of a dask cluster, whose workers score the documents; X is then a store or a list of
            stores, as in `fit`.
        regroup : bool
            Accept queries that are not contiguous, where `qid` is needed. Scores have the order of
            the rows, whatever `regroup` is.
        """
        self.need_fit()
        paths = far_stores(X, client, qid)
        if paths is not None:
            return predict_stores(self, paths, client)
        filling = self.filling
        check_same_rows(X=X, qid=qid)
        features = read_features(self, X, reset=False)
        views = tuple(self.views_)
        known = X.has_missing if isinstance(X, Queries) else has_missing(features)
        need_values(filling.method, features if known else None)
        wanted = filling.method == "mean" and known
        if not self.by_query and views == ("raw",) and not wanted:
            return _all_finite(self._scores_of_rows(features))
        ids = X.qid if isinstance(X, Queries) else qid
        if ids is None:
            who = "missing='mean'" if wanted else "normalize"
            who = type(self).__name__ if self.by_query else who
            raise TypeError(f"qid: {who} needs the query of each document")
        groups = group_queries(ids, len(features), regroup=regroup)
        if groups.order is not None:
            features = features[groups.order]
        labels = np.zeros(len(features), dtype=np.int64)
        arrays = features, labels, groups.ptr, groups.qids
        queries = Queries.trusted(*arrays, has_missing=known)
        jobs = getattr(self, "n_jobs", 1)
        table = Table(queries, filling=filling, views=views, n_jobs=jobs)
        scores = self._table_scores(table)
        if groups.order is not None:
            scores[groups.order] = scores.copy()
        return _all_finite(scores)

    def _scores_of_rows(self, features: FloatArray) -> FloatArray:
        """Score documents whose queries do not matter."""
        scores = np.empty(len(features))
        with np.errstate(over="ignore", invalid="ignore"):
            for start, part in pieces(features):
                rows = self.filling.apply_to_rows(np.asarray(part, dtype=np.float64))
                ptr = np.array([0, len(part)])
                scores[start : start + len(part)] = self._scores(rows, ptr)
        return scores

    def _table_scores(self, table: Table) -> FloatArray:
        """Score the documents of all blocks."""
        scores = np.empty(table.n_documents)
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(len(table)):
                found = self._scores(table.block(number), table.pointers(number))
                scores[table.rows(number)] = found
        return scores

    def rank(
        self, X: ArrayLike | Queries, qid: ArrayLike | None = None, *, regroup: bool = False
    ) -> IntArray:
        """Return the order of the documents of each query, as row numbers from its best down.

        Parameters
        ----------
        X : array, data frame or sparse matrix of float, shape (documents, features), or Queries
            As in `predict`.
        qid : array, shape (documents,), optional
            The query of each document; up to 1,000 documents are one query without it.
        regroup : bool
            Accept queries that are not contiguous.

        Returns
        -------
        array of int, shape (documents,)
            Query after query, in the order in which they first appear in `qid`.
        """
        ids = X.qid if isinstance(X, Queries) else qid
        scores = self.predict(X, ids, regroup=regroup)
        groups = group_queries(ids, len(scores), regroup=regroup)
        rows = np.arange(len(scores)) if groups.order is None else groups.order
        queries = [rows[a:b] for a, b in pairwise(groups.ptr)]
        return np.concatenate([one[np.argsort(-scores[one], kind="stable")] for one in queries])

    def score(
        self,
        X: ArrayLike | Queries | AnyStores,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        measure: str | Measure | None = None,
        *,
        client: Any = None,
        regroup: bool = False,
    ) -> float:
        """Return the mean over queries of a measure, the learner's own by default.

        Parameters
        ----------
        X : array, data frame or sparse matrix of float, shape (documents, features), or Queries
            As in `predict`.
        y, qid : arrays, shape (documents,)
            Relevance labels and queries, where X is no collection of them.
        measure : Measure or str, optional
        client : distributed.Client, optional
            Of a dask cluster, as in `predict`; scores stay with its workers.
        regroup : bool
            Gather the documents of queries that are not contiguous, instead of refusing them.
        """
        paths = far_stores(X, client, y, qid)
        if paths is not None:
            chosen = self.judge if measure is None else parse(measure)
            self.need_fit()
            return float(evaluate_stores(self, paths, [chosen], client).mean(chosen))
        if not isinstance(X, Queries) and qid is None:
            raise TypeError(
                "qid: expected the query of each document; in a grid search, route it with "
                "set_score_request(qid=True)"
            )
        chosen = self.judge if measure is None else parse(measure)
        check_same_rows(X=X, y=y, qid=qid)
        scores = self.predict(X, qid, regroup=regroup)
        if isinstance(X, Queries):
            queries = as_queries(X, y, qid)
            return float(evaluate(scores, queries.y, queries.qid, chosen).mean(chosen))
        if y is None:
            raise TypeError("y: expected relevance labels")
        return float(evaluate(scores, y, qid, chosen, regroup=regroup).mean(chosen))


def _all_finite(scores: FloatArray) -> FloatArray:
    """Return scores, and refuse those that no double can hold."""
    wrong = ~np.isfinite(scores)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"X: the score of row {row} is {scores[row]}; are its features right?")
    return scores
