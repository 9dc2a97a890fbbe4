"""``permdist predict``: scores of documents, as LETOR's tools or TREC's want them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._shared import (
    AsJson,
    DataFile,
    QueryFile,
    Regroup,
    ZeroBased,
    load_fitted,
    need_files,
    print_json,
)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A learner that 'permdist fit' wrote.")
    ],
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write; the terminal by default."),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", help="letor: one score per line; trec: a run for trec_eval."),
    ] = "letor",
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name of a TREC run, without blanks; permdist by default."),
    ] = None,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Score the documents of DATA by MODEL."""
    import numpy as np

    from permdist._check import choice
    from permdist.data import load_letor, save_run, save_scores
    from permdist.data.runs import run_lines, score_lines

    choice("--format", form, ("letor", "trec"))
    if name is not None and form != "trec":
        raise ValueError("--name: is for TREC runs; say --format trec")
    if output is not None:
        need_files(output)
    run_name = "permdist" if name is None else name
    learner = load_fitted(model)
    queries = load_letor(
        data,
        n_features=learner.n_features_in_,
        regroup=regroup,
        query_file=query_file,
        zero_based=zero_based,
    )
    scores = learner.predict(queries)
    by_line = np.empty_like(scores)
    by_line[queries.rows] = scores
    if as_json:
        facts = {"learner": type(learner).__name__, "scores": by_line.tolist()}
        print_json(facts)
    if output is None:
        if not as_json:
            lines = run_lines(queries, scores, run_name) if form == "trec" else score_lines(by_line)
            typer.echo("".join(lines), nl=False)
        return
    if form == "trec":
        save_run(queries, scores, output, name=run_name)
    else:
        save_scores(by_line, output)
    if not as_json:
        typer.echo(f"{len(scores):,} scores of {len(queries):,} queries: {output}", err=True)
