"""The restart sampler: random walks from rankings that cover the whole range of losses.

It draws a fixed sample of rankings before a learner's optimization. The sample does not depend on
the learner's parameters, so that the objective does not change while it is optimized.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, count, finite, grades
from permdist._kernels import kernel
from permdist._result import Result, block, facts, note
from permdist._text import aligned
from permdist.measures import Measure, parse
from permdist.samplers.kernels.randomness import pick, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState


@dataclass(frozen=True, repr=False)
class RestartSample(Result):
    """A fixed sample of rankings of one query.

    Attributes
    ----------
    orders : array of int, shape (size, n)
    delta : array of float, shape (size,)
        The loss of each ranking: 1 minus the measure.
    rung : array of int, shape (size,)
        The restart state at which each ranking's walk began.
    ladder : array of float, shape (rungs,)
        The losses of the restart states.
    measure : Measure
    """

    orders: IntArray
    delta: FloatArray
    rung: IntArray
    ladder: FloatArray
    measure: Measure

    def coverage(self, bins: int = 10) -> FloatArray:
        """Return the proportion of the sample in each of equal bins of the possible losses."""
        largest = 1.0 - self.measure.range[0]
        counts, _ = np.histogram(self.delta, bins=count("bins", bins), range=(0.0, largest))
        return counts / len(self.delta)

    def to_frame(self) -> pd.DataFrame:
        """Return the sample as a data frame, a row per ranking.

        Returns
        -------
        DataFrame
            With the columns ``loss``, ``rung`` (the restart state of its walk) and ``order``, the
            items from the top down as a text.
        """
        import pandas as pd

        orders = [" ".join(map(str, order)) for order in self.orders.tolist()]
        return pd.DataFrame({"loss": self.delta, "rung": self.rung, "order": orders})

    def _facts(self) -> dict[str, str]:
        low, middle, high = np.quantile(self.delta, [0.0, 0.5, 1.0])
        filled = int((self.coverage() > 0).sum())
        return {
            "rankings": f"{len(self.orders):,}, {len(np.unique(self.rung))} restart states",
            f"loss (1 - {self.measure.name})": f"{low:.3f} to {high:.3f}, median {middle:.3f}",
            "coverage": f"{filled} of 10 tenths of [0, {1.0 - self.measure.range[0]:g}]",
        }

    def __repr__(self) -> str:
        return aligned(self._facts())

    def _repr_html_(self) -> str:
        return block("RestartSample", facts(self._facts()), note("The rankings: to_frame()."))


class RestartSampler:
    """Draw fixed samples of rankings for a learner.

    A walk starts at one of several restart states between the best and the worst ranking, chosen
    with probability proportional to ``exp(skew * loss)`` or with given chances. Each step flips one
    pair of a good and a bad item, among the flips that result in a ranking, with probability
    proportional to

    - ``(bads above g + goods below b + 1) / (n + 2)`` if g is above b,
    - ``(goods above b + bads below g + 1) / (n + 2)`` if b is above g,

    which favors flips that change the loss little. No step is rejected; the distribution is that of
    drawing pairs until one is accepted.

    Parameters
    ----------
    measure : Measure or str
        The loss is 1 minus this measure.
    rungs : int
        The number of restart states; 2 for the best and the worst ranking only.
    skew : float
        Negative values favor good restart states, positive ones bad restart states.
    walk : int
        The number of rankings taken from each walk, including the restart state.
    stride : int
        The number of flips between two of them.
    chances : sequence of float, optional
        How likely each restart state is, from the best to the worst, in place of `skew`: numbers in
        any proportion, one for each of `rungs`. ``rungs=2, chances=(9, 1)`` starts nine times at
        the best ranking for once at the worst.
    distinct : bool
        Whether restart states that coincide count once. A query with few pairs has fewer states
        than `rungs`, and its ladder repeats some; given chances of equal states add up either way.
    warm_up : int
        The number of flips before the first ranking of a walk, which with 0 is the restart state.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 4, Figure 2.

    Examples
    --------
    >>> sampler = RestartSampler("ap", skew=-2.0)
    >>> sampler.sample([1, 0, 1, 0, 0, 0, 0, 0], size=200, rng=0)
    rankings       200, 10 restart states
    loss (1 - ap)  0.000 to 0.804, median 0.357
    coverage       9 of 10 tenths of [0, 1]
    """

    def __init__(
        self,
        measure: str | Measure = "ap",
        *,
        rungs: int = 11,
        skew: float = -10.0,
        walk: int = 10,
        stride: int = 1,
        chances: Sequence[float] | None = None,
        distinct: bool = False,
        warm_up: int = 0,
    ) -> None:
        self.measure = parse(measure)
        self.rungs = count("rungs", rungs, minimum=2)
        self.skew = float(finite("skew", skew, ndim=0))
        self.walk, self.stride = count("walk", walk), count("stride", stride)
        self.chances = None if chances is None else _chances(chances, self.rungs)
        self.distinct, self.warm_up = bool(distinct), count("warm_up", warm_up, minimum=0)

    def probabilities(self, labels: ArrayLike) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the restart states, their losses and the probability to start at each.

        With `distinct`, states that coincide are one.

        Parameters
        ----------
        labels : array of int, shape (n,)

        Returns
        -------
        orders : array of int, shape (states, n)
        losses : array of float, shape (states,)
        probabilities : array of float, shape (states,)

        Examples
        --------
        >>> sampler = RestartSampler("ap", rungs=2, chances=(9, 1))
        >>> sampler.probabilities([1, 0, 0])[2]
        array([0.9, 0.1])
        """
        orders, losses = self.ladder(labels)
        if self.chances is not None:
            weights = np.array(self.chances)
        else:
            weights = np.exp(self.skew * losses - (self.skew * losses).max())
        if self.distinct:
            _, first, same = np.unique(orders, axis=0, return_index=True, return_inverse=True)
            if self.chances is not None:
                weights = np.bincount(same.ravel(), weights)
            else:
                weights = weights[first]
            kept = np.sort(first)
            weights = weights[np.argsort(first)]
            orders, losses = orders[kept], losses[kept]
        return orders, losses, weights / weights.sum()

    def ladder(self, labels: ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return the restart states from the best to the worst, and their losses.

        From the best ranking the goods move to the bottom one after the other, the last one first;
        the restart states are those whose losses are nearest to equal steps.

        Returns
        -------
        orders : array of int, shape (rungs, n)
        losses : array of float, shape (rungs,)
        """
        label = grades("labels", labels)
        goods, bads = _classes(label)
        last = len(goods) * len(bads)
        known: dict[int, float] = {}

        def loss(flips: int) -> float:
            if flips not in known:
                known[flips] = 1.0 - float(self.measure(_flipped(goods, bads, flips), label))
            return known[flips]

        chosen = []
        for wanted in np.linspace(loss(0), loss(last), self.rungs):
            low, high = 0, last  # the loss grows with the flips
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if loss(middle) <= wanted else (low, middle)
            chosen.append(low if wanted - loss(low) <= loss(high) - wanted else high)
        chosen[0], chosen[-1] = 0, last
        orders = np.array([_flipped(goods, bads, flips) for flips in chosen])
        return orders, np.array([loss(flips) for flips in chosen])

    def sample(self, labels: ArrayLike, size: int, rng: RandomState = None) -> RestartSample:
        """Draw a sample for the labels of one query.

        Parameters
        ----------
        labels : array of int, shape (n,)
            Relevance labels; above 0 is good. There must be good and bad items.
        size : int
        rng : int, Generator or None

        Returns
        -------
        RestartSample
        """
        label, size = grades("labels", labels), count("size", size)
        generator = as_rng(rng)
        goods, bads = _classes(label)
        states, losses, chances = self.probabilities(label)
        walks = -(-size // self.walk)
        rungs = generator.choice(len(losses), size=walks, p=chances)
        orders = np.empty((walks * self.walk, len(label)), dtype=np.int64)
        is_good = label > 0
        width = 2 * min(len(goods), len(bads)) + 3
        sizes, weights = np.zeros(width, dtype=np.int64), np.zeros(width)
        for number, rung in enumerate(rungs):
            order = states[rung].copy()
            for grade in np.unique(label):  # any arrangement of a grade has the same loss
                members = np.flatnonzero(label == grade)
                order[label[order] == grade] = generator.permutation(members)
            out = orders[number * self.walk : (number + 1) * self.walk]
            inputs = order, is_good, sizes, weights, generator, self.stride, self.warm_up, out
            _walk(*inputs)
        orders = orders[:size]
        delta = 1.0 - self.measure(orders, label)
        rung_of = np.repeat(rungs, self.walk)[:size]
        for array in (orders, delta, rung_of, losses):
            array.flags.writeable = False
        return RestartSample(orders, delta, rung_of, losses, self.measure)

    def __repr__(self) -> str:
        favored = f"skew={self.skew:g}"
        if self.chances is not None:
            favored = f"chances=({', '.join(f'{chance:g}' for chance in self.chances)})"
        more = ", distinct=True" if self.distinct else ""
        more += f", warm_up={self.warm_up}" if self.warm_up else ""
        return (
            f"RestartSampler({self.measure.name!r}, rungs={self.rungs}, {favored}, "
            f"walk={self.walk}, stride={self.stride}{more})"
        )


def _chances(chances: Sequence[float], rungs: int) -> tuple[float, ...]:
    found = finite("chances", chances, ndim=1)
    if len(found) != rungs:
        raise ValueError(f"chances: expected {rungs} numbers, one per rung, got {len(found)}")
    if (found < 0.0).any() or not found.sum() > 0.0:
        raise ValueError(f"chances: expected non-negative numbers, not all 0, got {found.tolist()}")
    return tuple(found.tolist())


def _classes(label: IntArray) -> tuple[IntArray, IntArray]:
    if label.ndim != 1:
        raise ValueError(f"labels: expected one dimension, got shape {label.shape}")
    # Higher labels first: the best ranking has them on top.
    goods = np.argsort(-label, kind="stable")[: int((label > 0).sum())]
    bads = np.flatnonzero(label == 0)
    if not len(goods) or not len(bads):
        raise ValueError("labels: expected good and bad items, got one class")
    return goods, bads


def _flipped(goods: IntArray, bads: IntArray, flips: int) -> IntArray:
    """Put goods above bads, then let the goods pass the bads one after the other, last first."""
    down, rest = divmod(flips, len(bads))
    stay = len(goods) - down
    if stay == 0:  # the worst of all: the highest labels last
        return np.concatenate([bads, goods[::-1]])
    return np.concatenate(
        [goods[: stay - 1], bads[:rest], goods[stay - 1 : stay], bads[rest:], goods[stay:]]
    )


# ---- kernels: order (n,), is_good (n,), sizes and weights with room for all blocks --------------


@kernel(inline=True)
def _walk(
    order: IntArray,
    is_good: Any,
    sizes: IntArray,
    weights: FloatArray,
    rng: Any,
    stride: int,
    warm_up: int,
    out: IntArray,
) -> None:
    """Walk, and record every stride-th ranking after the first flips; out (walk, n)."""
    n = len(order)
    blocks = _blocks(order, is_good, sizes)
    for _ in range(warm_up):
        blocks = flip_once(order, is_good, sizes, blocks, weights, rng)
    for number in range(len(out)):
        if number > 0:
            for _ in range(stride):
                blocks = flip_once(order, is_good, sizes, blocks, weights, rng)
        for k in range(n):
            out[number, k] = order[k]


@kernel(inline=True)
def _blocks(order: IntArray, is_good: Any, sizes: IntArray) -> int:
    """Fill in the sizes of the blocks of goods and bads; return their number."""
    blocks = 0
    for k in range(len(order)):
        if k == 0 or is_good[order[k]] != is_good[order[k - 1]]:
            sizes[blocks] = 0
            blocks += 1
        sizes[blocks - 1] += 1
    return blocks


@kernel(inline=True)
def flip_once(
    order: IntArray, is_good: Any, sizes: IntArray, blocks: int, weights: FloatArray, rng: Any
) -> int:
    """Flip one pair of neighboring blocks; return the new number of blocks."""
    n = len(order)
    first_good = is_good[order[0]]
    all_goods = 0
    for b in range(blocks):
        if (b % 2 == 0) == first_good:
            all_goods += sizes[b]
    all_bads = n - all_goods
    goods_above, bads_above = 0, 0
    for b in range(blocks - 1):
        # A pair of blocks b and b + 1: all their pairs have the same theta.
        if (b % 2 == 0) == first_good:  # g above b
            theta = bads_above + (all_goods - goods_above - sizes[b]) + 1
            goods_above += sizes[b]
        else:  # b above g
            theta = goods_above + (all_bads - bads_above - sizes[b]) + 1
            bads_above += sizes[b]
        weights[b] = float(sizes[b]) * sizes[b + 1] * theta
    b = weigh(rng, weights, blocks - 1)
    start = 0
    for before in range(b):
        start += sizes[before]
    k = start + sizes[b] - 1  # the last position of the upper block
    i, j = start + pick(rng, sizes[b]), k + 1 + pick(rng, sizes[b + 1])
    order[i], order[k] = order[k], order[i]
    order[j], order[k + 1] = order[k + 1], order[j]
    order[k], order[k + 1] = order[k + 1], order[k]
    # The lower block loses its item: it leaves a block of one behind, or joins the next.
    sizes[b + 1] -= 1
    if sizes[b + 1] == 0:
        if b + 2 < blocks:  # the upper item joins the block below, the empty one goes
            sizes[b + 1] = sizes[b + 2] + 1
            for later in range(b + 2, blocks - 1):
                sizes[later] = sizes[later + 1]
            blocks -= 1
        else:
            sizes[b + 1] = 1
        below = b + 1
    else:
        for later in range(blocks, b + 1, -1):
            sizes[later] = sizes[later - 1]
        sizes[b + 1] = 1
        blocks += 1
        below = b + 1
    # Now the upper block loses its item, and the lower item stands before block `below`.
    sizes[b] -= 1
    if sizes[b] == 0:
        if b > 0:
            sizes[b - 1] += 1
            for later in range(b, blocks - 1):
                sizes[later] = sizes[later + 1]
            blocks -= 1
            above = b - 1
        else:
            sizes[b] = 1
            above = b
        below = above + 1
    else:
        for later in range(blocks, b + 1, -1):
            sizes[later] = sizes[later - 1]
        sizes[b + 1] = 1
        blocks += 1
        above, below = b + 1, b + 2
    # All places in a block are equally likely.
    i = k - pick(rng, sizes[above])
    j = k + 1 + pick(rng, sizes[below])
    order[i], order[k] = order[k], order[i]
    order[j], order[k + 1] = order[k + 1], order[j]
    return blocks
