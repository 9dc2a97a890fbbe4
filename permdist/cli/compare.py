"""``permdist compare``: learners on folds, with a report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permdist.cli._shared import (
    AsJson,
    Jobs,
    Measures,
    Preset,
    QueryFile,
    Regroup,
    Seed,
    ZeroBased,
    command_line,
    kept,
    need_files,
    need_folder,
    no_litter,
    print_json,
    read_measures,
    terminal_width,
    waiting,
)

if TYPE_CHECKING:
    from permdist.comparison import Comparison
    from permdist.data import Fold


def compare(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A folder with LETOR folds (Fold1/train.txt, ...; or S1.txt to S5.txt), or one "
            "LETOR file to split into folds.",
        ),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            "-M",
            help="Names of learners with commas between them, each with settings if need be: "
            "'MLE,SVMMap[C=0.1|1|10]'; 'all' by default. 'permdist fit --help' lists them.",
        ),
    ] = None,
    measures: Measures = None,
    preset: Preset = None,
    select: Annotated[
        str | None,
        typer.Option(help="The measure to choose settings by on validation; default: the first."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The learner to test the others against; default: the best.")
    ] = None,
    correction: Annotated[
        str, typer.Option(help="For many comparisons: holm, bonferroni, bh or none.")
    ] = "holm",
    folds: Annotated[
        int, typer.Option(help="How many folds to split a single file into.", min=3, max=10_000)
    ] = 5,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for finished fits, tables and the report. Run the same command again "
            "to go on where it was left.",
        ),
    ] = Path("permdist-compare"),
    jobs: Jobs = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(help="The address of a dask scheduler whose workers make the fits."),
    ] = None,
    identities: Annotated[
        int,
        typer.Option(help="Instances of each identity to check in the report.", min=0, max=10**6),
    ] = 5,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare learners on folds: settings chosen on validation, differences put to the test.

    Every fit is kept in the output folder as soon as it is finished. Without --measure: letor4:map
    and letor4:ndcg@10, by the rules of LETOR 4.0, with which published figures compare.
    """
    from permdist._files import write_atomically
    from permdist.comparison import compare, read_entries
    from permdist.comparison.page import comparison_report
    from permdist.comparison.run import DEFAULT
    from permdist.comparison.wording import title

    entries = read_entries(models or "all")
    chosen = read_measures(measures, preset, DEFAULT)
    by = None
    if select is not None:
        several = read_measures([select], preset, (), "--select")
        if len(several) != 1:
            raise ValueError(f"--select: expected one measure, got {select!r}")
        by = several[0]
    if jobs == 0:
        raise ValueError("--jobs: expected a number of processes or -1, got 0")
    parts = _folds(data, folds, seed, query_file, regroup=regroup, zero_based=zero_based)
    need_folder(output, "the comparison")
    tables = {measure: output / f"{_file_name(title(measure))}.csv" for measure in chosen}
    need_files(output / "report.html", output / "tables.tex", *tables.values())
    with _backend(scheduler), kept(f"finished fits are kept in {output}, the same command goes on"):
        found = compare(
            parts,
            entries,
            measures=chosen,
            select=by,
            baseline=baseline,
            correction=correction,
            directory=output,
            seed=seed,
            n_jobs=None if scheduler else jobs,
            progress=not as_json,
        )
    try:
        with waiting("Writing the report"), no_litter():
            for measure, file in tables.items():
                write_atomically(file, [found.to_frame(measure).to_csv().encode()])
            write_atomically(output / "tables.tex", [f"{found.to_latex()}\n".encode()])
            report = comparison_report(
                found, folds=parts, identities=identities, command=command_line()
            )
            report.save(output / "report.html")
    finally:  # a full disk should not hide what was found
        _show(found, as_json)
    if not as_json:
        where = output / "report.html"
        typer.echo(f"\nThe report: {where}, with tables as .csv and .tex beside it")


def _show(found: Comparison, as_json: bool) -> None:
    from permdist._text import wrapped

    if as_json:
        print_json(found.to_dict())
        return
    width = terminal_width()
    typer.echo(found.to_text(width))
    for note in found.notes:
        typer.echo(wrapped(f"note: {note}", width))


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def _folds(
    data: Path,
    number: int,
    seed: int,
    query_file: Path | None,
    *,
    regroup: bool,
    zero_based: bool,
) -> list[Fold]:
    from permdist.comparison.parts import check_folds
    from permdist.data import load_letor, load_letor_folds, make_folds

    if data.is_dir():
        if query_file is not None:
            raise ValueError("--query-file: is for a single file; folds have theirs beside them")
        return load_letor_folds(data, regroup=regroup, zero_based=zero_based)
    queries = load_letor(data, regroup=regroup, query_file=query_file, zero_based=zero_based)
    folds = make_folds(queries, number, rng=seed)
    try:
        check_folds(folds)
    except ValueError as error:
        raise ValueError(f"{error} (with --folds {number})") from error
    return folds


@contextlib.contextmanager
def _backend(scheduler: str | None) -> Iterator[None]:
    """Hand the fits to dask where an address is given."""
    from joblib import parallel_config

    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "--scheduler: needs dask's scheduler; pip install 'permdist[dask]'"
        ) from None
    try:
        client = Client(scheduler, timeout="5s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler: nobody answers at {scheduler} ({error})") from error
    with client, parallel_config("dask"):
        yield
