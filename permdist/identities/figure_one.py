"""The four identities of Figure 1 of Dubey et al.: sums over sign vectors without listing them.

Each function of one sign is a pair ``(f(-1), f(+1))``; an instance is an array of shape (n, 2).
"""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.identities.catalogue import Residual, claims_of, relative

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray

_claim = claims_of("Dubey et al. 2009, Figure 1")


def _functions(*names: str) -> Any:
    from hypothesis import strategies as st

    value = st.floats(-3, 3, allow_nan=False, allow_subnormal=False)

    def of_size(n: int) -> Any:
        table = st.lists(st.tuples(value, value).map(list), min_size=n, max_size=n)
        return st.fixed_dictionaries(dict.fromkeys(names, table))

    return st.integers(1, 6).flatmap(of_size)


def _listed(n: int) -> FloatArray:
    """List all sign vectors as columns 0 (for -1) and 1 (for +1), shape (2^n, n)."""
    return np.array(list(itertools.product((0, 1), repeat=n)))


def _chosen(table: FloatArray, signs: FloatArray) -> FloatArray:
    return table[np.arange(len(table)), signs]


def _others(table: FloatArray) -> FloatArray:
    """Multiply the sums h(-1) + h(+1) of all factors but one."""
    sums = table.sum(axis=1)
    return np.array([np.prod(np.delete(sums, i)) for i in range(len(sums))])


def _line(number: int, statement: str) -> Callable[[Residual], Residual]:
    """Add a line of the figure; instances have a table for each parameter of its function."""

    def register(residual: Residual) -> Residual:
        names = inspect.signature(residual).parameters
        return _claim(statement, f"line {number}", lambda: _functions(*names))(residual)

    return register


@_line(1, "sum over signs of prod h_i(a_i) = prod (h_i(-1) + h_i(1))")
def sum_product(h: ArrayLike) -> float:
    """Compare the factored sum of products with the listed one."""
    table = np.asarray(h, dtype=float)
    listed = _chosen(table, _listed(len(table))).prod(axis=1).sum()
    return relative(table.sum(axis=1).prod(), listed)


@_line(2, "2^(2-n) sum over signs of (sum f)(sum h) = 2 sum (fh(-1) + fh(1)) + sum over i != j")
def sum_sum(f: ArrayLike, h: ArrayLike) -> float:
    """Compare the closed sum of products of two sums with the listed one."""
    a, b = np.asarray(f, dtype=float), np.asarray(h, dtype=float)
    signs = _listed(len(a))
    listed = (_chosen(a, signs).sum(axis=1) * _chosen(b, signs).sum(axis=1)).sum()
    outer = np.outer(a.sum(axis=1), b.sum(axis=1))
    closed = 2.0 * (a * b).sum() + outer.sum() - np.trace(outer)
    return relative(closed, listed * 2.0 ** (2 - len(a)))


@_line(3, "sum over signs of (sum f)(prod h) = sum_i (fh(-1) + fh(1)) prod over j != i")
def sum_times_product(f: ArrayLike, h: ArrayLike) -> float:
    """Compare the factored sum times product with the listed one."""
    a, b = np.asarray(f, dtype=float), np.asarray(h, dtype=float)
    signs = _listed(len(a))
    listed = (_chosen(a, signs).sum(axis=1) * _chosen(b, signs).prod(axis=1)).sum()
    return relative((a * b).sum(axis=1) @ _others(b), listed)


@_line(4, "sum over signs of (sum f)(sum g)(prod h) splits into i != j and i = j")
def two_sums_times_product(f: ArrayLike, g: ArrayLike, h: ArrayLike) -> float:
    """Compare the factored product of two sums and a product with the listed one."""
    a, b, c = (np.asarray(table, dtype=float) for table in (f, g, h))
    signs = _listed(len(a))
    sums = _chosen(a, signs).sum(axis=1) * _chosen(b, signs).sum(axis=1)
    listed = (sums * _chosen(c, signs).prod(axis=1)).sum()
    n, whole = len(a), c.sum(axis=1)
    with_a, with_b = (a * c).sum(axis=1), (b * c).sum(axis=1)
    closed = (a * b * c).sum(axis=1) @ _others(c)
    for i, j in itertools.permutations(range(n), 2):
        closed += with_a[i] * with_b[j] * np.prod(np.delete(whole, [i, j]))
    return relative(closed, listed)
