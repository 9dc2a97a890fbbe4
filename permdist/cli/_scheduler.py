"""Connections to a dask scheduler."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a scheduler, and yield the client.

    Parameters
    ----------
    address : str
        Such as ``tcp://scheduler:8786``.

    Raises
    ------
    ValueError
        If dask is not installed, or nobody answers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "--scheduler: requires dask.distributed; pip install distributed"
        ) from None
    try:
        client = Client(address, timeout="5s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler: no answer from {address} ({error})") from error
    with client:
        yield client
