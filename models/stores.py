"""Stores as the data of learners: several of them, and ranges of their queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from permdist.data import Queries, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

AnyStores: TypeAlias = "os.PathLike[str] | Sequence[str | os.PathLike[str] | Queries]"


def store_paths(X: Any) -> list[str] | None:
    """Return the folders, if X is a store or several of them, else None.

    Parameters
    ----------
    X : object
        A store is named by its folder, or by the `Queries` that `permdist.data.open_store` returns.

    Examples
    --------
    >>> store_paths([[1.0, 2.0]]) is None
    True
    """
    several = X if isinstance(X, list | tuple) else [X]
    if not several or not all(isinstance(one, str | os.PathLike | Queries) for one in several):
        return None
    folders: list[Path] = []
    for one in several:
        folder = one.store if isinstance(one, Queries) else Path(one)
        if folder is None:
            return None
        folders.append(folder)
    return [str(folder.resolve()) for folder in folders]


def far_stores(X: Any, client: Any, *others: Any) -> list[str] | None:
    """Return the folders of stores that are not to be read as one collection in this process.

    Parameters
    ----------
    X : object
    client : distributed.Client or None
        With it, X must be stores.
    *others
        What comes with X where it is an array: labels, queries.
    """
    paths = store_paths(X) if all(one is None for one in others) else None
    if client is not None and paths is None:
        raise TypeError(
            "client: X must be a store or a list of stores; permdist.data.write_store makes one"
        )
    return None if isinstance(X, Queries) and client is None else paths


def need_different(paths: Sequence[str]) -> None:
    """Refuse a store that is given twice: its queries would count twice.

    Parameters
    ----------
    paths : sequence of str
    """
    twice = {path for path in paths if list(paths).count(path) > 1}
    if twice:
        raise ValueError(f"X: the store {min(twice)} is given more than once")


def open_part(path: str, first: int = 0, last: int | None = None) -> Queries:
    """Open a store, and return some of its queries; nothing is read before it is needed.

    Parameters
    ----------
    path : str
    first, last : int
        The first query, and the one after the last; all by default.

    Raises
    ------
    ValueError
        Naming the worker, where there is one, if it cannot open the store.
    """
    try:
        queries = open_store(path)
    except (OSError, ValueError) as error:
        address = _worker()
        if address is None:
            raise
        raise ValueError(
            f"the worker {address} cannot open the store {path} ({error}); all workers must be "
            "able to read it under this path"
        ) from error
    if first == 0 and last in (None, queries.n_queries):
        return queries
    own = slice(first, last)
    ptr = queries.ptr[first : None if last is None else last + 1]
    rows = slice(int(ptr[0]), int(ptr[-1]))
    return Queries.trusted(
        queries.X[rows],
        queries.y[rows],
        ptr - ptr[0],
        queries.qids[own],
        feature_names=queries.feature_names,
        has_missing=queries.has_missing,
    )


def _worker() -> str | None:
    """Return the address of the worker that this runs on, if any."""
    try:
        from distributed import get_worker

        return str(get_worker().address)
    except (ImportError, ValueError):
        return None
