"""Weak rankers for boosting on queries: single features, thresholds, other learners, your own.

A pool offers weak rankers, each with its scores of the training documents, brought to a common
unit, and the measure that each query has under it.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray
    from permdist.data import Queries
    from permdist.models.batch import Batch

WORDS = ("features", "signed", "thresholds", "stumps")
TRIES = 5  # weak learners that are fitted in vain before there is no hope

Measured = Callable[["FloatArray"], "FloatArray"]


class Offer(NamedTuple):
    """A weak ranker h that a pool offers.

    Attributes
    ----------
    key : object
        What it is, for the pool.
    scores : array of float, shape (documents,)
    values : array of float, shape (queries,)
        The measure of each query when it is ranked by h.
    """

    key: Any
    scores: FloatArray
    values: FloatArray


class Pool(ABC):
    """Weak rankers to choose from."""

    @abstractmethod
    def best(self, weights: FloatArray) -> Offer | None:
        """Return the weak ranker of the largest weighted measure, of those not passed over."""

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


class Listed(Pool):
    """A pool of finitely many weak rankers, measured once.

    Parameters
    ----------
    features : array of float, shape (documents, features)
    measured : callable
        Turns scores of the documents into a measure of each query.
    """

    usable: BoolArray  # (rankers,), False for those that rank nothing

    def __init__(self, features: FloatArray, measured: Measured) -> None:
        self.features = features
        self.table = np.array([measured(self.scores(k)) for k in range(len(self.usable))])
        self.reset()

    @abstractmethod
    def scores(self, key: int, features: FloatArray | None = None) -> FloatArray:
        """Return the scores of a ranker, of the training documents by default."""

    def best(self, weights: FloatArray) -> Offer | None:
        """Return the weak ranker of the largest weighted measure, of those not passed over."""
        if not self.offered.any():
            return None
        k = int(np.argmax(np.where(self.offered, self.table @ weights, -np.inf)))
        return Offer(k, self.scores(k), self.table[k])

    def pass_over(self, key: int) -> None:
        """Do not offer this one again until `reset`."""
        self.offered[key] = False

    def reset(self) -> None:
        """Offer all again."""
        self.offered = self.usable.copy()

    def predict(self, key: int, queries: Queries) -> FloatArray:
        """Return the scores of other documents."""
        return self.scores(key, queries.X)


class Features(Listed):
    """Single features, with `signed` also upside down: rankers ``width + k`` are ``-x_k``.

    Parameters
    ----------
    features, measured
        As for `Listed`.
    batch : Batch
    unit : array of float, shape (features,)
        What features are divided by.
    signed : bool
    """

    def __init__(
        self,
        features: FloatArray,
        measured: Measured,
        batch: Batch,
        unit: FloatArray,
        signed: bool,
    ) -> None:
        self.factor = inverse(unit)
        # A feature that is constant in every query ranks nothing: ties would speak for it.
        varies = spread_within(features, batch.ptr) > 0.0
        self.usable = np.tile(varies, 2 if signed else 1)
        super().__init__(features, measured)

    def scores(self, key: int, features: FloatArray | None = None) -> FloatArray:
        """Return the scores of a ranker, of the training documents by default."""
        X, width = self.features if features is None else features, len(self.factor)
        factor = self.factor[key % width]
        return X[:, key % width] * (factor if key < width else -factor)

    def column(self, key: int) -> int:
        """Return the number of the feature, ``-1 - number`` where it is upside down."""
        width = len(self.factor)
        return key if key < width else -1 - key % width

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return coefficients."""
        coef, width = np.array(start), len(self.factor)
        for key, alpha in zip(keys, alphas, strict=True):
            factor = self.factor[key % width]
            coef[key % width] += alpha * (factor if key < width else -factor)
        return {"coef_": coef, "features_": [self.column(key) for key in keys]}


class Stumps(Listed):
    """Thresholds of features: ``1 if x > threshold else 0``, with `signed` also the opposite.

    Parameters
    ----------
    features, measured
        As for `Listed`.
    count : int
        The number of thresholds per feature, quantiles of its values.
    signed : bool
    """

    def __init__(self, features: FloatArray, measured: Measured, count: int, signed: bool) -> None:
        columns, cuts = [], []
        for k, column in columns_of(features):
            found = thresholds_of(column, count)
            columns.append(np.full(len(found), k))
            cuts.append(found)
        self.feature, self.threshold = np.concatenate(columns), np.concatenate(cuts)
        self.sign = np.ones(len(self.feature))
        if signed:
            self.sign = np.concatenate([self.sign, -self.sign])
            self.feature, self.threshold = np.tile(self.feature, 2), np.tile(self.threshold, 2)
        self.usable = np.ones(len(self.sign), dtype=bool)
        super().__init__(features, measured)

    def scores(self, key: int, features: FloatArray | None = None) -> FloatArray:
        """Return the scores of a ranker, of the training documents by default."""
        X = self.features if features is None else features
        return self.sign[key] * (X[:, self.feature[key]] > self.threshold[key])

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return a table of stumps; those of small values first have a negative alpha."""
        need_no_start(start)
        return {
            "stumps_": {
                "feature": self.feature[keys].astype(int).tolist(),
                "threshold": self.threshold[keys].tolist(),
                "alpha": (self.sign[keys] * np.array(alphas)).tolist(),
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
    features, measured
        As for `Listed`.
    batch : Batch
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
        *,
        scaled: bool,
        random_state: int | None,
    ) -> None:
        self.weak, self.features, self.measured, self.batch = weak, features, measured, batch
        self.scaled, self.rng = scaled, as_rng(random_state)
        self.failed = 0

    def best(self, weights: FloatArray) -> Offer | None:
        """Make a weak ranker for these weights; None after too many that brought nothing."""
        if self.failed == TRIES:
            return None
        batch = self.batch
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
        return Offer((made, 1.0 / spread), scores / spread, self.measured(scores))

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
