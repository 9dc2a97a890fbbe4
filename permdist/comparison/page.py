"""The report of a comparison: the same numbers for someone who would rather look than read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from permdist._text import plural
from permdist.comparison.results import Comparison
from permdist.comparison.statistics import TESTS
from permdist.comparison.wording import HEAD, setting_text, title
from permdist.data import Queries
from permdist.measures import Measure
from permdist.report import Cell, Report
from permdist.report.sections import (
    chains_section,
    document_names,
    identities_section,
    marginals_section,
)


def comparison_report(
    comparison: Comparison,
    *,
    folds: Sequence[Sequence[Queries]] | None = None,
    identities: int = 0,
    command: str = "",
) -> Report:
    """Make the report of a comparison.

    Parameters
    ----------
    comparison : Comparison
    folds : sequence of (train, validation, test), optional
        What was compared on: the report then shows how sure the best learner is of one query.
    identities : int
        Check the catalogue of identities with so many instances of each; 0 leaves it out.
    command : str
        How to do it again.
    """
    first = comparison.measures[0]
    frame = comparison.to_frame(first)
    best = str(frame.index[0])
    where = comparison.collection or "folds"
    report = Report(
        f"Learners compared on {where}",
        f"{plural(len(comparison.names), 'learner')} on {comparison._n_queries()} of "
        f"{comparison._n_folds()}, with settings chosen by "
        f"{title(comparison.select)} on validation queries. {comparison.explain(first)}",
    )
    report.facts(
        {
            "learners": str(len(comparison.names)),
            "fits": f"{comparison.n_fits:,}",
            "test queries": f"{len(comparison.qids):,}",
            f"best {title(first)}, {best}": f"{frame['mean'].iloc[0]:.4f}",
        }
    )
    add_tables(report, comparison)
    _published(report, comparison)
    add_curves(report, comparison)
    add_settings(report, comparison)
    if folds is not None:
        _example(report, comparison, best, folds)
    if identities:
        identities_section(report, identities, comparison.seed)
    facts = {"seed": str(comparison.seed), "correction": comparison.correction}
    report.provenance({**({"command": command} if command else {}), **facts})
    return report


def add_tables(report: Report, comparison: Comparison) -> None:
    """Add a section for each measure: its picture, its table, which pairs differ."""
    from permdist import plots

    for number, measure in enumerate(comparison.measures):
        base = comparison.baseline or "the best"
        report.section(
            f"Results: {title(measure)}",
            f"{comparison.explain(measure)} The mean is over folds, as LETOR reports it; s.e. and "
            f"the {100 * comparison.level:g}% interval are over queries; the mean rank is over "
            f"queries, 1 is best; p-values are for paired differences to {base}"
            + (
                "."
                if comparison.correction == "none"
                else f", corrected for their number ({comparison.correction})."
            ),
        )
        if number == 0 and comparison.baseline is None and len(comparison.names) > 2:
            report.note(
                "The best is tested against because it came out best: its lead is a little "
                "flattered. Name a baseline beforehand for a plain test."
            )
        report.picture(
            plots.intervals(comparison, measure),
            f"{title(measure)} of every learner with its interval",
            _colors(comparison)
            + (" Grey diamonds: published figures." if comparison.published(measure) else ""),
        )
        report.table(HEAD, _rows(comparison, measure), caption=title(measure))
        if len(comparison.names) > 2:
            size = 2.5 + 0.3 * len(comparison.names)
            report.picture(
                plots.significance(comparison, measure, ax=_square(size)),
                f"Corrected p-values of all pairs of learners by {title(measure)}",
                "Paired t-tests of all pairs: dark pairs differ." + _for_all_pairs(comparison),
            )
    for note in comparison.notes:
        report.note(note, "warning")
    for name, reason in comparison.failures.items():
        report.note(f"{name} is left out: {reason}", "warning")


def _colors(comparison: Comparison) -> str:
    """Explain the colors of the intervals."""
    if comparison.baseline is None:
        return "Blue: as good as the best, as far as can be told. Red: significantly below it."
    return (
        f"Dark blue: {comparison.baseline}, the baseline. Red: significantly below it. Green: "
        "significantly above it. Light blue: neither can be told."
    )


def _for_all_pairs(comparison: Comparison) -> str:
    """Say why a pair has another p in the picture of all pairs than in the table."""
    if comparison.correction == "none":
        return ""
    return f" They are corrected ({comparison.correction}) for all pairs, the table for its rows."


def _rows(comparison: Comparison, measure: Measure) -> list[list[Any]]:
    frame = comparison.to_frame(measure)
    rows = []
    for texts in comparison.rows(measure):
        name, mark = texts[0], texts[-1]
        row = frame.loc[name]
        worse = comparison.is_worse(row)
        keys = ("mean", "standard_error", "low", "rank", "mean_rank", "difference")
        values = [float(row[key]) for key in (*keys, *(f"p_{test}" for test in TESTS), "seconds")]
        cells = [
            Cell(text, value if text else None)
            for text, value in zip(texts[1:-1], values, strict=True)
        ]
        cells[0] = Cell(texts[1], values[0], mark=mark or ("worse" if worse else ""))
        rows.append([Cell(name, mark=mark), *cells])
    return rows


def _published(report: Report, comparison: Comparison) -> None:
    """Set published figures beside ours."""
    rows: list[list[Any]] = []
    for measure in comparison.measures:
        frame = comparison.to_frame(measure)
        for one in comparison.published(measure):
            ours = _ours(one.learner, comparison.names)
            mean = float(frame.loc[ours, "mean"]) if ours else float("nan")
            error = float(frame.loc[ours, "standard_error"]) if ours else float("nan")
            rows.append(
                [
                    one.learner,
                    title(measure),
                    Cell(f"{one.value:.4f}", one.value),
                    ours or "",
                    Cell(f"{mean:.4f}", mean) if ours else "",
                    Cell(f"{(mean - one.value) / error:+z.1f}", (mean - one.value) / error)
                    if ours and error > 0
                    else "",
                    one.source,
                ]
            )
    if not rows:
        return
    report.section(
        "Published figures",
        f"What others have printed for {comparison.collection}, beside the learner here that is "
        "nearest to theirs. A difference of one or two standard errors says little.",
    )
    head = ["published", "measure", "value", "here", "value here", "difference, s.e.", "source"]
    report.table(head, rows)


def _ours(learner: str, names: Sequence[str]) -> str | None:
    """Find the entry that is nearest to a published learner, by its name."""
    plain = learner.lower().replace("-", "").replace(" ", "")
    by_length = sorted(names, key=len)
    for name in by_length:
        kind = name.split("[")[0].lower()
        if plain == kind:
            return name
    for name in by_length:
        kind = name.split("[")[0].lower()
        if plain in (f"{kind}map", f"{kind}struct", f"{kind}ndcg") and (
            not plain.endswith("ndcg") or "ndcg" in name.lower()
        ):
            return name
    return None


def add_curves(report: Report, comparison: Comparison) -> None:
    """Add what the chosen fits went through."""
    from permdist import plots
    from permdist.plots.comparisons import with_curves

    report.section(
        "Learning curves",
        "The chosen fits of the first fold: how fast the objective falls, and what the validation "
        "queries say meanwhile. Where the second curve turns down before the first is flat, "
        "stopping early helps. Every learner watches its own measure, which the legend names: "
        "curves of different measures do not compare.",
    )
    drawn = with_curves(comparison)
    rest = [name for name in comparison.names if name not in drawn]
    caption = "Objective and validation measure."
    if rest:
        caption += (
            f" Not drawn, for fewer than three iterations or lack of room: {', '.join(rest)}."
        )
    report.picture(plots.learning_curves(comparison), "Objective and validation measure", caption)


def add_settings(report: Report, comparison: Comparison) -> None:
    """Add the settings that validation chose."""
    number = int(comparison.folds.max()) + 1
    report.section(
        "Settings chosen",
        f"By {title(comparison.select)} on the validation part of each fold, from the values that "
        "each learner brings or that were given. Settings that jump from fold to fold matter "
        "little, or the validation part is small.",
    )
    report.table(
        ["learner", *(f"fold {fold + 1}" for fold in range(number))],
        [
            [name, *(_chosen_text(comparison.varied[name], one) for one in chosen)]
            for name, chosen in comparison.chosen.items()
        ],
    )


def _chosen_text(varied: Sequence[str], setting: dict[str, Any]) -> str:
    """Write the settings that there was a choice of."""
    return setting_text({name: setting[name] for name in varied}) if varied else "no choice"


def _example(
    report: Report,
    comparison: Comparison,
    best: str,
    folds: Sequence[Sequence[Queries]],
) -> None:
    """Show how sure the best learner is of one test query, one that it ranks about as usual."""
    import numpy as np

    test = folds[0][2]
    fitting = (test.n_relevant >= 1) & (test.n_relevant < test.sizes) & (test.sizes >= 5)
    if not fitting.any():
        return
    short = fitting & (test.sizes <= max(12, int(test.sizes[fitting].min())))
    values = comparison.evaluations[best][0][comparison.measures[0].name]
    known = values[fitting & ~np.isnan(values)]
    unusual = np.nan_to_num(np.abs(values - (known.mean() if known.size else 0.0)), nan=10.0)
    number = int(np.argmin(np.where(short, unusual, 100.0)))
    a, b = test.ptr[number], test.ptr[number + 1]
    scores = comparison.learners(best)[0].predict(test)[a:b]
    labels, qid = test.y[a:b], test.qids[number]
    names = document_names(labels, None if test.doc_ids is None else test.doc_ids[a:b].tolist())
    what = f"query {qid} of the first fold, scored by {best}"
    marginals_section(report, scores, labels, what, names)
    chains_section(report, scores, labels, what, comparison.seed, names)


def _square(size: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(size + 1.0, size), layout="constrained").add_subplot()
