"""Moves of the center of a Mallows model that keep its density given all else.

The density of a center is ``exp(-energy)``; energies are sums over pairs, places, and ballots at
Cayley's or Ulam's distance, each of which may be absent (an array without rows). Relocations of
one item are draws from its full conditional; swaps, reversals of a block and exchanges of two
neighboring blocks are proposed, and accepted or not. Items are numbers, and orders are orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

CAYLEY, ULAM, CAYLEY_TOP = 2, 3, 4


class Energy(NamedTuple):
    """What the energy of a center adds up from.

    Attributes
    ----------
    pairs : array of float, shape (n, n) or (0, 0)
        What it costs that the first item is above the second.
    places : array of float, shape (n, n) or (0, 0)
        What it costs that an item is at a position.
    ranks : array of int, shape (ballots, n)
        The rank of each item on each ballot; of first places the level, for `CAYLEY_TOP`.
    coefs : array of float, shape (ballots,)
        What a unit of distance from a ballot costs.
    kind : int
        The distance from these ballots, `CAYLEY`, `ULAM` or `CAYLEY_TOP`. The last one adds up
        what the stages of the first places add to Cayley's distance; of full rankings, all of it.
    """

    pairs: FloatArray
    places: FloatArray
    ranks: IntArray
    coefs: FloatArray
    kind: int


def joined(cost: Energy, theta: float, prior: Energy) -> Energy:
    """Return minus the log-density of the center: theta times the distance, and the prior."""
    pairs, places = theta * cost.pairs, theta * cost.places
    if len(prior.pairs):
        pairs = pairs + prior.pairs if len(pairs) else prior.pairs
    if len(prior.places):
        places = places + prior.places if len(places) else prior.places
    return Energy(pairs, places, cost.ranks, theta * cost.coefs, cost.kind)


# ---- kernels: the arrays of `Energy`, order (n,), seqs (ballots, n) the ranks along the order ---


@kernel
def _cycles(seq: IntArray, seen: IntArray) -> int:
    """Count the cycles of k -> seq[k]."""
    cycles = 0
    for k in range(len(seq)):
        seen[k] = 0
    for k in range(len(seq)):
        if seen[k] == 0:
            cycles += 1
            at = k
            while seen[at] == 0:
                seen[at] = 1
                at = seq[at]
    return cycles


@kernel
def _closed(seq: IntArray, seen: IntArray) -> int:
    """Count the cycles within the first places, of which there are as many as the last level.

    All other places are added, so that n less this number is what the first places add.
    """
    n, most = len(seq), 0
    for k in range(n):
        seen[k] = 0
        most = max(most, seq[k])
    cycles = n - most
    for k in range(most):
        at = k
        while at < most and seen[at] == 0:
            seen[at] = 1
            at = seq[at]
            if at == k:
                cycles += 1
    return cycles


@kernel
def _insert(tails: IntArray, length: int, value: int) -> int:
    """Return where a value goes in ascending tails of increasing subsequences, and put it there."""
    low, high = 0, length
    while low < high:
        middle = (low + high) // 2
        if tails[middle] < value:
            low = middle + 1
        else:
            high = middle
    tails[low] = value
    return low


@kernel
def _kept(seq: IntArray, spare: IntArray, kind: int) -> int:
    """Return n less the distance: the number of cycles, or the longest increasing subsequence."""
    if kind == 2:
        return _cycles(seq, spare)
    if kind == 4:
        return _closed(seq, spare)
    length = 0
    for k in range(len(seq)):
        length = max(length, _insert(spare, length, seq[k]) + 1)
    return length


@kernel
def energy_of(
    order: IntArray,
    pairs: FloatArray,
    places: FloatArray,
    ranks: IntArray,
    coefs: FloatArray,
    kind: int,
) -> float:
    """Return the energy of a center."""
    n, total = len(order), 0.0
    if len(pairs):
        for k in range(n):
            for p in range(k + 1, n):
                total += pairs[order[k], order[p]]
    if len(places):
        for k in range(n):
            total += places[order[k], k]
    if len(coefs):
        seq, spare = np.empty(n, np.int64), np.empty(n, np.int64)
        for v in range(len(coefs)):
            for k in range(n):
                seq[k] = ranks[v, order[k]]
            total += coefs[v] * (n - _kept(seq, spare, kind))
    return total


@kernel
def _shift(seq: IntArray, source: int, target: int) -> None:
    """Move one entry to another place; those between move by one."""
    value = seq[source]
    step = 1 if target > source else -1
    for k in range(source, target, step):
        seq[k] = seq[k + step]
    seq[target] = value


@kernel
def _ulam_places(
    seq: IntArray, k: int, coef: float, tails: IntArray, spare: IntArray, values: FloatArray
) -> None:
    """Add the energy with entry k at every place, from longest sequences that end or start there.

    Parameters
    ----------
    seq : array of int, shape (n,)
    k : int
    coef : float
    tails : array of int, shape (n,)
    spare : array of int, shape (3, n)
    values : array of float, shape (n,)
        Added to.
    """
    n, value = len(seq), seq[k]
    length = 0
    for j in range(n - 1):  # entries without number k
        spare[0, j] = seq[j] if j < k else seq[j + 1]
        spare[1, j] = _insert(tails, length, spare[0, j]) + 1
        length = max(length, spare[1, j])
    back = 0
    for j in range(n - 2, -1, -1):
        spare[2, j] = _insert(tails, back, -spare[0, j]) + 1
        back = max(back, spare[2, j])
    # tails[p] from here on: the longest sequence of larger values from p on.
    after = 0
    tails[n - 1] = 0
    for p in range(n - 2, -1, -1):
        if spare[0, p] > value:
            after = max(after, spare[2, p])
        tails[p] = after
    before = 0
    for p in range(n):
        if p and spare[0, p - 1] < value:
            before = max(before, spare[1, p - 1])
        values[p] += coef * (n - max(length, before + 1 + tails[p]))


@kernel
def _relocate(
    order: IntArray,
    item: int,
    pairs: FloatArray,
    places: FloatArray,
    seqs: IntArray,
    coefs: FloatArray,
    tails: IntArray,
    spare: IntArray,
    values: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Draw a place for an item from its full conditional; ballots are at Ulam's distance."""
    n, k = len(order), 0
    while order[k] != item:
        k += 1
    for p in range(n):
        values[p] = 0.0
    if len(pairs):
        change = 0.0
        for p in range(k - 1, -1, -1):
            other = order[p]
            change += pairs[item, other] - pairs[other, item]
            values[p] += change
        change = 0.0
        for p in range(k + 1, n):
            other = order[p]
            change += pairs[other, item] - pairs[item, other]
            values[p] += change
    if len(places):
        change = 0.0
        values[k] += places[item, k]
        for p in range(k - 1, -1, -1):
            other = order[p]
            change += places[other, p + 1] - places[other, p]
            values[p] += change + places[item, p]
        change = 0.0
        for p in range(k + 1, n):
            other = order[p]
            change += places[other, p - 1] - places[other, p]
            values[p] += change + places[item, p]
    for v in range(len(coefs)):
        _ulam_places(seqs[v], k, coefs[v], tails, spare, values)
    p = draw_place(values, 0, n - 1, rng)
    if p != k:
        _shift(order, k, p)
        for v in range(len(coefs)):
            _shift(seqs[v], k, p)


