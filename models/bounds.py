"""Upper bounds of ``1 - measure``, each with an exact value: what bound-based learners minimize.

Type-one bounds are functions of the measure itself; type-two bounds compare the scores of perfect
permutations with those of all others. The latter run over interleavings of the classes, each in
its best order: any other order of the same labels has the same measure and a smaller F. Classes are
the labels that the measure tells apart: good and bad for AP, precision and others of binary
relevance, as in the learners that minimize these bounds.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import check_scores, choice, finite, grades
from permdist._kernels import kernel
from permdist.data.tables import group_queries
from permdist.measures import AP, AUC, NDCG, Measure, parse
from permdist.rankings.sorting import different_pairs
from permdist.sums.lattice import Lattice
from permdist.sums.levels import layout
from permdist.sums.shape import MAX_CELLS, Shape, cells_of, fits, level_steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

TERMS = ("indicator", "exponential", "logistic", "hinge", "margin")
MAX_PATTERNS = 20_000_000
MAX_PAIRS = 300_000_000
SAME = 1e-12


@dataclass(frozen=True)
class Bound(ABC):
    """A function of scores and labels that is never below what the ranking by score loses.

    That is the best value any ranking can have, 1 for most measures, less that of this one.

    Parameters
    ----------
    measure : Measure or str
        With values from 0 to 1.
    """

    measure: Measure | str = "ap"

    def __post_init__(self) -> None:
        measure = parse(self.measure)
        if measure.range[0] < 0.0 or measure.range[1] > 1.0:
            raise ValueError(f"measure: expected values from 0 to 1, got {measure.name!r}")
        object.__setattr__(self, "measure", measure)

    @property
    def _gain(self) -> Measure:
        return parse(self.measure)

    def value(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """Return the bound of one query, exactly."""
        return self._value(*self._checked(scores, labels, "labels"))

    def __call__(self, scores: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Sum up the bound over queries."""
        score, label = self._checked(scores, y, "y")
        ptr = group_queries(qid, len(label)).ptr
        return float(sum(self.value(score[a:b], label[a:b]) for a, b in pairwise(ptr)))

    @abstractmethod
    def _value(self, scores: FloatArray, labels: IntArray) -> float: ...

    def _checked(
        self, scores: ArrayLike, labels: ArrayLike, name: str
    ) -> tuple[FloatArray, IntArray]:
        """Return scores, and labels as the measure sees them: 0 and 1 if it is binary."""
        score, label = finite("scores", scores, ndim=1), grades(name, labels)
        if label.shape != score.shape:
            raise ValueError(f"{name}: expected shape {score.shape} as scores, got {label.shape}")
        check_scores(score)
        return score, (label > 0).astype(np.int64) if self._gain.binary else label

    def _measured(self, scores: FloatArray, labels: IntArray) -> float:
        """Measure the ranking by score; a query that says nothing is ranked perfectly."""
        return float(self._gain.from_scores(scores, labels)) if _says(labels) else 1.0


@dataclass(frozen=True)
class BasicLoss(Bound):
    """What all the bounds are bounds of: the measure of the best ranking less that by score.

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, equation (5).

    Examples
    --------
    >>> BasicLoss("ap").value([0.3, 0.2, 0.1], [0, 1, 0])
    0.5
    """

    def _value(self, scores: FloatArray, labels: IntArray) -> float:
        if not _says(labels):
            return 0.0
        return max(0.0, self._gain.ideal(labels) - self._measured(scores, labels))


@dataclass(frozen=True)
class TypeOne(Bound):
    """A convex function of the measure: ``exp(-E)``, or ``log2(1 + exp(-E))``.

    Parameters
    ----------
    kind : {"exponential", "logistic"}

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, section 4.1.

    Examples
    --------
    >>> round(TypeOne("ap").value([0.3, 0.2, 0.1], [0, 1, 0]), 4)
    0.6065
    """

    kind: str = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("kind", self.kind, ("exponential", "logistic"))

    def _value(self, scores: FloatArray, labels: IntArray) -> float:
        measured = self._measured(scores, labels)
        if self.kind == "exponential":
            return math.exp(-measured)
        return math.log1p(math.exp(-measured)) / math.log(2.0)


