"""The report of a comparison: its tables, pictures and chosen settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from permdist._text import plural
from permdist.comparison.statistics import TESTS
from permdist.comparison.wording import BAYES_HEAD, setting_text, title
from permdist.report.document import Report
from permdist.report.identities import identities_section
from permdist.report.sections import add_sections
from permdist.report.table import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist.comparison import Comparison
    from permdist.data import Queries
    from permdist.measures import Measure


BAYES = (
    " Pr (ranks) is by a Bayesian signed-rank test over queries, Pr (folds) by a hierarchical "
    "model in which the folds differ, too. They are posterior probabilities, and not adjusted."
)
# With probabilities the table is too wide for most screens, and these have one of their own.
AGAINST = ("diff.", "p (t)", "p (Wilcoxon)", "p (rand.)", *BAYES_HEAD)
# What stands for a setting, by the source of the learner.
NO_CHOICE = {"fit": "no choice", "model": "fitted before", "scores": "scores only"}


def comparison_report(
    comparison: Comparison,
    *,
    folds: Sequence[Sequence[Queries]] | None = None,
    identities: int = 0,
    command: str = "",
) -> Report:
    """Make the report of a comparison, with all registered sections.

    Parameters
    ----------
    comparison : Comparison
    folds : sequence of (train, validation, test), optional
        What was compared on; if given, the report shows the uncertainty of the best learner about
        one test query.
    identities : int
        The number of random instances on which to check each identity of the catalogue; 0 omits
        the check.
    command : str
        The command that reproduces the report, shown in its last section.

    Returns
    -------
    Report
    """
    first = comparison.measures[0]
    frame = comparison.to_frame(first)
    tested = plural(len(comparison.qids), "test query", "test queries")
    if comparison.n_fits:
        what = "learners"
        told = (
            f"{plural(len(comparison.names), 'learner')} on {tested} of "
            f"{plural(comparison.n_folds, 'fold')}, with settings chosen by "
            f"{title(comparison.select)} on validation queries."
        )
    else:
        what = "rankings"
        told = f"{plural(len(comparison.names), 'ranking')} of {tested}; nothing was fitted."
    report = Report(
        f"{what.capitalize()} compared" + (" on folds" if comparison.n_fits else ""),
        f"{told} {comparison.explain(first, bayes=False)}",
    )
    report.facts(
        {
            what: str(len(comparison.names)),
            **({"fits": f"{comparison.n_fits:,}"} if comparison.n_fits else {}),
            "test queries": f"{len(comparison.qids):,}",
            f"best {title(first)}, {frame.index[0]}": f"{frame['mean'].iloc[0]:.4f}",
        }
    )
    add_sections(report, comparison, folds)
    if identities:
        identities_section(report, identities, comparison.random_state)
    facts = {
        "seed": str(comparison.random_state),
        "correction": comparison.correction,
        "equal scores": comparison.ties or "by the rule of each measure",
    }
    report.provenance({**({"command": command} if command else {}), **facts})
    return report


def results_section(report: Report, comparison: Comparison, *_: object) -> None:
    """Add a section for each measure: its picture, its table, and which pairs differ."""
    from permdist import plots

    corrected = "" if comparison.correction == "none" else f" ({comparison.correction})"
    for number, measure in enumerate(comparison.measures):
        report.section(
            f"Results: {title(measure)}",
            f"{comparison.explain(measure)} "
            + ("The mean is over folds, as LETOR reports it. " if comparison.n_folds > 1 else "")
            + f"The standard error and the {100 * comparison.level:g}% interval are over queries, "
            "and so is the mean rank, where 1 is best. The p-values are for paired differences "
            f"from {comparison.baseline or 'the best learner'}"
            + (f", adjusted for multiple comparisons{corrected}." if corrected else ".")
            + ("" if comparison.rope is None else BAYES)
            + " Two rows are references without a learner: the order of the documents in the file, "
            "and the expectation of a random order. They have no rank and are not tested. "
            + comparison.explain_marks(),
        )
        if number == 0 and comparison.baseline is None and len(comparison.names) > 2:
            report.note(
                "The baseline is the learner with the best mean, chosen on the same queries, so "
                "its lead is slightly overstated; fix a baseline in advance for an unbiased test."
            )
        report.picture(
            plots.intervals(comparison, measure),
            f"{title(measure)} of every learner with its interval",
            _colors(comparison) + " Grey squares: references.",
        )
        for caption, head, rows in _tables(comparison, measure):
            report.table(head, rows, caption=caption)
        if len(comparison.names) > 2:
            size = 2.5 + 0.3 * len(comparison.names)
            report.picture(
                plots.significance(comparison, measure, ax=plots.new_axes(size + 1.0, size)),
                f"Adjusted p-values of all pairs of learners by {title(measure)}",
                "Paired t-tests of all pairs; dark cells are significant differences."
                + (
                    f" Here p-values are adjusted{corrected} for the number of all pairs, in the "
                    "table for the number of its rows."
                    if corrected
                    else ""
                ),
            )
    for note in comparison.notes:
        report.note(note, "warning")
    for name, reason in comparison.failures.items():
        report.note(f"{name} is left out: {reason}", "warning")


def _colors(comparison: Comparison) -> str:
    """Explain the colors of the intervals."""
    if comparison.baseline is None:
        return "Blue: not significantly different from the best. Red: significantly below it."
    return (
        f"Dark blue: {comparison.baseline}, the baseline. Red: significantly below it. Green: "
        "significantly above it. Light blue: no significant difference."
    )


def _tables(
    comparison: Comparison, measure: Measure
) -> list[tuple[str, list[str], list[list[Any]]]]:
    """Return captions, headings and cells: one table, or with probabilities two."""
    head, rows = _table(comparison, measure)
    if comparison.rope is None:
        return [(title(measure), head, rows)]
    means = [place for place, name in enumerate(head) if name not in AGAINST]
    tests = [place for place, name in enumerate(head) if place == 0 or name in AGAINST]
    base = comparison.tested_against(measure)
    told = f"{title(measure)}: differences from {base}"
    others = [row for row in rows if row[0].text != base]
    # The order of the means is in the table above; here a mark would say that of the difference.
    others = [[Cell(row[0].text), *row[1:]] for row in others]
    return [
        (title(measure), [head[place] for place in means], _columns(rows, means)),
        (told, [head[place] for place in tests], _columns(others, tests)),
    ]


def _columns(rows: list[list[Any]], places: list[int]) -> list[list[Any]]:
    return [[row[place] for place in places] for row in rows]


def _table(comparison: Comparison, measure: Measure) -> tuple[list[str], list[list[Any]]]:
    """Return the headings and the cells of the table of a measure."""
    frame = comparison.to_frame(measure, references=True)
    rows = []
    head, lines = comparison.table(measure)
    for texts in lines:
        name, mark = texts[0], texts[-1]
        row = frame.loc[name]
        worse = comparison.is_worse(row)
        keys = ("mean", "standard_error", "low", "rank", "mean_rank", "difference")
        # Columns are sorted by the probability to be better.
        sorts = ["signed_rank_better", "hierarchical_better"]
        bayes = [] if comparison.rope is None else sorts
        tests = [f"p_{test}" for test in TESTS]
        values = [float(row[key]) for key in (*keys, *tests, *bayes, "seconds")]
        cells = [
            Cell(text, value if text and value == value else None)
            for text, value in zip(texts[1:-1], values, strict=False)
        ]
        cells[0] = Cell(texts[1], values[0], mark=mark or ("worse" if worse else ""))
        rows.append([Cell(name, mark=mark), *cells])
    return head, rows


def curves_section(report: Report, comparison: Comparison, *_: object) -> None:
    """Add the learning curves of the chosen fits."""
    from permdist import plots
    from permdist.plots.comparisons import with_curves

    drawn = with_curves(comparison)
    if not drawn:
        return
    report.section(
        "Learning curves",
        "The objective and the validation measure during the chosen fits of the first fold. Early "
        "stopping helps where the validation measure falls before the objective has leveled off. "
        "Each learner monitors its own measure, named in the legend; curves of different measures "
        "are not comparable.",
    )
    rest = [name for name in comparison.names if name not in drawn]
    caption = "Objective and validation measure."
    if rest:
        caption += f" Not shown (fewer than three iterations, or no room): {', '.join(rest)}."
    report.picture(plots.learning_curves(comparison), "Objective and validation measure", caption)


def settings_section(report: Report, comparison: Comparison, *_: object) -> None:
    """Add the settings that were chosen on validation queries."""
    if not comparison.n_fits:
        return
    report.section(
        "Chosen settings",
        f"Chosen by {title(comparison.select)} on the validation part of each fold, from the "
        "learner's default grid or from the values given. Settings that vary from fold to fold "
        "have little effect, or the validation part is small.",
    )
    report.table(
        ["learner", *(f"fold {fold + 1}" for fold in range(comparison.n_folds))],
        [
            [
                name,
                *(
                    setting_text({key: one[key] for key in varied}) if varied else otherwise
                    for one in comparison.chosen[name]
                ),
            ]
            for name in comparison.names
            for varied in [comparison.varied[name]]
            for otherwise in [NO_CHOICE[comparison.outcomes[name][0].source]]
        ],
    )
