"""All sign vectors of the good-bad pairs: everything is in closed form, for AUC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.distributions.pairs import two_classes
from permdist.measures import AUC, Measure
from permdist.models.spaces.base import Sums, best_slopes

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch


class PairSums(Sums):
    """Sign vectors, transitive or not; the gain must be AUC, for which the sums factorize."""

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        super().__init__(batch, measure, n_jobs)
        labels = [batch.labels[a:b] for a, b in batch.bounds]
        # Documents by query and, inside, by label; and where each such class starts.
        self._classes = np.lexsort((batch.labels, batch.query_of))
        totals = [np.unique(label, return_counts=True)[1] for label in labels]
        self._class_ptr = np.concatenate([[0], np.cumsum(np.concatenate(totals))])
        self._first = np.concatenate([[0], np.cumsum([len(total) for total in totals])])
        self._pairs = np.array([(t.sum() ** 2 - (t**2).sum()) / 2.0 for t in totals])
        # F of the best vector is linear in the scores.
        self._best = np.concatenate([best_slopes(label) for label in labels])
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
        layout = self._classes, self._class_ptr, self._first, self.batch.scale, tilts

        def work(first: int, last: int) -> None:
            _sum_pairs(first, last, scores, *layout, of_mean, values, gradient)

        self._in_threads(work, self._pairs + 20.0 * np.diff(self.batch.ptr))
        return values, gradient

    def _need_auc(self) -> None:
        if not isinstance(self.measure, AUC):
            raise ValueError(
                f"space: over pairs only AUC factorizes, the measure is {self.measure.name!r}; "
                "use space='interleavings', 'lattice' or 'restart'"
            )


@kernel
def _sum_pairs(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    classes: IntArray,
    class_ptr: IntArray,
    first: IntArray,
    scales: FloatArray,
    tilts: FloatArray,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add log-partitions, or numbers of pairs in the right order, to values and gradient.

    The classes of query q are number ``first[q]`` to ``first[q + 1]``, from the lowest label up;
    class c holds the documents ``classes[class_ptr[c]:class_ptr[c + 1]]``.
    """
    for q in range(first_query, last_query):
        start, end = class_ptr[first[q]], class_ptr[first[q + 1]]
        order = np.empty(end - start, np.int64)
        sorted_scores = np.empty(end - start)
        for c in range(first[q], first[q + 1]):
            members = classes[class_ptr[c] : class_ptr[c + 1]]
            by_score = np.argsort(scores[members], kind="mergesort")
            for k in range(len(members)):
                order[class_ptr[c] - start + k] = members[by_score[k]]
                sorted_scores[class_ptr[c] - start + k] = scores[members[by_score[k]]]
        for upper in range(first[q] + 1, first[q + 1]):
            good = slice(class_ptr[upper] - start, class_ptr[upper + 1] - start)
            for lower in range(first[q], upper):
                bad = slice(class_ptr[lower] - start, class_ptr[lower + 1] - start)
                value, right, by_good, by_bad, more_good, more_bad = two_classes(
                    sorted_scores[good], sorted_scores[bad], scales[q], tilts[q]
                )
                values[q] += right if of_mean else value
                for i in range(len(by_good)):
                    gradient[order[good][i]] += more_good[i] if of_mean else by_good[i]
                for i in range(len(by_bad)):
                    gradient[order[bad][i]] += more_bad[i] if of_mean else by_bad[i]
