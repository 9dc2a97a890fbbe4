"""How commands end: an error is one line and an exit code, not a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "PERMDIST_DEBUG"
_DEBUG = ContextVar("debug", default=False)
LONGEST = 1000
# Errors of the machine, not of the command.
FAILURES = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.ENOMEM, getattr(errno, "EDQUOT", -1))


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
    typer.echo(f"permdist: {text}", err=True)
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
            where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
            text = f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}"
        lost = isinstance(error, ConnectionError) or error.errno in FAILURES
        return text, 1 if lost else 2
    if isinstance(error, ValueError | TypeError):
        return text or type(error).__name__, 2
    if isinstance(error, MemoryError):
        return f"not enough memory{': ' if text else ''}{text}", 1
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{told} (--debug shows where)", 1


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
