"""BoltzRank: a Boltzmann distribution over rankings, with the energy of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent
from permdist.models.options import option
from permdist.models.rules import POSITIVE, MeasureName, Number, Whole
from permdist.models.shared import Seeded

if TYPE_CHECKING:
    from permdist.measures import Measure

LARGEST_EXACT = 12


class BoltzRank(Seeded, Descent):
    """Expected measure, and closeness to a target, under ``Pr(y) proportional to exp F(y)``.

    F is minus the energy, ``2 / (n (n - 1)) sum (s_j - s_k)`` over all pairs with j above k,
    whatever their labels. Minimizes ``sum_q mix (1 - E[measure]) + (1 - mix) H + |w|^2 / C``, where
    H is the cross entropy to the same distribution with the labels as scores.

    References
    ----------
    Volkovs and Zemel: BoltzRank: Learning to Maximize Expected Ranking Gain.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, rng=0)
    >>> learner = BoltzRank("ndcg@10").fit(queries)
    >>> learner.history_["objective"][-1] <= learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Volkovs and Zemel 2009",
        optimizes="any measure, in expectation",
        minimizes="1 - E[measure], and cross entropy",
        cost="sample size x n, or 2^n",
    )
    settings: ClassVar[Settings] = {
        "C": [1.0, 10.0, 100.0, 1e3, 1e5],
        "mix": [0.0, 0.5, 1.0],
    }

    measure: str | Measure = option(
        MeasureName(),
        "The gain; it is also what `score` and early stopping look at.",
        default="ndcg",
        kw_only=False,
    )
    mix: float = option(
        Number(0.0, 1.0), "From 0, the target alone, to 1, the expected measure alone.", default=0.5
    )
    sharpness: float = option(POSITIVE, "Labels are multiplied by it in the target.", default=10.0)
    exact: int = option(
        Whole(0, LARGEST_EXACT),
        "Queries of up to so many documents are summed over all their rankings, by a dynamic "
        "program over subsets; 12 at most.",
        default=6,
    )
    sample_size: int = option(
        Whole(2),
        "Longer queries are summed over so many rankings, drawn once: sorted by label plus "
        "noise, from next to none to much more than the labels differ by; half of them are the "
        "others with the documents of each label in reverse.",
        default=100,
    )
    C: float = 100.0
    max_iter: int = 500

    def _draws_by_document(self) -> bool:
        return True

    def build_objective(self) -> objectives.Boltzmann:
        """Return the objective with the learner's parameters."""
        names = ("mix", "sharpness", "exact", "sample_size", "random_state")
        return objectives.Boltzmann(self.judge, **{name: getattr(self, name) for name in names})
