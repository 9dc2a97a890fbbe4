"""What commands print and how they end: an error is one line and an exit code, not a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from permdist._text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "PERMDIST_DEBUG"
_DEBUG = ContextVar("debug", default=False)
LONGEST = 1000
AGAIN = 0.01  # seconds after which an interrupt is raised again
# Errors of the machine, not of the command.
FAILURES = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.ENOMEM, getattr(errno, "EDQUOT", -1))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text without control characters but for the ends of lines and tabs.

    Parameters
    ----------
    text : str
    err : bool
        To standard error instead of standard output.
    nl : bool
        With a line end.
    """
    typer.echo(visible(text, keep="\n\t"), err=err, nl=nl)


def tell(error: BaseException) -> int:
    """Print an error in one line, after its traceback if that was requested.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    int
        The exit code: 2 for a mistake in the command or in a file, 1 for everything else.
    """
    if _DEBUG.get() or os.environ.get(VARIABLE, "0") not in ("", "0"):
        traceback.print_exception(error)
    text, code = explain(error)
    echo(f"permdist: {text}", err=True)
    return code


def explain(error: BaseException) -> tuple[str, int]:
    """Return an error in one line, with its exit code.

    Examples
    --------
    >>> explain(ValueError("C: expected a positive number, got -1"))
    ('C: expected a positive number, got -1', 2)
    >>> explain(MemoryError())
    ('not enough memory', 1)
    >>> explain(OverflowError("too large"))
    ('OverflowError: too large (--debug shows where)', 1)
    """
    text = " ".join(str(error).split())
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}..."
    if isinstance(error, OSError):
        if error.strerror:
            where = f"{os.fsdecode(error.filename)}: " if error.filename else _lost_folder()
            text = f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}"
        lost = isinstance(error, ConnectionError) or error.errno in FAILURES
        return text, 1 if lost else 2
    if isinstance(error, ValueError | TypeError):
        return text or type(error).__name__, 2
    if isinstance(error, MemoryError):
        return f"not enough memory{': ' if text else ''}{text}", 1
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{told} (--debug shows where)", 1


def _lost_folder() -> str:
    """Say that the working directory is gone, if that is why a file without a name is missing."""
    try:
        os.getcwd()
    except OSError:
        return "the working directory: "
    return ""


@contextlib.contextmanager
def without_debug(arguments: list[str]) -> Iterator[list[str]]:
    """Remove ``--debug`` from the arguments, and show tracebacks inside the block if it was there.

    It may follow any command; what follows ``--`` is not an option.

    Examples
    --------
    >>> with without_debug(["describe", "file.txt", "--debug"]) as rest:
    ...     rest
    ['describe', 'file.txt']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest = [one for one in arguments[:end] if one != "--debug"] + arguments[end:]
    token = _DEBUG.set(len(rest) < len(arguments))
    try:
        yield rest
    finally:
        _DEBUG.reset(token)


def let_go_of_output() -> None:
    """Discard output that could not be written, so that Python does not try again on exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        except (OSError, ValueError, AttributeError):  # not a file of the operating system
            pass


@contextlib.contextmanager
def kept_interrupts() -> Iterator[None]:
    """Inside a block, interrupt again if Python has discarded a KeyboardInterrupt.

    It does so in callbacks of the garbage collector, which other libraries have, and of weak
    references, and in ``__del__``.
    """
    before = sys.unraisablehook

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        number = next((one for one in numbers if callable(signal.getsignal(one))), numbers[0])
        again = threading.Timer(AGAIN, signal.raise_signal, [number])
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
