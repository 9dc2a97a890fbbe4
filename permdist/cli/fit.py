"""``permdist fit``: one learner, fitted and saved to a file."""

import contextlib
import warnings
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._errors import echo
from permdist.cli._scheduler import connected
from permdist.cli._shared import (
    AsJson,
    DataFile,
    Jobs,
    Measures,
    Preset,
    Reading,
    Seed,
    need_files,
    print_json,
    read_measures,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist.comparison import Entry
    from permdist.measures import Evaluation, Measure
    from permdist.models import Ranker


def fit(
    data: DataFile,
    model: Annotated[
        str,
        typer.Argument(
            metavar="LEARNER",
            help="The name of a learner, with optional settings: "
            "'ConvexLoss[measure=ndcg@10,C=10]'. With --validation, settings that are not given "
            "are chosen from the learner's default grid, and given ones from alternatives such as "
            "'C=0.1|1|10'.",
        ),
    ],
    reading: Reading,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to save the learner to.")
    ] = Path("model.json"),
    validation: Annotated[
        Path | None,
        typer.Option("--validation", help="A LETOR file on which settings are chosen."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="The address of a dask scheduler on whose workers to fit; DATA is then a store "
            "that all of them can read."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A file from which a fit that was killed goes on where it was."),
    ] = None,
    measures: Measures = None,
    preset: Preset = None,
    jobs: Jobs = -1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit LEARNER to DATA and save it to a JSON file for 'permdist predict'.

    With --validation the first --measure chooses the settings. Default measures: map and ndcg@10.
    """
    from sklearn.exceptions import ConvergenceWarning

    from permdist._text import plural
    from permdist.comparison import read_entries, tune
    from permdist.comparison.wording import setting_text
    from permdist.measures import DEFAULT

    for option, value in (("--scheduler", scheduler), ("--checkpoint", checkpoint)):
        if value is not None and validation is not None:
            raise ValueError(f"{option}: for one fit, and --validation makes many; leave one out")
    chosen = read_measures(measures, preset, DEFAULT)
    try:
        entries = read_entries(model, chosen[0])
    except ValueError:
        if Path(model).exists() and _is_learner(str(data)):
            raise ValueError(
                f"DATA comes first: permdist fit {quote(model)} {quote(str(data))}"
            ) from None
        raise
    if len(entries) != 1:
        raise ValueError(f"LEARNER: expected one, got {len(entries)}")
    entry = entries[0]
    need_files(output)
    with contextlib.nullcontext() if scheduler is None else connected(scheduler) as client:
        train: Any = data if client is not None else reading.load(data)
        parts: dict[str, Any] = {"training": train}
        if validation is None:
            learner = _as_given(entry, chosen[0].name, seed)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", ConvergenceWarning)
                learner.fit(train, client=client, checkpoint=checkpoint)
            setting: dict[str, Any] = {}
            notes = [str(one.message) for one in told]
        else:
            held_out = replace(reading, query_file=None).load(validation, train.n_features)
            parts["validation"] = held_out
            learner, setting, notes = tune(
                entry,
                train,
                held_out,
                chosen[0],
                random_state=seed,
                n_jobs=jobs,
                progress=not as_json,
            )
        if not getattr(learner, "converged_", True):
            notes.append(f"it stopped after {learner.n_iter_} iterations without converging")
        learner.save(output)
        results = {name: _evaluated(learner, part, chosen, client) for name, part in parts.items()}
    if as_json:
        print_json(
            {
                "learner": type(learner).__name__,
                "setting": setting,
                "notes": notes,
                "iterations": learner.n_iter_,
                "converged": bool(getattr(learner, "converged_", True)),
                "measures": {name: result.mean() for name, result in results.items()},
                "file": str(output),
            }
        )
        return
    used = {name: getattr(learner, name) for name in entry.settings}
    how = f", chosen by {chosen[0].name}" if setting else ""
    echo(
        f"{type(learner).__name__} with {setting_text(used)}{how} "
        f"({plural(learner.n_iter_, 'iteration')})"
    )
    for note in notes:
        echo(f"note: {note}")
    for name, result in results.items():
        how_many = plural(len(result.qids), "query", "queries")
        echo(f"\n{name}, {how_many}\n{result}")
    echo(f"\nSaved to {output}")


def _is_learner(text: str) -> bool:
    """Check whether a text names learners."""
    from permdist.comparison import read_entries

    try:
        return bool(read_entries(text))
    except ValueError:
        return False


def _evaluated(
    learner: "Ranker", part: Any, measures: "Sequence[Measure]", client: Any
) -> "Evaluation":
    """Evaluate a learner on a collection, or by workers on a store."""
    from permdist.measures import evaluate
    from permdist.models.cluster_scores import evaluate_stores

    if client is not None:
        return evaluate_stores(learner, [str(part.resolve())], measures, client)
    return evaluate(learner.predict(part), part.y, part.qid, measures)


def _as_given(entry: "Entry", judge: str, seed: int) -> "Ranker":
    """Return the learner with the settings in brackets, and defaults for the others."""
    from permdist.comparison import Entry

    settings = {name: entry.settings[name] for name in entry.given}
    several = [name for name, values in settings.items() if len(values) > 1]
    if several:
        raise ValueError(
            f"--validation: needed to choose between alternatives of {', '.join(several)}"
        )
    return Entry(entry.name, entry.learner, settings).learners(judge=judge, random_state=seed)[0][1]
