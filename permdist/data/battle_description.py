"""What a table of battles contains: counts, ties, and whether all competitors can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from permdist._result import Result
from permdist._text import aligned, plural, text_table
from permdist.data.battle_columns import BOTH_BAD, listed
from permdist.data.battle_values import left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from permdist.data.battles import Battles

MOST_ROWS = 40
MOST_ALIKE = 5  # groups of names that differ only by case


@dataclass(frozen=True, eq=False, repr=False)
class BattleDescription(Result):
    """The contents of a table of battles.

    Attributes
    ----------
    source : str
    columns : dict
        The column used for each role.
    n_battles : float
        The sum of the weights, where there are any.
    n_rows, n_items, n_pairs : int
        Rows, competitors, and pairs of them that met.
    ties, both_bad : float
        Ties of all kinds, and those where both were bad.
    first_wins, second_wins : float
        Wins by side.
    parts : tuple of tuples of str
        The competitors in groups that never met, the largest group first; one group if all can be
        compared.
    never_won, never_lost : tuple of str
        Those without a win, and without a defeat.
    comparable : bool
        Whether maximum likelihood estimates exist: wins and ties lead from everyone to everyone.
    left_out : dict
        How many rows of the file were left out because they lack something (``"missing"``) or
        cannot be used (``"invalid"``).
    alike : tuple of tuples of str
        Names that differ only by case.
    table : DataFrame
        Battles, wins, ties, losses and the share of points, for each competitor.
    """

    source: str
    columns: dict[str, str]
    n_battles: float
    n_rows: int
    n_items: int
    n_pairs: int
    ties: float
    both_bad: float
    first_wins: float
    second_wins: float
    parts: tuple[tuple[str, ...], ...]
    never_won: tuple[str, ...]
    never_lost: tuple[str, ...]
    comparable: bool
    left_out: dict[str, int]
    alike: tuple[tuple[str, ...], ...]
    table: DataFrame

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the table as a list of records."""
        facts = {name: value for name, value in vars(self).items() if name != "table"}
        facts["parts"] = [list(part) for part in self.parts]
        facts["alike"] = [list(group) for group in self.alike]
        table = self.table.reset_index(names="name").to_dict(orient="records")
        return (
            facts
            | {"never_won": list(self.never_won), "never_lost": list(self.never_lost)}
            | {"table": table}
        )

    def to_frame(self) -> DataFrame:
        """Return a copy of `table`: battles, wins, ties, losses and the share of points."""
        return self.table.rename_axis("competitor")

    @property
    def caption(self) -> str:
        """The name of the table."""
        return self.source

    def __repr__(self) -> str:
        return f"BattleDescription({self.n_rows:,} battles of {self.n_items:,} competitors)"

    def __str__(self) -> str:
        text = text_table(*self._cells(MOST_ROWS))
        rest = len(self.table) - MOST_ROWS
        more = f"\nand {plural(rest, 'more competitor')}" if rest > 0 else ""
        return f"{aligned(self._facts())}\n\n{text}{more}"

    def _facts(self) -> dict[str, str]:
        decided = self.first_wins + self.second_wins
        share = self.first_wins / decided if decided else np.nan
        facts = {
            "battles": _amount(self.n_battles)
            + (f"  ({self.n_rows:,} rows)" if self.n_rows != self.n_battles else ""),
            "competitors": f"{self.n_items:,}",
            "pairs that met": f"{self.n_pairs:,} of {self.n_items * (self.n_items - 1) // 2:,}",
            "ties": f"{_amount(self.ties)}  ({self.ties / self.n_battles:.1%})"
            + (f", {_amount(self.both_bad)} of them both bad" if self.both_bad else ""),
            "wins of the first side": f"{_amount(self.first_wins)}  ({share:.1%} of the decided)",
            "never won": listed(self.never_won),
            "never lost": listed(self.never_lost),
            "connected": self._connected(),
            "columns": ", ".join(f"{role}: {name}" for role, name in self.columns.items()),
        }
        if self.left_out:
            facts["left out"] = left_out(self.left_out)
        if self.alike:
            facts["note"] = alike_text(self.alike)
        return facts

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        shown = self.table.iloc[:most]
        cells = [
            [str(name), *(_amount(value) for value in row[:4]), f"{row[4]:.3f}"]
            for name, row in zip(shown.index, shown.to_numpy().tolist(), strict=True)
        ]
        return ["competitor", *shown.columns], cells

    def _connected(self) -> str:
        if self.comparable:
            return "yes"
        if len(self.parts) == 1:
            return "yes, but some are always above the others: a fit needs a prior"
        smallest = self.parts[-1]
        return f"no: {len(self.parts)} groups that never met, one of them {listed(smallest, 5)}"


def describe_battles(battles: Battles) -> BattleDescription:
    """Summarize battles."""
    from pandas import DataFrame

    wins, ties = battles.counts()
    weights = np.ones(len(battles)) if battles.weights is None else battles.weights
    by_outcome = np.bincount(battles.outcome, weights, BOTH_BAD + 1)
    won, lost, tied = wins.sum(axis=1), wins.sum(axis=0), ties.sum(axis=1)
    number = won + lost + tied
    with np.errstate(invalid="ignore"):
        share = (won + tied / 2.0) / number
    table = DataFrame(
        {"battles": number, "wins": won, "ties": tied, "losses": lost, "points": share},
        index=list(battles.names),
    ).sort_values(["points", "battles"], ascending=False, kind="stable")
    above = sparse.csr_matrix((wins + ties) > 0)
    _, island = csgraph.connected_components(above, connection="weak")
    n_strong, _ = csgraph.connected_components(above, connection="strong")
    islands = [np.flatnonzero(island == one) for one in np.unique(island)]
    islands.sort(key=len, reverse=True)
    names = np.array(battles.names, dtype=object)
    return BattleDescription(
        battles.source,
        dict(battles.columns),
        float(weights.sum()),
        len(battles),
        battles.n_items,
        int(np.triu(wins + wins.T + ties > 0, 1).sum()),
        float(by_outcome[2] + by_outcome[3]),
        float(by_outcome[3]),
        float(by_outcome[0]),
        float(by_outcome[1]),
        tuple(tuple(names[members]) for members in islands),
        tuple(names[won == 0]),
        tuple(names[lost == 0]),
        n_strong == 1,
        dict(battles.dropped),
        alike_names(battles.names),
        table,
    )


def alike_names(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that differ only by case.

    Parameters
    ----------
    names : sequence of str

    Examples
    --------
    >>> alike_names(["GPT-X", "gpt-x", "other"])
    (('GPT-X', 'gpt-x'),)
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def alike_text(groups: Sequence[Sequence[str]]) -> str:
    """Return a note about names that differ only by case.

    Parameters
    ----------
    groups : sequence of sequences of str
        As `alike_names` returns them.
    """
    shown = "; ".join(" and ".join(group) for group in groups[:MOST_ALIKE])
    rest = len(groups) - MOST_ALIKE
    more = f"; and {plural(rest, 'more name')}" if rest > 0 else ""
    return f"names that differ only by case count as different competitors: {shown}{more}"


def _amount(value: float) -> str:
    """Format a count; weights need not be whole."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
