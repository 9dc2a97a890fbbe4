"""``permdist evaluate``: scores against labels, or a run against judgements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
)

if TYPE_CHECKING:
    from permdist.data import Queries
    from permdist.measures import Evaluation, Measure, RunOverlap

FORMATS = ("table", "trec")
KINDS = ("auto", "letor", "qrels")


def evaluate(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A TREC run, or one score per line in the order of a LETOR file."
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="QRELS", help="TREC judgements, or a LETOR/SVMlight file with labels."
        ),
    ],
    measures: Measures = None,
    preset: Preset = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Print the value of every query, too.")
    ] = False,
    output: Annotated[
        str, typer.Option("--format", help="How to print: table, or trec as trec_eval does.")
    ] = "table",
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties",
            help="Equal scores: index (in a run, by document id as trec_eval does), or average "
            "over all ways to break them.",
        ),
    ] = None,
    level: Annotated[
        int, typer.Option("--level", "-l", help="The grade from which on it is relevant.", min=1)
    ] = 1,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            "-c",
            help="Count judged queries that the run lacks, as if nothing had been retrieved. "
            "Always so with a LETOR file.",
        ),
    ] = False,
    judged_only: Annotated[
        bool, typer.Option("--judged-only", "-J", help="Take unjudged documents out of the run.")
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            "--precision", help="Scores of a run tie in single (as for trec_eval) or double."
        ),
    ] = "single",
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Another run: print the rank-biased overlap with it, too."),
    ] = None,
    persistence: Annotated[
        float, typer.Option("--persistence", help="The p of the rank-biased overlap.")
    ] = 0.9,
    labels: Annotated[
        str, typer.Option("--labels", help="What the second file is: auto, letor or qrels.")
    ] = "auto",
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN against QRELS, or scores on the documents of a LETOR file, query by query.

    Documents that were not retrieved earn nothing, unjudged ones are not relevant. Without
    --measure: the usual ones.
    """
    from permdist._check import choice
    from permdist.data import (
        Qrels,
        Run,
        file_kind,
        load_letor,
        load_qrels,
        load_run,
        load_scores,
    )
    from permdist.measures import DEFAULT, DEFAULT_RUN, OFFICIAL, compare_runs, evaluate_run
    from permdist.measures import evaluate as evaluate_scores

    choice("--format", output, FORMATS)
    choice("--labels", labels, KINDS)
    kind = labels if labels != "auto" else file_kind(data)
    usual = OFFICIAL if output == "trec" else DEFAULT_RUN if kind == "qrels" else DEFAULT
    chosen: list[Measure] = read_measures(measures, preset, usual)
    if ties is not None:
        chosen = [replace(measure, ties=ties) for measure in chosen]
    run: Run | None = None
    if kind == "qrels":
        qrels, run = load_qrels(data), load_run(scores, precision=precision)
    else:
        queries = load_letor(data, regroup=regroup, query_file=query_file, zero_based=zero_based)
        complete = True
        if file_kind(scores) == "run":
            qrels, run = Qrels.from_queries(queries), load_run(scores, precision=precision)
        else:
            values = load_scores(scores, n_documents=queries.n_documents)[queries.rows]
            if preset == "trec" and _have_ids(queries):  # trec_eval breaks ties by them
                qrels = Qrels.from_queries(queries)
                run = Run.from_queries(queries, values, precision=precision)
    result: Evaluation
    if run is not None:
        result = evaluate_run(
            run, qrels, chosen, level=level, complete=complete, judged_only=judged_only
        )
    else:
        for flag, given in (("--level", level > 1), ("--against", against is not None)):
            if given:
                raise ValueError(f"{flag}: expected a TREC run, got a file of scores")
        result = evaluate_scores(values, queries.y, queries.qid, chosen)
    overlap = None
    if against is not None and run is not None:
        overlap = compare_runs(run, load_run(against, precision=precision), p=persistence)
    if as_json:
        print_json(_facts(result, per_query, overlap))
    elif output == "trec":
        typer.echo("\n".join(_trec_lines(result, per_query)))
    else:
        _print_tables(result, per_query, overlap)


def _have_ids(queries: Queries) -> bool:
    """Tell whether every document of a collection has an id of its own in its query."""
    if queries.doc_ids is None:
        return False
    pairs = set(zip(queries.qid.tolist(), queries.doc_ids.tolist(), strict=True))
    return len(pairs) == queries.n_documents


def _facts(result: Evaluation, per_query: bool, overlap: RunOverlap | None) -> dict[str, Any]:
    """Collect what --json prints."""
    from permdist.measures import RunEvaluation

    facts: dict[str, Any] = {
        "mean": result.mean(),
        "standard_error": result.standard_error(),
        "n_queries": {name: result.n_queries(name) for name in result},
    }
    if isinstance(result, RunEvaluation):
        judged = result.judged
        facts["left_out"] = {
            "unjudged_retrieved": judged.n_unjudged,
            "relevant_not_retrieved": judged.n_left_out,
            "queries_not_in_run": len(judged.missing),
            "queries_without_judgements": len(judged.unknown),
            "queries_not_in_run_counted": result.complete,
        }
    if overlap is not None:
        facts["rbo"] = {**overlap.mean()._asdict(), "p": overlap.p, "queries": len(overlap.qids)}
    if per_query:
        facts["per_query"] = {
            str(qid): dict(zip(result, row, strict=True))
            for qid, row in zip(result.qids.tolist(), result.table.tolist(), strict=True)
        }
    return facts


def _print_tables(result: Evaluation, per_query: bool, overlap: RunOverlap | None) -> None:
    from permdist.measures import RunEvaluation

    if per_query:
        typer.echo(result.to_frame().to_string(float_format="{:.4f}".format))
        typer.echo("")
    typer.echo(str(result))
    if overlap is not None:
        typer.echo(f"\n{overlap}")
    notes = result.notes() if isinstance(result, RunEvaluation) else []
    if notes:
        typer.echo("\n" + "\n".join(f"{note}." for note in notes))


def _trec_lines(result: Evaluation, per_query: bool) -> list[str]:
    """Write results as trec_eval prints them: name, query, value."""
    from permdist.measures import Count, trec_name

    def line(measure: Measure, qid: str, value: float) -> str:
        shown = f"{value:.0f}" if isinstance(measure, Count) else f"{value:6.4f}"
        return f"{trec_name(measure):<22}\t{qid}\t{shown}"

    lines = []
    for qid, row in zip(result.qids.tolist() if per_query else [], result.table, strict=False):
        lines += [
            line(measure, str(qid), value)
            for measure, value in zip(result.measures, row.tolist(), strict=True)
            if measure.aliases[0] not in ("gmap", "gm_bpref", "num_q")
        ]
    return lines + [line(measure, "all", result.mean(measure)) for measure in result.measures]
