"""Ballots as data frames and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from permdist._result import Result, block, frame_cells, note, table

if TYPE_CHECKING:
    import pandas as pd

MOST_SHOWN = 10


class BallotsView(Result):
    """What `Ballots` has for notebooks and data frames."""

    def to_frame(self: Any) -> pd.DataFrame:
        """Return the ballots as a data frame, a row each.

        Returns
        -------
        DataFrame
            With the columns ``ballot``, a text, and ``weight``. ``a > b = c > ... d, e``: a is
            above b and c, which are tied, and these above d and e, which were there and not chosen.
            The choice of the worst of a best-worst choice follows after a semicolon.

        Examples
        --------
        >>> from permdist import Ballots
        >>> Ballots.of([["tea", "milk"], ["milk", "tea"]]).to_frame()["ballot"].tolist()
        ['tea > milk', 'milk > tea']
        """
        return _some(self, self.n_ballots)

    def _repr_html_(self: Any) -> str:
        left = self.n_ballots - MOST_SHOWN
        more = note(f"Not shown: {left:,} more ballots.") if left > 0 else ""
        return block(repr(self), table(*frame_cells(_some(self, MOST_SHOWN))), more)


def _some(ballots: Any, number: int) -> pd.DataFrame:
    """Return the first ballots."""
    import pandas as pd

    number = min(number, ballots.n_ballots)
    texts: list[list[str]] = [[] for _ in range(number)]
    for record, ballot in enumerate(ballots.ballot.tolist()):
        if ballot >= number:
            break
        texts[ballot].append(_text(ballots, record))
    told = ["; ".join(records) for records in texts]
    return pd.DataFrame({"ballot": told, "weight": ballots.weights[:number]})


def _text(ballots: Any, record: int) -> str:
    """Return a record in words."""
    names = [
        ballots.names[item]
        for item in ballots.items[ballots.ptr[record] : ballots.ptr[record + 1]].tolist()
    ]
    places, start = [], 0
    for size in ballots.sizes[ballots.stages[record] : ballots.stages[record + 1]].tolist():
        places.append(" = ".join(names[start : start + size]))
        start += size
    rest = names[start:]
    if len(rest) == 1 and ballots.signs[record] > 0:  # the last of all is no choice
        places.append(rest[0])
    elif rest:
        places.append(f"... {', '.join(rest)}")
    return f"{'worst: ' if ballots.signs[record] < 0 else ''}{' > '.join(places)}"
