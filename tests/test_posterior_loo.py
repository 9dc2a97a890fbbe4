"""Leaving out one of several equal ballots is the same as with every ballot written out."""

import numpy as np
import pytest
from scipy.special import logsumexp

from permdist import Ballots, GaussianScores, Mallows, PlackettLuce
from permdist.diagnostics.exchange import has_trees
from permdist.posterior import Posterior, compare, load, problem_of, sample

ORDERS, WEIGHTS = [[0, 1, 2], [1, 2, 0], [2, 0, 1]], [30, 20, 5]
WRITTEN = [order for order, w in zip(ORDERS, WEIGHTS, strict=True) for _ in range(w)]


@pytest.fixture(scope="module")
def both():
    weighted = sample(
        PlackettLuce, Ballots.from_orders(ORDERS, weights=WEIGHTS), 1.0, draws=300, rng=1
    )
    # The same draws for both, so that nothing differs but the way of writing ballots down.
    written = Posterior(
        problem_of(PlackettLuce, WRITTEN, 1.0), weighted.draws, weighted.log_density
    )
    return weighted, written


def numbers(found):
    """Return the estimate, its error, the effective parameters, the size; of each generation."""
    if has_trees():
        return found.elpd, found.se, found.p, found.n_data_points
    return tuple(found[key] for key in ("elpd_loo", "se", "p_loo", "n_data_points"))


@pytest.mark.parametrize("options", [{}] if has_trees() else [{}, {"scale": "deviance"}])
def test_weights_are_copies(both, options):
    one, two = (each.loo(pointwise=True, **options) for each in both)
    assert numbers(one) == pytest.approx(numbers(two), rel=1e-9)
    each = (one.elpd_i, two.elpd_i) if has_trees() else (one["loo_i"], two["loo_i"])
    np.testing.assert_allclose(*each, rtol=1e-9)
    _, _, parameters, size = numbers(one)
    assert parameters < 4
    assert size == 55
    assert "55" in str(one)


def test_the_estimate_is_that_of_leaving_out(both):
    # Importance sampling from posteriors of so few parameters needs no smoothing.
    values = both[1].log_likelihood().reshape(-1, 55)
    expected = np.log(len(values)) - logsumexp(-values, axis=0)
    assert numbers(both[1].loo())[0] == pytest.approx(expected.sum(), abs=0.01)


def test_the_order_of_models_is_the_same(both):
    tables = []
    for ballots, pl in zip((both[0].problem.ballots, WRITTEN), both, strict=True):
        gaussian = sample(GaussianScores, ballots, 1.0, draws=200, rng=2)
        mallows = sample(Mallows, ballots, draws=200, rng=2)
        tables.append(compare({"pl": pl, "gaussian": gaussian, "mallows": mallows}))
    assert list(tables[0].index) == list(tables[1].index)
    name = "elpd" if has_trees() else "elpd_loo"
    np.testing.assert_allclose(tables[0][name], tables[1][name], atol=0.5)
    np.testing.assert_allclose(tables[0]["dse"], tables[1]["dse"], atol=0.3)
    if not has_trees():
        waic = compare({"a": both[0], "b": both[0]}, ic="waic")
        assert waic["p_waic"].max() < 4


def test_files_know_the_weights(both, tmp_path):
    both[0].save(tmp_path / "draws.nc")
    again = load(tmp_path / "draws.nc")
    assert numbers(again.loo()) == pytest.approx(numbers(both[0].loo()))


def test_what_is_refused(both):
    with pytest.raises(ValueError, match="got other weights"):
        compare({"one": both[0], "two": both[1]})
    half = sample(PlackettLuce, Ballots.from_orders(ORDERS, weights=[1, 2.5, 1]), 1.0, draws=20)
    with pytest.raises(ValueError, match=r"whole numbers of ballots.*2.5 for observation 1"):
        half.loo()
    timed = Ballots.from_orders(ORDERS, times=[0.0, 1.0, 2.0])
    faded = sample(PlackettLuce, timed, 1.0, draws=20, half_life=1.0)
    with pytest.raises(ValueError, match="no half_life"):
        compare({"one": faded, "two": faded})
