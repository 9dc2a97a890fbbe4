"""Choosing settings on validation queries, fold by fold, from the outcomes of all fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._text import plural
from permdist.comparison.published import recognize
from permdist.comparison.results import Comparison
from permdist.comparison.wording import setting_text
from permdist.measures import Evaluation, Measure

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
) -> Comparison:
    """Choose the setting of each learner on the validation part of each fold."""
    names: list[str] = []
    evaluations: dict[str, list[Evaluation]] = {}
    chosen: dict[str, list[dict[str, Any]]] = {}
    kept: dict[str, list[Outcome]] = {}
    validation: dict[str, list[dict[str, float]]] = {}
    failures: dict[str, str] = {}
    notes: list[str] = []
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
        best = [
            max(one, key=lambda pair: _number(pair[1].validation[select.name])) for one in by_fold
        ]
        names.append(entry.name)
        chosen[entry.name] = [fit.setting for fit, _ in best]
        kept[entry.name] = [out for _, out in best]
        validation[entry.name] = [
            {setting_text(fit.setting): out.validation[select.name] for fit, out in one}
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
        notes += _notes(entry, best)
    if not names:
        name, reason = next(iter(failures.items()))
        raise ValueError(f"no learner could be fitted; {name}: {reason}")
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline: {baseline} could not be fitted: {failures[baseline]}")
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
        kinds={entry.name: type(entry.learner) for entry in entries},
        collection=recognize(folds),
        baseline=baseline,
        correction=correction,
        level=level,
        random_state=random_state,
        n_fits=len({fit.key for fit in fits}),
    )


def _notes(entry: Entry, best: list[tuple[Fit, Outcome]]) -> list[str]:
    """Describe warnings of the chosen fits, and settings at the end of their range."""
    notes = []
    warned = [text for _, out in best for text in out.warnings]
    if warned:
        notes.append(
            f"{entry.name}: {plural(len(warned), 'warning')} from the chosen fits: {warned[0]}"
        )
    for setting, options in entry.settings.items():
        numbers = {one for one in options if isinstance(one, int | float)}
        if len(numbers) < 3 or any(not isinstance(one, int | float) for one in options):
            continue
        for end in (min(numbers), max(numbers)):
            times = sum(fit.setting[setting] == end for fit, _ in best)
            if 2 * times > len(best):
                where = f" on {times} of {len(best)} folds" if len(best) > 1 else ""
                notes.append(
                    f"{entry.name}: {setting} = {end:g}, an end of the values tried, is chosen"
                    f"{where}; consider trying values beyond it"
                )
    return notes


def _number(value: float) -> float:
    return -float("inf") if value != value else value
