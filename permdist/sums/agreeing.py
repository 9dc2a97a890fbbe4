"""Sums over the orders that agree with a ballot, weighted as Mallows' models weigh them.

Items are numbered as the center ranks them, as in `permdist.sums.mallows`. What a ballot says is
an array of levels: ``levels[i] < levels[j]`` puts item i above item j, equal levels say nothing,
and an item of level -1 is not on the ballot. `agreeing_programs.py` has the two compiled programs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from permdist.sums.agreeing_draws import KINDS, distances
from permdist.sums.agreeing_levels import (
    FEW_ITEMS,
    MOST_LISTED,
    allowed_steps,
    class_cells,
    classes_of,
    completions,
    is_top,
    moved_stages,
    n_completions,
)
from permdist.sums.agreeing_programs import class_sums, footrule_sums
from permdist.sums.lattice import Lattice, NotExactError
from permdist.sums.mallows_kendall import KendallSums, stage_moments, stage_sums
from permdist.sums.mallows_spearman import displacement_weights
from permdist.sums.shape import MAX_CELLS, Shape, fits

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.sums.mallows import DistanceSums
    from permdist.sums.mallows_cayley import CayleySums

LARGE = 100.0  # a theta with which sums of log-weights may be so large that they lose digits


class Agreeing(NamedTuple):
    """What the orders that agree with a ballot add up to.

    Attributes
    ----------
    log_weight : float
        The log of the sum of their weights.
    mean, variance : float
        Of the distance of such an order from the center.
    """

    log_weight: float
    mean: float
    variance: float


class Agreement(ABC):
    """The sums of one model; call it with the levels of a ballot, shape (n,).

    Parameters
    ----------
    sums : DistanceSums
        Of all orders.
    """

    def __init__(self, sums: DistanceSums) -> None:
        self.sums, self.n = sums, sums.n

    def __call__(self, levels: IntArray) -> Agreeing:
        """Add up over the orders that agree with a ballot."""
        found = self._known(levels)
        if found is None:
            orders = completions(levels)
            found = None if orders is None else self._listed(orders)
        if found is None:
            raise NotExactError(self._refusal(levels))
        return found

    @abstractmethod
    def _known(self, levels: IntArray) -> Agreeing | None:
        """Use a closed form or a program; None where there is none."""

    @abstractmethod
    def _listed(self, orders: IntArray) -> Agreeing:
        """Add up over a list of orders."""

    def cost(self, levels: IntArray) -> float:
        """Return about how many elementary operations the sum takes; infinite if it is refused."""
        found = self._known_cost(levels)
        return found if found < np.inf else 10.0 * len(levels) * n_completions(levels)

    @abstractmethod
    def _known_cost(self, levels: IntArray) -> float:
        """Return the cost of the closed form or program; infinite where there is none."""

    @abstractmethod
    def _refusal(self, levels: IntArray) -> str:
        """Say what is possible."""


class KendallAgreement(Agreement):
    """Kendall's distance, with a parameter per stage or the same at all stages.

    Rankings of all items, with ties or of the first places, are products of stages for any number
    of items. For others, items that are next to each other in the center and that the ballot
    treats alike form a class; sums go over the numbers of each class that are placed.
    """

    sums: KendallSums

    def __init__(self, sums: KendallSums) -> None:
        super().__init__(sums)
        self.thetas = np.append(sums.thetas, 0.0)
        self.is_plain = bool((sums.thetas == sums.thetas[:1]).all())
        self._blocks: dict[tuple[int, int], Agreeing] = {}

    def _block(self, first: int, size: int) -> Agreeing:
        """Return the sums over all orders of some items, from a stage on."""
        key = (0 if self.is_plain else first, size)
        if key not in self._blocks:
            sums = KendallSums(self.thetas[key[0] : key[0] + size - 1])
            self._blocks[key] = Agreeing(sums.log_partition, *sums.moments[:2])
        return self._blocks[key]

    def _known(self, levels: IntArray) -> Agreeing | None:
        if (levels >= 0).all():
            found = self._stages(levels)
            if found is not None:
                return found
        return self._classes(levels)

    def _known_cost(self, levels: IntArray) -> float:
        if (levels >= 0).all() and (self.is_plain or is_top(levels)):
            return 1e4  # the interpreter, more than anything
        cells = class_cells(*classes_of(self._inner(levels)))
        return 20.0 * cells + 1e4 if cells <= MAX_CELLS else np.inf

    def _inner(self, levels: IntArray) -> IntArray:
        """Leave out items that have no influence, above and below all those on the ballot."""
        there = np.flatnonzero(levels >= 0)
        return levels[there[0] : there[-1] + 1] if self.is_plain else levels

    def _stages(self, levels: IntArray) -> Agreeing | None:
        """Add up bucket by bucket; None if stages within a bucket differ and matter."""
        sizes = np.bincount(levels)
        log, mean, variance, first = 0.0, 0.0, 0.0, 0
        ahead = np.zeros(len(levels), np.int64)  # items that come later and are above in the center
        for level, size in enumerate(sizes.tolist()):
            later = np.cumsum(levels > level)
            ahead = later[levels == level]
            block = self._block(first, size)
            total, stages = int(ahead.sum()), self.thetas[first : first + size]
            if (ahead == ahead[0]).all():
                cost = float(stages.sum()) * int(ahead[0]) if total else 0.0
            elif self.is_plain or (stages == stages[0]).all():
                cost = float(stages[0]) * total
            else:
                return None
            log += block.log_weight - cost
            mean += block.mean + total
            variance += block.variance
            first += size
        return Agreeing(log, mean, variance)

    def _classes(self, levels: IntArray) -> Agreeing | None:
        """Add up over the numbers of items placed of each class."""
        n, outside = len(levels), Agreeing(0.0, 0.0, 0.0)
        if self.is_plain:
            levels = self._inner(levels)
            inner, all_items = self._block(0, len(levels)), self._block(0, n)
            outside = Agreeing(*(b - a for a, b in zip(inner, all_items, strict=True)))
        sizes, marks = classes_of(levels)
        cells = class_cells(sizes, marks)
        if cells > MAX_CELLS:
            return None
        stages = self.thetas[: 1 if self.is_plain else len(levels), None]
        left = np.arange(1.0, sizes.max() + 1.0)[None, :]
        tables = np.stack([stage_sums(stages, left), *stage_moments(stages, left)])
        inputs = sizes, marks, self.thetas[: len(levels)], tables
        found = class_sums(*inputs)
        return Agreeing(*(a + b for a, b in zip(found, outside, strict=True)))

    def _listed(self, orders: IntArray) -> Agreeing:
        logs = -self.sums.stage_total(orders)
        return _added(logs, distances(orders, KINDS["kendall"], np.zeros(1)))

    def _refusal(self, levels: IntArray) -> str:
        del levels
        return (
            "log_prob: a ballot of some of the items with so many gaps between them in the center "
            f"needs a table of more than {MAX_CELLS:,} entries; exact are rankings of all items, "
            "with ties or of the first places, and those of few items or of few gaps"
        )


class CayleyAgreement(Agreement):
    """Cayley's distance: first places are a product of stages, others are listed."""

    sums: CayleySums

    def _known(self, levels: IntArray) -> Agreeing | None:
        if not is_top(levels):
            return None
        sums, k = self.sums, int(levels.max())
        moved = np.array(moved_stages(np.argsort(levels, kind="stable")[:k].tolist()))
        ahead = min(k, self.n - 1)
        thetas, chances = sums.thetas[:ahead], sums.stage_means[ahead:]
        log = float(sums.stage_sums[ahead:].sum() - np.where(moved[:ahead], thetas, 0.0).sum())
        mean = float(moved[:ahead].sum() + chances.sum())
        return Agreeing(log, mean, float((chances * (1.0 - chances)).sum()))

    def _known_cost(self, levels: IntArray) -> float:
        return 1e4 if is_top(levels) else np.inf

    def _listed(self, orders: IntArray) -> Agreeing:
        logs = -self.sums.stage_total(orders)
        return _added(logs, distances(orders, KINDS["cayley"], np.zeros(1)))

    def _refusal(self, levels: IntArray) -> str:
        return _few(levels, "Cayley's distance", "first places of any number of items")


