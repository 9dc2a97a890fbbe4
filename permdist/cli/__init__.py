"""The command line: thin wrappers around the library, one file per command."""

import signal
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from permdist import __version__
from permdist.cli._errors import echo, kept_interrupts, let_go_of_output, tell, without_debug
from permdist.cli._shared import expanded, guarded
from permdist.cli.compare import compare
from permdist.cli.consensus import consensus
from permdist.cli.convert import convert
from permdist.cli.demo import demo
from permdist.cli.describe import describe
from permdist.cli.evaluate import evaluate
from permdist.cli.explore import explore
from permdist.cli.fit import fit
from permdist.cli.identities import identities
from permdist.cli.inspect import inspect
from permdist.cli.predict import predict
from permdist.cli.rate import rate
from permdist.cli.sample import sample
from permdist.cli.warmup import warmup

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
        echo(f"permdist {__version__}")
        raise typer.Exit


@app.callback()
def permdist(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version),
    ] = False,
    _debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the traceback of an error; also accepted after any command. The environment "
            "variable PERMDIST_DEBUG=1 has the same effect.",
        ),
    ] = False,
) -> None:
    """Distributions over rankings: inspect and sample them, fit and compare learners.

    Start with **permdist demo**.
    """


COMMANDS = (
    demo,
    describe,
    convert,
    inspect,
    explore,
    sample,
    fit,
    predict,
    evaluate,
    compare,
    rate,
    consensus,
    identities,
    warmup,
)


class ListsLearners(TyperCommand):
    """A command whose help ends with the names of all learners, registered ones included."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from permdist.models import all_learners

        self.epilog = f"Learners: {', '.join(kind.__name__ for kind in all_learners())}."
        super().format_help(ctx, formatter)


for command in COMMANDS:
    kind = ListsLearners if command is fit else TyperCommand
    app.command(cls=kind)(guarded(expanded(command)))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    echo(f"permdist: warning: {' '.join(str(message).split())}", err=True)


def main() -> None:
    """Run the command line; an error is one line, not a traceback.

    The exit code is 0 for success, 1 for an identity that fails or a command that could not finish,
    2 for a mistake in the command or in a file, and 130 after Ctrl-C or SIGTERM.
    """
    with without_debug(sys.argv[1:]) as arguments:
        try:
            # Batch systems end commands by SIGTERM; one that the parent ignores stays ignored.
            if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
                signal.signal(signal.SIGTERM, signal.default_int_handler)
            with warnings.catch_warnings(), kept_interrupts():
                warnings.showwarning = _show_warning
                app(arguments)
        except KeyboardInterrupt:
            echo("permdist: interrupted", err=True)
            sys.exit(130)
        except Exception as error:
            code = tell(error)
            let_go_of_output()
            sys.exit(code)
