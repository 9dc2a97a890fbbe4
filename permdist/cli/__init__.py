"""The command line: thin faces over the library, one file for each command."""

from __future__ import annotations

import contextlib
import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from permdist import __version__
from permdist._signals import handled
from permdist.cli._errors import let_go_of_output, tell, without_debug
from permdist.cli._shared import guarded
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
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show where an error comes from; may stand behind any command. The environment "
            "variable PERMDIST_DEBUG=1 does the same.",
        ),
    ] = False,
) -> None:
    """Distributions over rankings: inspect them, fit them, compare what was fitted, check claims.

    Start with **permdist demo**.
    """


COMMANDS = (demo, describe, inspect, sample, fit, predict, evaluate, compare, identities)
for command in COMMANDS:
    app.command()(guarded(command))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"permdist: warning: {' '.join(str(message).split())}", err=True)


def main() -> None:
    """Run the command line; whatever goes wrong is one line, not a traceback.

    The exit code is 0 for success, 1 for a claim that fails or a command that could not finish, 2
    for a mistake in the command or in a file, and 130 after Ctrl-C or SIGTERM.
    """
    with without_debug(sys.argv[1:]) as arguments:
        try:
            with warnings.catch_warnings(), _ended_by(signal.SIGTERM):
                warnings.showwarning = _show_warning
                app(arguments)
        except KeyboardInterrupt:
            typer.echo("permdist: interrupted", err=True)
            sys.exit(130)
        except Exception as error:
            code = tell(error)
            let_go_of_output()
            sys.exit(code)


def _ended_by(number: signal.Signals) -> contextlib.AbstractContextManager[None]:
    """Let a signal, by which batch systems end a command, keep and clean up like Ctrl-C.

    A signal that the parent ignores (`nohup`, a background job) stays ignored, as is Ctrl-C.
    """
    if signal.getsignal(number) is signal.SIG_IGN:
        return contextlib.nullcontext()
    return handled(number, signal.default_int_handler)
