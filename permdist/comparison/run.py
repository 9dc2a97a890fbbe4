"""Running a comparison: all fits, in parallel, each stored as soon as it is finished."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from joblib import delayed

from permdist._check import count
from permdist._progress import live_bar
from permdist._result import block, facts, note, record_frame
from permdist.comparison.bayes import check_rope
from permdist.comparison.choose import assemble
from permdist.comparison.entries import (
    Entry,
    check_folds,
    check_names,
    check_options,
    check_parts,
    read_entries,
    tuned_entry,
)
from permdist.comparison.fits import Fit, Outcome, Store, fingerprint, in_fit, make_key, run_fit
from permdist.comparison.scores import DEFAULT, as_entries, named_scores
from permdist.comparison.workers import make_pool
from permdist.data import Fold, Queries
from permdist.measures.evaluation import several
from permdist.models import Ranker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from permdist.comparison.results import Comparison
    from permdist.measures import Measure


def compare(
    folds: Iterable[Sequence[Queries]] | Sequence[Queries],
    learners: Any = "all",
    *,
    scores: Mapping[str, Any] | pd.DataFrame | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    select: str | Measure | None = None,
    baseline: str | None = None,
    correction: str = "holm",
    level: float = 0.95,
    ties: str | None = None,
    rope: float | None = None,
    directory: str | Path | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Comparison:
    """Compare learners on folds, with settings chosen on the validation parts.

    Every learner is fitted with each of its settings on the training part of each fold. On each
    fold the setting with the best value on the validation part is chosen (the first, if several
    share it) and evaluated on the test part. A null model, which ranks no better than its ties
    (`null_`), is chosen only where all settings are null. The tables also show the order of the
    documents in the file and the expectation of a random order, as references.

    Parameters
    ----------
    folds : iterable of (train, validation, test)
        As from `permdist.data.load_letor_folds` or `permdist.data.make_folds`, or one such triple.
        No query may be in two test parts.
    learners : str, learners, or a mapping of names to learners
        See `read_entries`; all learners by default. Models of other libraries take part if they
        have `predict`, such as an ``LGBMRanker``. Learners and models that have been fitted are
        used as they are, which the tables say; others are fitted on every fold. None compares
        `scores` only.
    scores : mapping of names to arrays, or data frame, optional
        Scores of other tools, to be compared with the learners: of the documents of all test
        parts, fold after fold, or a list with one array per fold. They must come from models that
        have not seen these test queries. See also `compare_scores`.
    measures : measure or iterable of measures
        The measures to report; by default MAP and NDCG@10 as LETOR 4.0 defines them.
    select : measure, optional
        The measure by which settings are chosen and fits are stopped early; by default the first
        of `measures`.
    baseline : str, optional
        The name of the learner to test the others against; by default the one with the best mean.
    correction : {"holm", "bonferroni", "bh", "none"}
        The adjustment for the number of tests against the baseline, for each measure and each kind
        of test.
    level : float
        The level of the confidence intervals.
    ties : {"index", "average"}, optional
        The rule for equal scores in all measures, also in `select`: the document that comes first
        in the file, or the mean over all ways to break ties, under which the order of the file
        has no effect. By default the rule of each measure.
    rope : float, optional
        If given, the tables also show the probabilities of `Comparison.bayes`, with this region of
        practical equivalence, such as 0.005.
    directory : path, optional
        A folder to store finished fits in. A comparison with the same folder reuses them and makes
        only the fits that are missing.
    random_state : int
        The random state of learners given by name, and of the randomization test.
    n_jobs : int, optional
        Number of worker processes; -1 uses one per core. None leaves the choice to
        `joblib.parallel_config`: one process, unless a backend such as dask is set there. The
        result is the same to the last digit.
    progress : bool or callable
        Whether to show a progress bar on the terminal, or a function that is called with the
        number of finished fits and the number of all fits.

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
    chosen = several(measures, ties)
    by = chosen[0] if select is None else several(select, ties)[0]
    entries = [] if learners is None and scores is not None else read_entries(learners, by)
    given = {} if scores is None else named_scores(scores)
    taken = tuple(dict.fromkeys((*chosen, by)))
    names = [entry.name for entry in entries] + list(given)
    check_options(correction, level, random_state, baseline, names)
    margin = None if rope is None else check_rope(rope)
    parts = check_folds(folds)
    others, no_fits, known = ([], [], []) if scores is None else as_entries(given, parts, taken)
    check_names([*entries, *others])
    store = Store(None if directory is None else Path(directory))
    fits = _fits(entries, parts, by, random_state)
    outcomes = _run(fits, parts, store, taken, n_jobs, progress)
    return assemble(
        [*entries, *others],
        [*fits, *no_fits],
        [*outcomes, *known],
        parts,
        measures=chosen,
        select=by,
        baseline=baseline,
        correction=correction,
        level=level,
        random_state=random_state,
        ties=ties,
        rope=margin,
    )


