"""Weak rankers for boosting on queries: single features, thresholds, other learners, your own.

A pool offers weak rankers, brought to a common unit, and keeps the sum of those that are taken.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from permdist._check import as_rng, finite
from permdist.models.attributes import Attribute
from permdist.models.base import Ranker
from permdist.models.blocks import columns_of
from permdist.models.rules import Rule, Views, shown
from permdist.models.scaling import inverse, spread_within
from permdist.models.solvers import linear_scores
from permdist.models.solvers.total import Evaluation
from permdist.models.weak_rounds import Attempt, Listed, Rounds, Steps, Sums

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.blocks import Table

WORDS = ("features", "signed", "thresholds", "stumps")
TRIES = 5  # weak learners that are fitted in vain before there is no hope

Measured = Callable[["FloatArray"], "FloatArray"]


class Offer(NamedTuple):
    """A weak ranker h that a pool offers.

    Attributes
    ----------
    key : object
        What it is, for the pool.
    phi : float
        The weighted mean of the measure of queries that are ranked by h.
    """

    key: Any
    phi: float


class Pool(ABC):
    """Weak rankers to choose from, and the sum of those that were chosen."""

    linear: bool = False  # whether the model has coefficients

    @abstractmethod
    def begin(self) -> tuple[float, float]:
        """Return the sums of E and of exp(-E) over queries, before the first round."""

    @abstractmethod
    def best(self) -> Offer | None:
        """Return the weak ranker of the largest weighted measure, of those not passed over."""

    @abstractmethod
    def attempt(self, key: Any, alpha: float) -> Attempt:
        """Look at the model with this weak ranker, which was offered last, added to it."""

    @abstractmethod
    def accept(self) -> None:
        """Keep the model of the last attempt."""

    @abstractmethod
    def pass_over(self, key: Any) -> None:
        """Do not offer this one again until `reset`."""

    @abstractmethod
    def reset(self) -> None:
        """Offer all again."""

    @abstractmethod
    def predict(self, key: Any, queries: Queries) -> FloatArray:
        """Return the scores of other documents."""

    @abstractmethod
    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return the fitted attributes of the sum of these weak rankers and a linear start."""


class Listing(Pool):
    """A pool of finitely many weak rankers, which are measured once.

    Parameters
    ----------
    table : Table or ClusterTable
    rankers : Listed
    measure : Measure
    start : array of float, shape (columns,), or None
        The coefficients of a linear model that the rounds add to.
    """

    def __init__(
        self, table: Any, rankers: Listed, measure: Measure, start: FloatArray | None
    ) -> None:
        self.rankers, self._table = rankers, table
        self._rounds = Rounds(rankers, measure, start)
        self._steps: Steps = ()
        self._tried: Steps = ()
        self._sums: Sums | None = None
        self.reset()

    def begin(self) -> tuple[float, float]:
        """Return the sums of E and of exp(-E) over queries, before the first round."""
        sums = self._after_steps()
        return sums.measure, sums.bound

    def best(self) -> Offer | None:
        """Return the weak ranker of the largest weighted measure, of those not passed over."""
        if not self.offered.any():
            return None
        sums = self._after_steps()
        key = int(np.argmax(np.where(self.offered, sums.by_ranker, -np.inf)))
        return Offer(key, float(sums.by_ranker[key] / sums.bound))

    def attempt(self, key: int, alpha: float) -> Attempt:
        """Look at the model with this weak ranker added to it."""
        self._tried = (*self._steps, (key, alpha))

        def compute() -> Evaluation:
            found = self._rounds.attempt(self._table, self._steps, key, alpha)
            delta = np.array([found.delta])
            return Evaluation(found.measure, delta, found.bound, int(found.changed))

        known = self._kept(np.array([key, alpha]), compute)
        return Attempt(known.value, known.steepest, float(known.gradient[0]), known.silent > 0)

    def accept(self) -> None:
        """Keep the model of the last attempt."""
        self._steps, self._sums = self._tried, None

    def pass_over(self, key: int) -> None:
        """Do not offer this one again until `reset`."""
        self.offered[key] = False

    def reset(self) -> None:
        """Offer all again."""
        self.offered = self.rankers.usable.copy()

    def predict(self, key: int, queries: Queries) -> FloatArray:
        """Return the scores of other documents."""
        return self.rankers.scores(key, queries.X)

    def _after_steps(self) -> Sums:
        def compute() -> Evaluation:
            found = self._rounds.sums(self._table, self._steps)
            return Evaluation(found.measure, found.by_ranker, found.bound, 0)

        if self._sums is None:
            known = self._kept(np.array([-1.0]), compute)
            self._sums = Sums(known.value, known.steepest, known.gradient)
        return self._sums

    def _kept(self, asked: FloatArray, compute: Callable[[], Evaluation]) -> Evaluation:
        """Return what a question comes to: from the checkpoint, or computed and added to it."""
        there = self._table.checkpoint
        if there is None:
            return compute()
        state = hashlib.sha256(repr(self._steps).encode()).digest()[:16]
        known: Evaluation | None = there.find(state, asked)
        if known is None:
            known = compute()
            there.keep(state, asked, known)
        return known


