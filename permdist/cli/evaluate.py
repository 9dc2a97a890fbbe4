"""``permdist evaluate``: scores against labels, or a run against relevance judgements."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import (
    AsJson,
    Measures,
    Preset,
    Reading,
    print_json,
    read_measures,
)

if TYPE_CHECKING:
    from permdist.data import Queries
    from permdist.measures import Evaluation, Measure, RunOverlap

FORMATS = ("table", "trec")
LABELS = ("auto", "letor", "qrels")


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
            metavar="QRELS",
            help="TREC relevance judgements, or a LETOR/SVMlight file or a store with labels.",
        ),
    ],
    reading: Reading,
    measures: Measures = None,
    preset: Preset = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Also print the value of every query.")
    ] = False,
    output: Annotated[
        str, typer.Option("--format", help="The output format: table, or trec as in trec_eval.")
    ] = "table",
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties",
            help="How to break ties: index (in a run, by document id as in trec_eval), or average "
            "over all ways to break them.",
        ),
    ] = None,
    level: Annotated[
        int, typer.Option("--level", "-l", help="The lowest label that counts as relevant.", min=1)
    ] = 1,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            "-c",
            help="Include judged queries that are missing from the run, as if nothing had been "
            "retrieved. Always done with a LETOR file.",
        ),
    ] = False,
    judged_only: Annotated[
        bool, typer.Option("--judged-only", "-J", help="Remove unjudged documents from the run.")
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            "--precision", help="Precision of a run's scores: single (as in trec_eval) or double."
        ),
    ] = "single",
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Another run: also print the rank-biased overlap with it."),
    ] = None,
    persistence: Annotated[
        float, typer.Option("--persistence", help="The parameter p of the rank-biased overlap.")
    ] = 0.9,
    labels: Annotated[
        str, typer.Option("--labels", help="The format of the second file: auto, letor or qrels.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN against QRELS, or scores of the documents of a LETOR file.

    Documents that were not retrieved contribute nothing; unjudged documents count as irrelevant.
    """
    from permdist._check import choice
    from permdist.data import Qrels, Run, file_kind, is_store, load_qrels, load_run, load_scores
    from permdist.measures import DEFAULT, DEFAULT_RUN, OFFICIAL, compare_runs, evaluate_run
    from permdist.measures import evaluate as evaluate_scores

    choice("--format", output, FORMATS)
    choice("--labels", labels, LABELS)
    kind = labels
    if labels == "auto":
        kind = "letor" if is_store(data) else file_kind(data)
    usual = OFFICIAL if output == "trec" else DEFAULT_RUN if kind == "qrels" else DEFAULT
    chosen: list[Measure] = read_measures(measures, preset, usual)
    if ties is not None:
        chosen = [replace(measure, ties=ties) for measure in chosen]
    run: Run | None = None
    if kind == "qrels":
        qrels, run = load_qrels(data), load_run(scores, precision=precision)
    else:
        queries = reading.load(data)
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
        echo("\n".join(_trec_lines(result, per_query)))
    else:
        _print_tables(result, per_query, overlap)


def _have_ids(queries: "Queries") -> bool:
    """Check whether every document has an id that is unique in its query."""
    if queries.doc_ids is None:
        return False
    pairs = set(zip(queries.qid.tolist(), queries.doc_ids.tolist(), strict=True))
    return len(pairs) == queries.n_documents


def _facts(result: "Evaluation", per_query: bool, overlap: "RunOverlap | None") -> dict[str, Any]:
    """Return what --json prints."""
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


def _print_tables(result: "Evaluation", per_query: bool, overlap: "RunOverlap | None") -> None:
    from permdist.measures import RunEvaluation

    if per_query:
        echo(result.to_frame().to_string(float_format="{:.4f}".format))
        echo("")
    echo(str(result))
    if overlap is not None:
        echo(f"\n{overlap}")
    notes = result.notes() if isinstance(result, RunEvaluation) else []
    if notes:
        echo("\n" + "\n".join(f"{note}." for note in notes))


def _trec_lines(result: "Evaluation", per_query: bool) -> list[str]:
    """Return results as trec_eval prints them: name, query, value."""
    from permdist.measures import Count, trec_name

    def line(measure: "Measure", qid: str, value: float) -> str:
        shown = f"{value:.0f}" if isinstance(measure, Count) else f"{value:6.4f}"
        return f"{trec_name(measure):<22}\t{qid}\t{shown}"

    lines = []
    for qid, row in zip(result.qids.tolist() if per_query else [], result.table, strict=False):
        lines += [
            line(measure, str(qid), value)
            for measure, value in zip(result.measures, row.tolist(), strict=True)
            if trec_name(measure) not in ("gm_map", "gm_bpref", "num_q")
        ]
    return lines + [line(measure, "all", result.mean(measure)) for measure in result.measures]