class UlamAgreement(Agreement):
    """Ulam's distance: orders are listed."""

    def __init__(self, sums: DistanceSums, theta: float) -> None:
        super().__init__(sums)
        self.theta = theta

    def _known(self, levels: IntArray) -> Agreeing | None:
        del levels
        return None

    def _known_cost(self, levels: IntArray) -> float:
        del levels
        return np.inf

    def _listed(self, orders: IntArray) -> Agreeing:
        values = distances(orders, KINDS["ulam"], np.zeros(1))
        return _added(np.where(values > 0, -self.theta * values, 0.0), values)

    def _refusal(self, levels: IntArray) -> str:
        return _few(levels, "Ulam's distance", "full rankings")


class DisplacementAgreement(Agreement):
    """Distances that add up over items, by how far each is from its place.

    On rankings of all items, with ties or of the first places, every bucket is a sum of its own:
    in closed form for Hamming's distance, by the program over cuts for the footrule, both for any
    number of items, and over subsets of the bucket for Spearman's. Where items are missing from a
    ballot, sums go over all subsets of the items.

    Parameters
    ----------
    sums : DistanceSums
    distance : {"hamming", "footrule", "spearman"}
    theta : float
    costs : array of float, shape (n,)
        What each displacement adds to the distance.
    """

    def __init__(self, sums: DistanceSums, distance: str, theta: float, costs: FloatArray) -> None:
        super().__init__(sums)
        self.distance, self.theta, self.costs = distance, theta, costs

    def _known(self, levels: IntArray) -> Agreeing | None:
        if (levels < 0).any():
            if len(levels) <= FEW_ITEMS or not fits(len(levels)):
                return None
            return self._subsets(np.arange(len(levels)), levels)
        log, mean, variance, first = 0.0, 0.0, 0.0, 0
        by_level = np.argsort(levels, kind="stable")
        for size in np.bincount(levels).tolist():
            found = self._bucket(by_level[first : first + size] - first, first)
            if found is None:
                return None
            log, mean, variance = log + found[0], mean + found[1], variance + found[2]
            first += size
        return Agreeing(log, mean, variance)

    def _known_cost(self, levels: IntArray) -> float:
        n = len(levels)
        if (levels < 0).any():
            return np.inf if n <= FEW_ITEMS or not fits(n) else 40.0 * n * 2.0**n
        sizes = np.bincount(levels).astype(np.float64)
        if self.distance == "footrule":
            return float(1e4 + 150.0 * (sizes**2).sum())
        if self.distance == "hamming":
            return 1e4 + 1e4 * len(sizes)
        return float((40.0 * sizes * 2.0**sizes).sum()) if fits(int(sizes.max())) else np.inf

    def _bucket(self, moves: IntArray, first: int) -> Agreeing | None:
        """Add up over all orders of a bucket; `moves` are its items less its first place."""
        if len(moves) == 1:
            cost = float(self.costs[abs(int(moves[0]))])
            return Agreeing(-self.theta * cost if cost else 0.0, cost, 0.0)
        if self.distance == "footrule":
            return Agreeing(*footrule_sums(moves, self.theta))
        if self.distance == "hamming":
            return self._hamming(moves)
        if first == 0 and len(moves) == self.n:
            return Agreeing(self.sums.log_partition, *self.sums.moments[:2])
        return self._subsets(moves, np.zeros_like(moves)) if fits(len(moves)) else None

    def _hamming(self, moves: IntArray) -> Agreeing:
        """Count the items that stay, of those with a place in the bucket."""
        size = len(moves)
        can = int(((moves >= 0) & (moves < size)).sum())
        log = _hamming_sum(size, can, self.theta)
        one = two = 0.0  # the expected number of items that stay, and of ordered pairs of such
        if can > 0:
            one = can * math.exp(_hamming_sum(size - 1, can - 1, self.theta) - log)
        if can > 1:
            two = can * (can - 1) * math.exp(_hamming_sum(size - 2, can - 2, self.theta) - log)
        return Agreeing(log, size - one, max(0.0, two + one - one * one))

    def _subsets(self, moves: IntArray, levels: IntArray) -> Agreeing:
        lattice, steps = self.lattice(moves, levels)
        lattice, best = _about_the_best(lattice) if self.theta > LARGE else (lattice, 0.0)
        mean = lattice.expect(steps)
        variance = float(np.sum(lattice.expect_gradient(steps) * steps))
        return Agreeing(lattice.log_partition + best, mean, max(0.0, variance))

    def lattice(self, moves: IntArray, levels: IntArray) -> tuple[Lattice, FloatArray]:
        """Return the program over subsets, and what each of its steps adds to the distance."""
        shape = Shape.of_orders(len(moves))
        steps = displacement_weights(shape, moves, self.costs)
        steps[np.isinf(steps)] = 0.0
        weights = np.where(steps > 0.0, -self.theta * steps, 0.0)
        weights[~allowed_steps(levels)] = -np.inf
        return Lattice(shape, weights), steps

    def _listed(self, orders: IntArray) -> Agreeing:
        values = distances(orders, KINDS[self.distance], self.costs)
        return _added(np.where(values > 0, -self.theta * values, 0.0), values)

    def _refusal(self, levels: IntArray) -> str:
        most = next(m for m in range(40, 0, -1) if fits(m))
        buckets = f"buckets of up to {most} items" if self.distance == "spearman" else "any ties"
        return (
            f"log_prob: for {self.distance} exact on rankings of all items with {buckets}, and on "
            f"ballots of some of them up to {most} items; this one has {len(levels)} items"
        )


