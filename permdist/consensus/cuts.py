"""Cuts that no order violates, from triangles: the halves of their sums, rounded down.

Each triangle is an inequality ``a x <= b`` in whole numbers. A sum of triangles and of bounds
``0 <= x <= 1`` whose coefficients are even can be halved, and if its right side is odd, rounding
that down cuts off a part of the linear relaxation, but no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

FRACTION = 1e-6  # numbers that are closer to 0 or 1 than this are whole
NEAR = 0.35  # a triangle and a bound that are used lack this much of equality, at most
VIOLATED = 0.02  # a cut is violated by more than this
SOURCES = 400  # pairs from which circles are looked for
PER_EDGE = 1e-4  # makes short circles better than long ones


class Cuts(NamedTuple):
    """Inequalities ``matrix @ x <= limits`` for the pairs of items, one per row."""

    matrix: sparse.csr_array
    limits: FloatArray

    @classmethod
    def none(cls, n_pairs: int) -> Cuts:
        """Return no inequalities."""
        return cls(sparse.csr_array((0, n_pairs)), np.zeros(0))

    def __add__(self, other: Cuts) -> Cuts:  # type: ignore[override]
        """Return the cuts of both, each once."""
        matrix = sparse.csr_array(sparse.vstack([self.matrix, other.matrix]))
        limits = np.append(self.limits, other.limits)
        seen: dict[bytes, int] = {}
        for row in range(len(limits)):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            content = matrix.indices[part].tobytes() + matrix.data[part].tobytes()
            seen.setdefault(content, row)
        return Cuts(matrix, limits).kept(np.array(list(seen.values()), dtype=np.int64))

    def kept(self, rows: IntArray) -> Cuts:
        """Return some of the cuts."""
        return Cuts(self.matrix[rows], self.limits[rows])


def triangle_rows(triangles: IntArray, place: IntArray, n_pairs: int) -> Cuts:
    """Return triangles as inequalities.

    Parameters
    ----------
    triangles : array of int, shape (triangles, 4)
        Items i < j < k, and 1 for ``x_ij + x_jk - x_ik <= 1``, 0 for the same sum ``>= 0``.
    place : array of int, shape (n, n)
        The number of each pair.
    n_pairs : int
    """
    i, j, k, upper = triangles.T
    sign = np.where(upper == 1, 1.0, -1.0)
    columns = np.stack([place[i, j], place[j, k], place[i, k]], axis=1)
    values = np.stack([sign, sign, -sign], axis=1)
    matrix = sparse.csr_array(
        (values.ravel(), columns.ravel(), 3 * np.arange(len(triangles) + 1)),
        shape=(len(triangles), n_pairs),
    )
    return Cuts(matrix, (upper == 1).astype(np.float64))


def odd_circles(matrix: FloatArray, place: IntArray, most: int) -> Cuts:
    """Find cuts that a solution of the relaxation violates, the deepest first.

    Of a triangle that is nearly an equality, one pair is rounded to 0 or 1, and the other two are
    joined by an edge, odd or even as its right side is then. A circle with an odd number of odd
    edges is a sum of triangles in which every pair at a corner occurs twice. It is violated if its
    edges lack less than 1 of equality, which shortest paths tell (Caprara and Fischetti, 1996).

    Parameters
    ----------
    matrix : array of float, shape (n, n)
        ``matrix[i, j]`` for i < j is x_ij, and ``matrix[j, i]`` is ``1 - x_ij``.
    place : array of int, shape (n, n)
        The number of each pair i < j.
    most : int
        The number of cuts.
    """
    n = len(matrix)
    n_pairs = n * (n - 1) // 2
    x = np.empty(n_pairs)
    upper = np.triu_indices(n, 1)
    x[place[upper]] = matrix[upper]
    size = _edges(matrix, place, np.empty((0, 7), np.int64), np.empty(0))
    edges, lacks = np.empty((size, 7), np.int64), np.empty(size)
    _edges(matrix, place, edges, lacks)
    if not size:
        return Cuts.none(n_pairs)
    circles = _shortest_circles(edges, lacks, x)
    found: list[Cuts] = []
    depths: list[float] = []
    for circle in circles:
        row, limit = _halved(triangle_rows(edges[circle, 3:], place, n_pairs), x)
        depth = float(row @ x) - limit
        if depth > VIOLATED:
            found.append(Cuts(sparse.csr_array(row[None, :]), np.array([limit])))
            depths.append(depth / float(np.linalg.norm(row)))
    every = Cuts.none(n_pairs)
    chosen = np.argsort(-np.array(depths), kind="stable")[:most]
    if len(chosen):
        every = Cuts(
            sparse.csr_array(sparse.vstack([found[one].matrix for one in chosen])),
            np.concatenate([found[one].limits for one in chosen]),
        )
    return Cuts.none(n_pairs) + every


def _halved(rows: Cuts, x: FloatArray) -> tuple[FloatArray, float]:
    """Add up rows, make all coefficients even by the nearer bounds, halve, and round down."""
    total = np.asarray(rows.matrix.sum(axis=0)).ravel()
    limit = float(rows.limits.sum())
    odd = total % 2.0 == 1.0
    up = odd & (x > 0.5)
    total[odd] -= 1.0
    total[up] += 2.0
    limit += float(up.sum())
    return total / 2.0, float(np.floor(limit / 2.0))


def _shortest_circles(edges: IntArray, lacks: FloatArray, x: FloatArray) -> list[IntArray]:
    """Return the shortest odd circle through each of some pairs, as numbers of edges."""
    pairs, ends = np.unique(edges[:, :2], return_inverse=True)
    ends = np.sort(ends.reshape(-1, 2), axis=1)
    m = len(pairs)
    # Each pair twice: after an even and after an odd number of odd edges.
    odd = edges[:, 2]
    tails = np.concatenate([ends[:, 0], ends[:, 0] + m])
    heads = np.concatenate([ends[:, 1] + m * odd, ends[:, 1] + m * (1 - odd)])
    keys = np.concatenate([tails * 2 * m + heads, heads * 2 * m + tails])
    number = np.tile(np.arange(len(edges)), 4)
    best = np.lexsort((lacks[number], keys))
    best = best[np.append(True, np.diff(keys[best]) > 0)]
    keys, number = keys[best], number[best]
    graph = sparse.csr_array(
        (lacks[number] + PER_EDGE, (keys // (2 * m), keys % (2 * m))), shape=(2 * m, 2 * m)
    )
    sources = np.argsort(np.abs(x[pairs] - 0.5), kind="stable")[:SOURCES]
    lengths, before = csgraph.dijkstra(graph, indices=sources, return_predecessors=True, limit=1.0)
    result = []
    for row, source in enumerate(sources):
        at, path = source + m, []
        if lengths[row, at] >= 1.0 - VIOLATED:
            continue
        while at != source:
            path.append(before[row, at] * 2 * m + at)
            at = before[row, at]
        result.append(number[np.searchsorted(keys, path)])
    return result


@kernel
def _edges(matrix: FloatArray, place: IntArray, edges: IntArray, lacks: FloatArray) -> int:
    """Return the number of edges, and write them out if there is room.

    A row of `edges` is pair, pair, odd, i, j, k, upper, with ``i < j < k`` and `upper` as in
    `triangle_rows`; `lacks` is how far the triangle and the bound are from equality.
    """
    n, used = len(matrix), 0
    values, numbers = np.empty(3), np.empty(3, np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                values[0], values[1], values[2] = matrix[i, j], matrix[j, k], matrix[i, k]
                total = values[0] + values[1] - values[2]
                numbers[0], numbers[1], numbers[2] = place[i, j], place[j, k], place[i, k]
                for upper in range(2):
                    slack = max(0.0, 1.0 - total if upper == 1 else total)
                    for left_out in range(3):
                        a, b = (left_out + 1) % 3, (left_out + 2) % 3
                        whole = values[left_out]
                        lack = slack + min(whole, 1.0 - whole)
                        if lack > NEAR or not (
                            FRACTION < values[a] < 1.0 - FRACTION
                            and FRACTION < values[b] < 1.0 - FRACTION
                        ):
                            continue
                        if used < len(edges):
                            edges[used, 0], edges[used, 1] = numbers[a], numbers[b]
                            edges[used, 2] = (upper + (1 if whole > 0.5 else 0)) % 2
                            edges[used, 3], edges[used, 4], edges[used, 5] = i, j, k
                            edges[used, 6] = upper
                            lacks[used] = max(lack, 0.0)
                        used += 1
    return used
