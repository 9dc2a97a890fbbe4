"""Options for tables of battles, which several commands read."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from permdist._registry import split_list

if TYPE_CHECKING:
    from permdist.data import Battles

OTHERS = ("by", "covariates", "cluster", "time")


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

    spellings: Annotated[
        str | None,
        typer.Option(
            "--spellings",
            help="What the winners are: names, sides, or spellings such as 0=tie,1=first,2=second.",
        ),
    ] = None

    def refuse(self) -> None:
        """Refuse all of these options, where the file is not a table of battles."""
        for one in dataclasses.fields(self):
            if getattr(self, one.name) != one.default:
                raise ValueError(f"--{one.name}: only for tables of battles")

    def load(self, file: Path, **others: object) -> "Battles":
        """Read a file."""
        from permdist.data import load_battles

        own = dataclasses.asdict(self)
        if self.spellings is not None and "=" in self.spellings:
            parts = split_list(self.spellings, "--spellings")
            own["spellings"] = {
                word: meaning for word, _, meaning in (p.rpartition("=") for p in parts)
            }
        with in_options([*own, *OTHERS]):
            return load_battles(file, **own, **others)  # type: ignore[arg-type]


@contextlib.contextmanager
def in_options(names: Sequence[str]) -> Iterator[None]:
    """Name arguments in the message of an error as the command line has them.

    Parameters
    ----------
    names : sequence of str
        The arguments that are options of the same name.
    """
    try:
        yield
    except ValueError as error:
        error.args = (as_options(str(error), names), *error.args[1:])
        raise


def as_options(text: str, names: Sequence[str]) -> str:
    """Return a message with arguments written as options.

    Examples
    --------
    >>> as_options("half_life: expected days; missing='drop' helps", ["half_life", "missing"])
    '--half-life: expected days; --missing drop helps'
    """
    name = f"(?:{'|'.join(names)})"

    def dashed(found: re.Match[str]) -> str:
        return re.sub(rf"\b{name}\b", lambda one: "--" + one[0].replace("_", "-"), found[0])

    # What stands before the first colon, or after a file's name; columns may have the same names.
    text = re.sub(rf"^{name}(?:, {name})*: ", dashed, text)
    text = re.sub(rf": {name}: (?=there is no column)", dashed, text)
    text = re.sub(rf"(?:(?<=them by)|(?<=: pass)) (?:(?:{name}|columns|and|or),? ?)+", dashed, text)
    text = re.sub(
        rf"\b(?P<name>{name})=('?)(-?\w+)\2",
        lambda one: f"{dashed(one).split('=')[0]} {one[3]}",
        text,
    )
    return text.replace(
        "spellings={'0': 'tie', '1': 'first', '2': 'second'}",
        "--spellings 0=tie,1=first,2=second",
    )
