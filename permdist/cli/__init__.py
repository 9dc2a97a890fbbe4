"""The command line: thin faces over the library, one file for each command."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from permdist import __version__
from permdist._signals import handled
from permdist.cli._shared import interruptible
from permdist.cli.compare import compare
from permdist.cli.demo import demo
from permdist.cli.describe import describe
from permdist.cli.evaluate import evaluate
from permdist.cli.fit import fit
from permdist.cli.identities import identities
from permdist.cli.inspect import inspect
from permdist.cli.predict import predict
from permdist.cli.sample import sample

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
    """Distributions over rankings: inspect them, fit them, compare what was fitted, check claims.

    Start with **permdist demo**.
    """


COMMANDS = (demo, describe, inspect, sample, fit, predict, evaluate, compare, identities)
for command in COMMANDS:
    app.command()(interruptible(command))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"permdist: warning: {' '.join(str(message).split())}", err=True)


def main() -> None:
    """Run the command line; a user's mistake is one line, not a traceback.

    The exit code is 0 for success, 1 for a claim that fails, 2 for a mistake or a file that cannot
    be read or written, and 130 after Ctrl-C or SIGTERM.
    """
    try:
        # SIGTERM, by which batch systems end a command, keeps and cleans up like Ctrl-C.
        with warnings.catch_warnings(), handled(signal.SIGTERM, signal.default_int_handler):
            warnings.showwarning = _show_warning
            app()
    except (ValueError, TypeError, OSError) as error:
        text = " ".join(str(error).split())
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror.lower()}"
        typer.echo(f"permdist: {text}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("permdist: interrupted", err=True)
        sys.exit(130)