class Features(Listing):
    """Single features, with `signed` also upside down: rankers ``width + k`` are ``-x_k``.

    Parameters
    ----------
    table, measure, start
        As for `Listing`.
    standardized : bool
        Whether features are divided by their spread within queries.
    signed : bool
    """

    linear = True

    def __init__(
        self,
        table: Any,
        measure: Measure,
        start: FloatArray | None,
        *,
        standardized: bool,
        signed: bool,
    ) -> None:
        spread, self.width = table.spread, table.width
        factor = inverse(spread) if standardized else np.ones(self.width)
        number = np.arange(self.width)
        # A feature that is constant in every query ranks nothing: ties would speak for it.
        rankers = number, factor, spread > 0.0
        if signed:
            rankers = (
                np.tile(number, 2),
                np.concatenate([factor, -factor]),
                np.tile(spread > 0.0, 2),
            )
        feature, factors, usable = rankers
        super().__init__(table, Listed(feature, factors, None, usable), measure, start)

    def column(self, key: int) -> int:
        """Return the number of the feature, ``-1 - number`` where it is upside down."""
        return key if key < self.width else -1 - key % self.width

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return coefficients."""
        coef = np.array(start)
        for key, alpha in zip(keys, alphas, strict=True):
            coef[key % self.width] += alpha * self.rankers.factor[key]
        return {"coef_": coef, "features_": [self.column(key) for key in keys]}


class Stumps(Listing):
    """Thresholds of features: ``1 if x > threshold else 0``, with `signed` also the opposite.

    Parameters
    ----------
    table, measure, start
        As for `Listing`.
    count : int
        The number of thresholds per feature, quantiles of its values.
    signed : bool
    """

    def __init__(
        self, table: Table, measure: Measure, start: FloatArray | None, *, count: int, signed: bool
    ) -> None:
        columns, cuts = [], []
        for k, column in columns_of(table.whole()):
            found = thresholds_of(column, count)
            columns.append(np.full(len(found), k))
            cuts.append(found)
        feature, threshold = np.concatenate(columns), np.concatenate(cuts)
        sign = np.ones(len(feature))
        if signed:
            sign = np.concatenate([sign, -sign])
            feature, threshold = np.tile(feature, 2), np.tile(threshold, 2)
        self._threshold, usable = threshold, np.ones(len(sign), dtype=bool)
        super().__init__(table, Listed(feature, sign, threshold, usable), measure, start)

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return a table of stumps; those of small values first have a negative alpha."""
        need_no_start(start)
        return {
            "stumps_": {
                "feature": self.rankers.feature[keys].astype(int).tolist(),
                "threshold": self._threshold[keys].tolist(),
                "alpha": (self.rankers.factor[keys] * np.array(alphas)).tolist(),
            }
        }


