"""The report of a consensus ranking: the table, and the majorities of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist.report.document import Report
from permdist.report.table import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist.consensus import Consensus

MOST_DRAWN = 40
EXPLAINED = {
    "kemeny": "Kemeny's ranking: the fewest pairs in the opposite order on the ballots",
    "footrule": "the ranking with the smallest sum of distances between positions",
    "spearman": "the ranking with the smallest sum of squared distances between positions",
    "borda": "Borda's ranking, by points: one for every item below, on every ballot",
    "copeland": "Copeland's ranking, by the number of items that are beaten by a majority",
    "ranked-pairs": "Tideman's ranking: majorities are fixed from the largest on",
    "schulze": "Schulze's ranking, by strongest paths of majorities",
}


def consensus_report(
    consensus: Consensus,
    *,
    title: str = "Consensus ranking",
    facts: Mapping[str, str] | None = None,
) -> Report:
    """Make the report of a consensus ranking.

    Parameters
    ----------
    consensus : Consensus
    title : str
    facts : mapping of str to str, optional
        For the last section, such as the command and the seed.

    Returns
    -------
    Report

    Examples
    --------
    >>> from permdist import rankings
    >>> found = rankings.consensus([["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]])
    >>> page = consensus_report(found, title="Three voters").html()
    >>> "<h1>Three voters</h1>" in page, page.count("<img ")
    (True, 1)
    """
    from permdist import plots

    report = Report(title, f"{consensus.ranked_names[0]} is first. {_verdict(consensus)}")
    report.facts(
        {
            "items": len(consensus),
            "ballots": f"{consensus.ballots.weights.sum():,.6g}",
            "cost": f"{consensus.cost:,.10g}",
            "lower bound": f"{consensus.lower_bound:,.10g}",
        }
    )
    what = EXPLAINED[consensus.method]
    text = (
        f"This is {what}. The table has the share of the ballots that put an item above the next "
        "one (a tie counts half) and by how many ballots they outnumber the others."
    )
    if consensus.replicates is not None:
        text += (
            f" Kept: how often the two had this order in {len(consensus.replicates):,} samples of "
            "the ballots, drawn with replacement."
        )
    report.section("Ranking", text)
    _table(report, consensus)
    against = _against(consensus)
    report.section(
        "Majorities",
        "Blue above the diagonal: most ballots agree with the ranking; red: most do not. "
        + (
            f"Majorities against the ranking: {against}." if against else "There are none of those."
        ),
    )
    shown = f" of the {MOST_DRAWN} best" if len(consensus) > MOST_DRAWN else ""
    report.picture(
        plots.plot_consensus(consensus, most=MOST_DRAWN),
        "Shares of ballots that put one item above another",
        f"Shares of ballots that put one item above another{shown}.",
    )
    report.provenance(dict(facts or {}))
    return report


def _verdict(consensus: Consensus) -> str:
    if consensus.proved:
        return "No ranking has a lower cost, which is proved."
    return f"Its cost is at most {consensus.cost - consensus.lower_bound:,.6g} above the lowest."


def _against(consensus: Consensus) -> int:
    """Count pairs that most ballots put in the opposite order."""
    order = consensus.order
    return int((np.triu(consensus.margins[np.ix_(order, order)], 1) < 0.0).sum())


def _table(report: Report, consensus: Consensus) -> None:
    frame = consensus.to_frame()
    heads = {"name": "item", "share": "above the next", "margin": "margin"}
    rows: list[list[str | float | Cell]] = []
    for row in frame.to_dict("records"):
        cells: list[str | float | Cell] = []
        for column, value in row.items():
            if column in ("place", "name"):
                cells.append(value)
            elif np.isnan(value):
                cells.append("")
            elif column in ("share", "kept"):
                cells.append(Cell(f"{value:.2f}", value))
            else:
                cells.append(Cell(f"{value:,.8g}", value))
        rows.append(cells)
    report.table([heads.get(column, column) for column in frame.columns], rows)
