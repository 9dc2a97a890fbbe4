"""The table of all learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from permdist._registry import Registry
from permdist._result import Result
from permdist.models.base import Card, Ranker

if TYPE_CHECKING:
    import pandas as pd


class Learners(Result, Sequence[type[Ranker]]):
    """All learners; prints as a table.

    ``learners.cards`` maps names to what each learner is about.
    """

    def __init__(self, kinds: Sequence[type[Ranker]]) -> None:
        self._kinds = tuple(kinds)

    def __getitem__(self, number: Any) -> Any:
        return self._kinds[number]

    def __len__(self) -> int:
        return len(self._kinds)

    @property
    def cards(self) -> dict[str, Card]:
        """The card of each learner, by its name."""
        return {kind.__name__: kind.card for kind in self._kinds}

    _most_rows: ClassVar[int] = 200

    @property
    def caption(self) -> str:
        """How many there are."""
        return f"{len(self)} learners"

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a data frame.

        Returns
        -------
        DataFrame
            Indexed by ``learner``, with the columns ``paper``, ``optimizes``, ``minimizes`` and
            ``cost`` of one evaluation.
        """
        import pandas as pd

        cards = self.cards
        return pd.DataFrame(
            [card._asdict() for card in cards.values()], index=pd.Index(cards, name="learner")
        )

    def to_markdown(self) -> str:
        """Write the table for a README."""
        lines = ["| learner | from | optimizes | minimizes | one evaluation |", "|" + " --- |" * 5]
        for name, card in self.cards.items():
            # A bar inside a cell would end it.
            cells = [f"`{name}`", card.paper, card.optimizes, f"`{card.minimizes}`", card.cost]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(lines)

    def __repr__(self) -> str:
        head = ("learner", "from", "optimizes", "minimizes", "one evaluation")
        rows = [head, *((name, *card) for name, card in self.cards.items())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def all_learners() -> Learners:
    """List every learner with its paper, its objective, what it optimizes and its cost.

    Examples
    --------
    >>> from permdist.models import all_learners
    >>> all_learners().cards["ListMLE"].cost
    'n'
    >>> len(all_learners()) > 20
    True
    """
    order = {kind: number for number, kind in enumerate(_PAPERS)}
    found = [kind for kind in LEARNERS.values() if kind.listed]
    return Learners(sorted(found, key=lambda kind: (order.get(kind.card.paper, 99), kind.__name__)))


def _load() -> None:
    from permdist import models

    for name in models.__all__:
        kind = getattr(models, name)
        bases = (Ranker, models.Descent)
        if isinstance(kind, type) and issubclass(kind, Ranker) and kind not in bases:
            register(kind)


LEARNERS: Registry[type[Ranker]] = Registry("learner", _load)


def register(kind: type[Ranker]) -> type[Ranker]:
    """Let comparisons, files and the command line find a learner by its name.

    Usable as a decorator. A module that registers learners is found by the command line if it is
    an entry point of the group ``permdist.plugins``, or named in ``PERMDIST_PLUGINS``.

    Examples
    --------
    >>> from permdist.models import MLE, all_learners, register
    >>> class Plain(MLE):
    ...     "Maximum likelihood under another name."
    >>> kind = register(Plain)
    >>> Plain in all_learners()
    True
    >>> LEARNERS.discard("Plain")
    """
    if not issubclass(kind, Ranker):
        raise TypeError(f"register: expected a class of learners, got {kind!r:.100}")
    return LEARNERS.add(kind.__name__, kind)


_PAPERS = (
    "Dubey et al. 2009",
    "Xu and Li 2007",
    "Xu et al. 2008",
    "Yue et al. 2007",
    "Chakrabarti et al. 2008",
    "Joachims 2002",
    "Freund et al. 2003",
    "Qin, Liu and Li 2008",
    "Qin, Zhang et al. 2008",
    "Taylor et al. 2008",
    "Cao et al. 2007",
    "Xia et al. 2008",
    "Volkovs and Zemel 2009",
    "Wang et al.",
)