class Learners(Pool):
    """Models that another learner, or an object of the user's own, makes for the weights.

    A learner of permdist is fitted to as many queries as there are, drawn with replacement by
    their weights.

    Parameters
    ----------
    weak : Ranker or object
        See `permdist.models.AdaRank`.
    features : array of float, shape (documents, features)
    measured : callable
        Turns scores of the documents into a measure of each query.
    batch : Batch
    start : array of float, shape (features,), or None
        The coefficients of a linear model that the rounds add to.
    scaled : bool
        Whether scores are divided by their spread within queries.
    random_state : int or None
    """

    def __init__(
        self,
        weak: Any,
        features: FloatArray,
        measured: Measured,
        batch: Batch,
        start: FloatArray | None,
        *,
        scaled: bool,
        random_state: int | None,
    ) -> None:
        self.weak, self.features, self.measured, self.batch = weak, features, measured, batch
        self.scaled, self.rng = scaled, as_rng(random_state)
        self.failed = 0
        self.scores, self.values = np.zeros(len(features)), np.zeros(len(batch))
        if start is not None:
            self.scores = linear_scores(features, start)
            self.values = measured(self.scores)
        self._offered = self._tried = self.scores, self.values

    def begin(self) -> tuple[float, float]:
        """Return the sums of E and of exp(-E) over queries, before the first round."""
        return float(self.values.sum()), float(np.exp(-self.values).sum())

    def best(self) -> Offer | None:
        """Make a weak ranker for the weights; None after too many that brought nothing."""
        if self.failed == TRIES:
            return None
        batch, weights = self.batch, np.exp(-self.values)
        weights /= weights.sum()
        if isinstance(self.weak, Ranker):
            drawn = self.rng.choice(len(batch), size=len(batch), p=weights)
            rows = np.concatenate([np.arange(*batch.bounds[q]) for q in drawn])
            qid = np.repeat(np.arange(len(drawn)), np.diff(batch.ptr)[drawn])
            made: Any = clone(self.weak).fit(self.features[rows], batch.labels[rows], qid)
        else:
            labels, qid = batch.labels.copy(), batch.query_of.copy()
            made = self.weak.choose(self.features, labels, qid, weights.copy())
        scores = self._scores(made, self.features)
        spread = spread_within(scores[:, None], batch.ptr)[0] if self.scaled else 1.0
        if not spread > 0.0:
            return None
        self._offered = scores / spread, self.measured(scores)
        return Offer((made, 1.0 / spread), float(weights @ self._offered[1]))

    def attempt(self, key: Any, alpha: float) -> Attempt:  # noqa: ARG002
        """Look at the model with the weak ranker that was offered last added to it."""
        scores = self.scores + alpha * self._offered[0]
        after = self.measured(scores)
        self._tried = scores, after
        delta = float((after - self.values - alpha * self._offered[1]).min())
        changed = not np.array_equal(after, self.values)
        return Attempt(float(after.sum()), float(np.exp(-after).sum()), delta, changed)

    def accept(self) -> None:
        """Keep the model of the last attempt."""
        self.scores, self.values = self._tried

    def _scores(self, made: Any, X: FloatArray) -> FloatArray:
        scores = finite("weak: scores of predict", made.predict(X), ndim=1)
        if len(scores) != len(X):
            raise ValueError(f"weak: expected {len(X)} scores from predict, got {len(scores)}")
        return scores

    def pass_over(self, key: Any) -> None:  # noqa: ARG002
        """Count a weak ranker that brought nothing."""
        self.failed += 1

    def reset(self) -> None:
        """Forget what brought nothing."""
        self.failed = 0

    def predict(self, key: Any, queries: Queries) -> FloatArray:
        """Return the scores of other documents."""
        made, factor = key
        return factor * self._scores(made, queries.X)

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return coefficients where all are linear, else the rankers and their weights."""
        weights = [alpha * factor for alpha, (_, factor) in zip(alphas, keys, strict=True)]
        if all(is_linear(made) for made, _ in keys):
            coef = np.array(start)
            for weight, (made, _) in zip(weights, keys, strict=True):
                coef += weight * made.coef_
            return {"coef_": coef, "alphas_": weights}
        need_no_start(start)
        return {"rankers_": [made for made, _ in keys], "alphas_": weights}


def is_linear(made: Any) -> bool:
    """Check whether a weak ranker is a linear learner of permdist."""
    return isinstance(made, Ranker) and hasattr(made, "coef_")


def need_no_start(start: FloatArray) -> None:
    """Refuse coefficients to start from where the model is not linear."""
    if start.any():
        raise ValueError(
            "warm_start_from: only weak='features', weak='signed' and linear learners make a "
            "linear model"
        )


def thresholds_of(column: FloatArray, count: int) -> FloatArray:
    """Return up to `count` thresholds, midway between values next to quantiles.

    Examples
    --------
    >>> thresholds_of(np.array([0.0, 1.0, 1.0, 3.0]), 5)
    array([0.5, 2. ])
    """
    distinct = np.unique(column)
    low = distinct[:-1]
    if len(low) > count:
        low = np.unique(np.quantile(column, np.arange(1, count + 1) / (count + 1), method="lower"))
        low = low[low < distinct[-1]]
    high = distinct[np.searchsorted(distinct, low, side="right")]
    middle = low + 0.5 * (high - low)
    return np.where(middle < high, middle, low)


class WeakRankers(Rule):
    """One of a few words, a learner, or an object with a method `choose`."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError or TypeError for anything else."""
        if isinstance(value, str) and value in WORDS:
            return
        if isinstance(value, Ranker):
            value.check_parameters()
            if value.by_query or Views().read(name, value.normalize) != ("raw",):
                raise ValueError(
                    f"{name}: expected a learner whose scores depend on single documents only, got "
                    f"{type(value).__name__}; pass normalize to AdaRank instead"
                )
            return
        own = callable(getattr(value, "choose", None))
        if isinstance(value, str | np.ndarray) or not own:  # arrays have such a method, too
            known = ", ".join(map(repr, WORDS))
            raise ValueError(
                f"{name}: expected one of {known}, a learner, or an object with a method "
                f"choose(X, y, qid, weights), got {shown(value)}"
            )


class Rankers(Attribute):
    """Fitted learners."""

    def read(self, name: str, value: Any, width: int) -> list[Any]:
        """Return a list of learners, from their plain form where they come from a file."""
        from permdist.models.files import from_dict

        if not isinstance(value, list):
            raise ValueError(f"{name}: expected a list of learners, got {shown(value)}")
        found = [from_dict(one, name) if isinstance(one, dict) else one for one in value]
        for one in found:
            if not isinstance(one, Ranker):
                raise ValueError(
                    f"{name}: expected learners of permdist, which can be written to a file, got "
                    f"{type(one).__name__}"
                )
            one.need_fit()
            if one.n_features_in_ != width:
                raise ValueError(
                    f"{name}: expected {width} features, got {one.n_features_in_} in "
                    f"{type(one).__name__}"
                )
        return found
