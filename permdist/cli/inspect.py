"""``permdist inspect``: the ranking distribution of one query."""

from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import (
    AsJson,
    DataFile,
    Measures,
    Preset,
    QueryChoice,
    Reading,
    Seed,
    command_line,
    need_files,
    print_json,
    read_measures,
    terminal_width,
)


def inspect(
    data: DataFile,
    asked: QueryChoice,
    reading: Reading,
    measures: Measures = None,
    preset: Preset = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a report with pictures to this .html file."),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show the distribution of rankings of one query, and its expected measures.

    Prints rank marginals, pairwise probabilities, expected measures, and the effect of the noise
    scale. Default measures: ndcg, ndcg@10, ap, rr and auc.
    """
    from permdist._text import wrapped
    from permdist.report import Report
    from permdist.report.inspection import MEASURES, inspect_query
    from permdist.report.query import inspection_section

    asked.check()
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output: expected an .html file, got {output}")
    need_files(output)
    chosen = read_measures(measures, preset, MEASURES)
    one = asked.load(data, reading)
    found = inspect_query(
        one.scores,
        one.labels,
        kind=asked.distribution,
        noise=asked.noise,
        measures=chosen,
        names=one.names,
        raw=asked.raw,
        rng=seed,
    )
    what = asked.describe(one, found.dist)
    if output is not None:
        relevant = int((one.labels > 0).sum())
        report = Report(
            f"Query {one.qid}",
            f"{len(one.labels)} documents, {relevant} of them relevant; {what.partition(', ')[2]}",
        )
        text = "Labels are in parentheses. Values without a standard error are exact."
        inspection_section(report, found, "Distribution of the ranks", text)
        report.provenance({"command": command_line(), "seed": str(seed)})
        report.save(output)
    if as_json:
        print_json({"query": str(one.qid), "scored_by": one.scored_by, **found.to_dict()})
        return
    echo(f"{wrapped(what, terminal_width())}\n\n{found}")
    if output is not None:
        echo(f"\nReport: {output}")
