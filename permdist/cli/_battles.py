"""Options for tables of battles, which several commands read."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from permdist.data import Battles


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of a table of battles to use; the usual names are found without options."""

    first: Annotated[
        str | None, typer.Option("--first", help="The column with the first competitor.")
    ] = None
    second: Annotated[
        str | None, typer.Option("--second", help="The column with the second competitor.")
    ] = None
    winner: Annotated[
        str | None, typer.Option("--winner", help="The column that says who won.")
    ] = None
    loser: Annotated[
        str | None,
        typer.Option("--loser", help="The column with the loser, if the winner's has names."),
    ] = None
    ties: Annotated[
        str | None,
        typer.Option("--ties", help="A column that is true for ties, beside winner and loser."),
    ] = None
    weight: Annotated[
        str | None, typer.Option("--weight", help="A column that says how often a row counts.")
    ] = None
    missing: Annotated[
        str,
        typer.Option(
            "--missing", help="What becomes of rows without a competitor or winner: error or drop."
        ),
    ] = "error"
    invalid: Annotated[
        str,
        typer.Option(
            "--invalid",
            help="What becomes of rows with one competitor on both sides, a winner that cannot be "
            "read, or too many fields: error or drop.",
        ),
    ] = "error"

    def load(self, file: Path, **others: object) -> "Battles":
        """Read a file."""
        from permdist.data import load_battles

        return load_battles(file, **dataclasses.asdict(self), **others)  # type: ignore[arg-type]
