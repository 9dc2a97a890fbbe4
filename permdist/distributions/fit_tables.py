"""Tables of estimated parameters, with errors and intervals, for `fit_result`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from permdist._check import finite
from permdist._result import Result, frame_cells
from permdist._text import plural, text_table, visible
from permdist.distributions.mixture_parameters import parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from permdist._typing import FloatArray

MOST_NAMED = 12


class FitTable(Result):
    """Estimated parameters; prints as a table.

    Attributes
    ----------
    estimates : tuple of (str, float, float)
        The name of each parameter, its estimate and its standard error.
    about : str
        What was fitted, in one line.
    """

    estimates: tuple[tuple[str, float, float], ...]
    about: str
    log_likelihood: float
    n_ballots: float

    @property
    def caption(self) -> str:
        """What was fitted, to how many ballots, and how well, in one line."""
        whole = self.n_ballots == int(self.n_ballots)
        votes = plural(int(self.n_ballots), "ballot") if whole else f"{self.n_ballots:g} ballots"
        return f"{self.about}; {votes}, log-likelihood {self.log_likelihood:.6g}"

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return the estimates as a data frame, a row per parameter.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        DataFrame
            Indexed by parameter, with the columns ``estimate``, ``standard_error`` (NaN where it
            is not known), ``low`` and ``high``: the interval of a normal distribution.
        """
        import pandas as pd

        share = float(finite("level", level, ndim=0))
        if not 0.0 < share < 1.0:
            raise ValueError(f"level: expected a number between 0 and 1, got {level}")
        names = [name for name, _, _ in self.estimates]
        numbers = np.array([row[1:] for row in self.estimates], dtype=np.float64).reshape(-1, 2)
        reach = float(ndtri(0.5 + 0.5 * share)) * numbers[:, 1]
        columns = {
            "estimate": numbers[:, 0],
            "standard_error": numbers[:, 1],
            "low": numbers[:, 0] - reach,
            "high": numbers[:, 0] + reach,
        }
        return pd.DataFrame(columns, index=pd.Index(names, name="parameter"))

    def __str__(self) -> str:
        head, rows = self._cells()
        return visible("\n".join([self.caption, text_table(head, rows), *self._remarks()]))

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        frame = self.to_frame().iloc[:most]
        head, rows = frame_cells(frame.map(lambda value: "" if value != value else f"{value:.4f}"))
        titles = {"standard_error": "s.e.", "low": "95% low", "high": "95% high"}
        return [titles.get(title, title) for title in head], rows

    def _remarks(self) -> Sequence[str]:
        return ()


def ranked_names(names: Sequence[str], center: Iterable[int]) -> str:
    """Return a ranking in words, of its first items if there are many.

    Examples
    --------
    >>> ranked_names(["tea", "milk"], [1, 0])
    'milk > tea'
    """
    items = list(center)
    more = " > ..." if len(items) > MOST_NAMED else ""
    return " > ".join(names[item] for item in items[:MOST_NAMED]) + more


def mixture_estimates(
    models: Sequence[Any], weights: FloatArray, errors: Any
) -> tuple[tuple[str, float, float], ...]:
    """Return the weight and the parameters of each component with their errors.

    Parameters
    ----------
    models : sequence of Distribution
        The components; noise is the last one, if there is any.
    weights : array of float
    errors : Errors
    """
    rows: list[tuple[str, float, float]] = []
    for j, (model, weight) in enumerate(zip(models, weights.tolist(), strict=True)):
        rows.append((f"{j + 1}: weight", weight, float(errors.weights[j])))
        own = errors.components[j] if j < len(errors.components) else np.zeros(0)
        known = parameters_of(model) if len(own) else None
        if known is None or len(known.values) != len(own):
            continue
        values = known.values
        labels = [f"parameter {k + 1}" for k in range(len(values))]
        if hasattr(model, "scores"):
            values = values - values.mean()
            labels = [f"score of {name}" for name in model.names]
        elif hasattr(model, "theta"):
            stages = [f"theta {k + 1}" for k in range(len(values))]
            labels = stages if np.ndim(model.theta) else ["theta"]
        rows += [
            (f"{j + 1}: {label}", float(value), float(error))
            for label, value, error in zip(labels, values, own, strict=True)
        ]
    return tuple(rows)
