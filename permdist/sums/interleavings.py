"""Exact sums over all interleavings of one query's classes, whatever their number."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.sums import levels, two_classes
from permdist.sums.shape import cells_of

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure


def tabulate(measure: Measure, labels: IntArray, totals: IntArray) -> FloatArray:
    """Tabulate what each step of an interleaving adds to a measure, as its engine reads it."""
    key = tuple(labels.tolist()), tuple(totals.tolist())
    return _engine(len(totals)).tabulate(measure, *key)


def _engine(classes: int) -> Any:
    return two_classes if classes == 2 else levels


class Interleavings:
    """Exact sums over all interleavings of classes, each sorted by score.

    The weight of an interleaving is ``exp(-sum |x_i - x_j| + weight * sum of steps)``, the first
    sum over the pairs of different classes whose lower score is above: the good-bad model,
    relative to the order of the scores, with x the scores times twice its scale.

    Parameters
    ----------
    scores : array of float, shape (n,)
        The x of each class after the other, the lowest level first, each from the top down.
    sizes : array of int, shape (levels,)
    steps : array of float, optional
        What the steps add, as `tabulate` lays it out.
    weight : float
        The weight of the steps.
    """

    def __init__(
        self,
        scores: FloatArray,
        sizes: IntArray,
        steps: FloatArray | None = None,
        weight: float = 0.0,
    ) -> None:
        self._scores, self._sizes = scores, sizes
        self._engine, self._cells = _engine(len(sizes)), cells_of(sizes)
        self._steps, self._weight = steps, weight

    @cached_property
    def _shares(self) -> tuple[float, FloatArray]:
        steps = self._steps
        if steps is None:
            steps = np.zeros((len(self._sizes), int(self._cells) // len(self._sizes)))
        inputs = self._scores, self._sizes, steps, self._weight, True
        return self._engine.forward(*inputs)

    @property
    def log_sum(self) -> float:
        """The log of the sum of all weights."""
        return self._shares[0]

    def slopes(self) -> FloatArray:
        """Differentiate `log_sum` plus F of the order of the scores less that of the labels."""
        out = np.empty(len(self._scores))
        self._engine.slopes(self._shares[1], self._sizes, out)
        return out

    def expect(self, steps: FloatArray) -> float:
        """Return the mean of a sum of steps, laid out by `tabulate`."""
        return float(self._means(steps)[-1])

    def expect_slopes(self, steps: FloatArray) -> FloatArray:
        """Differentiate `expect`."""
        out = np.empty(len(self._scores))
        inputs = self._shares[1], self._sizes, steps, self._means(steps), out
        self._engine.mean_slopes(*inputs)
        return out

    def _means(self, steps: FloatArray) -> FloatArray:
        return self._engine.means(self._shares[1], self._sizes, steps)
