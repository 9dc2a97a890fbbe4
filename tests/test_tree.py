"""Sums over blocks have the same bits however the blocks are shared out."""

import itertools

import naive
import numpy as np
import pytest

from permdist.models.solvers.tree import fold, join


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 13, 32, 33, 100])
def test_any_partition_has_the_bits_of_the_tree(number):
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(number, 6)) * 10.0 ** rng.integers(-8, 9, size=(number, 1))
    wanted = naive.tree_sum(rows)
    np.testing.assert_allclose(wanted[2:], rows[:, 2:].sum(axis=0), rtol=1e-9)
    assert wanted[1] == rows[:, 1].max()
    assert join(fold(rows)).tobytes() == wanted.tobytes()
    for _ in range(10):
        cuts = np.unique(np.r_[0, rng.integers(0, number + 1, size=4), number])
        parts = [fold(rows[a:b], first=a) for a, b in itertools.pairwise(cuts)]
        assert all(len(part) <= 2 * np.log2(number) + 1 for part in parts)
        rng.shuffle(parts)
        assert join(itertools.chain.from_iterable(parts)).tobytes() == wanted.tobytes()


def test_an_aligned_part_sends_one_row():
    assert [len(fold(np.ones((8, 4)), first=first)) for first in (0, 8, 4)] == [1, 1, 2]
