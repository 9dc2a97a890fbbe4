"""PermuRank: a type-two bound over working sets of permutations that grow by the worst ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist._check import as_rng
from permdist._kernels import kernel
from permdist._ragged import pointers
from permdist._text import plural
from permdist.models import solvers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.options import option
from permdist.models.rules import SMALLEST, MeasureName, Number, OneOf, Whole
from permdist.models.shared import Seeded, WarmStarted
from permdist.models.spaces.restart import exponents

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.history import Watch

FINEST = 1e-6
INNER = 300
UNSOLVED = 5  # rounds in a row after which there is no hope
LOSSES = ("hinge", "margin", "logistic", "exponential")


class PermuRank(Seeded, WarmStarted, Ranker):
    """Scores perfect permutations above all others, a few of each at a time.

    Every query keeps a set B of perfect permutations and a set C of imperfect ones. Each round
    minimizes ``sum_q 1/|B| sum_{p in B} sum_{y in C} (1 - E(y)) max(0, 1 - (F(p) - F(y)))
    + |w|^2 / C`` with the query-level F of all pairs, and adds the perfect permutation of smallest
    F and the imperfect one of largest F to the sets. It ends where no set changes.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` of each round; ``train``, the mean measure over queries with two labels;
        ``perfect`` and ``imperfect``, the mean sizes of the working sets.

    Notes
    -----
    With all pairs in F, the order of equally relevant documents counts as well: the perfect
    permutation of smallest F has them upside down, and to lift it above imperfect ones a model
    must bring their scores together. On noisy data this soon undoes what the first round has
    learned, so pairs of different labels are the default.

    Perfect are the permutations that agree with the labels. A measure that looks at the first k
    places only calls others perfect too; these have weight 0 in the loss.

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, Figure 7.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, rng=0)
    >>> learner = PermuRank("ap", max_iter=10).fit(queries)
    >>> learner.history_["train"][-1] > learner.history_["train"][0] - 0.1
    True
    """

    card: ClassVar[Card] = Card(
        paper="Xu et al. 2008",
        optimizes="any measure in [0, 1]",
        minimizes="type-two hinge on working sets",
        cost="n log n per round, and a quadratic program",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-4, 1e-3, 0.01, 0.1],
        "max_iter": [15],
        "early_stopping": [6],
    }

    measure: str | Measure = option(
        MeasureName(), "Any measure E with values from 0 to 1.", default="ap", kw_only=False
    )
    loss: str = option(
        OneOf(LOSSES),
        "The bound, as in `permdist.models.bounds.TypeTwo`; the two hinges by cutting planes, "
        "the others by L-BFGS.",
        default="hinge",
    )
    pairs: str = option(
        OneOf(("good-bad", "all")),
        "F is the mean of ``+-(s_k - s_l)`` over pairs of different labels, as in SVMmap, or "
        "over all pairs, as in equation (2) of the paper. See the notes.",
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
        "How well each round is minimized: the duality gap, or the gradient, relative. It is "
        "made finer where no set changes any more, down to 1e-6.",
        default=1e-3,
    )

    def check_parameters(self) -> None:
        """Check all parameters by their rules, and the range of the measure."""
        super().check_parameters()
        self._need_unit_range()

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        measure = self.judge
        sets = WorkingSets(features, batch, measure, self.pairs)
        rng = as_rng(self.random_state)
        w = np.zeros(features.shape[1]) if start is None else np.array(start)
        scores = rng.normal(size=len(features)) if start is None else features @ w
        sets.add(scores)
        stable, tol = False, float(self.tol)
        unsolved, failed = 0, 0
        for _ in range(self.max_iter):
            w, value, solved = self._minimize(sets.flat(), w, tol)
            unsolved, failed = (0, failed) if solved else (unsolved + 1, failed + 1)
            if not np.isfinite(value):
                raise ValueError("X: the loss overflows; scale the features down")
            scores = features @ w
            changed = sets.add(scores)
            sizes = sets.sizes()
            train = float(batch.measured(measure, scores).mean())
            stop = watch.linear(
                w, objective=value, train=train, perfect=sizes[0], imperfect=sizes[1]
            )
            if stop or unsolved == UNSOLVED:
                break
            # Where no set has changed, the last minimum may only have been too rough to tell.
            if not changed:
                stable = tol <= FINEST
                if stable:
                    break
                tol *= 0.1
        self.coef_ = watch.best if watch.stops_early and watch.best is not None else w
        self.converged_ = stable and solved
        if failed:
            warnings.warn(
                f"PermuRank: {plural(failed, 'round was', 'rounds were')} not solved "
                f"(last objective {value:.3g}); use a smaller C or smaller features "
                "(normalize=True)",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _minimize(
        self, flat: Flat, start: FloatArray, tol: float
    ) -> tuple[FloatArray, float, bool]:
        kind, cut = LOSSES.index(self.loss), len(flat.perfect)

        def objective(F: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, *slopes = _pair_losses(F[:cut], F[cut:], *flat[2:], kind)
            return np.array([value]), np.concatenate(slopes)

        phi = np.concatenate([flat.perfect, flat.imperfect])
        if kind < 2:
            C = float(self.C)
            found = solvers.cutting_planes(objective, phi, start, C, tol=tol, max_iter=INNER)
            return found.w, found.value, found.converged
        found = solvers.lbfgs(objective, phi, start, float(self.C), tol=tol, max_iter=500)
        return found.w, found.value, found.converged or "ABNORMAL" in found.message


class Flat(NamedTuple):
    """Working sets as arrays, query after query.

    Attributes
    ----------
    perfect, imperfect : arrays of float, shape (permutations, features)
        Their query-level features Phi.
    losses : array of float, shape (imperfect,)
        1 less the measure of each.
    perfect_ptr, imperfect_ptr : arrays of int, shape (queries + 1,)
    """

    perfect: FloatArray
    imperfect: FloatArray
    losses: FloatArray
    perfect_ptr: IntArray
    imperfect_ptr: IntArray


class WorkingSets:
    """The permutations of every query that a round looks at.

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
        self.features, self.batch, self.measure, self.pairs = features, batch, measure, pairs
        self.perfect: list[dict[bytes, FloatArray]] = [{} for _ in range(len(batch))]
        self.imperfect: list[dict[bytes, tuple[FloatArray, float]]] = [
            {} for _ in range(len(batch))
        ]

    def add(self, scores: FloatArray) -> bool:
        """Add each query's most violated permutations; return whether any is new."""
        changed = False
        for q, (a, b) in enumerate(self.batch.bounds):
            label, score = self.batch.labels[a:b], scores[a:b]
            lowest, highest = most_violated(score, label)
            if lowest.tobytes() not in self.perfect[q]:
                self.perfect[q][lowest.tobytes()] = self._phi(q, lowest)
                changed = True
            if highest.tobytes() not in self.imperfect[q]:
                loss = 1.0 - float(self.measure(highest, label))
                self.imperfect[q][highest.tobytes()] = self._phi(q, highest), loss
                changed = True
        return changed

    def _phi(self, query: int, order: IntArray) -> FloatArray:
        n, first = len(order), self.batch.ptr[query]
        if self.pairs == "all":
            places = (n - 1.0 - 2.0 * np.arange(n)) / (n * (n - 1.0))
        else:
            labels = self.batch.labels[first : first + n]
            signs = exponents(order[None, :], labels)[0, order]
            places = signs / self.batch.n_pairs[query]
        return places @ self.features[first + order]

    def sizes(self) -> tuple[float, float]:
        """Return the mean sizes of both kinds of sets."""
        return (
            float(np.mean([len(one) for one in self.perfect])),
            float(np.mean([len(one) for one in self.imperfect])),
        )

    def flat(self) -> Flat:
        """Lay the sets out as arrays."""
        bad = [entry for one in self.imperfect for entry in one.values()]
        return Flat(
            np.array([phi for one in self.perfect for phi in one.values()]),
            np.array([phi for phi, _ in bad]),
            np.array([loss for _, loss in bad]),
            pointers([len(one) for one in self.perfect]),
            pointers([len(one) for one in self.imperfect]),
        )


def most_violated(scores: FloatArray, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the perfect permutation of smallest F and the imperfect one of largest F.

    The former has every label's documents in ascending order of their scores. The latter is the
    ranking by score or, where that is perfect, the one that exchanges the two neighbors of
    different labels whose scores are closest.

    Examples
    --------
    >>> import numpy as np
    >>> lowest, highest = most_violated(np.array([0.9, 0.5, 0.1]), np.array([1, 1, 0]))
    >>> lowest.tolist(), highest.tolist()
    ([1, 0, 2], [0, 2, 1])
    """
    lowest = np.lexsort((scores, -labels))
    highest = np.argsort(-scores, kind="stable")
    label = labels[highest]
    if (np.diff(label) > 0).any():
        return lowest, highest
    ordered = scores[highest]
    gaps = np.where(np.diff(label) < 0, ordered[:-1] - ordered[1:], np.inf)
    t = int(np.argmin(gaps))
    highest[[t, t + 1]] = highest[[t + 1, t]]
    return lowest, highest


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
        share = 1.0 / (perfect_ptr[q + 1] - perfect_ptr[q])
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
