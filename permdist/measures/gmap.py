"""Geometric means over queries: GMAP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist.measures.ap import AP
from permdist.measures.base import Measure

if TYPE_CHECKING:
    from permdist._typing import FloatArray

FLOOR = 1e-5


class GeometricMean(Measure):
    """A measure whose mean over queries is geometric; mixed into that of a single query."""

    def average(self, values: FloatArray) -> float:
        """Return the geometric mean, with values below 0.00001 raised to it, as in trec_eval."""
        return float(np.exp(np.log(np.maximum(values, FLOOR)).mean()))

    def average_error(self, values: FloatArray) -> float:
        """Return the standard error of the geometric mean, to first order."""
        logs = np.log(np.maximum(values, FLOOR))
        return self.average(values) * float(logs.std(ddof=1) / np.sqrt(values.size))


class GMAP(GeometricMean, AP):
    """Average precision, with a geometric mean over queries, to which bad queries matter most.

    The value of one query is its average precision; values below 0.00001 count as that in the
    mean, as in trec_eval's ``gm_map``.

    Parameters
    ----------
    k : int, optional
        See `AP`.

    References
    ----------
    Robertson: On GMAP, and other transformations (2006).

    Examples
    --------
    >>> from permdist.measures import evaluate
    >>> scores, labels, qid = [2.0, 1.0, 2.0, 1.0], [1, 0, 0, 1], [1, 1, 2, 2]
    >>> round(evaluate(scores, labels, qid, "gmap").mean("gmap"), 4)  # sqrt(1 * 0.5)
    0.7071
    """

    aliases = ("gmap", "gm_map")
