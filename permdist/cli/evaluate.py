"""``permdist evaluate``: scores against labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._shared import (
    AsJson,
    Measures,
    Preset,
    QueryFile,
    Regroup,
    ZeroBased,
    print_json,
    read_measures,
    read_scores,
)


def evaluate(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES", help="One score a line, in the order of DATA, or a TREC run."
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="The LETOR/SVMlight file with labels and queries."),
    ],
    measures: Measures = None,
    preset: Preset = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Print the value of every query, too.")
    ] = False,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate SCORES on the documents of DATA, query by query.

    Without --measure: map and ndcg@10.
    """
    from permdist.data import load_letor
    from permdist.measures import DEFAULT
    from permdist.measures import evaluate as evaluate_scores

    chosen = read_measures(measures, preset, DEFAULT)
    queries = load_letor(data, regroup=regroup, query_file=query_file, zero_based=zero_based)
    result = evaluate_scores(read_scores(scores, queries), queries.y, queries.qid, chosen)
    if as_json:
        facts = {
            "mean": result.mean(),
            "standard_error": result.standard_error(),
            "n_queries": {name: result.n_queries(name) for name in result},
        }
        if per_query:
            facts["per_query"] = {
                str(qid): dict(zip(result, row, strict=True))
                for qid, row in zip(result.qids.tolist(), result.table.tolist(), strict=True)
            }
        print_json(facts)
        return
    if per_query:
        typer.echo(result.to_frame().to_string(float_format="{:.4f}".format))
        typer.echo("")
    typer.echo(str(result))
