"""Packages that only some functions need: imported on use, with a hint where they are missing."""

from __future__ import annotations

import importlib
from typing import Any


def need_extra(name: str, what: str) -> Any:
    """Import a package that is an optional dependency, and return it.

    Parameters
    ----------
    name : str
        Of the package, and of the extra that installs it.
    what : str
        What needs it, for the message.

    Raises
    ------
    ImportError
        In one line, with the command that installs the package.

    Examples
    --------
    >>> need_extra("nosuchbooster", "trees")
    Traceback (most recent call last):
    ImportError: trees: requires nosuchbooster; pip install nosuchbooster
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise  # it is there, and something of its own is missing
        raise ImportError(f"{what}: requires {name}; pip install {name}") from None
