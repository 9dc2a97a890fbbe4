"""A feed-forward network that minimizes any of the objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from permdist.models.attributes import Layers
from permdist.models.base import Card, Settings
from permdist.models.batch import Batch
from permdist.models.held_out import DEFAULT, HoldsOut
from permdist.models.layers import ENGINES, Adam, first_layers, outputs, steps_of
from permdist.models.objectives.base import OBJECTIVES, Objective, parse_objective
from permdist.models.options import learned, option
from permdist.models.rules import Number, OneOf, Rule, Whole, shown
from permdist.models.scaling import inverse
from permdist.models.shared import Penalized, Seeded, Standardized, Threaded
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.models.history import Watch

MOST_LAYERS = 20


class Widths(Rule):
    """The numbers of units of hidden layers."""

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError or TypeError for anything else."""
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_LAYERS:
            raise TypeError(
                f"{name}: expected 1 to {MOST_LAYERS} numbers of units, as in (64, 32), got "
                f"{shown(value)}"
            )
        for one in value:
            Whole(1, 100_000).check(name, one)


class Network(Standardized, Penalized, Seeded, Threaded, HoldsOut):
    """A network of rectified linear layers, fitted by Adam on batches of queries.

    Minimizes the mean over queries of an objective of its scores, plus ``|w|^2 / C`` per query for
    the weights w of all layers. Features are centered, and measured by their spread within
    queries; both are part of the first layer afterwards. All arithmetic is in double precision.

    Attributes
    ----------
    n_iter_ : int
        Passes over the queries. With `early_stopping`, the weights of the best one are kept.
    history_ : dict of lists
        ``objective`` of each pass, summed over queries: the mean of its batches, before each step.
    converged_ : bool
        True: the number of passes is a setting.

    References
    ----------
    Burges et al.: Learning to Rank using Gradient Descent. Kingma and Ba: Adam: A Method for
    Stochastic Optimization.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = Network("listnet", hidden=(16,), max_iter=20).fit(queries)
    >>> [layer["weights"].shape for layer in learner.layers_]
    [(25, 16), (16, 1)]
    """

    card: ClassVar[Card] = Card(
        paper="Burges et al. 2005",
        optimizes="any objective",
        minimizes="objective(network) + |w|^2 / C",
        cost="objective + n x weights",
    )
    listed: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    fitted: ClassVar[tuple[str, ...]] = ("layers_", "n_iter_", "history_", "converged_", "null_")
    measure_judges: ClassVar[bool] = True
    settings: ClassVar[Settings] = {
        "early_stopping": [20],
        "learning_rate": [1e-3, 1e-2],
    }

    objective: str | Objective = option(
        SpecName(OBJECTIVES),
        "One of `permdist.objectives`, or its text form. The default is the likelihood of pairs "
        "and the expected loss of AP.",
        default=DEFAULT,
        kw_only=False,
    )
    hidden: Sequence[int] = option(
        Widths(),
        "The numbers of units of the hidden layers.",
        default=(64, 32),
    )
    engine: str = option(
        OneOf(ENGINES),
        "What computes the steps: numpy, or PyTorch, an optional dependency. Both take the same "
        "steps, to rounding.",
        default="numpy",
    )
    max_iter: int = option(Whole(), "The number of passes over the queries.", default=100)
    learning_rate: float = option(Number(1e-12, 1e3), "That of Adam.", default=3e-3)
    batch_size: int = option(Whole(), "Queries per step.", default=32)
    C: float = option(
        Number(1e-100, infinite=True),
        "The larger, the weaker the regularization ``|w|^2 / C`` per query; ``numpy.inf`` for "
        "none.",
        default=1e5,
    )

    layers_: list[dict[str, FloatArray]] = learned(
        Layers(), "``weights``, shape (inputs, units), and ``biases``, shape (units,), by layer."
    )

    def build_objective(self) -> Objective:
        """Return the objective."""
        return parse_objective(self.objective)

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        return Batch.of(labels, ptr)

    def why_whole(self) -> str:
        """Say why all data must be in one array; see `Ranker.why_whole`."""
        return "it goes through the queries in random order, again and again"

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        if start is not None:
            raise ValueError("warm_start_from: a network cannot go on from coefficients")
        rng = np.random.default_rng(self.random_state)
        center = features.mean(axis=0)
        layers = first_layers([features.shape[1], *self.hidden, 1], rng)
        lessons = self._lessons(features - center, batch, rng)
        held_out = None if watch.held_out is None else np.asarray(watch.held_out.X) - center
        penalty = 0.0 if np.isinf(self.C) else 1.0 / float(self.C)
        take = steps_of(self.engine, layers, Adam(float(self.learning_rate)), penalty)
        for _ in range(self.max_iter):
            total = 0.0
            # The products are small, and their last digits depend on the number of threads.
            with threadpool_limits(1):
                for number in rng.permutation(len(lessons)):
                    total += take(*lessons[number])
                layers = take.layers()
                scores = None if held_out is None else outputs(layers, held_out)
            if not np.isfinite(total):
                raise ValueError(
                    "learning_rate: the objective grew beyond all numbers; use a smaller one"
                )
            if watch.note(_uncentered(layers, center), scores, objective=total):
                break
        layers = _uncentered(layers, center)
        if watch.stops_early and watch.best is not None:
            layers = watch.best
        self.layers_ = layers

    def _lessons(
        self, features: FloatArray, batch: Batch, rng: np.random.Generator
    ) -> list[tuple[FloatArray, Any, int]]:
        """Put queries together at random: features, the objective of their scores, and number."""
        objective, order = self.build_objective(), rng.permutation(len(batch))
        found = []
        for first in range(0, len(order), self.batch_size):
            chosen = order[first : first + self.batch_size]
            rows = np.concatenate([np.arange(*batch.bounds[query]) for query in chosen])
            qid = np.repeat(np.arange(len(chosen)), np.diff(batch.ptr)[chosen])
            derive = objective.prepare(batch.labels[rows], qid, n_jobs=self.n_jobs)
            found.append((features[rows], derive, len(chosen)))
        return found

    def _rescale(self, spread: FloatArray) -> None:
        """Turn what was learned from features divided by `spread` into units of the features."""
        first, *rest = self.layers_
        weights = first["weights"] * inverse(spread)[:, None]
        self.layers_ = [{**first, "weights": weights}, *rest]

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:  # noqa: ARG002
        return outputs(self.layers_, features)


def _uncentered(
    layers: list[dict[str, FloatArray]], center: FloatArray
) -> list[dict[str, FloatArray]]:
    """Return the layers for features that are not centered."""
    first, *rest = layers
    return [{**first, "biases": first["biases"] - center @ first["weights"]}, *rest]
