"""All sign vectors of the good-bad pairs: everything is in closed form, for AUC."""

from __future__ import annotations

import numpy as np

from permdist._check import FloatArray, IntArray
from permdist._kernels import kernel
from permdist.distributions.pairs import two_classes
from permdist.measures import AUC, Measure
from permdist.models.spaces.base import Batch, Space, best_slopes


class Pairs(Space):
    """Sign vectors, transitive or not; the gain must be AUC, for which the sums factorise."""

    def __init__(self, batch: Batch, measure: Measure, threads: int | None = None) -> None:
        super().__init__(batch, measure, threads)
        totals = [np.unique(batch.labels[a:b], return_counts=True)[1] for a, b in batch.bounds]
        self._pairs = np.array([(t.sum() ** 2 - (t**2).sum()) / 2.0 for t in totals])
        # F of the best vector is linear in the scores: labels below less labels above.
        self._best = np.concatenate(
            [best_slopes(batch.labels[a:b]) for a, b in batch.bounds] or [np.zeros(0)]
        )
        self._best *= batch.scale[batch.query_of]

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum up ``log(1 + exp(-2 scale (s_g - s_b) + kappa / pairs))`` over pairs."""
        if kappa != 0.0:
            self._need_auc()
        values, gradient = self._run(scores, kappa, of_mean=False)
        values -= np.add.reduceat(self._best * scores, self.batch.ptr[:-1])
        return values, gradient - self._best

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average the chances of all pairs to be in the right order."""
        self._need_auc()
        values, gradient = self._run(scores, 0.0, of_mean=True)
        return values / self._pairs, gradient / self._pairs[self.batch.query_of]

    def _run(
        self, scores: FloatArray, kappa: float, *, of_mean: bool
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.zeros(len(self.batch)), np.zeros(len(scores))
        tilts = kappa / self._pairs

        def work(first: int, last: int) -> None:
            inputs = scores, self.batch.labels, self.batch.ptr, self.batch.scale, tilts
            _sum_pairs(first, last, *inputs, of_mean, values, gradient)

        self._spread(work, self._pairs + 20.0 * np.diff(self.batch.ptr))
        return values, gradient

    def _need_auc(self) -> None:
        if not isinstance(self.measure, AUC):
            raise ValueError(
                f"space: over pairs only AUC factorises, the measure is {self.measure.name!r}; "
                "use space='interleavings', 'lattice' or 'restart'"
            )


@kernel
def _sum_pairs(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    labels: IntArray,
    ptr: IntArray,
    scales: FloatArray,
    tilts: FloatArray,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add log-partitions, or numbers of pairs in the right order, to values and gradient."""
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        order = a + np.argsort(scores[a:b], kind="mergesort")
        levels = np.unique(labels[a:b])
        for upper in range(1, len(levels)):
            good = order[labels[order] == levels[upper]]
            for lower in range(upper):
                bad = order[labels[order] == levels[lower]]
                value, right, by_good, by_bad, more_good, more_bad = two_classes(
                    scores[good], scores[bad], scales[q], tilts[q]
                )
                values[q] += right if of_mean else value
                for i in range(len(good)):
                    gradient[good[i]] += more_good[i] if of_mean else by_good[i]
                for i in range(len(bad)):
                    gradient[bad[i]] += more_bad[i] if of_mean else by_bad[i]
