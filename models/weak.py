"""Weak rankers for boosting on queries: single features, or objects of your own.

A pool offers weak rankers, brought to a common unit, and keeps the sum of those that are taken.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import finite
from permdist.models.attributes import Attribute
from permdist.models.rules import Rule, shown
from permdist.models.scaling import inverse, spread_within
from permdist.models.solvers.total import Evaluation
from permdist.models.weak_rounds import Attempt, Listed, Rounds, Steps, Sums

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.measures import Measure
    from permdist.models.batch import Batch

WORDS = ("features", "signed")
TRIES = 5  # weak rankers that are made in vain before there is no hope

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


class Features(Pool):
    """Single features, with `signed` also upside down: rankers ``width + k`` are ``-x_k``.

    Parameters
    ----------
    table : Table or ClusterTable
    measure : Measure
    start : array of float, shape (columns,), or None
        The coefficients of a linear model that the rounds add to.
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
        both = np.concatenate([factor, -factor]) if signed else factor
        # A feature that is constant in every query ranks nothing: ties would speak for it.
        usable = np.resize(spread > 0.0, len(both))
        self.rankers = Listed(np.resize(np.arange(self.width), len(both)), both, usable)
        self._table, self._rounds = table, Rounds(self.rankers, measure, start)
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

    def column(self, key: int) -> int:
        """Return the number of the feature, ``-1 - number`` where it is upside down."""
        return key if key < self.width else -1 - key % self.width

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:
        """Return coefficients."""
        coef = np.array(start)
        for key, alpha in zip(keys, alphas, strict=True):
            coef[key % self.width] += alpha * self.rankers.factor[key]
        return {"coef_": coef, "features_": [self.column(key) for key in keys]}


class Own(Pool):
    """Weak rankers that an object of the user's own makes for the weights.

    Parameters
    ----------
    weak : object
        See `permdist.models.AdaRank`.
    features : array of float, shape (documents, features)
    measured : callable
        Turns scores of the documents into a measure of each query.
    batch : Batch
    scaled : bool
        Whether scores are divided by their spread within queries.
    """

    def __init__(
        self, weak: Any, features: FloatArray, measured: Measured, batch: Batch, *, scaled: bool
    ) -> None:
        self.weak, self.features, self.measured, self.batch = weak, features, measured, batch
        self.scaled, self.failed = scaled, 0
        self.scores, self.values = np.zeros(len(features)), np.zeros(len(batch))
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

    def model(self, keys: list[Any], alphas: list[float], start: FloatArray) -> dict[str, Any]:  # noqa: ARG002
        """Return the rankers and their weights."""
        weights = [alpha * factor for alpha, (_, factor) in zip(alphas, keys, strict=True)]
        return {"rankers_": [made for made, _ in keys], "alphas_": weights}


class WeakRankers(Rule):
    """One of two words, or an object with a method `choose`."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError for anything else."""
        if isinstance(value, str) and value in WORDS:
            return
        own = callable(getattr(value, "choose", None))
        if isinstance(value, str | np.ndarray) or not own:  # arrays have such a method, too
            known = ", ".join(map(repr, WORDS))
            raise ValueError(
                f"{name}: expected one of {known}, or an object with a method "
                f"choose(X, y, qid, weights), got {shown(value)}"
            )


class Rankers(Attribute):
    """Weak rankers of the user's own, which cannot be read from a file."""

    def read(self, name: str, value: Any, width: int) -> list[Any]:  # noqa: ARG002
        """Return the list that a fit has made; refuse one from a file."""
        if not isinstance(value, list) or any(isinstance(one, dict) for one in value):
            raise ValueError(f"{name}: weak rankers of your own cannot be read from a file")
        return value
