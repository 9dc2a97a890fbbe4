"""Rank-biased overlap: the similarity of two rankings, with more weight at the top.

The rankings may be of different items and different lengths, and may have ties.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import choice, finite
from permdist._kernels import kernel
from permdist._result import record_frame, record_html
from permdist.rankings.partial import BucketOrder, TopK

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

TIES = ("w", "a", "b")


class Overlap(NamedTuple):
    """A rank-biased overlap: its value, and the bounds that any continuation must obey.

    Attributes
    ----------
    value : float
        Extrapolated: agreement continues beyond the end of the rankings as before.
    lower, upper : float
        The values if nothing that follows agreed, and if all of it did.
    """

    value: float
    lower: float
    upper: float

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self._asdict())

    def _repr_html_(self) -> str:
        return record_html(type(self).__name__, self._asdict())

    @property
    def residual(self) -> float:
        """The uncertainty: `upper` minus `lower`."""
        return self.upper - self.lower


def rbo(
    a: ArrayLike | BucketOrder | TopK | Iterable[Any],
    b: ArrayLike | BucketOrder | TopK | Iterable[Any],
    *,
    p: float = 0.9,
    ties: str = "a",
) -> Overlap:
    r"""Compute the rank-biased overlap of two rankings.

    The mean agreement of the first d items, over depths d with geometric weights:
    ``(1 - p) sum_d p^(d - 1) A_d``, where ``A_d`` is the number of items that both rankings have
    among their first d, over d. Rankings end; the value is extrapolated, with bounds.

    Parameters
    ----------
    a, b : rankings
        The best item first: an order, a list of any items, with ties as lists inside
        (``["x", ["y", "z"]]``), a `BucketOrder`, or a `TopK`, whose unlisted items are not seen.
        They need not have the same items or length.
    p : float
        The persistence, between 0 and 1: the first 10 ranks have 86% of the weight for 0.9, 99.9%
        for 0.6.
    ties : {"a", "w", "b"}
        What ties say. ``"a"``: an order that is not known; the mean over all ways to break the
        ties of both. ``"b"``: the same, corrected for the information lost, so that a ranking
        fully agrees with itself. ``"w"``: equal items; a tie that starts within the first d
        belongs to them.

    Returns
    -------
    Overlap
        With ``value``, ``lower``, ``upper`` and ``residual``.

    References
    ----------
    Webber, Moffat, Zobel: A similarity measure for indefinite rankings (2010); Corsi and Urbano:
    The treatment of ties in rank-biased overlap (2024), whose extrapolation and bounds for
    rankings of different lengths are used.

    Examples
    --------
    >>> round(rbo([0, 1, 2], [0, 2, 1], p=0.5).value, 4)  # A = 1, 1/2, 1
    0.875
    >>> rbo(["x", ["y", "z"]], ["x", ["y", "z"]], ties="b").value
    1.0
    >>> overlap = rbo(["x", "y"], ["x"], p=0.9)
    >>> round(overlap.lower, 4), round(overlap.upper, 4)
    (0.2558, 1.0)
    """
    persistence = float(finite("p", p, ndim=0))
    if not 0.0 < persistence < 1.0:
        raise ValueError(f"p: expected a number between 0 and 1, got {persistence}")
    choice("ties", ties, TIES)
    numbers: dict[Hashable, int] = {}
    left, right = (_flatten(name, one, numbers) for name, one in (("a", a), ("b", b)))
    item, first, last = (np.concatenate(sides) for sides in zip(left, right, strict=True))
    ends = np.array([[0, len(left[0]), len(left[0]), len(item)]])
    out = overlap_batch(item, first, last, ends, len(numbers), persistence, TIES.index(ties))
    return Overlap(*out[0].tolist())


def _flatten(
    name: str, ranking: Any, numbers: dict[Hashable, int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the items as numbers, and the first and last rank of the tie of each, from 0."""
    if isinstance(ranking, BucketOrder):
        groups: Any = ranking.buckets
    elif isinstance(ranking, TopK):
        groups = ranking.items
    elif isinstance(ranking, str):
        raise TypeError(f"{name}: expected a list of items, got a string")
    else:
        groups = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
    items: list[int] = []
    first, last = [], []
    for entry in groups:
        group = list(entry) if isinstance(entry, list | tuple | set | frozenset) else [entry]
        if not group:
            raise ValueError(f"{name}: expected no empty tie, got one after {len(items)} items")
        begin = len(items)
        for item in group:
            if not isinstance(item, Hashable):
                raise TypeError(f"{name}: expected items, or lists of tied items, got {item!r}")
            items.append(numbers.setdefault(item, len(numbers)))
            first.append(begin)
            last.append(begin + len(group) - 1)
    if not items:
        raise ValueError(f"{name}: expected at least one item, got none")
    if len(set(items)) < len(items):
        twice = next(n for k, n in enumerate(items) if n in items[:k])
        item = next(key for key, number in numbers.items() if number == twice)
        raise ValueError(f"{name}: expected every item once, got {item!r} twice")
    return (
        np.array(items, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(last, dtype=np.int64),
    )


@kernel
def overlap_batch(
    item: IntArray,
    first: IntArray,
    last: IntArray,
    ends: IntArray,
    n_items: int,
    p: float,
    ties: int,
) -> FloatArray:
    """Compare pairs of rankings; value, lower and upper bound of each pair (pairs, 3).

    item, first, last: flat, the number of an item and the ranks its tie spans in its ranking.
    ends (pairs, 4): where the two rankings start and end. ties: 0 is w, 1 is a, 2 is b.
    """
    out = np.empty((len(ends), 3))
    # Where an item stands in the longer ranking and in the shorter one, -1 if it does not.
    place = np.full(n_items, -1, np.int64)
    place_short = np.full(n_items, -1, np.int64)
    for pair in range(len(ends)):
        s0, s = ends[pair, 0], ends[pair, 1] - ends[pair, 0]
        l0, n = ends[pair, 2], ends[pair, 3] - ends[pair, 2]
        if s > n:
            s0, s, l0, n = l0, n, s0, s
        for i in range(n):
            place[item[l0 + i]] = i
        for i in range(s):
            place_short[item[s0 + i]] = i
        value, lower, upper = 0.0, 0.0, 0.0
        power, logs = 1.0, 0.0  # p^d, and the sum of p^d / d
        whole = 0  # items whose ties both rankings have passed
        unseen = 0  # items of the longer ranking alone, whose ties it has passed
        last_agreement = 0.0  # where the shorter ranking ends
        for d in range(1, n + 1):
            power *= p
            logs += power / d
            k = d - 1
            # The ties that this depth falls into; open where they go on below it.
            t_l, b_l = first[l0 + k], last[l0 + k]
            t_s, b_s = (first[s0 + k], last[s0 + k]) if k < s else (0, k)
            c_l = 1.0 if ties == 0 else (d - t_l) / (b_l - t_l + 1.0)
            c_s = 1.0 if ties == 0 or k >= s else (d - t_s) / (b_s - t_s + 1.0)
            open_l, open_s = b_l > k, k < s and b_s > k
            if not open_s and k < s:
                for i in range(t_s, b_s + 1):
                    other = place[item[s0 + i]]
                    whole += other >= 0 and last[l0 + other] < t_l
            if not open_l:
                for i in range(t_l, b_l + 1):
                    one = item[l0 + i]
                    if place_short[one] >= 0:
                        whole += last[s0 + place_short[one]] <= k
                    else:
                        unseen += 1
            overlap = float(whole)
            if open_s:
                for i in range(t_s, b_s + 1):
                    other = place[item[s0 + i]]
                    if other >= 0 and first[l0 + other] <= k:
                        overlap += c_s * (1.0 if last[l0 + other] <= k else c_l)
            partly = 0  # items of the longer ranking alone in its open tie
            if open_l:
                for i in range(t_l, b_l + 1):
                    one = item[l0 + i]
                    if place_short[one] < 0:
                        partly += 1
                    elif last[s0 + place_short[one]] <= k:
                        overlap += c_l
            # What agreement is measured by.
            if ties == 0:
                norm = 0.5 * ((b_s + 1 if k < s else d) + b_l + 1)
            elif ties == 1:
                norm = float(d)
            else:
                square_s = t_s + (b_s - t_s + 1) * c_s**2 if k < s else float(d)
                norm = np.sqrt(square_s * (t_l + (b_l - t_l + 1) * c_l**2))
            if d <= s:
                agreement = overlap / norm
                value += power * agreement
                lower += power * agreement
                upper += power * agreement
                last_agreement = agreement
                continue
            later = d - s
            seen = unseen + partly
            mean = (unseen + partly * c_l) / seen
            best = min(later, unseen) + max(later - unseen, 0) * c_l
            value += power * (overlap + later * last_agreement * mean) / norm
            lower += power * overlap / norm
            upper += power * (overlap + best) / norm
        common = float(whole)
        value += (common + (n - s) * last_agreement) / n * power * p / (1.0 - p)
        lower += common * (-np.log1p(-p) - logs)
        full = n + s - whole  # from this depth on, the best continuation agrees fully
        for d in range(n + 1, full + 1):
            power *= p
            upper += power * (2 * d - n - s + common) / d
        upper += power * p / (1.0 - p)
        scale = (1.0 - p) / p
        out[pair, 0], out[pair, 1], out[pair, 2] = value * scale, lower * scale, upper * scale
        for i in range(n):
            place[item[l0 + i]] = -1
        for i in range(s):
            place_short[item[s0 + i]] = -1
    return out
