"""The section of a report that checks the catalogue of identities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permdist.report.table import Cell

if TYPE_CHECKING:
    from permdist.report.document import Report


def identities_section(report: Report, examples: int, random_state: int = 0) -> None:
    """Check the catalogue of identities and add a table of the results.

    Parameters
    ----------
    report : Report
    examples : int
        Random instances of each identity.
    random_state : int
    """
    from permdist.identities import check_all

    results = check_all(max_examples=examples, rng=random_state)
    report.section(
        "Identities checked",
        f"The identities and bounds that the library relies on, each checked on {examples} random "
        f"instances. {'All of them hold.' if results.passed else 'Some of them fail!'}",
    )
    report.table(
        ["identity", "verdict", "statement", "source", "worst residual"],
        [
            [
                one.identity.name,
                Cell("holds", mark="good") if one.passed else Cell("fails", mark="bad"),
                one.identity.statement,
                one.identity.source,
                Cell(f"{one.worst:.1e}", one.worst),
            ]
            for one in results
        ],
    )
