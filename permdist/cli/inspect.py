"""``permdist inspect``: one query's ranking distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._shared import (
    AsJson,
    DataFile,
    Distribution,
    Feature,
    Measures,
    ModelFile,
    Noise,
    Preset,
    QueryFile,
    QueryId,
    Raw,
    Regroup,
    ScoresFile,
    Seed,
    ZeroBased,
    choose_query,
    command_line,
    heading,
    need_files,
    print_json,
    read_measures,
    terminal_width,
)


def inspect(
    data: DataFile,
    query: QueryId = None,
    scores: ScoresFile = None,
    feature: Feature = None,
    model: ModelFile = None,
    distribution: Distribution = "plackett-luce",
    noise: Noise = 1.0,
    measures: Measures = None,
    preset: Preset = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a report with pictures, one .html file."),
    ] = None,
    raw: Raw = False,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show where the documents of one query may stand, and what that is worth.

    Rank marginals, pairwise chances, expected measures, and the effect of the noise scale. Without
    --measure: ndcg, ndcg@10, ap, rr and auc.
    """
    from permdist._check import choice
    from permdist._text import wrapped
    from permdist.inspection import KINDS, MEASURES, inspect_query
    from permdist.report import Report
    from permdist.report.sections import inspection_section

    choice("--distribution", distribution, KINDS)
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output: expected an .html file, got {output}")
    if output is not None:
        need_files(output)
    chosen = read_measures(measures, preset, MEASURES)
    one = choose_query(
        data,
        query=query,
        scores=scores,
        feature=feature,
        model=model,
        raw=raw,
        regroup=regroup,
        query_file=query_file,
        zero_based=zero_based,
    )
    found = inspect_query(
        one.scores,
        one.labels,
        kind=distribution,
        noise=noise,
        measures=chosen,
        names=one.names,
        rng=seed,
    )
    what = heading(one, distribution, found.dist, noise)
    if output is not None:
        relevant = int((one.labels > 0).sum())
        report = Report(
            f"Query {one.qid}",
            f"{len(one.labels)} documents, {relevant} of them relevant; {what.partition(', ')[2]}",
        )
        text = "Labels are in brackets. Values without a standard error are exact."
        inspection_section(report, found, "Where the documents stand", text)
        report.provenance({"command": command_line(), "seed": str(seed)})
        report.save(output)
    if as_json:
        print_json({"query": str(one.qid), "scored_by": one.scored_by, **found.to_dict()})
        return
    typer.echo(f"{wrapped(what, terminal_width())}\n\n{found}")
    if output is not None:
        typer.echo(f"\nThe report: {output}")
