"""Ballots as the kernels of posteriors read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._parallel import pointers
from permdist.posterior.luce_kernels import Records

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.ballots import Ballots


def no_records(
    known: FloatArray, design: FloatArray, width: int, tie_sizes: tuple[int, ...]
) -> Records:
    """Return no ballots at all.

    Parameters
    ----------
    known : array of float, shape (n,)
        Known parts of the scores.
    design : array of float, shape (n, k) or (0, 0)
    width : int
        The number of covariates.
    tie_sizes : tuple of int
    """
    none, empty, start = np.zeros(0, np.int64), np.zeros(0), np.zeros(1, np.int64)
    return Records(
        items=none,
        ptr=start,
        sizes=none,
        stages=start,
        weights=empty,
        whole=np.zeros(0, np.bool_),
        linear=np.zeros(len(known)),
        tie_counts=np.zeros(max(tie_sizes, default=1) + 1),
        offset=known,
        design=design,
        features=np.zeros((0, width)),
        shift=empty,
        signs=empty,
        owners=none,
        layout=0,
        tie_sizes=np.array(tie_sizes, dtype=np.int64),
    )


def records_of(
    data: Ballots,
    cast: FloatArray,
    shift: FloatArray | None,
    known: FloatArray,
    design: FloatArray,
    tie_sizes: tuple[int, ...],
) -> Records:
    """Return the records of ballots.

    Parameters
    ----------
    data : Ballots
    cast : array of float, shape (ballots,)
        What each counts.
    shift : array of float, shape (len(data.items),), or None
        Known parts of the utilities of alternatives on single ballots.
    known, design, tie_sizes
        As of `no_records`.
    """
    weights = cast[data.ballot]
    n, entries = data.n_items, len(data.items)
    # Records of equal weights one after the other, so that logarithms are taken together.
    order = np.argsort(weights, kind="stable")
    lengths, stages = np.diff(data.ptr)[order], np.diff(data.stages)[order]
    ptr, starts = pointers(lengths), pointers(stages)
    at = np.repeat(data.ptr[:-1][order] - ptr[:-1], lengths) + np.arange(entries)
    buckets = np.repeat(data.stages[:-1][order] - starts[:-1], stages)
    chosen_sizes = data.sizes[buckets + np.arange(len(data.sizes))]
    items, weights = data.items[at], np.ascontiguousarray(weights[order])
    owner = np.repeat(np.arange(len(lengths)), lengths)
    signs = data.signs[order][owner]
    layout = 0 if (signs > 0.0).all() else 1
    features = np.zeros((0, 0)) if data.features is None else data.features[at]
    if data.features is not None or shift is not None:
        layout = 2
    extra = shift[at] if shift is not None else np.zeros(entries if layout == 2 else 0)
    if layout == 2 and data.features is None:
        features = np.zeros((entries, 0))
    index = [items, items + n * (signs < 0.0), np.arange(entries)][layout]
    # What utilities and log delta_t are multiplied with in numerators.
    ends = np.bincount(np.repeat(np.arange(len(lengths)), stages), chosen_sizes, len(lengths))
    place = np.arange(entries) - ptr[owner]
    within = place < ends[owner]
    share = np.zeros(entries)
    share[within] = np.repeat(1.0 / chosen_sizes, chosen_sizes)
    table = [n, 2 * n, entries][layout]
    linear: FloatArray = np.bincount(index, share * weights[owner], table).astype(np.float64)
    bucket_weights = np.repeat(weights, stages)
    counts = np.bincount(chosen_sizes, bucket_weights, max(tie_sizes, default=1) + 1)
    whole = (lengths == n) & (2 * ends < n) & (layout == 0)
    return Records(
        items=np.ascontiguousarray(index),
        ptr=ptr,
        sizes=np.ascontiguousarray(chosen_sizes),
        stages=starts,
        weights=weights,
        whole=whole,
        linear=linear,
        tie_counts=counts.astype(np.float64),
        offset=known,
        design=design,
        features=np.ascontiguousarray(features),
        shift=np.ascontiguousarray(extra),
        signs=np.ascontiguousarray(signs) if layout == 2 else np.zeros(0),
        owners=np.ascontiguousarray(items) if layout == 2 else np.zeros(0, dtype=np.int64),
        layout=layout,
        tie_sizes=np.array(tie_sizes, dtype=np.int64),
    )
