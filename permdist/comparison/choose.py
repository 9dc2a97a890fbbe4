"""Choosing settings on validation queries, fold by fold, from the outcomes of all fits.

A null model, which ranks no better than its ties, is chosen only where there is no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._text import plural
from permdist.comparison.guests import Guest
from permdist.comparison.results import Comparison
from permdist.comparison.statistics import SAME
from permdist.comparison.wording import REFERENCES, setting_text, title
from permdist.measures import Evaluation, Measure, evaluate, evaluate_random
from permdist.models import Ranker
from permdist.models.rules import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist.comparison.entries import Entry
    from permdist.comparison.fits import Fit, Outcome
    from permdist.data import Fold


def assemble(
    entries: Sequence[Entry],
    fits: Sequence[Fit],
    outcomes: Sequence[Outcome],
    folds: Sequence[Fold],
    *,
    measures: tuple[Measure, ...],
    select: Measure,
    baseline: str | None = None,
    correction: str = "holm",
    level: float = 0.95,
    random_state: int = 0,
    ties: str | None = None,
    rope: float | None = None,
) -> Comparison:
    """Choose the setting of each learner on the validation part of each fold."""
    names: list[str] = []
    evaluations: dict[str, list[Evaluation]] = {}
    chosen: dict[str, list[dict[str, Any]]] = {}
    kept: dict[str, list[Outcome]] = {}
    validation: dict[str, list[dict[str, float]]] = {}
    failures: dict[str, str] = {}
    notes: list[str] = []
    edges: dict[str, str] = {}
    for entry in entries:
        mine = [pair for pair in zip(fits, outcomes, strict=True) if pair[0].entry == entry.name]
        failed = [out.error for _, out in mine if out.error]
        by_fold = [
            [(fit, out) for fit, out in mine if fit.fold == number and not out.error]
            for number in range(len(folds))
        ]
        if not all(by_fold):
            failures[entry.name] = failed[0] if failed else "no setting was tried"
            continue
        best = [max(one, key=lambda pair: _preference(pair[1], select)) for one in by_fold]
        names.append(entry.name)
        chosen[entry.name] = [fit.setting for fit, _ in best]
        kept[entry.name] = [out for _, out in best]
        validation[entry.name] = [
            {}
            if one[0][1].source == "scores"
            else {setting_text(fit.setting): out.validation[select.name] for fit, out in one}
            for one in by_fold
        ]
        evaluations[entry.name] = [
            Evaluation(
                fold.test.qids,
                measures,
                np.array([out.test[one.name] for one in measures]).T.reshape(-1, len(measures)),
            )
            for fold, (_, out) in zip(folds, best, strict=True)
        ]
        if failed:
            notes.append(f"{entry.name}: {len(failed)} of {len(mine)} fits failed: {failed[0]}")
        notes += _fit_notes(entry.name, [out for _, out in mine if not out.error], kept[entry.name])
        ends = _edges(entry, by_fold, select)
        if ends:
            edges[entry.name] = ", ".join(ends)
        if kept[entry.name][0].source == "model":
            notes.append(
                f"{entry.name}: fitted before the comparison and used as it is; its results count "
                "only if it has not seen the test queries"
                + (" of any fold" if len(folds) > 1 else "")
            )
    if not names:
        name, reason = next(iter(failures.items()))
        raise ValueError(f"no learner could be fitted; {name}: {reason}")
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline: {baseline} could not be fitted: {failures[baseline]}")
    references = evaluate_references(folds, measures)
    notes += _chance_notes(evaluations, references, measures[0])
    return Comparison(
        names,
        measures,
        select,
        evaluations,
        chosen,
        kept,
        validation,
        varied={
            entry.name: tuple(name for name, values in entry.settings.items() if len(values) > 1)
            for entry in entries
        },
        failures=failures,
        notes=notes,
        edges=edges,
        kinds={
            entry.name: type(entry.learner)
            for entry in entries
            if not isinstance(entry.learner, Guest)
        },
        baseline=baseline,
        correction=correction,
        level=level,
        random_state=random_state,
        n_fits=len({fit.key for fit in fits if not fit.ready}),
        references=references,
        rope=rope,
        ties=ties,
    )


def evaluate_references(
    folds: Sequence[Fold], measures: tuple[Measure, ...]
) -> dict[str, list[Evaluation]]:
    """Evaluate what needs no learner, on the test part of each fold.

    Returns
    -------
    dict of lists of Evaluation
        The order of the documents in the file, and the expectation of a random order.
    """
    tests = [fold.test for fold in folds]
    by_file = [evaluate(-np.arange(len(one.y)), one.y, one.qid, measures) for one in tests]
    by_chance = [evaluate_random(one.y, one.qid, measures) for one in tests]
    return dict(zip(REFERENCES, (by_file, by_chance), strict=True))


def _preference(outcome: Outcome, select: Measure) -> tuple[bool, float]:
    """Return the key by which fits are chosen: models that are not null, then the best value."""
    value = outcome.validation[select.name]
    return not outcome.null, -float("inf") if value != value else value


def _fit_notes(name: str, outcomes: list[Outcome], chosen: list[Outcome]) -> list[str]:
    """Count the fits that learned nothing, and those that did not converge."""
    notes = []
    null = sum(out.null for out in outcomes)
    if null:
        kept = sum(out.null for out in chosen)
        where = (
            f"every setting is null on {kept} of {plural(len(chosen), 'fold')}"
            if kept
            else "none of them was chosen"
        )
        notes.append(
            f"{name}: {null} of {plural(len(outcomes), 'fit')} learned nothing (null models, which "
            f"rank no better than their ties); {where}"
        )
    warned = [out for out in outcomes if out.warnings and not out.null]
    if warned:
        kept = sum(bool(out.warnings) and not out.null for out in chosen)
        notes.append(
            f"{name}: {len(warned)} of {plural(len(outcomes), 'fit')} did not converge, {kept} of "
            f"them chosen: {warned[0].warnings[0]}"
        )
    return notes


def _chance_notes(
    evaluations: dict[str, list[Evaluation]],
    references: dict[str, list[Evaluation]],
    measure: Measure,
) -> list[str]:
    """Name the learners whose mean is not above that of a random order."""
    chance = _mean(references[REFERENCES[1]], measure)
    return [
        f"{name}: {title(measure)} is {mean:.4f}, not above the {chance:.4f} of a random order"
        for name, mean in ((name, _mean(parts, measure)) for name, parts in evaluations.items())
        if mean <= chance + SAME
    ]


def _mean(parts: list[Evaluation], measure: Measure) -> float:
    """Return the mean over folds of a measure."""
    return float(np.mean([part.mean(measure) for part in parts]))


def _edges(entry: Entry, by_fold: list[list[tuple[Fit, Outcome]]], select: Measure) -> list[str]:
    """Name the chosen settings that are at an end of the values tried.

    An end is none where another value is as good, or where the learner takes no value beyond it.
    """
    found = []
    for setting, options in entry.settings.items():
        numbers = {one for one in options if is_number(one)}
        if len(numbers) < 3 or len(numbers) < len({repr(one) for one in options}):
            continue
        for end, step in ((min(numbers), -1), (max(numbers), 1)):
            if _is_last(entry, setting, end, step):
                continue
            times = 0
            for one in by_fold:
                best = max(one, key=lambda pair: _preference(pair[1], select))
                others = [out for fit, out in one if fit.setting[setting] != end]
                highest = max((_preference(out, select) for out in others), default=(False, 0.0))
                ahead = _preference(best[1], select) > (highest[0], highest[1] + SAME)
                times += best[0].setting[setting] == end and ahead
            if times:
                where = f" on {times} of {len(by_fold)} folds" if len(by_fold) > 1 else ""
                found.append(f"{setting} = {end:g}{where}")
    return found


def _is_last(entry: Entry, setting: str, end: float, step: int) -> bool:
    """Check whether a learner takes no value of a setting beyond this one."""
    if np.isinf(end):
        return True
    if not isinstance(entry.learner, Ranker):
        return False
    beyond = end + step if isinstance(end, int) else float(np.nextafter(end, step * np.inf))
    try:
        type(entry.learner).check_parameter(setting, beyond)
    except (TypeError, ValueError):
        return True
    return False
