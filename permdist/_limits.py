"""Memory limits: sizes are checked before anything is allocated."""

from __future__ import annotations

import math
import os
import re

VARIABLE = "PERMDIST_MEMORY_LIMIT"
DEFAULT_LIMIT = 4 * 2**30
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?")


def memory_limit() -> float:
    """Return the largest number of bytes that one request may take.

    4 GiB, or what the environment variable ``PERMDIST_MEMORY_LIMIT`` says: a number of bytes, or
    one with K, M, G or T (powers of 1024), or ``inf``. It is read at every use, so that a program
    may set it in ``os.environ``, and processes that it starts inherit it.

    Examples
    --------
    >>> memory_limit() > 0
    True
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return float(DEFAULT_LIMIT)
    if text.lower() == "inf":
        return math.inf
    found = _SIZE.fullmatch(text.upper()) if len(text) < 40 else None
    if found is None or float(found[1]) == 0.0:
        raise ValueError(
            f"{VARIABLE}: expected a size such as 500M, 8G or inf, got {text[:40]!r}; "
            "change or unset this environment variable"
        )
    return float(found[1]) * 1024.0 ** _UNITS[found[2]]


def need_memory(what: str, n_bytes: float, remedy: str = "") -> None:
    """Refuse what would take more memory than the limit, before it is allocated.

    Parameters
    ----------
    what : str
        What needs the memory: the argument's name and what it asks for, or the file.
    n_bytes : float
        About how many bytes; whole numbers of any size.
    remedy : str
        What else a user can do, as a clause.

    Raises
    ------
    ValueError
        With the number of bytes, the limit and the way to raise it.

    Examples
    --------
    >>> need_memory("n_items: 1,000 names", 100_000)
    >>> need_memory("n_items: 10^12 names", 10**14)
    Traceback (most recent call last):
        ...
    ValueError: n_items: 10^12 names: expected to take at most 4 GiB of memory, got 90.9 TiB (...
    """
    limit = memory_limit()
    if n_bytes <= limit:
        return
    allow = f"set the environment variable {VARIABLE}={_allowing(n_bytes)} to allow it"
    advice = f"{remedy}, or {allow}" if remedy else allow
    raise ValueError(
        f"{what}: expected to take at most {size_text(limit)} of memory, "
        f"got {size_text(n_bytes)} ({_digits(n_bytes)} bytes); {advice}"
    )


def size_text(n_bytes: float) -> str:
    """Format a number of bytes: ``18.6 GiB``."""
    value, unit = float(min(n_bytes, 1e300)), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024.0:
            break
        value, unit = value / 1024.0, larger
    return f"{value:.3g} {unit}" if value < 1e6 else f"{value:.1e} {unit}"


def _digits(n_bytes: float) -> str:
    return f"{int(n_bytes):,}" if n_bytes < 1e15 else f"{float(min(n_bytes, 1e300)):.1e}"


def _allowing(n_bytes: float) -> str:
    """Write the limit that would do, rounded up to whole units."""
    for unit, power in (("M", 2), ("G", 3)):
        size = math.ceil(min(n_bytes, 1e300) / 1024.0**power)
        if size < 10_000:
            return f"{size}{unit}"
    return "inf"
