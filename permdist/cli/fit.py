"""``permdist fit``: one learner, written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._shared import (
    AsJson,
    DataFile,
    Jobs,
    Measures,
    Preset,
    QueryFile,
    Regroup,
    Seed,
    ZeroBased,
    need_files,
    print_json,
    read_measures,
)

if TYPE_CHECKING:
    from permdist.comparison import Entry
    from permdist.models import Ranker


def fit(
    data: DataFile,
    model: Annotated[
        str,
        typer.Argument(
            metavar="LEARNER",
            help="A learner, with settings if need be: 'ConvexLoss[measure=ndcg@10,C=10]'. With "
            "--validation, settings not given are chosen from the learner's usual ones, and from "
            "alternatives such as 'C=0.1|1|10'.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the learner.")
    ] = Path("model.json"),
    validation: Annotated[
        Path | None,
        typer.Option("--validation", help="A LETOR file to choose settings by."),
    ] = None,
    measures: Measures = None,
    preset: Preset = None,
    jobs: Jobs = -1,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit LEARNER to DATA and write it to a JSON file for 'permdist predict'.

    With --validation the first --measure chooses the settings; without --measure: map and ndcg@10.

    Learners: ConvexLoss, ExpectedGain, L3, MLE; AdaRank, PermuRank, SVMMap, SVMNDCG, RankSVM,
    RankBoost; Approx, ApproxAP, ApproxNDCG, RankCosine, SoftRank; ListNet, ListMLE, BoltzRank;
    FeatureRank, BLFeatureRank, DiffRank.
    """
    from permdist._text import plural
    from permdist.comparison import read_entries, tune
    from permdist.comparison.wording import setting_text
    from permdist.data import load_letor
    from permdist.measures import DEFAULT, evaluate

    entries = read_entries(model)
    if len(entries) != 1:
        raise ValueError(f"LEARNER: expected one, got {len(entries)}")
    entry = entries[0]
    chosen = read_measures(measures, preset, DEFAULT)
    need_files(output)
    train = load_letor(data, regroup=regroup, query_file=query_file, zero_based=zero_based)
    parts = {"training": train}
    if validation is None:
        learner = _as_given(entry, chosen[0].name, seed)
        learner.fit(train)
        setting: dict[str, Any] = {}
        notes: list[str] = []
    else:
        held_out = load_letor(
            validation, n_features=train.n_features, regroup=regroup, zero_based=zero_based
        )
        parts["validation"] = held_out
        learner, setting, notes = tune(
            entry, train, held_out, chosen[0], seed=seed, n_jobs=jobs, progress=not as_json
        )
    if not getattr(learner, "converged_", True):
        notes.append(f"it stopped after {learner.n_iter_} iterations, before it converged")
    learner.save(output)
    results = {
        name: evaluate(learner.predict(part), part.y, part.qid, chosen)
        for name, part in parts.items()
    }
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
    typer.echo(
        f"{type(learner).__name__} with {setting_text(used)}{how} "
        f"({plural(learner.n_iter_, 'iteration')})"
    )
    for note in notes:
        typer.echo(f"note: {note}")
    for name, result in results.items():
        how_many = plural(len(parts[name]), "query", "queries")
        typer.echo(f"\n{name}, {how_many}\n{result}")
    typer.echo(f"\nThe learner: {output}")


def _as_given(entry: Entry, judge: str, seed: int) -> Ranker:
    """Make the learner with what was written in brackets and its defaults for the rest."""
    from permdist.comparison import Entry

    settings = {name: entry.settings[name] for name in entry.given}
    several = [name for name, values in settings.items() if len(values) > 1]
    if several:
        raise ValueError(
            f"--validation: alternatives of {', '.join(several)} need a validation file"
        )
    return Entry(entry.name, entry.learner, settings).learners(judge=judge, seed=seed)[0][1]
