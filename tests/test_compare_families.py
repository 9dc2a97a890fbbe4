"""Which family fits: data of each family are recognized, and every number is what it says."""

import naive
import numpy as np
import pytest

from permdist import Ballots, Mallows, PlackettLuce
from permdist.distributions import compare_families


@pytest.mark.parametrize(
    ("truth", "name"),
    [
        (Mallows([0, 1, 2, 3], 0.0), "uniform"),
        (Mallows([2, 0, 3, 1], 1.0), "mallows (kendall)"),
        (Mallows([2, 0, 3, 1], 1.0, "hamming"), "mallows (hamming)"),
        (PlackettLuce([2.5, 0.0, 0.2, -0.2]), "plackett-luce"),
    ],
)
def test_data_of_each_family_are_recognized(truth, name):
    ballots = truth.sample(600, rng=1)
    found = compare_families(ballots, distances=["kendall", "hamming"], rng=0)
    assert found.families == ("uniform", "mallows (kendall)", "mallows (hamming)", "plackett-luce")
    at = found.families.index(name)
    # With theta 0 the uniform model is one of each family: none is much better.
    assert found.behind[at] <= 2.0 * found.error[at] + 1e-12
    if name != "uniform":
        assert found.best == name
        others = np.arange(4) != at
        assert (found.behind[others] > 3.0 * found.error[others]).all()
        assert found.bic.argmin() == at
    for model, value in zip(found.models, found.log_likelihood, strict=True):
        assert model.log_prob(ballots).sum() == pytest.approx(value)
    expected = found.n_parameters * np.log(600) - 2 * found.log_likelihood
    assert found.bic == pytest.approx(expected)
    assert found.n_parameters.tolist() == [0, 1, 1, 3]


def test_left_out_ballots_are_scored_by_fits_to_the_others():
    ballots = Mallows([1, 0, 2], 0.8).sample(20, rng=0)
    found = compare_families(ballots, ["mallows", "uniform"], folds=20, prior=0.0, rng=3)
    left = [
        Mallows.fit(np.delete(ballots, row, axis=0)).log_prob(ballots[row]) for row in range(20)
    ]
    assert found.left_out == pytest.approx([np.mean(left), -np.log(6.0)])
    worse = int(found.left_out.argmin())
    assert found.behind[worse] == pytest.approx(abs(np.mean(left) + np.log(6.0)))
    assert found.error[1 - worse] == 0.0
    signed = np.array(left) + np.log(6.0)
    assert found.error[worse] == pytest.approx(signed.std(ddof=1) / 20**0.5)


def test_errors_do_not_depend_on_the_unit_of_weights():
    ballots = Mallows([1, 0, 2], 0.8).sample(40, rng=0)
    one, half = (
        compare_families(ballots, ["mallows", "uniform"], prior=0.0, weights=weights, rng=3)
        for weights in (None, np.full(40, 0.5))
    )
    np.testing.assert_allclose(half.behind, one.behind, atol=1e-9)
    np.testing.assert_allclose(half.error, one.error, atol=1e-9)


def test_first_places_and_ties():
    ballots = Mallows([2, 0, 3, 1], 1.2).sample(300, rng=1)
    tops = compare_families(ballots[:, :2], subset=False, n_items=4, rng=0)
    assert tops.best == "mallows (kendall)"
    assert tops.left_out[0] == pytest.approx(-np.log(12.0))
    tied = Ballots.from_orders([[a, [b, c], d] for a, b, c, d in ballots.tolist()])
    found = compare_families(tied, ["uniform", "mallows"], rng=0)
    assert found.best == "mallows (kendall)"
    assert found.left_out[0] == pytest.approx(-np.log(12.0))
    text = repr(found)
    assert text.splitlines()[0] == "4 items, 300 ballots; 5 folds, best: mallows (kendall)"
    assert "log-likelihood" in text
    assert list(found.to_frame().index) == ["uniform", "mallows (kendall)"]
    assert "<table" in found._repr_html_()
    naive.refuses(lambda: compare_families(tied), ValueError, "none with ties")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"families": ["other"]}, ValueError, "families: expected"),
        ({"families": "mallows"}, TypeError, "expected a sequence of names"),
        ({"families": []}, ValueError, "at least one"),
        ({"distances": ["other"]}, ValueError, "distances: expected"),
        ({"folds": 1}, ValueError, "folds: expected"),
    ],
)
def test_mistakes_are_named(options, error, message):
    naive.refuses(lambda: compare_families([[0, 1], [1, 0]], **options), error, message)
