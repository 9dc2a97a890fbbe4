"""``permdist evaluate``: scores against labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    scores: Annotated[
        Path, typer.Argument(metavar="SCORES", help="One score a line, in the order of FILE.")
    ],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The LETOR/SVMlight file with labels and queries."),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="A measure, such as map, ndcg@10, p@5, mrr, err@10 or 'ndcg@10[gain=linear]'; "
            "may be given several times. Default: map and ndcg@10.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Use the conventions of a tool: letor3, letor4, trec or burges."),
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Print the value of every query, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Evaluate SCORES on the documents of FILE, query by query."""
    from permdist import measures
    from permdist.data import load_letor, load_scores

    names = measure or list(measures.DEFAULT)
    chosen = [measures.parse(name if preset is None else f"{preset}:{name}") for name in names]
    queries = load_letor(file)
    values = load_scores(scores, n_documents=queries.n_documents)
    result = measures.evaluate(values, queries.y, queries.qid, chosen)
    if as_json:
        facts = {
            "mean": _without_nan(result.mean()),
            "standard_error": _without_nan(result.standard_error()),
            "n_queries": {name: result.n_queries(name) for name in result},
        }
        if per_query:
            facts["per_query"] = {
                str(qid): _without_nan(dict(zip(result, row, strict=True)))
                for qid, row in zip(result.qids.tolist(), result.table.tolist(), strict=True)
            }
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
        return
    if per_query:
        typer.echo(result.to_frame().to_string(float_format="{:.4f}".format))
        typer.echo("")
    typer.echo(str(result))


def _without_nan(values: dict[str, float]) -> dict[str, float | None]:
    """Replace NaN, which JSON does not have."""
    return {name: None if value != value else value for name, value in values.items()}
