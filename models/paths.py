"""A path over the weight of the loss, each fit from the one before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from permdist._check import finite
from permdist._result import Result
from permdist._text import text_table
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.models.base import Ranker


@dataclass(frozen=True, eq=False)
class KappaPath(Result):
    """Learners fitted one after the other, by growing `kappa`; prints as a table.

    Attributes
    ----------
    kappas : array of float, shape (fits,)
        Ascending.
    learners : tuple of Ranker
        The fitted learners.
    measure : Measure
    training : array of float, shape (fits,)
        The measure of the training queries.
    validation : array of float, shape (fits,), or None
        That of the validation queries, if there are any.
    """

    kappas: FloatArray
    learners: tuple[Ranker, ...]
    measure: Measure
    training: FloatArray
    validation: FloatArray | None = None

    @property
    def best(self) -> Ranker:
        """The learner with the best measure on the validation queries, the first of equal ones.

        Without validation queries, that with the best measure on the training queries.
        """
        judged = self.training if self.validation is None else self.validation
        return self.learners[int(np.argmax(judged))]

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients, shape (fits, features)."""
        return np.array([learner.coef_ for learner in self.learners])

    def _columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kappa": self.kappas, "training": self.training}
        if self.validation is not None:
            found["validation"] = self.validation
        found["iterations"] = [learner.n_iter_ for learner in self.learners]
        found["converged"] = [learner.converged_ for learner in self.learners]
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per fit.

        Returns
        -------
        DataFrame
            With the columns ``kappa``, ``training`` and ``validation`` (the measure on these
            queries), ``iterations`` and ``converged``.
        """
        import pandas as pd

        return pd.DataFrame(self._columns())

    @property
    def caption(self) -> str:
        """What was fitted, in one line."""
        return f"{type(self.learners[0]).__name__} by kappa: {self.measure.name}"

    def __str__(self) -> str:
        columns = self._columns()
        rows = [
            [
                f"{one:g}"
                if name == "kappa"
                else f"{one:.4f}"
                if isinstance(one, float)
                else str(one)
                for name, one in zip(columns, row, strict=True)
            ]
            for row in zip(*columns.values(), strict=True)
        ]
        return text_table(tuple(columns), rows)


def kappa_path(
    learner: Ranker,
    queries: Queries,
    kappas: ArrayLike = (0.0, 1.0, 10.0, 100.0, 1e3, 1e4),
    *,
    eval_set: Queries | None = None,
    measure: str | Measure | None = None,
) -> KappaPath:
    """Fit a learner for several weights of the loss, each fit started from the one before.

    `kappa` is what one query's loss, from 0 to 1, weighs against the sum of the logarithms of its
    pairs, each of which is log 2 at equal scores. For a loss to matter as much as the likelihood,
    `kappa` is of the order of the number of pairs of a query: thousands where 5 documents of 300
    are relevant.

    Parameters
    ----------
    learner : Ranker
        One with a parameter `kappa`: `ConvexLoss`, `L3`, or one of your own. It is not changed.
    queries : Queries
        For training.
    kappas : array of float
        Not negative. They are put in ascending order.
    eval_set : Queries, optional
        For validation: `KappaPath.best` is chosen by them.
    measure : Measure or str, optional
        What to choose by, the learner's own by default.

    Returns
    -------
    KappaPath

    Examples
    --------
    >>> from permdist import data
    >>> from permdist.models import L3
    >>> whole = data.make_letor(60, n_features=5, rng=0)
    >>> path = kappa_path(L3("ndcg@10"), whole, [1.0, 100.0, 0.0])
    >>> path.kappas, path.coefficients.shape
    (array([  0.,   1., 100.]), (3, 5))
    """
    name = type(learner).__name__
    if "kappa" not in learner.get_params(deep=False):
        raise TypeError(f"learner: expected one with a parameter kappa, got {name}")
    values = np.unique(finite("kappas", kappas, ndim=1))
    if not len(values):
        raise ValueError("kappas: expected at least one, got none")
    judge = learner.judge if measure is None else parse(measure)
    fits: list[Ranker] = []
    for kappa in values.tolist():
        one = clone(learner).set_params(kappa=kappa)
        fits.append(one.fit(queries, eval_set=eval_set, warm_start_from=fits[-1] if fits else None))
    scored = [
        np.array([one.score(part, measure=judge) for one in fits])
        for part in (queries, eval_set)
        if part is not None
    ]
    return KappaPath(values, tuple(fits), judge, *scored)
