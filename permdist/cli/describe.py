"""``permdist describe``: what is in a file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from permdist.data.preflib import KINDS


def describe(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A LETOR/SVMlight file, or a PrefLib file (.soc .soi .toc .toi)."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    regroup: Annotated[
        bool, typer.Option(help="Gather queries whose lines do not stand together.")
    ] = False,
) -> None:
    """Tell what is in a LETOR or PrefLib file (plain, .gz or .bz2)."""
    if any(suffix[1:] in KINDS for suffix in file.suffixes):
        from permdist.data import load_preflib

        votes = load_preflib(file)
        if as_json:
            facts = {
                "title": votes.title,
                "kind": votes.kind,
                "n_items": votes.n_items,
                "n_voters": votes.n_voters,
                "n_different": len(votes.ballots),
                "names": votes.names,
            }
            typer.echo(json.dumps(facts, indent=2))
        else:
            typer.echo(votes.describe())
        return
    from permdist.data import load_letor

    description = load_letor(file, regroup=regroup).describe()
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(description), indent=2))
    else:
        typer.echo(str(description))
