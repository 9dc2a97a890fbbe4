"""Boosted trees that minimize any of the objectives, grown by other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.models.attributes import Text
from permdist.models.base import Card, Settings
from permdist.models.batch import Batch
from permdist.models.boosters import ENGINES, Growth, booster_of, names_for_engines, reader_of
from permdist.models.held_out import DEFAULT, HoldsOut
from permdist.models.missing import KEPT, METHODS
from permdist.models.objectives.base import OBJECTIVES, Objective, parse_objective
from permdist.models.options import learned, option
from permdist.models.rules import Flag, Number, OneOf, Whole
from permdist.models.shared import Seeded, Threaded
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.models.history import Watch


class Boosted(Seeded, Threaded, HoldsOut):
    """Regression trees, added one by one, each of which lowers an objective.

    Round t fits a tree to the Newton steps of all documents, ``- gradient / curvature`` of the
    objective at the scores so far, weighted by curvature: its leaves are ``- G / (H + l2)`` for
    the sums G and H over their documents, times `learning_rate`. What is a sum over rankings is
    exact in every round; nothing is drawn but columns.

    Attributes
    ----------
    n_iter_ : int
        Rounds. With `early_stopping`, trees after the best round are not kept.
    history_ : dict of lists
        ``objective`` after each round, summed over queries.
    converged_ : bool
        True: the number of rounds is a setting.

    References
    ----------
    Friedman: Greedy Function Approximation: A Gradient Boosting Machine. Burges: From RankNet to
    LambdaRank to LambdaMART.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = Boosted("listnet", engine="sklearn", max_iter=10, leaves=4).fit(queries)
    >>> learner.history_["objective"][-1] < learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Friedman 2001",
        optimizes="any objective",
        minimizes="objective(F), F a sum of trees",
        cost="objective + n x features per round",
    )
    listed: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    fitted: ClassVar[tuple[str, ...]] = ("model_", "n_iter_", "history_", "converged_", "null_")
    measure_judges: ClassVar[bool] = True
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("n_estimators", "iterations", "num_boost_round"), "max_iter"),
        **dict.fromkeys(("eta", "shrinkage"), "learning_rate"),
        **dict.fromkeys(("num_leaves", "max_leaves", "max_leaf_nodes"), "leaves"),
        "max_depth": "depth",
        **dict.fromkeys(
            ("min_child_samples", "min_data_in_leaf", "min_samples_leaf", "min_child_weight"),
            "min_documents",
        ),
        **dict.fromkeys(("reg_lambda", "lambda_l2", "l2_leaf_reg"), "l2"),
        **dict.fromkeys(("colsample_bytree", "feature_fraction", "max_features"), "columns"),
        **dict.fromkeys(("seed", "random_seed"), "random_state"),
        **dict.fromkeys(("n_threads", "num_threads", "nthread"), "n_jobs"),
        **dict.fromkeys(("early_stopping_rounds", "early_stopping_round"), "early_stopping"),
    }
    settings: ClassVar[Settings] = {
        "max_iter": [500],
        "early_stopping": [50],
        "leaves": [7, 31],
    }

    objective: str | Objective = option(
        SpecName(OBJECTIVES),
        "One of `permdist.objectives`, or its text form. The default is the likelihood of pairs "
        "and the expected loss of AP, whose curvature is exact.",
        default=DEFAULT,
        kw_only=False,
    )
    engine: str = option(
        OneOf(ENGINES),
        "The library that grows the trees. LightGBM and XGBoost are optional dependencies; "
        "scikit-learn's trees look at all values of a feature and are slower.",
        default="lightgbm",
    )
    max_iter: int = option(Whole(), "The number of rounds.", default=100)
    learning_rate: float = option(Number(1e-12, 1e6), "The factor of each tree.", default=0.1)
    leaves: int = option(Whole(2, 131_072), "The largest number of leaves of a tree.", default=31)
    depth: int | None = option(
        Whole(1, 64, optional=True), "The largest depth of a tree; any by default.", default=None
    )
    min_documents: int = option(
        Whole(),
        "The smallest number of documents of a leaf; for XGBoost, the smallest sum of their "
        "curvature, whose mean is 1 in the first round.",
        default=20,
    )
    l2: float = option(
        Number(0.0),
        "Is added to the curvature of a leaf, whose documents have about 1 each.",
        default=1.0,
    )
    columns: float = option(
        Number(1e-6, 1.0), "The share of the features that each tree looks at.", default=1.0
    )
    floor: float = option(
        Number(0.0, 1e6),
        "The smallest curvature of a document, relative to the mean over all of them: it keeps "
        "steps short where the objective is nearly flat or not convex.",
        default=0.1,
    )
    missing: str = option(
        OneOf((*METHODS, KEPT)),
        "What to do with features that are missing, NaN: leave them to the engine, which sends "
        "them to either side of a split; refuse them; or replace them by 0 or by the mean of "
        "those that the query has of the feature.",
        default=KEPT,
    )
    missing_indicator: bool = option(
        Flag(),
        "Whether every feature with missing values in the training data gets one more column, 1 "
        "where it is missing and 0 elsewhere.",
        default=False,
    )

    model_: str = learned(
        Text(),
        "The trees, as the engine writes them: LightGBM's text, or JSON. Those of LightGBM and "
        "XGBoost have the names of the features, with ``_`` in place of spaces and brackets.",
    )

    def build_objective(self) -> Objective:
        """Return the objective."""
        return parse_objective(self.objective)

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        return Batch.of(labels, ptr)

    def why_whole(self) -> str:
        """Say why all data must be in one array; see `Ranker.why_whole`."""
        return "its engine reads all features before the first tree"

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        if start is not None:
            raise ValueError("warm_start_from: trees cannot go on from coefficients")
        from permdist.adapters.losses import GroupedLoss

        loss = GroupedLoss(self.build_objective(), floor=float(self.floor), n_jobs=self.n_jobs)
        held_out = None if watch.held_out is None else np.asarray(watch.held_out.X)
        booster = booster_of(self.engine, features, held_out, self._growth(), self._names())
        sizes = np.diff(batch.ptr)
        scores = np.zeros(len(features))
        _, gradient, curvature = loss.evaluate(scores, batch.labels, sizes)
        for number in range(self.max_iter):
            scores, held_out_scores = booster.step(gradient, curvature)
            values, gradient, curvature = loss.evaluate(scores, batch.labels, sizes)
            if watch.note(number + 1, held_out_scores, objective=float(values.sum())):
                break
        kept = len(watch)
        if watch.stops_early and watch.best is not None:
            kept = int(watch.best)
        self.model_ = booster.text(kept)

    def _names(self) -> list[str] | None:
        """Return the names of all columns, where the features have names."""
        own = getattr(self, "feature_names_in_", None)
        if own is None:
            return None
        names = list(own)
        if len(self.views) > 1:
            names = [f"{view}:{name}" for view in self.views for name in own]
        names += [f"missing:{own[one]}" for one in self.filling.indicators]
        return names_for_engines(map(str, names))

    def _growth(self) -> Growth:
        """Return how trees are grown."""
        seed = self.random_state
        if seed is None or isinstance(seed, np.random.Generator):
            seed = int(np.random.default_rng(seed).integers(2**31))
        return Growth(
            rate=float(self.learning_rate),
            leaves=int(self.leaves),
            depth=None if self.depth is None else int(self.depth),
            min_documents=int(self.min_documents),
            l2=float(self.l2),
            columns=float(self.columns),
            seed=int(seed) % 2**31,
            n_jobs=self.n_jobs,
        )

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:  # noqa: ARG002
        known = self.__dict__.get("_reader")
        if known is None or known[0] is not self.model_:
            reader = reader_of(self.engine, self.model_, self.n_columns)
            known = self.__dict__["_reader"] = (self.model_, reader)
        return known[1](features)

    def _check_state(self, state: Mapping[str, Any]) -> None:
        if self.engine == "sklearn":  # others are read by their own libraries, on use
            reader_of(self.engine, state["model_"], self.n_columns)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_reader", None)
        return state
