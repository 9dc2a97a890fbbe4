"""Laplacian equations, solved by elimination."""

import numpy as np
import pytest

from permdist.distributions.newton import Network, Products


def laplacian(conductances):
    matrix = -conductances
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 23])
def test_solutions_and_inverses(n):
    rng = np.random.default_rng(n)
    conductances = rng.random((n, n))
    conductances += conductances.T
    matrix = laplacian(conductances.copy())
    right = rng.normal(size=n)
    right -= right.mean()
    errors = rng.random(n) * 1e-9
    network = Network(conductances, lambda: errors)
    expected = np.linalg.pinv(matrix)
    assert network.inverse() == pytest.approx(expected, abs=1e-13)
    assert network.solve(right) == pytest.approx(expected @ right, abs=1e-13)
    # No choice of signs of the errors moves a score by more.
    signs = rng.choice([-1.0, 1.0], size=(100, n)) * errors
    signs[:, network.firm] -= signs.sum(axis=1)
    assert np.abs(signs @ expected).max() <= network.rounding() + 1e-20
    if n > 2:
        scale = np.diagonal(matrix)
        products = Products(
            lambda v: matrix @ v, lambda r: r / scale, 1e-16 * scale, int(scale.argmax())
        )
        assert products.solve(right, 1e-12) == pytest.approx(expected @ right, abs=1e-10)


def test_ties_of_any_strength_keep_their_digits():
    # A chain: the difference over each link is the flow over its conductance.
    strength = 10.0 ** np.array([0.0, -30.0, 25.0, -60.0, 3.0])
    conductances = np.zeros((6, 6))
    for link, value in enumerate(strength):
        conductances[link, link + 1] = conductances[link + 1, link] = value
    right = np.array([1e-20, 0.0, 0.0, 0.0, 0.0, -1e-20])
    found = -np.diff(Network(conductances, lambda: np.zeros(6))._relative(right))
    assert found[3] == pytest.approx(1e40, rel=1e-14)
    assert Network(conductances, lambda: np.zeros(6)).rounding() == 0.0
