"""Parameters that several learners have, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.data import Queries
from permdist.models.blocks import Table
from permdist.models.options import Declared, option
from permdist.models.rules import MOST_THREADS, SMALLEST, Flag, Number, Seed, Whole
from permdist.models.scaling import Scaling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.history import Watch


class Standardized(Declared):
    """A learner whose result does not depend on the units of the features."""

    standardize: bool = option(
        Flag(),
        "Whether to measure every feature by its spread within queries, the standard deviation "
        "on the training data, so that the fit does not depend on units. `coef_` is in the "
        "units of the features either way.",
        default=True,
    )

    def _scaling(self, features: FloatArray, ptr: IntArray) -> Scaling | None:
        """Return the units in which features are to be measured."""
        return Scaling.of(features, ptr) if self.standardize else None


class InBlocks(Declared):
    """A learner that goes through blocks of queries, wherever these are.

    It gives `_learn_by_blocks`.
    """

    by_blocks: ClassVar[bool] = True

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        """Learn from one array of features, already normalized."""
        queries = Queries.trusted(features, batch.labels, batch.ptr, np.arange(len(batch)))
        table = Table(queries, n_jobs=getattr(self, "n_jobs", 1))
        self._learn_by_blocks(table, watch, start)


class Penalized(Declared):
    """A learner with a penalty on the square of its coefficients."""

    C: float = option(
        Number(SMALLEST, infinite=True),
        "The larger, the weaker the regularization ``|w|^2 / C``; ``numpy.inf`` for none. With "
        "`standardize`, w are the coefficients of standardized features.",
        default=1.0,
    )


class Iterative(Declared):
    """A learner whose optimizer goes on until a tolerance or a number of iterations."""

    max_iter: int = option(Whole(), "The largest number of iterations.", default=1000)
    tol: float | None = option(
        Number(0.0, 1.0),
        "When to stop: the estimated gap between the objective and its minimum, relative to what "
        "was gained since the start, or to a thousandth of the objective where that is more.",
        default=1e-6,
    )


class WarmStarted(Declared):
    """A learner that can go on from where its last fit ended."""

    warm_start: bool = option(
        Flag(), "Whether `fit` starts from the coefficients of the last one.", default=False
    )

    def _previous(self) -> FloatArray | None:
        """Return the coefficients to start from, if any."""
        coef: Any = getattr(self, "coef_", None)
        return np.array(coef) if self.warm_start and coef is not None else None


class Threaded(Declared):
    """A learner that works on several queries at a time."""

    n_jobs: int | None = option(
        Whole(1, MOST_THREADS, also=(-1,), optional=True),
        "Threads, all processors by default; the result does not depend on it.",
        default=None,
    )


class Seeded(Declared):
    """A learner that draws."""

    random_state: int | None = option(Seed(), "The seed of whatever is drawn.", default=0)


class Graded(Declared):
    """A learner that looks at grades, or only at what is relevant."""

    graded: bool = option(
        Flag(),
        "Whether all pairs of different labels count, or only those of a relevant document "
        "and another one.",
        default=False,
    )

    @classmethod
    def settings_for(cls, measure: Measure | None = None) -> dict[str, Sequence[Any]]:
        """Return the settings to try; where the measure looks at grades, both ways."""
        found: dict[str, Sequence[Any]] = super().settings_for(measure)
        if measure is None or measure.binary:
            return found
        return {"graded": (False, True), **found}

    def _seen(self, labels: IntArray) -> IntArray:
        """Return labels as the learner sees them."""
        return labels if self.graded else (labels > 0).astype(np.int64)


class PairScaled(Declared):
    """A learner that can give short and long queries the same weight."""

    scale: bool = option(
        Flag(),
        "Whether to divide score differences by the number of pairs of each query, so that "
        "long queries do not outweigh the others. Without it the objective is a sum over all "
        "pairs and wants a C that is smaller by their typical number.",
        default=True,
    )
