"""PermuRank: a type-two bound over working sets of permutations that grow by the worst ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist._check import as_rng
from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist._text import plural
from permdist.models.base import Card, Ranker, Settings
from permdist.models.batch import with_shared_ties
from permdist.models.options import option
from permdist.models.perfect import Permutations, most_violated  # noqa: F401 (its old place)
from permdist.models.rules import SMALLEST, MeasureName, Number, OneOf, Whole
from permdist.models.scaling import Scaling
from permdist.models.shared import Seeded, Standardized, WarmStarted
from permdist.models.solvers import Solution, cutting_planes, lbfgs, linear_scores

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.history import Watch

FINEST = 1e-6
INNER = 300
UNSOLVED = 5  # rounds in a row after which there is no hope
ROUNDING = 1e-12
EQUAL = 1e-9  # Phi of one permutation, added up in another order, differs by less
LOSSES = ("hinge", "margin", "logistic", "exponential")


class PermuRank(Seeded, Standardized, WarmStarted, Ranker):
    """Scores perfect permutations above all others, a few of each at a time.

    Every query keeps a set B of perfect permutations, those of the largest value of the measure E,
    and a set C of imperfect ones. Each round minimizes ``sum_q 1/|B| sum_{p in B} sum_{y in C}
    (E(p) - E(y)) max(0, 1 - (F(p) - F(y))) + |w|^2 / C`` with the query-level ranking function
    ``F = w @ Phi``, and adds the perfect permutation of smallest F and the imperfect one of
    largest F to the sets, both found exactly. It ends where no set changes.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` of each round; ``train``, the mean measure over queries with two labels, ties
        averaged; ``perfect`` and ``imperfect``, the mean sizes of the working sets; ``active``, the
        share of pairs with ``F(p) - F(y) < 1``; ``turn``, the cosine between w and that of the
        round before.

    Notes
    -----
    **Perfect permutations.** Measures with a cut-off, and reciprocal rank, call more rankings
    perfect than those that agree with the labels; see `permdist.models.perfect`. A binary measure,
    such as average precision, sees labels above 0 as one label, and so does F. Permutations with
    the same Phi and the same E are one. A query all of whose rankings are perfect is left out.

    **Why rounds oscillate.** The imperfect permutation that a round adds has ``F(y) >= F(p)``
    wherever the ranking by score is not perfect, so its term pulls against the current w. Where
    documents are so noisy that no w reaches ``F(p) - F(y) = 1``, or C is so small that none wants
    to, all hinges are active and the loss is linear: w is ``C / 2`` times the sum of all
    ``(E(p) - E(y)) (Phi(p) - Phi(y))``, a batch perceptron. When what was added outweighs what was
    there, w flips its sign, a ranking upside down, and later flips back: ``turn`` is near -1 and
    ``active`` near 1. Larger C does not help on such data. So the best round is kept by default.

    **All pairs in F.** With ``pairs="all"`` the order of equally relevant documents counts as
    well: the perfect permutation of smallest F has them upside down, and to lift it above
    imperfect ones a model must bring their scores together. On noisy data this soon undoes what
    the first round has learned, so pairs of different labels are the default.

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, Figure 7.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, n_documents=(5, 10), noise=0.3, rng=0)
    >>> learner = PermuRank("ap", C=0.001).fit(queries)
    >>> learner.converged_, max(learner.history_["train"]) > 0.8
    (True, True)
    """

    card: ClassVar[Card] = Card(
        paper="Xu et al. 2008",
        optimizes="any measure in [0, 1]",
        minimizes="type-two hinge on working sets",
        cost="n log n per round, and a quadratic program",
    )
    settings: ClassVar[Settings] = {"C": [1e-3, 0.01, 0.1], "early_stopping": [25]}

    measure: str | Measure = option(
        MeasureName(),
        "Any measure E with values from 0 to 1 whose perfect rankings agree with the labels up to "
        "some places: AP, NDCG, AUC, ERR, precision, recall and RR, with or without a cut-off.",
        default="ap",
        kw_only=False,
    )
    loss: str = option(
        OneOf(LOSSES),
        "The bound, as in `permdist.models.bounds.TypeTwo`; the two hinges by cutting planes, "
        "the others by L-BFGS.",
        default="hinge",
    )
    pairs: str = option(
        OneOf(("good-bad", "all")),
        "F is the mean of ``+-(s_k - s_l)`` over pairs of labels that the measure tells apart, as "
        "in SVMmap, or over all pairs, as in equation (2) of the paper. See the notes.",
        default="good-bad",
    )
    C: float = option(
        Number(SMALLEST, infinite=True),
        "The larger, the weaker the regularization. Where data are noisy, a large one lets "
        "the model run from one working set to the next.",
        default=0.01,
    )
    max_iter: int = option(Whole(), "The largest number of rounds.", default=50)
    tol: float = option(
        Number(0.0, 1.0),
        "How well each round is minimized: the duality gap relative to what is gained over w = 0, "
        "or the gradient. It is made finer where no set changes any more, down to 1e-6.",
        default=1e-3,
    )
    start: str = option(
        OneOf(("worst", "random")),
        "Where the sets begin, which the paper leaves open: the permutations that are most "
        "violated when documents are ranked against the mean difference between good and bad "
        "ones, or in a random direction. Coefficients to start from take precedence.",
        default="worst",
    )
    keep: str = option(
        OneOf(("best", "last")),
        "Which round to keep: the one with the best measure on the training queries, or the last "
        "one, as in the paper. Validation decides where there is `early_stopping`.",
        default="best",
    )

    def check_parameters(self) -> None:
        """Check all parameters by their rules, and the range of the measure."""
        super().check_parameters()
        self._need_unit_range()

    def _seen(self, labels: IntArray) -> IntArray:
        return (labels > 0).astype(np.int64) if self.judge.binary else labels

    def _draws_by_document(self) -> bool:
        return True  # equal scores stand by row

    def why_whole(self) -> str:
        """Say why all data must be in one array; see `Ranker.why_whole`."""
        return (
            "a round solves a program over sets of permutations that grow from round to round, "
            "which is no sum over queries"
        )

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        measure = with_shared_ties(self.judge)
        sets = WorkingSets(features, batch, self.judge, self.pairs)
        w = np.zeros(features.shape[1]) if start is None else np.array(start)
        sets.add(linear_scores(features, self._first(sets) if start is None else w))
        scaling = Scaling.of(features, batch.ptr, standardize=False)
        best, kept, kept_at = -np.inf, w, 0
        stable, tol, unsolved, failed = False, float(self.tol), 0, 0
        for number in range(1, self.max_iter + 1):
            flat, before = sets.flat(), w
            found = self._minimize(flat, w, tol, scaling)
            w, solved = found.w, found.converged or "ABNORMAL" in found.message
            unsolved, failed = (0, failed) if solved else (unsolved + 1, failed + 1)
            if not np.isfinite(found.value):
                raise ValueError("X: the loss overflows; scale the features down")
            scores = linear_scores(features, w)
            changed = sets.add(scores)
            train = float(batch.measured(measure, scores).mean())
            if train > best:
                best, kept, kept_at = train, w, number
            perfect, imperfect = sets.sizes()
            stop = watch.linear(
                w,
                objective=found.value,
                train=train,
                perfect=perfect,
                imperfect=imperfect,
                active=_active(flat.perfect @ w, flat.imperfect @ w, *flat[3:]),
                turn=_cosine(before, w),
            )
            if stop or unsolved == UNSOLVED:
                break
            # Where no set has changed, the last minimum may only have been too rough to tell.
            if not changed:
                stable = tol <= FINEST or found.value <= found.lower
                if stable:
                    break
                tol *= 0.1
        if watch.stops_early and watch.best is not None:
            self.coef_ = watch.keep_best()
        else:
            self.coef_ = kept if self.keep == "best" else w
        self.converged_ = stable and solved
        if failed:
            self._warn(
                f"{plural(failed, 'round was', 'rounds were')} not solved (last objective "
                f"{found.value:.3g}); use a smaller C or smaller features (normalize=True)"
            )
        elif not (stable or watch.stops_early):  # validation has chosen the round
            flips = min(watch.history["turn"]) < 0.0
            self._warn(
                f"the working sets still change at max_iter={self.max_iter}; round "
                f"{kept_at if self.keep == 'best' else len(watch)} is kept. "
                + (
                    "The direction has turned around on the way (history_['turn']), more rounds "
                    "will not end that: keep='best', or early_stopping with an eval_set"
                    if flips
                    else "Use a larger max_iter, a smaller C, or early_stopping with an eval_set"
                )
            )

    def _warn(self, text: str) -> None:
        warnings.warn(f"PermuRank: {text}", ConvergenceWarning, stacklevel=6)

    def _first(self, sets: WorkingSets) -> FloatArray:
        """Return the direction whose most violated permutations come first."""
        if self.start == "worst":
            return -sets.mean_difference()
        return as_rng(self.random_state).normal(size=(sets.features.shape[1],))

    def _minimize(self, flat: Flat, start: FloatArray, tol: float, scaling: Scaling) -> Solution:
        kind, cut = LOSSES.index(self.loss), len(flat.perfect)

        def objective(F: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, *slopes = _pair_losses(F[:cut], F[cut:], *flat[2:], kind)
            return np.array([value]), np.concatenate(slopes)

        phi, C = np.concatenate([flat.perfect, flat.imperfect]), float(self.C)
        if kind > 1:
            return lbfgs(objective, phi, start, C, scaling=scaling, tol=tol, max_iter=500)

        def solve(start: FloatArray, tol: float) -> Solution:
            options: dict[str, Any] = {"scaling": scaling, "tol": tol, "max_iter": INNER}
            return cutting_planes(objective, phi, start, C, **options)

        found = solve(start, tol)
        # With a small C the loss is nearly constant: the gap is to be small beside what is gained.
        gain = float(objective(np.zeros(len(phi)))[0][0]) - found.value
        if found.converged and found.value - found.lower > tol * gain > ROUNDING * found.value:
            found = solve(found.w, tol * gain / found.value)._replace(converged=True)
        return found


class Flat(NamedTuple):
    """Working sets as arrays, query after query.

    Attributes
    ----------
    perfect, imperfect : arrays of float, shape (permutations, features)
        Their query-level features Phi.
    losses : array of float, shape (imperfect,)
        What each loses: the largest value of the measure less its own.
    perfect_ptr, imperfect_ptr : arrays of int, shape (queries + 1,)
    """

    perfect: FloatArray
    imperfect: FloatArray
    losses: FloatArray
    perfect_ptr: IntArray
    imperfect_ptr: IntArray


class Layer(NamedTuple):
    """One permutation of every query.

    Attributes
    ----------
    phi : array of float, shape (queries, features)
    value : array of float, shape (queries,)
        The measure E.
    new : array of bool, shape (queries,)
        Whether it is in no earlier layer.
    """

    phi: FloatArray
    value: FloatArray
    new: BoolArray


class WorkingSets:
    """The permutations of every query that a round looks at, each as its Phi and E.

    Permutations with the same query-level features Phi and the same value E of the measure are
    one: the loss cannot tell them apart.

    Parameters
    ----------
    features : array of float, shape (documents, features)
    batch : Batch
    measure : Measure
    pairs : {"good-bad", "all"}
    """

    def __init__(
        self, features: FloatArray, batch: Batch, measure: Measure, pairs: str = "all"
    ) -> None:
        self.features, self.batch = features, batch
        self.permutations = Permutations(batch, measure, pairs)
        self.perfect: list[Layer] = []
        self.imperfect: list[Layer] = []

    def add(self, scores: FloatArray) -> bool:
        """Add each query's most violated permutations; return whether any is new."""
        lowest, highest = self.permutations.most_violated(scores)
        changed = self._add(self.perfect, lowest)
        return self._add(self.imperfect, highest) or changed

    def _add(self, layers: list[Layer], orders: IntArray) -> bool:
        phi, value = self._phi(orders), self.permutations.values(orders)
        new = self.permutations.teaching.copy()
        if layers:
            unit = EQUAL * np.max([np.abs(layer.phi).max(axis=0) for layer in layers], axis=0)
            for layer in layers:
                near = (np.abs(phi - layer.phi) <= unit).all(axis=1)
                new &= ~(layer.new & near & (np.abs(value - layer.value) <= EQUAL))
        if new.any() or not layers:
            layers.append(Layer(phi, value, new))
        return bool(new.any())

    def _phi(self, orders: IntArray) -> FloatArray:
        return self._sums(self.permutations.weights(orders))

    def _sums(self, weights: FloatArray) -> FloatArray:
        return np.array([weights[a:b] @ self.features[a:b] for a, b in self.batch.bounds])

    def mean_difference(self) -> FloatArray:
        """Return Phi over pairs of different labels when all are in order, averaged."""
        return self._sums(self.permutations.agreement()).mean(axis=0)

    def sizes(self) -> tuple[float, float]:
        """Return the mean sizes of both kinds of sets, over the queries that have any."""
        count = max(1, int(self.permutations.teaching.sum()))
        perfect, imperfect = (
            sum(int(layer.new.sum()) for layer in layers) / count
            for layers in (self.perfect, self.imperfect)
        )
        return perfect, imperfect

    def flat(self) -> Flat:
        """Lay the sets out as arrays."""
        good, _, good_ptr = _lay_out(self.perfect)
        bad, (rounds, query), bad_ptr = _lay_out(self.imperfect)
        values = np.array([layer.value for layer in self.imperfect])[rounds, query]
        return Flat(good, bad, self.permutations.ideal[query] - values, good_ptr, bad_ptr)


def _lay_out(layers: list[Layer]) -> tuple[FloatArray, tuple[IntArray, IntArray], IntArray]:
    """Return the Phi of what was new, query after query, their (round, query) and pointers."""
    query, rounds = np.nonzero(np.array([layer.new for layer in layers]).T)
    phi = np.array([layers[t].phi[q] for t, q in zip(rounds, query, strict=True)])
    phi = phi.reshape(len(query), layers[0].phi.shape[1])
    return phi, (rounds, query), pointers(np.bincount(query, minlength=len(layers[0].new)))


def _cosine(first: FloatArray, second: FloatArray) -> float:
    """Return the cosine between two directions, 1 where one of them is none."""
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / length if length > 0.0 else 1.0


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _active(
    perfect: FloatArray, imperfect: FloatArray, perfect_ptr: IntArray, imperfect_ptr: IntArray
) -> float:
    """Return the share of pairs with a difference of less than 1."""
    active, total = 0, 0
    for q in range(len(perfect_ptr) - 1):
        for p in range(perfect_ptr[q], perfect_ptr[q + 1]):
            for y in range(imperfect_ptr[q], imperfect_ptr[q + 1]):
                active += perfect[p] - imperfect[y] < 1.0
                total += 1
    return active / total if total > 0 else 0.0


@kernel
def _pair_losses(
    perfect: FloatArray,
    imperfect: FloatArray,
    losses: FloatArray,
    perfect_ptr: IntArray,
    imperfect_ptr: IntArray,
    kind: int,
) -> tuple[float, FloatArray, FloatArray]:
    """Sum the losses over pairs of each query's sets; derivatives by F of either.

    Kinds: 0 hinge, 1 margin, 2 logistic, 3 exponential.
    """
    by_good, by_bad = np.zeros(len(perfect)), np.zeros(len(imperfect))
    total = 0.0
    for q in range(len(perfect_ptr) - 1):
        share = 1.0 / max(1, perfect_ptr[q + 1] - perfect_ptr[q])
        for p in range(perfect_ptr[q], perfect_ptr[q + 1]):
            for y in range(imperfect_ptr[q], imperfect_ptr[q + 1]):
                x, weight = perfect[p] - imperfect[y], share * losses[y]
                value, slope = 0.0, 0.0
                if kind == 0:
                    if x < 1.0:
                        value, slope = weight * (1.0 - x), -weight
                elif kind == 1:
                    if x < losses[y]:
                        value, slope = share * (losses[y] - x), -share
                elif kind == 2:
                    value = weight * (max(0.0, -x) + np.log1p(np.exp(-abs(x)))) / np.log(2.0)
                    slope = -weight / (1.0 + np.exp(x)) / np.log(2.0)
                else:
                    value = weight * np.exp(-x)
                    slope = -value
                total += value
                by_good[p] += slope
                by_bad[y] -= slope
    return total, by_good, by_bad
