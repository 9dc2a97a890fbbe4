"""Where a setting comes from: an example, a query with scores, or a fit to battles or ballots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite, grades
from permdist.explorer.settings import DEFAULTS, EXAMPLE, LARGEST_LABEL, LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

MOST_SHOWN = 40
PRIOR = 0.5  # imagined wins and losses, where somebody only won or only lost


@dataclass(frozen=True)
class Source:
    """A setting to start from, what to say about it, and other queries of the same file.

    Parameters
    ----------
    setting : dict
        As in `answer`.
    title : str
        The heading of the page.
    about : str
        Where the setting comes from, in a sentence or two.
    queries : sequence of str
        The ids of all queries of the file.
    query : str, optional
        The id of the one that is shown.
    open_query : callable, optional
        Returns the source of another query, by its id.

    Examples
    --------
    >>> Source().setting["names"]
    ['tea', 'milk', 'juice', 'water', 'cola']
    """

    setting: dict[str, Any] = field(default_factory=lambda: dict(EXAMPLE))
    title: str = "Explore a distribution of rankings"
    about: str = "An example: five drinks with made-up scores and labels."
    queries: Sequence[str] = ()
    query: str | None = None
    open_query: Callable[[str], Source] | None = None


def of_query(
    scores: ArrayLike,
    labels: ArrayLike,
    names: Sequence[str],
    *,
    title: str,
    about: str = "",
    **others: Any,
) -> Source:
    """Return the source of a query: its documents become sliders, the best first.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
    names : sequence of str
    title, about : str
        As in `Source`; `about` is completed if not all documents are shown.
    **others
        Other entries of the setting, such as ``noise``.

    Examples
    --------
    >>> found = of_query([0.1, 0.7], [0, 1], ["a", "b"], title="Query 1", noise=0.5)
    >>> found.setting["names"], found.setting["scores"], found.setting["noise"]
    (['b', 'a'], [0.7, 0.1], 0.5)
    """
    values, label = finite("scores", scores, ndim=1), grades("labels", labels)
    order = np.argsort(-values, kind="stable")[:MOST_SHOWN]
    told = [about] if about else []
    if len(values) > MOST_SHOWN:
        told.append(
            f"The {MOST_SHOWN} items with the highest scores are shown, of {len(values):,}; the "
            "others are left out of all answers."
        )
    if label.size and label.max() > LARGEST_LABEL:
        told.append(f"Labels above {LARGEST_LABEL} are shown as {LARGEST_LABEL}.")
    setting = {
        **DEFAULTS,
        "scores": values[order].round(6).tolist(),
        "labels": np.minimum(label[order], LARGEST_LABEL).tolist(),
        "names": _short([str(names[item]) for item in order]),
        **others,
    }
    if len(values) == 1:
        raise ValueError(f"{title}: expected at least 2 items, got 1")
    return Source(setting, title, " ".join(told))


def of_ballots(ballots: Any, *, title: str, **others: Any) -> Source:
    """Return the source of battles or ballots: their fitted scores become sliders.

    Where the likelihood has no maximum, because somebody only won or only lost, half a win and half
    a loss against an imagined competitor are added for everybody, and the page says so.

    Parameters
    ----------
    ballots : Battles, or ballots of any kind that `Ballots.of` takes
    title : str
        As in `Source`.
    **others
        Other entries of the setting, such as ``noise``.

    Examples
    --------
    >>> found = of_ballots([[0, 1], [0, 1], [1, 0]], title="Two items")
    >>> [round(score, 3) for score in found.setting["scores"]]
    [0.347, -0.347]
    """
    from permdist.ballots import Ballots
    from permdist.data import Battles
    from permdist.inference import PseudoWins
    from permdist.inference.fit import NoEstimateError, fit_ballots
    from permdist.rating.checks import log_tie_of

    cast = ballots.merged().ballots if isinstance(ballots, Battles) else Ballots.of(ballots)
    told = []
    try:
        fit = fit_ballots(cast, cast.tie_sizes)
    except NoEstimateError:
        fit = fit_ballots(cast, cast.tie_sizes, prior=PseudoWins(PRIOR))
        told.append(
            f"Some only won or only lost, so everybody has {PRIOR:g} imagined wins and losses."
        )
    scores, log_tie = np.asarray(fit.scores[: fit.n_items]), log_tie_of(fit)
    about = f"Scores fitted to {fit.n_ballots:,.6g} ballots by maximum likelihood."
    if log_tie is not None:
        about += " There are ties: the model is Davidson-Luce."
    found = of_query(
        scores - scores.mean(),
        np.zeros(len(scores), dtype=np.int64),
        list(fit.names),
        title=title,
        about=" ".join([about, *told]),
    )
    extra: dict[str, Any] = {}
    if log_tie is not None:
        extra = {"model": "davidson-luce", "ties": round(float(log_tie), 6)}
    return Source(found.setting | extra | others, found.title, found.about)


def _short(names: list[str]) -> list[str]:
    """Cut long names, and number those that are then the same."""
    cut = [
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        for name in (name.strip() or "no name" for name in names)
    ]
    return [
        name if cut.count(name) == 1 else f"{name[: LONGEST_NAME - 6]} #{number + 1}"
        for number, name in enumerate(cut)
    ]
