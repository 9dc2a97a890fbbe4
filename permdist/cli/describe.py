"""``permdist describe``: the contents of a file."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permdist.cli._battles import Columns
from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, Reading, print_json

if TYPE_CHECKING:
    from permdist.data import Preferences


def describe(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A LETOR/SVMlight file or a store, a PrefLib file (.soc .soi .toc .toi), or a "
            "table of battles (.csv, .tsv, .json, .jsonl).",
        ),
    ],
    reading: Reading,
    columns: Columns,
    as_json: AsJson = False,
) -> None:
    """Describe a LETOR or PrefLib file, a store, or a table of battles (plain, .gz or .bz2)."""
    from permdist.data import is_store
    from permdist.data.battle_files import is_table
    from permdist.data.preflib import FILE_TYPES

    folder = is_store(file)
    if is_table(file) and not folder:
        found = columns.load(file).describe()
        if as_json:
            print_json(found.to_dict())
        else:
            echo(str(found))
        return
    if any(suffix[1:] in FILE_TYPES for suffix in file.suffixes) and not folder:
        from permdist.data import load_preflib

        votes = load_preflib(file)
        fault = _fault(votes)
        if as_json:
            facts = {
                "title": votes.title,
                "kind": votes.kind,
                "n_items": votes.n_items,
                "n_voters": votes.n_voters,
                "n_different": len(votes.ballots),
                "names": votes.names,
                "comparable": not fault,
                "reason": fault or None,
            }
            print_json(facts)
        else:
            echo(votes.describe())
            echo(f"{'estimate of worths':<26}{f'none: {fault}' if fault else 'exists'}")
        return
    description = reading.load(file).describe()
    if as_json:
        print_json(dataclasses.asdict(description))
    else:
        echo(str(description))


def _fault(votes: "Preferences") -> str:
    """Return why the alternatives cannot be rated without a prior; empty if they can."""
    from permdist.ballots import Ballots
    from permdist.inference.fit import NoEstimateError, check_connected

    try:
        check_connected(Ballots.of(votes))
    except NoEstimateError as error:
        return str(error).partition(", ")[2].partition(";")[0]
    return ""
