"""``permdist convert``: files of documents to a store, which opens at once."""

from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, kept, print_json


def convert(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="LETOR/SVMlight files (plain, .gz or .bz2), or tables (.parquet, .arrow, "
            ".feather, .csv, .tsv), in the order wanted.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder of the store to make.")],
    dtype: Annotated[
        str, typer.Option("--dtype", help="The type of the features: float32 or float64.")
    ] = "float32",
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            help="The number of features of text files that may lack the last ones.",
            min=1,
        ),
    ] = None,
    null: Annotated[
        str,
        typer.Option(
            "--null",
            help="What becomes of values written NULL, or missing in a table: min (the lowest in "
            "the query), zero, error, or missing.",
        ),
    ] = "min",
    zero_based: Annotated[
        bool,
        typer.Option("--zero-based", help="Features are numbered from 0 in the files, not from 1."),
    ] = False,
    query_file: Annotated[
        Path | None,
        typer.Option(
            "--query-file",
            help="If a text file has no query ids: a file with the number of documents per query.",
        ),
    ] = None,
    qid: Annotated[
        str | None, typer.Option("--qid", help="The column of a table with the query ids.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column of a table with the labels.")
    ] = None,
    doc_id: Annotated[
        str | None, typer.Option("--doc-id", help="The column of a table with document ids.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store that is there already.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Number of threads; -1 uses one per core.", min=-1024, max=1024
        ),
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """Convert files to a store: a folder that other commands take as DATA and open at once.

    A conversion that was interrupted goes on where it was when the same command is run again.
    """
    from permdist.data import write_store
    from permdist.data.store import read_header

    if jobs == 0:
        raise ValueError("--jobs: expected a number of threads or -1, got 0")
    with kept("run the same command again to continue"):
        try:
            queries = write_store(
                sources,
                output,
                dtype=dtype,
                n_features=features,
                null=null,
                zero_based=zero_based,
                query_file=query_file,
                qid=qid,
                label=label,
                doc_id=doc_id,
                overwrite=overwrite,
                n_jobs=jobs,
                progress=not as_json,
            )
        except ImportError as error:
            raise ValueError(str(error)) from error
    if as_json:
        header = read_header(output)
        names = ("n_queries", "n_documents", "n_features", "has_missing", "version")
        facts = {name: header[name] for name in names}
        print_json({"store": str(output), "dtype": dtype, **facts})
    else:
        echo(f"{queries!r}: {output}")