def _about_the_best(lattice: Lattice) -> tuple[Lattice, float]:
    """Return a program with the same chances in which the best path has weight 1, and its log.

    Every step is weighed relative to the best one from its state, so that digits are not lost to
    what all orders share.
    """
    shape, ahead = lattice.shape, lattice.best_ahead()
    after = np.arange(shape.n_states)[:, None] + shape.strides[:-1]
    with np.errstate(invalid="ignore"):
        gains = lattice.weights + ahead[np.minimum(after, shape.n_states - 1)] - ahead[:, None]
    gains[np.isnan(gains)] = -np.inf
    return Lattice(shape, np.minimum(gains, 0.0)), float(ahead[0])


def _hamming_sum(size: int, can: int, theta: float) -> float:
    """Return the log of the sum over all orders of items of which some have their own place.

    Let j of these stay with the weight ``1 - exp(-theta)``, and all others go anywhere.
    """
    j = np.arange(can + 1.0)
    chosen = gammaln(can + 1.0) - gammaln(j + 1.0) - gammaln(can - j + 1.0)
    chosen += gammaln(size - j + 1.0) - np.where(size > j, theta * (size - j), 0.0)
    with np.errstate(divide="ignore"):
        kept = np.log(-np.expm1(-theta))
    chosen[1:] += j[1:] * kept
    return float(logsumexp(chosen))


def _added(logs: FloatArray, values: Any) -> Agreeing:
    """Add up weights, and take moments of the distance."""
    top = float(logs.max())
    weights = np.exp(logs - top)
    log, share = top + float(np.log(weights.sum())), weights / weights.sum()
    mean = float(share @ values)
    return Agreeing(log, mean, float(share @ (values - mean) ** 2))


def _few(levels: IntArray, distance: str, also: str) -> str:
    return (
        f"log_prob: for {distance} exact on {also}, on other rankings of all items that at most "
        f"{MOST_LISTED:,} orders agree with, and up to {FEW_ITEMS} items; this one has "
        f"{len(levels)} items"
    )
