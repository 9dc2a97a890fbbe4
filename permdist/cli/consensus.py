"""``permdist consensus``: one ranking that represents many ballots."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._battles import in_options
from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, Seed, command_line, need_files, print_json, without_nan

if TYPE_CHECKING:
    from permdist.consensus import Consensus

PICTURES = (".png", ".svg", ".pdf")
SUFFIXES = (".html", ".htm", ".csv", ".json", *PICTURES)


def consensus(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="BALLOTS",
            help="A PrefLib file (.soc .soi .toc .toi), or a table (.csv, .tsv) with a row per "
            "ballot: its items, the best first, in columns such as rank1, rank2, ...",
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="kemeny, borda, copeland, footrule, spearman, ranked-pairs or schulze.",
        ),
    ] = "kemeny",
    ranks: Annotated[
        bool,
        typer.Option("--ranks", help="The table has a column per item, with its ranks."),
    ] = False,
    unranked: Annotated[
        float | None,
        typer.Option(
            "--unranked",
            help='A rank that stands for "not ranked", such as 0; nan if 0 is the best rank.',
        ),
    ] = None,
    voter: Annotated[
        str | None,
        typer.Option(
            "--voter",
            help="A column of the table that says who cast a ballot; draws are of voters.",
        ),
    ] = None,
    subset: Annotated[
        bool | None,
        typer.Option(
            "--subset/--below",
            help="Items that a ballot leaves out were not there, or are below the others (the "
            "default for PrefLib files).",
        ),
    ] = None,
    without: Annotated[
        str | None, typer.Option("--without", help="A comma-separated list of items to leave out.")
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            "--bootstrap",
            help="Number of bootstrap replicates that tell how firm each pair of neighbors is; 0 "
            "for none.",
            min=0,
            max=10**7,
        ),
    ] = 200,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            help="Seconds for Kemeny's method, after which the best ranking so far is shown.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write a report (.html), the table (.csv, .json) or the picture (.png, .svg, "
            ".pdf).",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Find one ranking that represents many, and how firm it is.

    Kemeny's ranking has the fewest disagreements with the ballots, which is proved. The table shows
    the share of the ballots that put an item above the next one, their margin, and the share of
    bootstrap replicates in which the two keep their order.
    """
    from permdist.consensus import consensus as find

    if output is not None and output.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--output: expected a file {', '.join(SUFFIXES)}, got {output}")
    need_files(output)
    ballots = _ballots(data, without, subset, ranks=ranks, unranked=unranked, voter=voter)
    found = find(ballots, method, time_limit=time_limit, progress=not as_json)
    if bootstrap:
        found = found.bootstrap(bootstrap, rng=seed, progress=not as_json)
    if output is not None:
        _write(output, data, found, seed)
    if as_json:
        print_json(found.to_dict())
        return
    echo(f"{found}")
    if output is not None:
        echo(f"\nWritten: {output}")


def _ballots(
    data: Path,
    without: str | None,
    subset: bool | None,
    *,
    ranks: bool,
    unranked: float | None,
    voter: str | None,
) -> Any:
    """Read ballots from a file of either kind."""
    from permdist._registry import split_list
    from permdist.ballots import Ballots
    from permdist.data import load_orders, load_preflib
    from permdist.data.preflib import FILE_TYPES

    if any(suffix[1:] in FILE_TYPES for suffix in data.suffixes):
        for name, given in (("ranks", ranks or None), ("unranked", unranked), ("voter", voter)):
            if given is not None:
                raise ValueError(f"--{name}: only for tables")
        ballots = Ballots.of(load_preflib(data), subset=subset)
    else:
        try:
            with in_options(("unranked", "voter")):
                ballots = load_orders(
                    data,
                    kind="ranks" if ranks else "orders",
                    subset=subset,
                    unranked=unranked,
                    voter=voter,
                )
        except ValueError as error:
            if "subset=True" not in str(error):
                raise
            raise ValueError(
                f"{data}: some ballots leave items out: pass --subset if these were not there, "
                "--below if they are below the others"
            ) from None
    gone = split_list(without or "", "--without")
    return ballots.without(gone) if gone else ballots


def _write(output: Path, data: Path, found: "Consensus", seed: int) -> None:
    """Write a report, a table or a picture, by the suffix of the file."""
    import io

    from permdist import plots
    from permdist._files import write_atomically
    from permdist._text import csv_text
    from permdist.report.consensus import consensus_report

    suffix = output.suffix.lower()
    if suffix in (".html", ".htm"):
        facts = {"data": str(data), "command": command_line(), "seed": str(seed)}
        consensus_report(found, title=f"Consensus of {data.name}", facts=facts).save(output)
        return
    if suffix in PICTURES:
        buffer = io.BytesIO()
        plots.plot_consensus(found).savefig(buffer, format=suffix[1:], dpi=150)
        content = buffer.getvalue()
    elif suffix == ".json":
        content = (json.dumps(without_nan(found.to_dict()), indent=2) + "\n").encode()
    else:
        content = csv_text(found.to_frame()).encode()
    write_atomically(output, [content])