def tune(
    learner: Any,
    train: Queries,
    validation: Queries,
    measure: str | Measure,
    *,
    ties: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Tuned:
    """Fit one learner with each of its settings and keep the best one on validation queries.

    A null model, which ranks no better than its ties, is kept only where all settings are null.
    The notes name chosen values at an end of the values tried.

    Parameters
    ----------
    learner : str, Ranker, Entry, or (learner, settings)
        One learner, with the settings to choose from, or a model of another library; see
        `read_entries`. Of an instance of a learner all parameters with their default values are
        tuned by the learner's default grid, `settings`, and all others are kept; whether it has
        been fitted makes no difference. The notes say which.
    train, validation : Queries
        Without a query in common.
    measure : Measure or str
        The measure by which the setting is chosen.
    ties : {"index", "average"}, optional
        The rule for equal scores; by default that of the measure. See `compare`.
    random_state : int
        The random state of a learner given by name.
    n_jobs : int, optional
        Number of worker processes; -1 uses one per core. See `compare`.
    progress : bool or callable
        Whether to show a progress bar. See `compare`.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> from permdist import data
    >>> train, validation, _ = data.make_folds(data.make_letor(60, rng=0), 3, rng=0)[0]
    >>> sorted(tune("MLE[C=1e-6|10]", train, validation, "map").setting)
    ['C']
    """
    by, told = several(measure, ties)[0], ""
    if isinstance(learner, Ranker):
        learner, told = tuned_entry(learner, by)
    entries = read_entries([learner] if isinstance(learner, tuple) else learner, by)
    if len(entries) != 1:
        raise ValueError(f"learner: expected one, got {len(entries)}")
    count("random_state", random_state, minimum=0)
    check_parts("data", {"training": train, "validation": validation})
    # The validation part takes the place of the test part, which is not used.
    parts = [Fold(train, validation, validation)]
    fits = _fits(entries, parts, by, random_state)
    outcomes = _run(fits, parts, Store(None), (by,), n_jobs, progress)
    found = assemble(entries, fits, outcomes, parts, measures=(by,), select=by, ties=ties)
    name = entries[0].name
    if not told and len(fits) == 1:
        told = f"{name}: there are no values to choose from, nothing was tuned"
    notes = [told] * bool(told) + found.notes
    if name in found.edges:
        notes.append(
            f"{name}: {found.edges[name]} is at an end of the values tried; values beyond it may "
            "be better"
        )
    return Tuned(found.learners(name)[0], found.chosen[name][0], notes)


class Tuned(NamedTuple):
    """A fitted learner, the setting chosen on validation queries, and notes about the fits."""

    learner: Any
    setting: dict[str, Any]
    notes: list[str]

    def to_frame(self) -> pd.DataFrame:
        """Return the chosen setting as a data frame with one row, a column per parameter."""
        return record_frame({"learner": type(self.learner).__name__, **self.setting})

    def _repr_html_(self) -> str:
        title = f"{type(self.learner).__name__}, tuned"
        return block(title, facts(self.setting), *map(note, self.notes))


def _fits(entries: list[Entry], parts: list[Fold], by: Measure, random_state: int) -> list[Fit]:
    """List all fits: every entry with each of its settings on each fold."""
    prints = [[fingerprint(part) for part in fold] for fold in parts]
    return [
        Fit(entry.name, number, setting, learner, make_key(learner, prints[number]), len(fold.test))
        for entry in entries
        for setting, learner in entry.learners(judge=by.name, random_state=random_state)
        for number, fold in enumerate(parts)
    ]


def _run(
    fits: list[Fit],
    folds: list[Fold],
    store: Store,
    measures: tuple[Measure, ...],
    n_jobs: int | None,
    progress: bool | Callable[[int, int], object],
) -> list[Outcome]:
    """Return the outcome of every fit; missing ones are made, and stored at once."""
    known = [store.read(fit) for fit in fits]
    # A fit that two entries share is made once. Classes of the same name are told apart.
    same = [(fit.key, type(fit.learner)) for fit in fits]
    first = {key: number for number, key in reversed(list(enumerate(same)))}
    missing = [
        number
        for number in first.values()
        if (outcome := known[number]) is None or outcome.lacks(measures)
    ]
    missing = _in_turn(fits, missing)
    with _bar(len(first), len(first) - len(missing), progress) as advance:
        work = (
            (number, fits[number].learner, known[number], *folds[fits[number].fold], measures)
            for number in missing
        )
        for number in [number for number in missing if fits[number].ready]:
            # Nothing to fit, and perhaps nothing that could be sent to a worker.
            fit = fits[number]
            _, known[number] = run_fit(0, fit.learner, None, *folds[fit.fold], measures)
            missing.remove(number)
            advance(fit.entry)
        finished: Any
        if in_fit():  # no workers inside a worker, which would wait for them
            finished = itertools.starmap(run_fit, work)
        else:
            pool = make_pool(n_jobs, return_as="generator_unordered", batch_size=1)
            # Workers ignore SIGINT; the parent shuts them down.
            with _ignoring_sigint():
                finished = pool(itertools.starmap(delayed(run_fit), work))
        try:
            for number, outcome in _until_lost(finished):
                known[number] = outcome
                store.write(fits[number], outcome)
                advance(fits[number].entry)
        finally:
            if hasattr(finished, "close"):
                with warnings.catch_warnings():  # about tasks that were interrupted
                    warnings.filterwarnings("ignore", ".*tasks which were still being processed")
                    finished.close()
    return [known[first[key]] or Outcome(error="not run") for key in same]


@contextlib.contextmanager
def _ignoring_sigint() -> Iterator[None]:
    """Ignore Ctrl-C inside the block, as processes started in it then do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _in_turn(fits: Sequence[Fit], missing: Iterable[int]) -> list[int]:
    """Sort fits by fold and, inside, every learner once before any of them again.

    Workers then compile the kernels of different learners, and find those of the others.
    """
    before: dict[tuple[int, str], int] = {}
    turn = []
    for fit in fits:
        turn.append(before.get((fit.fold, fit.entry), 0))
        before[fit.fold, fit.entry] = turn[-1] + 1
    return sorted(missing, key=lambda number: (fits[number].fold, turn[number], number))


def _until_lost(finished: Iterator[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
    """Yield finished fits; an exception on the way means that a worker was lost."""
    try:
        yield from finished
    except Exception as error:
        told = (str(error).strip().splitlines() or [""])[0][:200]
        raise ConnectionError(
            f"a worker was lost ({type(error).__name__}: {told}): out of memory, killed, "
            "or lost its scheduler; run the same comparison again, fits in its directory are reused"
        ) from error


@contextlib.contextmanager
def _bar(
    total: int, done: int, progress: bool | Callable[[int, int], object]
) -> Iterator[Callable[[str], object]]:
    """Show the number of finished fits and the time remaining."""
    if callable(progress):
        finished = itertools.count(done + 1)
        progress(done, total)
        yield lambda _: progress(next(finished), total)
        return
    if not progress:
        yield lambda _: None
        return
    made = itertools.count(done + 1)
    with live_bar("Fitting", total, counted="fits") as bar:
        bar.update(done, f"{done} of {total} reused" if done else "")

        def advance(name: str) -> None:
            bar.update(next(made), text=f"Fitting {name[:30]}")

        yield advance
        bar.update(next(made) - 1, text="Fitted")