@kernel
def draw_place(values: FloatArray, low: int, high: int, rng: np.random.Generator) -> int:
    """Draw an index from low to high with weights ``exp(-values)``, which are used up."""
    least = np.inf
    for p in range(low, high + 1):
        least = min(least, values[p])
    total = 0.0
    for p in range(low, high + 1):
        values[p] = np.exp(least - values[p])
        total += values[p]
    share, p = rng.random() * total, low
    while p < high and share >= values[p]:
        share -= values[p]
        p += 1
    return p


@kernel
def _swap(
    order: IntArray,
    k: int,
    p: int,
    pairs: FloatArray,
    places: FloatArray,
    seqs: IntArray,
    coefs: FloatArray,
    kind: int,
    spare: IntArray,
    rng: np.random.Generator,
) -> None:
    """Propose to exchange the items at k < p."""
    x, y, change = order[k], order[p], 0.0
    if len(pairs):
        change += pairs[y, x] - pairs[x, y]
        for j in range(k + 1, p):
            z = order[j]
            change += pairs[z, x] - pairs[x, z] + pairs[y, z] - pairs[z, y]
    if len(places):
        change += places[x, p] - places[x, k] + places[y, k] - places[y, p]
    for v in range(len(coefs)):
        seq = seqs[v]
        if kind == 2:
            at = seq[k]
            while at != k and at != p:
                at = seq[at]
            # Within a cycle the swap makes two of it, otherwise one of two.
            change += -coefs[v] if at == p else coefs[v]
            seq[k], seq[p] = seq[p], seq[k]
        else:
            before = _kept(seq, spare, kind)
            seq[k], seq[p] = seq[p], seq[k]
            change += coefs[v] * (before - _kept(seq, spare, kind))
    if change <= 0.0 or rng.random() < np.exp(-change):
        order[k], order[p] = y, x
    else:
        for v in range(len(coefs)):
            seqs[v, k], seqs[v, p] = seqs[v, p], seqs[v, k]


