"""``permdist sample``: rankings drawn for one query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permdist.cli._shared import (
    AsJson,
    DataFile,
    Distribution,
    Feature,
    ModelFile,
    Noise,
    QueryFile,
    QueryId,
    Raw,
    Regroup,
    ScoresFile,
    Seed,
    ZeroBased,
    choose_query,
    heading,
    need_files,
    print_json,
)

if TYPE_CHECKING:
    from permdist._typing import AnyIntArray


def sample(
    data: DataFile,
    query: QueryId = None,
    scores: ScoresFile = None,
    feature: Feature = None,
    model: ModelFile = None,
    distribution: Distribution = "plackett-luce",
    noise: Noise = 1.0,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            "-n",
            help="Rankings to draw, of each chain; 10 by default, 1000 with --kernel.",
            min=1,
            max=10**9,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Draw by Markov chains: adjacent, transposition, relocation, flip, mixtures such "
            "as adjacent+relocation, or auto; the diagnosis is printed. By default draws are "
            "independent."
        ),
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option(help="How many chains, with --kernel; 4 by default.", min=1, max=10_000),
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
            help="Where to write; the terminal by default. Chains may go to a .nc file for arviz.",
        ),
    ] = None,
    raw: Raw = False,
    regroup: Regroup = False,
    query_file: QueryFile = None,
    zero_based: ZeroBased = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw rankings of one query's documents: one a line, from the best down."""
    from permdist._check import choice
    from permdist._files import write_atomically
    from permdist.diagnostics import save
    from permdist.inspection import KINDS, make_distribution
    from permdist.samplers import run_chains

    if kernel is None:
        for flag, value in (("--chains", chains), ("--thin", thin)):
            if value is not None:
                raise ValueError(f"{flag}: is for Markov chains; name a --kernel")
    netcdf = output is not None and output.suffix == ".nc"
    if netcdf and kernel is None:
        raise ValueError("--output: a .nc file is for chains; name a --kernel")
    if output is not None:
        need_files(output)
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
    choice("--distribution", distribution, KINDS)
    dist = make_distribution(distribution, one.scores, one.labels, noise=noise, names=one.names)
    what = heading(one, distribution, dist, noise)
    if kernel is None:
        orders: AnyIntArray = dist.sample(draws or 10, seed)
    else:
        run = run_chains(
            dist, draws or 1000, kernel=kernel, chains=chains or 4, thin=thin, rng=seed
        )
        what = f"{what}\n\n{run.summary()}"
        orders = run.orders.reshape(-1, dist.n_items)
    typer.echo(what, err=True)
    # An id without blanks stays one word: the label behind it is left out here.
    words = [name.rsplit(" (", 1)[0].replace(" ", "_") for name in one.names]
    lines = [" ".join(words[item] for item in order) + "\n" for order in orders.tolist()]
    if output is not None:
        if netcdf:
            save(run, output)
        else:
            write_atomically(output, (line.encode() for line in lines))
        typer.echo(f"{len(lines):,} rankings of query {one.qid}: {output}", err=True)
    if as_json:
        facts = {"query": str(one.qid), "scored_by": one.scored_by, "documents": words}
        print_json({**facts, "orders": orders.tolist()})
    elif output is None:
        typer.echo("".join(lines), nl=False)
