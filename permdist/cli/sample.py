"""``permdist sample``: rankings drawn for one query."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import (
    AsJson,
    DataFile,
    QueryChoice,
    Reading,
    Seed,
    need_files,
    print_json,
)

if TYPE_CHECKING:
    from permdist._typing import AnyIntArray


def sample(
    data: DataFile,
    asked: QueryChoice,
    reading: Reading,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            "-n",
            help="Number of rankings to draw, per chain; 10 by default, 1000 with --kernel.",
            min=1,
            max=10**9,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Draw by Markov chains with this kernel, such as adjacent, relocation, a mixture "
            "such as adjacent+relocation, or auto, and print convergence diagnostics. By default "
            "draws are independent."
        ),
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option(help="Number of chains, with --kernel; 4 by default.", min=1, max=10_000),
    ] = None,
    thin: Annotated[
        int | None,
        typer.Option(help="Steps from one draw to the next, with --kernel.", min=1, max=10**9),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file; by default the terminal. A .nc file stores chains for arviz.",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw rankings of the documents of one query: one per line, best document first."""
    from permdist._files import write_atomically
    from permdist._text import visible
    from permdist.diagnostics import save
    from permdist.report.inspection import make_distribution
    from permdist.samplers import run_chains

    asked.check()
    for flag, value in (("--chains", chains), ("--thin", thin)):
        if kernel is None and value is not None:
            raise ValueError(f"{flag}: only for Markov chains; add --kernel")
    netcdf = output is not None and output.suffix == ".nc"
    if netcdf and kernel is None:
        raise ValueError("--output: a .nc file is only for Markov chains; add --kernel")
    need_files(output)
    one = asked.load(data, reading)
    dist = make_distribution(
        asked.distribution,
        one.scores,
        one.labels,
        noise=asked.noise,
        names=one.names,
        raw=asked.raw,
    )
    what = asked.describe(one, dist)
    if kernel is None:
        orders: AnyIntArray = dist.sample(draws or 10, seed)
    else:
        run = run_chains(
            dist, draws or 1000, kernel=kernel, chains=chains or 4, thin=thin, rng=seed
        )
        what = f"{what}\n\n{run.summary()}"
        orders = run.orders.reshape(-1, dist.n_items)
    echo(what, err=True)
    # Without the label, and with underscores for blanks, each name is one word.
    words = [visible(name.rsplit(" (", 1)[0], "").replace(" ", "_") for name in one.names]
    lines = [" ".join(words[item] for item in order) + "\n" for order in orders.tolist()]
    if output is not None:
        if netcdf:
            save(run, output)
        else:
            write_atomically(output, (line.encode() for line in lines))
        echo(f"{len(lines):,} rankings of query {one.qid}: {output}", err=True)
    if as_json:
        facts = {"query": str(one.qid), "scored_by": one.scored_by, "documents": words}
        print_json({**facts, "orders": orders.tolist()})
    elif output is None:
        echo("".join(lines), nl=False)