@kernel
def _scale(n: int, rng: np.random.Generator) -> int:
    """Draw a length from 1 to n - 1, of any order of magnitude."""
    return min(int(np.exp(rng.random() * np.log(n))), n - 1)


@kernel
def _block(
    order: IntArray,
    pairs: FloatArray,
    places: FloatArray,
    ranks: IntArray,
    coefs: FloatArray,
    kind: int,
    rng: np.random.Generator,
) -> None:
    """Propose to reverse a block, or to exchange two blocks that are neighbors."""
    n, other = len(order), order.copy()
    if rng.random() < 0.5:
        length = _scale(n, rng) + 1
        start = min(int(rng.random() * (n - length + 1)), n - length)
        for j in range(length):
            other[start + j] = order[start + length - 1 - j]
    else:
        upper, lower = _scale(n, rng), _scale(n, rng)
        if upper + lower > n:
            return
        length = upper + lower
        start = min(int(rng.random() * (n - length + 1)), n - length)
        for j in range(lower):
            other[start + j] = order[start + upper + j]
        for j in range(upper):
            other[start + lower + j] = order[start + j]
    change = energy_of(other, pairs, places, ranks, coefs, kind)
    change -= energy_of(order, pairs, places, ranks, coefs, kind)
    if change <= 0.0 or rng.random() < np.exp(-change):
        for k in range(n):
            order[k] = other[k]


@kernel
def move_center(
    order: IntArray,
    pairs: FloatArray,
    places: FloatArray,
    ranks: IntArray,
    coefs: FloatArray,
    kind: int,
    blocks: int,
    rng: np.random.Generator,
) -> float:
    """Make a transition of the center in place, and return its energy.

    Every item is relocated once (not at Cayley's distance, where that changes everything), items
    are swapped, and some blocks reversed or exchanged.
    """
    n = len(order)
    if n < 2:
        return energy_of(order, pairs, places, ranks, coefs, kind)
    for _ in range(blocks):
        _block(order, pairs, places, ranks, coefs, kind, rng)
    seqs = np.empty((len(coefs), n), np.int64)
    for v in range(len(coefs)):
        for k in range(n):
            seqs[v, k] = ranks[v, order[k]]
    tails, spare, values = np.empty(n, np.int64), np.empty((3, n), np.int64), np.empty(n)
    cayley = len(coefs) > 0 and kind != 3
    if not cayley:
        for item in range(n):
            inputs = pairs, places, seqs, coefs
            _relocate(order, item, *inputs, tails, spare, values, rng)
    swaps = n // 4 + 1
    if cayley:
        swaps = n * min(n - 1, 16) // 2
    elif len(places) and not len(pairs) and not len(coefs):
        swaps = n * (n - 1) // 2
    for _ in range(swaps):
        k = min(int(rng.random() * n), n - 1)
        p = min(int(rng.random() * (n - 1)), n - 2)
        if p >= k:
            p += 1
        _swap(order, min(k, p), max(k, p), pairs, places, seqs, coefs, kind, tails, rng)
    return energy_of(order, pairs, places, ranks, coefs, kind)
