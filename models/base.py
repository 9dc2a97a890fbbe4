"""What every learner shares: data in, scores and rankings out, and a plain file format."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from permdist._check import pieces
from permdist._deprecation import warn_renamed
from permdist._files import write_atomically
from permdist._groups import group_queries
from permdist.data import Queries
from permdist.data.missing import has_missing
from permdist.measures import Measure, evaluate, parse
from permdist.models.attributes import Count, History, Numbers, Truth
from permdist.models.batch import Batch
from permdist.models.blocks import Table
from permdist.models.checkpoints import Checkpoint, facts_of
from permdist.models.cluster_scores import evaluate_stores, predict_stores
from permdist.models.history import Watch
from permdist.models.inputs import (
    as_queries,
    need_names,
    need_range,
    read_features,
)
from permdist.models.missing import need_values
from permdist.models.options import learned, option
from permdist.models.prepared import Prepared
from permdist.models.rules import Flag, MeasureName, Whole
from permdist.models.scaling import Scaling, inverse
from permdist.models.sources import source_of
from permdist.models.stores import far_stores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.models.stores import AnyStores

NORMALIZATIONS = (False, "zscore", "rank")  # to choose from on validation queries
SAME = 1e-12  # scores that differ by less, relative to what they are sums of, differ by rounding


Settings = Mapping[str, Sequence[Any]]


class Card(NamedTuple):
    """What a learner is, in a few words.

    Attributes
    ----------
    paper : str
    optimizes : str
        What it wants to be good at.
    minimizes : str
        Its objective, summed over queries; most add ``|w|^2 / C``.
    cost : str
        How one evaluation grows with the n documents of a query.
    """

    paper: str = ""
    optimizes: str = ""
    minimizes: str = ""
    cost: str = ""

    @property
    def optimises(self) -> str:
        """Old name of `optimizes`."""
        warn_renamed("Card", "optimises", "optimizes")
        return self.optimizes

    @property
    def minimises(self) -> str:
        """Old name of `minimizes`."""
        warn_renamed("Card", "minimises", "minimizes")
        return self.minimizes


class Ranker(Prepared):
    """A ranking function, linear (``X @ coef_``) unless a learner says otherwise.

    A learner gives `_learn`, which turns features and labels into fitted attributes; everything
    else is here.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str, shape (features,)
        Where the features of `fit` had names: the columns of a data frame, or those of `Queries`.
    filling_ : tuple (method, indicators)
        Where `missing` was not ``"error"``: its value, and the features that have an indicator.
    """

    card: ClassVar[Card] = Card()
    listed: ClassVar[bool] = True  # whether `all_learners` and "all" in a comparison include it
    linear: ClassVar[bool] = True  # unless all its models are made of trees or layers
    by_query: ClassVar[bool] = False  # whether a score depends on the other documents
    settings: ClassVar[Settings] = {}  # worth trying in a comparison
    measure_judges: ClassVar[bool] = False  # `measure` is for validation, not for the objective
    scales_itself: ClassVar[bool] = False  # whether `_learn` takes features in any units
    by_blocks: ClassVar[bool] = False  # whether it learns from blocks, not from one array

    measure: str | Measure = option(
        MeasureName(),
        "What `score` and early stopping look at; it plays no part in the objective.",
        default="ap",
    )
    early_stopping: int | None = option(
        Whole(optional=True),
        "Stop after so many iterations without a better measure on `eval_set`, and keep the best.",
        default=None,
    )
    verbose: bool = option(
        Flag(), "Whether to print the objective at every iteration.", default=False
    )

    coef_: FloatArray = learned(
        Numbers(("width",)),
        "One per feature; where `normalize` names several methods, one such block for each. The "
        "coefficients of indicators of missing values come last.",
    )
    n_iter_: int = learned(Count(), "Iterations of the optimizer.")
    history_: dict[str, list[float]] = learned(
        History(),
        "``objective`` and ``seconds`` at every iteration, what else the learner's page "
        "names, and the validation ``measure`` where there is an `eval_set`.",
    )
    converged_: bool = learned(
        Truth(),
        "Whether the optimizer has certified its result: the gap between the objective and its "
        "minimum is within the tolerance.",
    )
    null_: bool = learned(
        Truth(),
        "Whether the model ranks the training queries no better than random ties would, by "
        "`measure`.",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # One that has its own way to learn from an array is not passed by.
        if "_learn" in cls.__dict__ and "_learn_by_blocks" not in cls.__dict__:
            cls.by_blocks = False

    @classmethod
    def settings_for(cls, measure: Measure | None = None) -> dict[str, Sequence[Any]]:  # noqa: ARG003
        """Return the settings to try where models are chosen by a measure on validation queries.

        These are `settings`, and features as they are or scaled within queries.

        Parameters
        ----------
        measure : Measure, optional

        Examples
        --------
        >>> from permdist.models import RankCosine
        >>> RankCosine.settings_for()
        {'normalize': (False, 'zscore', 'rank')}
        """
        return {"normalize": NORMALIZATIONS, **cls.settings}

    # ---- what a learner gives ------------------------------------------------------------------

    @abstractmethod
    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        """Set the fitted attributes; note every iteration in `watch`.

        `start` has the coefficients to start from, where the user has given any.
        """

    def _learn_by_blocks(self, table: Table, watch: Watch, start: FloatArray | None) -> None:
        """Do as `_learn`; one with `by_blocks` does so without one array of all features."""
        self._learn_scaled(table, watch, start)

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:  # noqa: ARG002
        """Score documents by their features, already normalized; ptr matters with `by_query`."""
        return features @ self.coef_

    def _previous(self) -> FloatArray | None:
        """Return the coefficients of the last fit to start from, if any."""
        return None

    def _scaling(self, features: FloatArray, ptr: IntArray) -> Scaling | None:  # noqa: ARG002
        """Return the units in which features are to be measured, None for those they have."""
        return None

    def _rescale(self, spread: FloatArray) -> None:
        """Turn what was learned from features divided by `spread` into units of the features."""
        self.coef_ = self.coef_ * inverse(spread)

    def why_whole(self) -> str:
        """Say why all data must be in one array or in one pass, nothing if they need not be.

        Such learners have no checkpoints, and are not fitted on a cluster.
        """
        return "" if self.by_blocks else "it learns from all features in one array"

    # ---- the estimator -------------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike | Queries | AnyStores,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        eval_set: Queries | tuple[ArrayLike, ArrayLike, ArrayLike] | AnyStores | None = None,
        warm_start_from: Ranker | None = None,
        client: Any = None,
        checkpoint: str | Path | None = None,
        regroup: bool = False,
    ) -> Ranker:
        """Fit the ranking function.

        Parameters
        ----------
        X : array, data frame or sparse matrix of float, shape (documents, features), or Queries
            Or a store, the folder that `permdist.data.write_store` has made, or a list of stores,
            whose queries count as those of one collection. Data frames are those of pandas, and
            tables of polars, pyarrow and others as in `Queries`. Sparse matrices are made dense,
            which is refused beyond 4 GiB.
        y : array of int, shape (documents,)
            Relevance labels.
        qid : array, shape (documents,)
            The query of each document: whole numbers or strings, also as categories. Queries must
            be contiguous, see `regroup`. Without it all documents are one query; more than 1,000
            of them are refused (``numpy.zeros(len(y))`` says that they are one).
        eval_set : Queries, (X, y, qid), a store or a list of stores, optional
            Validation data: its measure is noted at every iteration and, with `early_stopping`,
            decides when to stop and which coefficients to keep.
        warm_start_from : Ranker, optional
            A fitted linear learner of the same features, to start from: one that minimizes an
            easy bound, say, before one that minimizes a tight one.
        client : distributed.Client, optional
            Of a dask cluster, whose workers then hold the data. X must be stores that all workers
            can read under the same path. The result is that of a fit without it, to the bit.
            Learners that need all features in one array refuse it.
        checkpoint : path, optional
            A file in which every evaluation of the objective is kept. A fit that was killed goes
            on with the same file where it was, and comes to the same result, to the bit. A file of
            another learner, of other parameters (`max_iter`, `tol`, `early_stopping`, `n_jobs` and
            `verbose` may be changed) or of other data is refused.
        regroup : bool
            Gather the documents of queries that are not contiguous, instead of refusing them, in
            X and in `eval_set`.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y, qid, eval_set, warm_start_from, client, checkpoint, regroup)
        except BaseException:  # a fit that fails, or is interrupted, changes nothing
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(
        self,
        X: Any,
        y: Any,
        qid: Any,
        eval_set: Any,
        warm_start_from: Any,
        client: Any,
        checkpoint: str | Path | None,
        regroup: bool,
    ) -> Ranker:
        self.check_parameters()
        views, before = self._views(), self._previous()
        source = source_of(self, X, y, qid, client, warm=before is not None, regroup=regroup)
        if checkpoint is not None and self.why_whole():
            raise ValueError(
                f"checkpoint: {type(self).__name__} has none, {self.why_whole()}; fit without one"
            )
        held_out = None if eval_set is None else source.held_out(self, eval_set)
        if held_out is None and self.early_stopping is not None:
            raise ValueError("early_stopping: it needs an eval_set to look at")
        table = source.table(self)
        need_range(table.largest)
        watch = Watch(
            type(self).__name__,
            held_out=held_out,
            measure=self.judge,
            patience=self.early_stopping,
            verbose=bool(self.verbose),
        )
        start = before
        if warm_start_from is not None:
            start = self._coefficients_of(warm_start_from, table.width)
        self.converged_ = True  # unless the learner finds otherwise
        if self.by_blocks:
            if start is not None:
                watch.first(start)
            if checkpoint is not None:
                table.checkpoint = Checkpoint(checkpoint, facts_of(self, source.facts(), start))
            try:
                self._learn_by_blocks(table, watch, start)
            finally:
                if table.checkpoint is not None:
                    table.checkpoint.close()
        else:
            self._learn_scaled(table, watch, start)
        self.history_, self.n_iter_, self.views_ = watch.history, len(watch), views
        self.null_ = False
        self._check_fit()
        self.null_ = self._is_null(table)
        return self

    def _learn_scaled(self, table: Table, watch: Watch, start: FloatArray | None) -> None:
        """Learn from features in units of their spread, unless the learner sees to that itself."""
        features, batch = self._whole(table)
        scaling = None if self.scales_itself else self._scaling(features, batch.ptr)
        if scaling is None:
            if start is not None:
                watch.first(start)
            self._learn(features, batch, watch, start)
            return
        spread, factors = scaling.spread, scaling.factors
        if watch.held_out is not None:
            held_out = watch.held_out
            arrays = held_out.y, held_out.ptr, held_out.qids
            watch.held_out = Queries.trusted(held_out.X * factors, *arrays)
        if start is not None:
            start = start * spread
            watch.first(start)
        self._learn(features * factors, batch, watch, start)
        self._rescale(spread)

    def _is_null(self, table: Table) -> bool:
        """Check whether the model ranks better than ties would; warn where it does not."""
        jobs = getattr(self, "n_jobs", 1) if self.by_blocks else 1
        spreads, sizes, *values = zip(*table.each(self._verdict, jobs), strict=True)
        if not np.max(spreads) > SAME * np.max(sizes):
            text = (
                f"all documents of a query score the same, nothing was learned; {self._why_flat()}"
            )
        else:
            found, chance = (float(np.nanmean(np.concatenate(one))) for one in values)
            if not found <= chance + SAME:
                return False
            text = (
                f"the training queries are ranked no better than by chance ({self.judge.name} "
                f"{found:.4f}, {chance:.4f} at random); try weaker regularization, another "
                "measure or other features"
            )
        warnings.warn(f"{type(self).__name__}: {text}", ConvergenceWarning, stacklevel=4)
        return True

    def _verdict(self, table: Table, number: int) -> tuple[float, float, FloatArray, FloatArray]:
        """Return what is to be known of the scores of a block.

        Their largest difference within a query, the largest size of one, the learner's measure of
        each query, and that of a random order.
        """
        ptr, labels = table.pointers(number), table.labels[table.rows(number)]
        batch = replace(Batch.of(labels, ptr), first=table.first + table.cuts[number])
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(table.block(number), ptr)
            starts = ptr[:-1]
            spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        found = chance = np.full(len(batch), np.nan)
        if np.isfinite(scores).all():
            found, chance = batch.beyond_chance(self.judge, scores)
        return float(spread.max()), float(np.abs(scores).max()), found, chance

    def _why_flat(self) -> str:
        """Ask for the reasons why nothing may have been learned."""
        return (
            "are the features constant, is the measure the same for all rankings, or C too small?"
        )

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
        scores = self.predict(X, qid, regroup=regroup)
        if isinstance(X, Queries):
            queries = as_queries(X, y, qid)
            return float(evaluate(scores, queries.y, queries.qid, chosen).mean(chosen))
        if y is None:
            raise TypeError("y: expected relevance labels")
        return float(evaluate(scores, y, qid, chosen, regroup=regroup).mean(chosen))

    def save(self, path: str | Path) -> None:
        """Write the learner, fitted or not, to a JSON file; `permdist.models.load` reads it.

        What could not be read again, a coefficient that is NaN, say, is refused.

        Parameters
        ----------
        path : path
            Compressed if it ends in ``.gz`` or ``.bz2``.
        """
        from permdist.models.files import to_dict

        self.check_parameters()
        if hasattr(self, "history_"):
            self.read_state(self.state(), self.n_columns)
        write_atomically(Path(path), [json.dumps(to_dict(self), allow_nan=False).encode()])

    # ---- inside --------------------------------------------------------------------------------

    @property
    def judge(self) -> Measure:
        """The measure that `score` and early stopping look at."""
        return parse(self.measure)

    def need_fit(self) -> None:
        """Raise NotFittedError unless the learner has been fitted."""
        if not hasattr(self, "history_"):
            raise NotFittedError(f"{type(self).__name__}: call fit first")

    def _need_unit_range(self) -> None:
        """Refuse measures with values outside [0, 1]."""
        low, high = self.judge.range
        if low < 0.0 or high > 1.0:
            raise ValueError(
                f"measure: expected values from 0 to 1, {self.judge.name!r} has {low} to {high}"
            )

    def _coefficients_of(self, other: Ranker, width: int) -> FloatArray:
        if not isinstance(other, Ranker):
            raise TypeError(
                f"warm_start_from: expected a fitted learner, got {type(other).__name__}"
            )
        other.need_fit()
        if not hasattr(other, "coef_"):
            raise ValueError(
                f"warm_start_from: expected a linear learner, got {type(other).__name__}"
            )
        same = other.filling.indicators == self.filling.indicators
        if len(other.coef_) != width or tuple(other.views_) != self._views() or not same:
            raise ValueError(
                f"warm_start_from: expected {width} coefficients for features normalized in the "
                f"same way, got {len(other.coef_)}"
            )
        named = getattr(self, "feature_names_in_", None)
        if named is not None and hasattr(other, "feature_names_in_"):
            need_names(other, tuple(named), "warm_start_from")
        return np.array(other.coef_)


def _all_finite(scores: FloatArray) -> FloatArray:
    """Return scores, and refuse those that no double can hold."""
    wrong = ~np.isfinite(scores)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"X: the score of row {row} is {scores[row]}; are its features right?")
    return scores
