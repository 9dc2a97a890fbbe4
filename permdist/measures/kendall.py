"""Kendall's tau between a ranking and the order that the labels give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._inversions import different_pairs
from permdist.measures.auc import compute_auc, count_pairs
from permdist.measures.base import Measure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class KendallTau(Measure):
    """Satisfied less violated pairs, over all pairs with different labels: ``2 AUC - 1``.

    For strictly ordered labels this is Kendall's rank correlation; the normalized Kendall
    distance is ``(1 - tau) / 2``.

    It is undefined where all labels are equal. Averaged, a tie counts nothing.

    References
    ----------
    Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, equation (5).

    Examples
    --------
    >>> tau = KendallTau()([0, 2, 1], labels=[3, 2, 1])
    >>> round(float(1 - tau) / 2, 3)  # the paper's example: one pair of three
    0.333
    """

    aliases = ("tau", "kendall", "kendalltau")
    range = (-1.0, 1.0)

    def _values(self, placed: Placements) -> FloatArray:
        return 2.0 * compute_auc(*placed) - 1.0

    def _undefined(self, placed: Placements) -> Any:
        return count_pairs(placed.ptr, placed.length, placed.grade) == 0

    def step(self, _labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Count worse items still to come less better ones; see `Measure.step`."""
        to_come = np.asarray(totals) - np.asarray(above, dtype=np.int64)
        worse, better = to_come[..., :level].sum(axis=-1), to_come[..., level + 1 :].sum(axis=-1)
        return (worse - better) / different_pairs(totals)
