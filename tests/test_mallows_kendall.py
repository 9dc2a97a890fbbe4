"""Draws by stages: the same random numbers give the same orders as lists of the items left."""

import naive
import numpy as np
import pytest

from permdist.distances import Kendall


@pytest.mark.parametrize("theta", [1e-5, 0.01, 0.3, 4.0])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 130, 300])
def test_draws_take_items_out_of_a_list(n, theta):
    thetas = theta * np.linspace(1.0, 2.0, n - 1)
    times = np.random.default_rng(7).standard_exponential((80, n - 1))
    found = Kendall(n, thetas).sample(80, np.random.default_rng(7))
    expected = [naive.kendall_stages(thetas, row) for row in times]
    assert found.tolist() == expected
