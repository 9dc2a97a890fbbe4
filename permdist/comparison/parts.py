"""The parts of folds: whether they can be learned from and measured, and share no query."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from permdist._tables import differing_columns
from permdist.data import Fold, Queries

NAMES = ("training", "validation", "test")


def check_folds(folds: Iterable[Sequence[Queries]]) -> list[Fold]:
    """Check every fold by `check_parts`, and that no query is tested twice."""
    found: list[Fold] = []
    tested: dict[bytes, int] = {}
    if not isinstance(folds, Iterable):
        raise TypeError(f"folds: expected several of them, got {type(folds).__name__}")
    for number, fold in enumerate(folds, 1):
        parts = tuple(fold)
        if len(parts) != 3 or not all(isinstance(part, Queries) for part in parts):
            raise TypeError(f"folds: expected (train, validation, test), fold {number} is not")
        prints = check_parts(f"fold {number}", dict(zip(NAMES, parts, strict=True)))
        for print_, qid in prints["test"].items():
            if tested.setdefault(print_, number) != number:
                raise ValueError(
                    f"folds: query {qid} is tested on fold {tested[print_]} and on fold {number}; "
                    "tests need every query once"
                )
        found.append(Fold(*parts))
    if not found:
        raise ValueError("folds: expected at least one")
    return found


def check_parts(where: str, parts: Mapping[str, Queries]) -> dict[str, dict[bytes, Any]]:
    """Check that parts have something to learn from and to measure, and share no query.

    Returns
    -------
    dict of dict
        For each part, the ids of its queries by their fingerprints.
    """
    for name, part in parts.items():
        if not isinstance(part, Queries):
            raise TypeError(f"{where}: expected {name} Queries, got {type(part).__name__}")
        if not (part.n_relevant > 0).any():
            raise ValueError(f"{where}: its {name} part has no relevant document")
    train = parts["training"]
    if not ((train.n_relevant > 0) & (train.n_relevant < train.sizes)).any():
        raise ValueError(
            f"{where}: no training query has relevant documents and others, there is nothing to "
            "learn from"
        )
    widths = {part.n_features for part in parts.values()}
    if len(widths) > 1:
        raise ValueError(f"{where}: its parts have {sorted(widths)} features")
    for name, part in parts.items():
        if (part.feature_names is None) != (train.feature_names is None):
            raise ValueError(
                f"{where}: the features of its training and its {name} part must both have names, "
                "or neither"
            )
        if part.feature_names is not None and train.feature_names is not None:
            wrong = differing_columns(
                f"{where}, its {name} part", part.feature_names, train.feature_names, "in training"
            )
            if wrong is not None:
                raise ValueError(wrong)
    prints = {name: _query_prints(part) for name, part in parts.items()}
    for (one, a), (other, b) in itertools.combinations(prints.items(), 2):
        shared = [qid for print_, qid in b.items() if print_ in a]
        if shared:
            raise ValueError(f"{where}: query {shared[0]} is in its {one} and its {other} part")
    return prints


def _query_prints(queries: Queries) -> dict[bytes, Any]:
    """Name every query by its id and its contents."""
    found = {}
    for number, qid in enumerate(queries.qids.tolist()):
        rows = slice(queries.ptr[number], queries.ptr[number + 1])
        digest = hashlib.blake2b(str(qid).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(queries.X[rows]).data)
        digest.update(np.ascontiguousarray(queries.y[rows]).data)
        found[digest.digest()] = qid
    return found
