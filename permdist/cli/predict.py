"""``permdist predict``: scores of documents, in the format of LETOR or of TREC."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, DataFile, Reading, load_fitted, need_files, print_json


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A learner saved by 'permdist fit'.")
    ],
    data: DataFile,
    reading: Reading,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file; by default the terminal."),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", help="letor: one score per line; trec: a run for trec_eval."),
    ] = "letor",
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name of a TREC run, without blanks; permdist by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the documents of DATA with MODEL."""
    import numpy as np

    from permdist._check import choice
    from permdist.data import save_run, save_scores
    from permdist.data.runs import run_lines, score_lines

    choice("--format", form, ("letor", "trec"))
    if name is not None and form != "trec":
        raise ValueError("--name: only for TREC runs; add --format trec")
    need_files(output)
    run_name = "permdist" if name is None else name
    try:
        learner = load_fitted(model)
    except (OSError, ValueError):
        if _is_fitted(data):
            raise ValueError(
                f"MODEL comes first: permdist predict {quote(str(data))} {quote(str(model))}"
            ) from None
        raise
    queries = reading.load(data, learner.n_features_in_)
    scores = learner.predict(queries)
    by_line = np.empty_like(scores)
    by_line[queries.rows] = scores
    if as_json:
        print_json({"learner": type(learner).__name__, "scores": by_line.tolist()})
    if output is None:
        if not as_json:
            lines = run_lines(queries, scores, run_name) if form == "trec" else score_lines(by_line)
            echo("".join(lines), nl=False)
        return
    if form == "trec":
        save_run(queries, scores, output, name=run_name)
    else:
        save_scores(by_line, output)
    if not as_json:
        echo(f"{len(scores):,} scores of {len(queries):,} queries: {output}", err=True)


def _is_fitted(file: Path) -> bool:
    """Check whether a file has a learner that was fitted."""
    try:
        load_fitted(file)
    except (OSError, ValueError):
        return False
    return True