@dataclass(frozen=True)
class TypeTwo(Bound):
    """The worst (or the sum) over pairs of a perfect permutation p and another one, y.

    With ``e = E(p) - E(y)`` and ``x = F(p) - F(y)``, the terms are

    - ``"indicator"``: ``e [x <= 0]``, which is the bound (6) of the paper itself,
    - ``"exponential"``: ``e exp(-x)``,
    - ``"logistic"``: ``e log2(1 + exp(-x))``,
    - ``"hinge"``: ``e max(0, 1 - x)``,
    - ``"margin"``: ``max(0, e - x)``, the hinge of structural SVMs.

    Parameters
    ----------
    kind : {"indicator", "exponential", "logistic", "hinge", "margin"}
    over : {"max", "sum"}
    pairs : {"all", "good-bad"}
        F is the mean over ordered pairs of documents of ``+-(s_k - s_l)``, as in equation (2), or
        over pairs of different labels, as SVMmap has it; of a good and a bad document, if the
        measure is one of binary relevance.

    Notes
    -----
    The largest term is found by walking all interleavings of the classes, some 100,000 for 7 + 14
    documents; for ``"margin"`` and AP, NDCG or AUC without a cut-off, by a longest path in
    O(goods x bads) at any size. Sums run over all permutations of up to 8 documents or so; that of
    exponentials, over subsets, up to 20.

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, section 4.2.

    Examples
    --------
    >>> worst = TypeTwo("ap", kind="margin").value([0.3, 0.2, 0.1], [0, 1, 0])
    >>> worst >= BasicLoss("ap").value([0.3, 0.2, 0.1], [0, 1, 0])
    True
    """

    kind: str = "exponential"
    over: str = "max"
    pairs: str = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("kind", self.kind, TERMS)
        choice("over", self.over, ("max", "sum"))
        choice("pairs", self.pairs, ("all", "good-bad"))

    def margin(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """Return the smallest ``F(p) - F(y)``, which condition (9) of Theorem 3 is about.

        Infinite where all permutations are perfect.
        """
        score, label = self._checked(scores, labels, "labels")
        if not _says(label):
            return math.inf
        query = QueryInterleavings(score, label, self._gain, self.pairs)
        return query.lowest_perfect() - query.largest("indicator", 0.0)[1]

    def _value(self, scores: FloatArray, labels: IntArray) -> float:
        if not _says(labels):
            return 0.0
        if self.over == "sum":
            return self._sum(scores, labels)
        query = QueryInterleavings(scores, labels, self._gain, self.pairs)
        if self.kind == "margin" and query.one_perfect:
            return query.largest_margin()
        return query.largest(self.kind, query.lowest_perfect())[0]

    def _sum(self, scores: FloatArray, labels: IntArray) -> float:
        query = QueryInterleavings(scores, labels, self._gain, self.pairs)
        n = len(scores)
        by_subsets = self.kind == "exponential" and query.one_perfect and self.pairs == "all"
        if n > 8 and by_subsets and fits(n):
            return query.sum_of_exponentials()
        if n > 8:
            raise ValueError(
                f"scores: the sum runs over all permutations, {n} documents are too many; use "
                "over='max', or the exponential bound with AP, NDCG or AUC and pairs='all'"
            )
        orders = np.array(list(itertools.permutations(range(n))), dtype=np.int64)
        exponents = query.exponents(orders)
        losses = query.ideal - self._gain(orders, labels)
        perfect = losses <= SAME
        if float(perfect.sum()) * float((~perfect).sum()) > MAX_PAIRS:
            raise ValueError(f"scores: {n} documents with these labels have too many permutations")
        kind = TERMS.index(self.kind)
        inputs = exponents[perfect], exponents[~perfect], losses[~perfect], kind
        return float(_sum_terms(*inputs))


class QueryInterleavings:
    """One query, its classes sorted by score: F and the measure along each interleaving.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
    measure : Measure
    pairs : {"all", "good-bad"}
        As for `TypeTwo`.
    """

    def __init__(self, scores: FloatArray, labels: IntArray, measure: Measure, pairs: str) -> None:
        self.scores, self.labels, self.measure = scores, labels, measure
        self.values, self.totals = np.unique(labels, return_counts=True)
        self.ideal = measure.ideal(labels)
        self.good_bad = pairs == "good-bad"
        n = len(labels)
        by_label = [scores[labels == value] for value in self.values]
        self._down = np.concatenate([np.sort(part)[::-1] for part in by_label])
        self._up = np.concatenate([np.sort(part) for part in by_label])
        self._unit = 1.0 / (different_pairs(self.totals) if self.good_bad else n * (n - 1))
        if cells_of(self.totals) > MAX_CELLS:
            raise ValueError(
                f"labels: interleaving these levels would take {cells_of(self.totals):,.0f} cells, "
                f"the limit is {MAX_CELLS:,}; use fewer different labels"
            )
        key = tuple(self.values.tolist()), tuple(self.totals.tolist())
        self._steps = level_steps(measure, *key)
        self._offset = measure.offset(self.values, self.totals)

    @property
    def one_perfect(self) -> bool:
        """Whether only full agreement with the labels is perfect."""
        measure = self.measure
        whole = measure.cut_off >= len(self.labels)
        if isinstance(measure, AP):
            return whole and len(self.values) == 2 and self.values[0] == 0
        return whole and isinstance(measure, NDCG | AUC)

    def largest(self, kind: str, perfect: float) -> tuple[float, float]:
        """Return the largest term, and the largest F, of an imperfect interleaving."""
        return self._walk(self._down, perfect, TERMS.index(kind), False)

    def need_walk(self) -> float:
        """Return the number of interleavings; raise ValueError if they are too many to walk."""
        # Counted by logarithms: a factorial of many documents is itself too much work.
        logs = math.lgamma(len(self.labels) + 1.0)
        logs -= sum(math.lgamma(total + 1.0) for total in self.totals.tolist())
        patterns = math.exp(min(logs, 700.0))
        if patterns > MAX_PATTERNS * (1.0 + 1e-9):
            raise ValueError(
                f"labels: expected at most {MAX_PATTERNS:,} interleavings to walk, "
                f"got {patterns:.2g}; use kind='margin' with AP, NDCG or AUC "
                "without a cut-off; or fewer documents"
            )
        return patterns

    def _walk(
        self, scores: FloatArray, perfect: float, kind: int, of_perfect: bool
    ) -> tuple[float, float]:
        self.need_walk()
        inputs = scores, self.totals, self._steps, self._unit, self.good_bad
        missing = self.ideal - self._offset
        found = _walk(*inputs, missing, perfect, kind, of_perfect)
        return float(found[0]), float(found[1])

    def lowest_perfect(self) -> float:
        """Return the smallest F of a perfect permutation: its classes in ascending order."""
        if self.one_perfect:
            order = np.lexsort((self.scores, -self.labels))
            return float(self.exponents(order[None, :])[0])
        return self._walk(self._up, 0.0, 0, True)[1]

    def largest_margin(self) -> float:
        """Find the largest ``e - x``, at least 0: a longest path that leaves the perfect one."""
        shape = Shape(tuple(np.split(np.arange(len(self.labels)), np.cumsum(self.totals)[:-1])))
        placed = shape.counts.sum(axis=1)[:, None]
        n = len(self.labels)
        factor = n - 1 - 2 * placed
        if self.good_bad:
            factor = n - self.totals - 2 * (placed - shape.counts)
        following = np.minimum(shape.first[:-1] + shape.counts, n - 1)
        weights = self._unit * factor * self._down[following] - self._steps.T
        ahead = Lattice(shape, weights).best_ahead()
        best, so_far, state = -np.inf, 0.0, 0
        for level in range(len(self.totals) - 1, -1, -1):
            for _ in range(self.totals[level]):
                for lower in range(level):  # none of a lower level is placed yet
                    left = state + shape.strides[lower]
                    best = max(best, so_far + weights[state, lower] + ahead[left])
                so_far += weights[state, level]
                state += shape.strides[level]
        return max(0.0, self.ideal - self._offset + float(best) - self.lowest_perfect())

    def exponents(self, orders: IntArray) -> FloatArray:
        """Return F of orders, shape (orders,)."""
        n = orders.shape[1]
        if not self.good_bad:
            coefficients = n - 1.0 - 2.0 * np.arange(n)
            return self._unit * (self.scores[orders] @ coefficients)
        total = np.zeros(len(orders))
        for t, u in itertools.combinations(range(n), 2):
            i, j = orders[:, t], orders[:, u]
            total += (self.labels[i] != self.labels[j]) * (self.scores[i] - self.scores[j])
        return self._unit * total

    def sum_of_exponentials(self) -> float:
        """Sum ``e exp(-x)`` over all pairs, by dynamic programs over subsets."""
        n = len(self.scores)
        shape = Shape.of_orders(n)
        place = n - 1.0 - 2.0 * shape.counts.sum(axis=1)
        lattice = Lattice(shape, self._unit * place[:, None] * self.scores[None, :])
        steps = shape.steps_of(self.measure, self.labels)
        missing = self.ideal - self._offset - lattice.expect(steps)
        if missing < 1e-6:
            raise ValueError(
                "scores: too far apart for this sum, its digits cancel; use over='max'"
            )
        log_sum, above = lattice.log_partition, 0
        for value, total in zip(self.values[::-1], self.totals[::-1], strict=True):
            members = self.scores[self.labels == value]
            inner = Shape.of_orders(int(total))
            place = n - 1.0 - 2.0 * (above + inner.counts.sum(axis=1))
            weights = -self._unit * place[:, None] * members[None, :]
            log_sum += Lattice(inner, weights).log_partition
            above += int(total)
        return float(missing * np.exp(log_sum))


def _says(labels: IntArray) -> bool:
    """Check whether there are two different labels."""
    return len(labels) > 1 and bool((labels != labels[0]).any())


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _term(kind: int, loss: float, x: float) -> float:
    """Evaluate one term; kinds are numbered as in TERMS."""
    if kind == 0:
        return loss if x <= 0.0 else 0.0
    if kind == 1:
        return loss * np.exp(-x)
    if kind == 2:
        smooth = max(0.0, -x) + np.log1p(np.exp(-abs(x)))
        return loss * smooth / np.log(2.0)
    if kind == 3:
        return loss * max(0.0, 1.0 - x)
    return max(0.0, loss - x)


@kernel
def _coefficient(n: int, placed: int, total: int, own: int, good_bad: bool) -> float:
    """Return the factor of a score in F, when `placed` items are above, `own` of its class."""
    if good_bad:
        return float(n - total - 2 * (placed - own))
    return float(n - 1 - 2 * placed)


@kernel
def _walk(
    scores: FloatArray,
    totals: IntArray,
    steps: FloatArray,
    unit: float,
    good_bad: bool,
    ideal: float,
    perfect: float,
    kind: int,
    of_perfect: bool,
) -> tuple[float, float]:
    """Walk all interleavings; return the largest term and the largest F of the imperfect ones.

    With of_perfect: 0 and the smallest F of the perfect ones. Scores are class after class, steps
    (levels, states).
    """
    levels, n = len(totals), len(scores)
    strides, first = layout(totals)
    counts, taken = np.zeros(levels, np.int64), np.full(n + 1, -1)
    gain, exponent = np.zeros(n + 1), np.zeros(n + 1)
    best, extreme = 0.0, np.inf if of_perfect else -np.inf
    rounding = 1e-14 * unit * n * np.abs(scores).sum()
    depth, state = 0, 0
    while depth >= 0:
        if depth == n:
            loss = ideal - gain[n]
            if of_perfect:
                if loss <= SAME:
                    extreme = min(extreme, exponent[n])
            elif loss > SAME:
                extreme = max(extreme, exponent[n])
                gap = perfect - exponent[n]
                if abs(gap) <= rounding:  # equal, but for the last digits of two long sums
                    gap = 0.0
                best = max(best, _term(kind, loss, gap))
        else:
            c = taken[depth] + 1
            while c < levels and counts[c] == totals[c]:
                c += 1
            if c < levels:
                taken[depth] = c
                factor = _coefficient(n, depth, totals[c], counts[c], good_bad)
                gain[depth + 1] = gain[depth] + steps[c, state]
                score = scores[first[c] + counts[c]]
                exponent[depth + 1] = exponent[depth] + unit * factor * score
                counts[c] += 1
                state += strides[c]
                depth += 1
                taken[depth] = -1
                continue
        depth -= 1
        if depth >= 0:
            c = taken[depth]
            counts[c] -= 1
            state -= strides[c]
    return best, extreme


@kernel
def _sum_terms(perfect: FloatArray, exponents: FloatArray, losses: FloatArray, kind: int) -> float:
    """Sum up all terms."""
    total = 0.0
    for p in perfect:
        for y in range(len(exponents)):
            total += _term(kind, losses[y], p - exponents[y])
    return total
