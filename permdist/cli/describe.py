"""``permdist describe``: the contents of a file."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from permdist.cli._shared import AsJson, Reading, print_json
from permdist.data.preflib import FILE_TYPES


def describe(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A LETOR/SVMlight file, or a PrefLib file (.soc .soi .toc .toi)."
        ),
    ],
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Describe the contents of a LETOR or PrefLib file (plain, .gz or .bz2)."""
    if any(suffix[1:] in FILE_TYPES for suffix in file.suffixes):
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
            print_json(facts)
        else:
            typer.echo(votes.describe())
        return
    description = reading.load(file).describe()
    if as_json:
        print_json(dataclasses.asdict(description))
    else:
        typer.echo(str(description))
