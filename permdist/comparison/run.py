"""Running a comparison: all cells, in parallel, each kept as soon as it is finished."""

from __future__ import annotations

import contextlib
import itertools
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from joblib import delayed

from permdist._check import choice, count, finite
from permdist._signals import handled
from permdist.comparison.cells import Cell, Outcome, Store, in_cell, run_cell
from permdist.comparison.choose import assemble
from permdist.comparison.entries import Entry, read_entries
from permdist.comparison.keys import fingerprint, make_key
from permdist.comparison.parts import check_folds, check_parts
from permdist.comparison.results import Comparison
from permdist.comparison.statistics import CORRECTIONS
from permdist.comparison.workers import make_pool
from permdist.data import Fold, Queries
from permdist.measures import Measure, parse
from permdist.models import Ranker

DEFAULT = ("letor4:map", "letor4:ndcg@10")


def compare(
    folds: Iterable[Sequence[Queries]],
    models: Any = "all",
    *,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    select: str | Measure | None = None,
    baseline: str | None = None,
    correction: str = "holm",
    level: float = 0.95,
    directory: str | Path | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Comparison:
    """Compare learners on folds, with settings chosen on the validation parts.

    Every learner is fitted with each of its settings on the training part of each fold. On each
    fold the setting that is best on the validation part is chosen, the first of equal ones; its
    test queries are what the learners are compared on.

    Parameters
    ----------
    folds : iterable of (train, validation, test)
        From `permdist.data.load_letor_folds` or `permdist.data.make_folds`. The test parts have
        different queries.
    models : str, learners, or a mapping of names to them
        See `read_entries`; all learners by default.
    measures : measure or several of them
        What to report. The rules of LETOR 4.0 by default.
    select : measure, optional
        What to choose settings by, and when to stop early; the first of the measures by default.
    baseline : str, optional
        The entry that the others are tested against; by default the one with the best mean.
    correction : {"holm", "bonferroni", "bh", "none"}
        For the number of tests against the baseline, for each measure and each kind of test.
    level : float
        Of the confidence intervals.
    directory : path, optional
        Keep every finished cell there. A comparison with the same folder goes on where the last
        one ended, however it ended; only what is new is computed.
    seed : int
        For learners that draw, and for the randomization test.
    n_jobs : int, optional
        Processes, -1 for one a core. With None, `joblib.parallel_config` decides: 1 process unless
        a backend such as dask's is set there. The result is the same to the last digit.
    progress : bool or callable
        Show a bar on the terminal, or call this with the number of fits that are finished and the
        number of all.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from permdist import data
    >>> folds = data.make_folds(data.make_letor(60, rng=0), 3, rng=0)
    >>> found = compare(folds, "MLE[C=1|10], ListNet[C=1]", measures=["map", "ndcg@10"])
    >>> found.names
    ['MLE[C=1|10]', 'ListNet[C=1]']
    >>> [sorted(chosen) for chosen in found.chosen["MLE[C=1|10]"]]
    [['C'], ['C'], ['C']]
    """
    entries = read_entries(models)
    chosen = _measures(measures)
    by = chosen[0] if select is None else parse(select)
    taken = tuple(dict.fromkeys((*chosen, by)))
    choice("correction", correction, CORRECTIONS)
    if not 0.0 < float(finite("level", level, ndim=0)) < 1.0:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    count("seed", seed, minimum=0)
    names = [entry.name for entry in entries]
    if baseline is not None:
        choice("baseline", baseline, names)
    parts = check_folds(folds)
    store = Store(None if directory is None else Path(directory))
    cells = _cells(entries, parts, by, seed)
    outcomes = _run(cells, parts, store, taken, n_jobs, progress)
    return assemble(
        entries,
        cells,
        outcomes,
        parts,
        measures=chosen,
        select=by,
        baseline=baseline,
        correction=correction,
        level=level,
        seed=seed,
    )


def tune(
    model: Any,
    train: Queries,
    validation: Queries,
    measure: str | Measure,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Tuned:
    """Fit one learner with each of its settings, and keep the one that validation likes best.

    Parameters
    ----------
    model : str, Ranker or Entry
        See `read_entries`.
    train, validation : Queries
        Without a query in common.
    measure : Measure or str
        What to choose by.
    seed, n_jobs, progress
        As in `compare`.

    Returns
    -------
    Tuned
        The fitted learner, its setting, and what a reader should know.

    Examples
    --------
    >>> from permdist import data
    >>> train, validation, _ = data.make_folds(data.make_letor(60, rng=0), 3, rng=0)[0]
    >>> tune("MLE[C=1e-6|10]", train, validation, "map").setting
    {'C': 10}
    """
    entries, by = read_entries(model), parse(measure)
    if len(entries) != 1:
        raise ValueError(f"model: expected one, got {len(entries)}")
    count("seed", seed, minimum=0)
    check_parts("data", {"training": train, "validation": validation})
    # Nobody looks at the test part: the one that validates stands in for it.
    parts = [Fold(train, validation, validation)]
    cells = _cells(entries, parts, by, seed)
    outcomes = _run(cells, parts, Store(None), (by,), n_jobs, progress)
    found = assemble(entries, cells, outcomes, parts, measures=(by,), select=by, seed=seed)
    name = entries[0].name
    return Tuned(found.learners(name)[0], found.chosen[name][0], found.notes)


class Tuned(NamedTuple):
    """A learner whose setting was chosen on validation queries."""

    learner: Ranker
    setting: dict[str, Any]
    notes: list[str]


def _cells(entries: list[Entry], parts: list[Fold], by: Measure, seed: int) -> list[Cell]:
    """List every fit: all entries with all their settings on all folds."""
    prints = [[fingerprint(part) for part in fold] for fold in parts]
    return [
        Cell(
            entry.name,
            number,
            setting,
            learner,
            make_key(learner, prints[number]),
            len(parts[number].test),
        )
        for entry in entries
        for setting, learner in entry.learners(judge=by.name, seed=seed)
        for number in range(len(parts))
    ]


def _measures(measures: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    several = [measures] if isinstance(measures, str | Measure) else list(measures)
    chosen = tuple(dict.fromkeys(parse(measure) for measure in several))
    if not chosen:
        raise ValueError("measures: expected at least one")
    return chosen


def _run(
    cells: list[Cell],
    folds: list[Fold],
    store: Store,
    measures: tuple[Measure, ...],
    n_jobs: int | None,
    progress: bool | Callable[[int, int], object],
) -> list[Outcome]:
    """Give the outcome of every cell; whatever is missing is computed, and kept at once."""
    known = [store.read(cell) for cell in cells]
    # Two entries may ask for the same fit: it is made once. Classes of the same name are others.
    same = [(cell.key, type(cell.learner)) for cell in cells]
    first = {key: number for number, key in reversed(list(enumerate(same)))}
    missing = [
        number
        for number in first.values()
        if (outcome := known[number]) is None or outcome.lacks(measures)
    ]
    missing.sort(key=lambda number: (cells[number].fold, number))
    with _bar(len(first), len(first) - len(missing), progress) as advance:
        work = (
            (number, cells[number].learner, known[number], *folds[cells[number].fold], measures)
            for number in missing
        )
        finished: Any
        if in_cell():  # a learner that compares others in its fit: its workers would wait for it
            finished = itertools.starmap(run_cell, work)
        else:
            pool = make_pool(n_jobs, return_as="generator_unordered", batch_size=1)
            # Workers are born deaf to Ctrl-C: it is for the parent, which ends them.
            with handled(signal.SIGINT, signal.SIG_IGN):
                finished = pool(itertools.starmap(delayed(run_cell), work))
        try:
            for number, outcome in _until_lost(finished):
                known[number] = outcome
                store.write(cells[number], outcome)
                advance(cells[number].entry)
        finally:
            if hasattr(finished, "close"):
                with warnings.catch_warnings():  # that what is interrupted is not finished
                    warnings.filterwarnings("ignore", ".*tasks which were still being processed")
                    finished.close()
    return [known[first[key]] or Outcome(error="not run") for key in same]


def _until_lost(finished: Iterator[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
    """Pass finished cells on; whatever ends that early is the loss of a worker."""
    try:
        yield from finished
    except Exception as error:
        told = (str(error).strip().splitlines() or [""])[0][:200]
        raise ConnectionError(
            f"a worker was lost ({type(error).__name__}: {told}): out of memory, killed, or its "
            "scheduler has gone; finished fits that were kept are not made again"
        ) from error


@contextlib.contextmanager
def _bar(
    total: int, done: int, progress: bool | Callable[[int, int], object]
) -> Iterator[Callable[[str], object]]:
    """Show how many cells are finished, and how long the others may take."""
    if callable(progress):
        finished = itertools.count(done + 1)
        progress(done, total)
        yield lambda _: progress(next(finished), total)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("fits"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not progress) as bar:
        if done and progress:
            bar.console.print(f"{done} of {total} fits are known from before", highlight=False)
        task = bar.add_task("Fitting", total=total, completed=done)

        def advance(name: str) -> None:
            bar.update(task, advance=1, description=f"Fitting {name[:30]}")

        yield advance
        bar.update(task, description="Fitted")
