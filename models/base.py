"""What every learner shares: how it is fitted, and a plain file format."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from permdist._files import write_atomically
from permdist.data import Queries
from permdist.models.attributes import Count, History, Numbers, Truth
from permdist.models.batch import Batch
from permdist.models.checkpoints import Checkpoint, facts_of
from permdist.models.history import Watch
from permdist.models.inputs import need_names, need_range, refuse_arguments
from permdist.models.options import learned, option
from permdist.models.rules import Flag, MeasureName, Whole
from permdist.models.scaling import Scaling, inverse
from permdist.models.scored import Scored
from permdist.models.sources import source_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.blocks import Table
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


class Ranker(Scored):
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
    n_iter_: int = learned(Count(), "Iterations of the optimizer, the length of `history_`.")
    history_: dict[str, list[float]] = learned(
        History(),
        "``objective`` and ``seconds`` at every iteration, what else the learner's page "
        "names, and the validation ``measure`` where there is an `eval_set`. Where validation "
        "has kept the model that the fit started from, that model is the first entry, with NaN for "
        "what was not computed of it.",
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
        **unknown: Any,
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
        **unknown
            None; those of other libraries are refused with what to pass here.

        Returns
        -------
        self
        """
        if unknown:
            refuse_arguments(type(self).fit, next(iter(unknown)))
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
        self.history_, self.views_ = watch.record(), views
        self.n_iter_ = len(self.history_["objective"])
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

    def save(self, path: str | Path) -> None:
        """Write the fitted learner to a JSON file; `permdist.models.load` reads it.

        What could not be read again, a coefficient that is NaN, say, is refused.

        Parameters
        ----------
        path : path
            Compressed if it ends in ``.gz`` or ``.bz2``.

        Raises
        ------
        NotFittedError
            If there is no model yet.
        """
        from permdist.models.files import to_dict

        self.check_parameters()
        if not hasattr(self, "history_"):
            raise NotFittedError(
                f"save: this {type(self).__name__} is not fitted, there is no model to write; call "
                "fit first, or keep its parameters, get_params()"
            )
        self.read_state(self.state(), self.n_columns)
        write_atomically(Path(path), [json.dumps(to_dict(self), allow_nan=False).encode()])

    # ---- inside --------------------------------------------------------------------------------

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
