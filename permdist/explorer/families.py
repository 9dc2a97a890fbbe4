"""The distributions that can be explored: how each is made, and how far it is computed exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions import DavidsonLuce, GoodBad, Mallows
from permdist.rankings import DISTANCES, order_by_scores
from permdist.report.inspection import make_distribution
from permdist.sums.shape import cells_of

if TYPE_CHECKING:
    from permdist.explorer.settings import Setting

# Up to so many items sums over subsets of the items take no more than a few milliseconds.
FEW = 14
MANY = 100
MOST_ITEMS = 200
MOST_CELLS = 150_000


@dataclass(frozen=True)
class Family:
    """A distribution, and the numbers of items up to which answers come at once.

    Attributes
    ----------
    name : str
        As in a setting.
    title : str
    about : str
        What scores, noise and labels mean to it.
    marginals, pairwise, sums : int
        The largest number of items for which rank marginals, pairwise chances and sums along the
        ranking (entropy, expected measures that are no sums over positions or pairs) are computed
        exactly. Above, they are estimated from draws.
    most : int
        The largest number of items.
    """

    name: str
    title: str
    about: str
    marginals: int = MOST_ITEMS
    pairwise: int = MOST_ITEMS
    sums: int = FEW
    most: int = MOST_ITEMS

    def make(self, setting: Setting) -> Any:
        """Return the distribution of a setting."""
        scores, names = setting.scores, list(setting.names)
        if self.name in ("plackett-luce", "gaussian"):
            return make_distribution(self.name, scores, noise=setting.noise, names=names)
        if self.name == "davidson-luce":
            return DavidsonLuce(scores / setting.noise, [setting.ties], names)
        if self.name == "good-bad":
            return _good_bad(setting, names)
        distance = self.name.removeprefix("mallows-")
        return Mallows(order_by_scores(scores), 1.0 / setting.noise, distance, names)

    def notes(self, n_items: int) -> list[str]:
        """Return what to know about answers for so many items."""
        found = []
        if self.name == "good-bad" and n_items > FEW:
            found.append(
                f"With more than {FEW} items the good-bad model is over interleavings: items with "
                "the same label keep their order by score."
            )
        limits = {"rank marginals": self.marginals, "pairwise chances": self.pairwise}
        drawn = [
            f"{what} (exact up to {limit})" for what, limit in limits.items() if n_items > limit
        ]
        if drawn:
            found.append(
                f"With {n_items} items {' and '.join(drawn)} are estimated from draws, so that the "
                "page answers at once."
            )
        return found


def _good_bad(setting: Setting, names: list[str]) -> GoodBad:
    n, scale = len(setting.scores), 1.0 / (setting.noise * len(setting.scores))
    sizes = np.unique(setting.labels, return_counts=True)[1]
    if len(sizes) < 2:
        raise ValueError("labels: the good-bad model needs at least two different labels")
    if n > FEW and cells_of(sizes) > MOST_CELLS:
        raise ValueError(
            f"labels: {n} items with {len(sizes)} different labels take too long in the good-bad "
            "model; use fewer different labels"
        )
    space = "orders" if n <= FEW else "interleavings"
    return GoodBad(setting.scores, setting.labels, space=space, scale=scale, names=names)


_LIMITS: dict[str, dict[str, int]] = {
    "cayley": {"sums": 8},
    "footrule": {"pairwise": FEW},
    "spearman": {"marginals": FEW, "pairwise": FEW, "most": FEW},
    "ulam": {"marginals": 8, "pairwise": 8, "sums": 8, "most": 40},
}

FAMILIES: dict[str, Family] = {
    one.name: one
    for one in (
        Family(
            "plackett-luce",
            "Plackett-Luce",
            "Scores, divided by the noise, are log-worths: each place is won with chances in "
            "proportion to the worths of the items that are left.",
            marginals=MANY,
        ),
        Family(
            "gaussian",
            "Gaussian scores",
            "Independent Gaussian noise is added to each score, and the items are sorted. The "
            "noise is its standard deviation.",
            marginals=MANY,
            sums=0,
        ),
        Family(
            "good-bad",
            "Good-bad pairs",
            "Each pair of items with different labels contributes the difference of its scores, "
            "divided by the noise and by the number of items. Labels change the distribution.",
            marginals=MANY,
            pairwise=MANY,
            sums=MANY,
            most=MANY,
        ),
        Family(
            "davidson-luce",
            "Davidson-Luce (with ties)",
            "Plackett-Luce with ties of two. In rank marginals tied items share their places.",
            marginals=12,
            pairwise=12,
            sums=12,
            most=60,
        ),
        *(
            Family(
                f"mallows-{distance}",
                f"Mallows ({distance.capitalize()})",
                "Chances fall with the distance from the order of the scores, by 1/noise for each "
                "unit of distance. Only the order of the scores counts.",
                **_LIMITS.get(distance, {}),
            )
            for distance in DISTANCES
        ),
    )
}
