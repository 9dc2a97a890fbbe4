"""Cross-validation folds: those of LETOR's folders, and random folds of one collection."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._check import as_rng, count
from permdist.data.letor import load_letor
from permdist.data.queries import Queries

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from permdist._typing import RandomState

_PARTS = ("train", "vali", "test")
_ENDINGS = ("", ".gz", ".bz2")


class Fold(NamedTuple):
    """The three parts of one cross-validation fold: a tuple.

    Parameters
    ----------
    train, validation, test : Queries
    """

    train: Queries
    validation: Queries
    test: Queries


def load_letor_folds(
    directory: str | os.PathLike[str],
    *,
    regroup: bool = False,
    zero_based: bool = False,
    null: str = "min",
) -> list[Fold]:
    """Read the cross-validation folds of a LETOR collection.

    Parameters
    ----------
    directory : path
        With ``Fold1/train.txt, Fold1/vali.txt, Fold1/test.txt`` and so on, or with the five parts
        ``S1.txt .. S5.txt`` of which LETOR makes them (Fold 1 trains on S1, S2 and S3, validates
        on S4 and tests on S5; Fold 2 starts at S2, and so on). Files may be compressed.
    regroup : bool
        Gather queries whose lines do not stand together, as in `load_letor`.
    zero_based : bool
        Whether the first feature has number 0 in the files, as in `load_letor`.
    null : {"min", "zero", "error", "missing"}
        What becomes of values written ``NULL``, as in `load_letor`.

    Returns
    -------
    list of Fold
        All parts have the same number of features.
    """
    root = Path(directory)
    read = partial(load_letor, regroup=regroup, zero_based=zero_based, null=null)
    if not root.is_dir():
        raise ValueError(f"{root}: expected a directory with the folds")
    trees = sorted(
        (entry for entry in root.iterdir() if re.fullmatch(r"Fold\d+", entry.name)),
        key=lambda entry: int(entry.name[4:]),
    )
    if trees:
        parts = [[read(_find(tree, part)) for part in _PARTS] for tree in trees]
        width = max(part.n_features for fold in parts for part in fold)
        return [Fold(*(_widen(part, width) for part in fold)) for fold in parts]
    if not any((root / f"S1.txt{ending}").is_file() for ending in _ENDINGS):
        raise ValueError(f"{root}: expected Fold1, Fold2, ... or S1.txt to S5.txt")
    pieces = [read(_find(root, f"S{number}")) for number in range(1, 6)]
    width = max(piece.n_features for piece in pieces)
    pieces = [_widen(piece, width) for piece in pieces]
    return _rotate(pieces)


def make_folds(queries: Queries, n_folds: int = 5, *, rng: RandomState = None) -> list[Fold]:
    """Split one collection into folds as LETOR does.

    The queries are split at random into `n_folds` parts of about equal size; every fold tests on
    one part, validates on another and trains on all the others, so that every query is tested
    once.

    Parameters
    ----------
    queries : Queries
    n_folds : int
        At least 3.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    list of Fold

    Examples
    --------
    >>> from permdist import data
    >>> folds = data.make_folds(data.make_letor(50, rng=0), 5, rng=0)
    >>> [len(part) for part in folds[0]]
    [30, 10, 10]
    """
    n_folds = count("n_folds", n_folds, minimum=3)
    if len(queries) < n_folds:
        raise ValueError(f"queries: expected at least {n_folds} for {n_folds} folds, got {queries}")
    part = np.empty(len(queries), dtype=np.int64)
    part[as_rng(rng).permutation(len(queries))] = np.arange(len(queries)) % n_folds
    return _rotate([queries.where(part == number) for number in range(n_folds)])


def _rotate(pieces: Sequence[Queries]) -> list[Fold]:
    """Make as many folds as there are pieces: the last two of each turn validate and test."""
    turns = [[*pieces[turn:], *pieces[:turn]] for turn in range(len(pieces))]
    return [Fold(Queries.concatenate(turn[:-2]), turn[-2], turn[-1]) for turn in turns]


def _find(folder: Path, stem: str) -> Path:
    """Find a part of a collection, compressed or not."""
    for ending in _ENDINGS:
        if (folder / f"{stem}.txt{ending}").is_file():
            return folder / f"{stem}.txt{ending}"
    raise ValueError(f"{folder / stem}.txt: no such file (nor .gz or .bz2)")


def _widen(queries: Queries, n_features: int) -> Queries:
    """Add features that are 0 everywhere."""
    lacking = n_features - queries.n_features
    if lacking == 0:
        return queries
    X = np.pad(queries.X, ((0, 0), (0, lacking)))
    missing = "allow" if queries.has_missing else "error"
    wide = Queries(X, queries.y, queries.qid, doc_ids=queries.doc_ids, missing=missing)
    wide._order = queries._order  # noqa: SLF001
    return wide
