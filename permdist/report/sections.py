"""The sections of a comparison's report: the library's own, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from permdist._registry import Registry

if TYPE_CHECKING:
    from permdist.comparison import Comparison
    from permdist.report.document import Report

Writer = Callable[["Report", "Comparison", "Sequence[Any] | None"], object]


class Section(NamedTuple):
    """A registered section: the function that writes it, and the section that it follows."""

    write: Writer
    after: str | None


def _load() -> None:
    from permdist.report import comparison, query

    for name, write in (
        ("results", comparison.results_section),
        ("curves", comparison.curves_section),
        ("settings", comparison.settings_section),
        ("query", query.query_section),
    ):
        SECTIONS.add(name, Section(write, None))


SECTIONS: Registry[Section] = Registry("section", _load)


def register_section(name: str, function: Writer, *, after: str | None = None) -> None:
    """Add a section to the reports of all comparisons and of ``permdist demo``.

    Parameters
    ----------
    name : str
        A new name; the library's own are "results", "curves", "settings" and "query".
    function : callable
        Called as ``function(report, comparison, folds)``; it adds what it wants to show to the
        report. `folds` is what was compared on, or None where the report is made without it.
    after : str, optional
        The section that it follows; by default it comes last.

    Examples
    --------
    >>> from permdist import comparison, data, report
    >>> from permdist.report.comparison import comparison_report
    >>> def seconds(report, comparison, folds):
    ...     report.section("Time", f"{comparison.to_frame()['seconds'].sum():.3f} seconds.")
    >>> report.register_section("time", seconds, after="results")
    >>> folds = data.make_folds(data.make_letor(40, rng=0), 3, rng=0)
    >>> found = comparison.compare(folds, "MLE[C=1]", measures="map")
    >>> " seconds.</p>" in comparison_report(found).html()
    True
    >>> report.unregister_section("time")
    """
    if not callable(function):
        raise TypeError(f"function: expected a callable, got {type(function).__name__}")
    if after is not None:
        SECTIONS.find(after)
    if name in SECTIONS:
        raise ValueError(f"name: the section {name!r} exists already; use another name")
    SECTIONS.add(name, Section(function, after))


def unregister_section(name: str) -> None:
    """Remove a section from the reports that are made from now on."""
    SECTIONS.discard(name)


def add_sections(
    report: Report,
    comparison: Comparison,
    folds: Sequence[Any] | None = None,
    *,
    leave_out: Collection[str] = (),
) -> None:
    """Write all registered sections of a comparison into a report.

    Parameters
    ----------
    report : Report
    comparison : Comparison
    folds : sequence of (train, validation, test), optional
    leave_out : collection of str
        The names of sections to omit.
    """
    order: list[str] = []
    for name, section in SECTIONS.items():
        place = order.index(section.after) + 1 if section.after in order else len(order)
        order.insert(place, name)
    for name in order:
        if name not in leave_out:
            SECTIONS[name].write(report, comparison, folds)
