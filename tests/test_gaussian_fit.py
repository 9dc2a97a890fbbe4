"""Fits of Gaussian scores: the unit does not matter, and the maximum is reached."""

import numpy as np
import pytest
from scipy.special import ndtri

from permdist import GaussianScores

ORDERS = GaussianScores([1.0, 0.2, -0.3, -0.9]).sample(60, rng=0)


@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e-4, 3.7, 1e8, 1e100, 1e250])
def test_the_estimate_does_not_depend_on_the_unit(scale):
    plain, scaled = GaussianScores.fit(ORDERS), GaussianScores.fit(ORDERS, scale=scale)
    assert scaled.scores / scale == pytest.approx(plain.scores, rel=1e-12)
    assert scaled.scale == scale


@pytest.mark.parametrize("scale", [1e-50, 1e-4, 1e8, 1e50])
def test_the_penalty_is_in_the_unit_of_the_scores(scale):
    plain = GaussianScores.fit(ORDERS[:5], regularization=2.0)
    scaled = GaussianScores.fit(ORDERS[:5], scale=scale, regularization=2.0 / scale / scale)
    assert scaled.scores / scale == pytest.approx(plain.scores, rel=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 1e3, 1e5, 1e7])
def test_two_items_have_a_closed_form(ratio):
    model = GaussianScores.fit([[0, 1], [1, 0]], weights=[ratio, 1.0], scale=2.0)
    expected = 2.0 * np.sqrt(2.0) * ndtri(ratio / (1.0 + ratio))
    assert model.scores[0] - model.scores[1] == pytest.approx(expected, abs=2e-7)
    assert model.scores.sum() == pytest.approx(0.0, abs=1e-12)


def test_what_floats_cannot_tell_is_refused():
    with pytest.raises(RuntimeError, match=r"rounding errors alone may move .* regularization"):
        GaussianScores.fit([[0, 1], [1, 0]], weights=[1e12, 1.0])


def test_the_gradient_vanishes_at_the_estimate():
    weights = np.random.default_rng(0).integers(1, 100, len(ORDERS))
    model = GaussianScores.fit(ORDERS, weights=weights, regularization=3.0)
    slope = weights @ model.log_prob_gradient(ORDERS) - 3.0 * model.scores
    assert np.abs(slope).max() / weights.sum() < 1e-7
    repeated = GaussianScores.fit(np.repeat(ORDERS, weights, axis=0), regularization=3.0)
    assert repeated.scores == pytest.approx(model.scores, abs=2e-7)


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        ([[0, 1], [2, 0]], {}, r"expected full rankings, got lists of 2 item\(s\) with item 2;"),
        ([[0, 1], [1, 0]], {"scale": 0.0}, "scale: expected a positive number from 1e-290 to 1e"),
        ([[0, 1], [1, 0]], {"scale": np.nan}, "scale: expected finite numbers"),
        ([[0, 1], [1, 0]], {"max_iter": 0}, "max_iter: expected at least 1"),
        ([[0, 1], [1, 0]], {"weights": [1e308, 1e308]}, "weights: expected a sum between"),
        ([[0, 1]], {"regularization": 1.0, "scale": 1e200}, "over the square of scale, 1e"),
        ([[0, 1]], {"regularization": 1.0, "scale": 1e-200}, "over the square of scale, 1e-200"),
        ([[0, 1]], {"regularization": np.nan}, "regularization: expected a non-negative"),
    ],
)
def test_what_cannot_be_fitted(orders, options, message):
    with pytest.raises(ValueError, match=message):
        GaussianScores.fit(orders, **options)
