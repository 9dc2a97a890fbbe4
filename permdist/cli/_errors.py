"""How commands end: whatever goes wrong is one line and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextvars import ContextVar

import typer

VARIABLE = "PERMDIST_DEBUG"
_DEBUG = ContextVar("debug", default=False)
LONGEST = 1000
# What is wrong with the machine and not with the command.
FAILURES = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.ENOMEM, getattr(errno, "EDQUOT", -1))


def tell(error: BaseException) -> int:
    """Print one line that says what went wrong, and the traceback too if that was asked for.

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
    """Say what went wrong in one line, with the exit code for it.

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
            text = f"{where}{error.strerror.lower()}"
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
    """Take ``--debug`` out of the arguments, and show tracebacks inside the block if it was there.

    It may stand behind any command; what follows a lone ``--`` is no option.

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
    """Give up what could not be written, so that Python does not try again at its end."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        except (OSError, ValueError, AttributeError):  # not a file of the system
            pass
