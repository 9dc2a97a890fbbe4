"""The command line: thin faces over the library, one file for each command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from permdist import __version__
from permdist.cli.demo import demo
from permdist.cli.describe import describe
from permdist.cli.evaluate import evaluate
from permdist.cli.identities import identities

app = typer.Typer(
    name="permdist",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"permdist {__version__}")
        raise typer.Exit


@app.callback()
def permdist(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and stop.", callback=_show_version),
    ] = False,
) -> None:
    """Distributions over rankings: inspect them, measure them, check what is claimed of them.

    Start with **permdist demo**.
    """


for command in (demo, describe, evaluate, identities):
    app.command()(command)


def main() -> None:
    """Run the command line; a user's mistake is one line, not a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror.lower()}"
        typer.echo(f"permdist: {text}", err=True)
        sys.exit(2)
