"""A simulated collection of the size and the raw scales of MSLR-WEB30K, made block by block.

A block of queries depends on the seed and its number only, so that any part of the collection
can be made again. `blocks` yields them as `Queries`; `write_text` writes them as a LETOR file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.data import Queries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERIES, DOCUMENTS, FEATURES = 30_000, 120, 136
BLOCK = 100  # queries
GRADES = (0.515, 0.840, 0.974, 0.993)  # cumulative shares of the grades 0 to 3


def blocks(
    n_queries: int,
    *,
    documents: float = DOCUMENTS,
    features: int = FEATURES,
    seed: int = 0,
    first: int = 0,
) -> Iterator[Queries]:
    """Yield blocks of queries; `first` is the number of the first block."""
    for start in range(0, n_queries, BLOCK):
        number = first + start // BLOCK
        rng = np.random.default_rng([seed, number])
        size = min(BLOCK, n_queries - start)
        yield _block(rng, number * BLOCK + 1, size, documents, features)


def _block(
    rng: np.random.Generator, first: int, n_queries: int, documents: float, features: int
) -> Queries:
    """Simulate queries; a hidden relevance moves features of eight kinds."""
    sizes = 1 + np.minimum(rng.gamma(4.0, (documents - 1) / 4.0, n_queries).astype(int), 1250)
    query = np.repeat(np.arange(n_queries), sizes)
    n = len(query)
    relevance = rng.standard_normal(n)
    cuts = np.array([-np.inf, *(_quantile(share) for share in GRADES)])
    seen = (relevance + 0.7 * rng.standard_normal(n)) / np.sqrt(1.49)
    y = np.searchsorted(cuts, seen) - 1
    X = np.empty((n, features))
    # How much a feature says, the same in all blocks.
    weights = np.random.default_rng(1).standard_normal(features) * 0.35
    for j in range(features):
        level = rng.standard_normal(n_queries)[query]
        moved = weights[j] * relevance + 0.5 * level + rng.standard_normal(n)
        kind = j % 8
        if kind == 0:  # counts
            X[:, j] = np.floor(3.0 * np.exp(0.7 * moved))
        elif kind == 1:  # sums of counts, lengths
            X[:, j] = np.floor(200.0 * np.exp(moved))
        elif kind == 2:  # log-normal
            X[:, j] = np.exp(1.5 * moved)
        elif kind == 3:  # shares
            X[:, j] = 1.0 / (1.0 + np.exp(-moved))
        elif kind == 4:  # scores of language models, negative
            X[:, j] = -20.0 + 4.0 * moved
        elif kind == 5:  # constant in each query, or everywhere
            X[:, j] = 0.0 if j % 16 == 5 else np.exp(level)
        elif kind == 6:  # heavy tails: clicks, links
            X[:, j] = np.floor(np.minimum(np.exp(np.abs(3.0 * moved)) - 1.0, 1e9))
        else:  # mostly 0
            X[:, j] = np.where(rng.random(n) < 0.6, 0.0, np.exp(moved))
    X = np.rint(X * 1e6) / 1e6 + 0.0
    return Queries(X, y, first + query)


def _quantile(share: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(share))


def write_text(path: Path, parts: Iterator[Queries]) -> int:
    """Write blocks as a LETOR file, with six decimals as MSLR-WEB30K has; return its bytes."""
    size = 0
    with open(path, "wb") as file:
        for part in parts:
            text = np.empty(part.n_documents * (40 + 24 * part.n_features), np.uint8)
            length = _format(part.X, part.y, part.qid, text)
            file.write(text[:length].data)
            size += length
    return size


@kernel
def _format(X, y, qid, text):
    """Write lines into the text (bytes); return how many bytes they take."""
    at = 0
    for row in range(len(y)):
        at = _digits(text, at, y[row])
        for letter in (32, 113, 105, 100, 58):
            text[at] = letter
            at += 1
        at = _digits(text, at, qid[row])
        for column in range(X.shape[1]):
            text[at] = 32
            at = _digits(text, at + 1, column + 1)
            text[at] = 58
            at += 1
            value = X[row, column]
            if value < 0.0:
                text[at] = 45
                at += 1
            millionths = np.int64(np.rint(abs(value) * 1e6))
            at = _digits(text, at, millionths // 1_000_000)
            rest = millionths % 1_000_000
            if rest:
                text[at] = 46
                for place in range(6):
                    text[at + 6 - place] = 48 + rest % 10
                    rest //= 10
                at += 7
        text[at] = 10
        at += 1
    return at


@kernel
def _digits(text, at, number):
    """Write a whole number; return the place behind it."""
    length, power = 1, 10
    while number >= power:
        length += 1
        power *= 10
    for place in range(length - 1, -1, -1):
        text[at + place] = 48 + number % 10
        number //= 10
    return at + length
