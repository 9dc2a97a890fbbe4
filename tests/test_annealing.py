"""Estimates of log-partition functions against exact ones, with errors that can be believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from extension.distribution import Constants, Footrule
from scipy.special import gammaln, logsumexp

from permdist import GoodBad, PlackettLuce, WeightedOrders
from permdist.distributions import NotExactError
from permdist.rankings import enumerate_orders
from permdist.samplers import estimate_log_partition
from permdist.samplers.annealing import VARIANCE
from permdist.targets import target_of


def good_bad(n, spread, **options):
    rng = np.random.default_rng(n)
    return GoodBad(spread * rng.normal(size=n), rng.permutation(np.arange(n) % 3 == 0), **options)


MODELS = {
    "weak": good_bad(16, 0.02),
    "medium": good_bad(12, 0.3),
    "strong": good_bad(10, 1.5),
    "graded": GoodBad(np.linspace(-0.5, 0.5, 12), np.arange(12) % 4),
    "tilted": good_bad(10, 0.2, tilt="ap", kappa=5.0),
    "wide": GoodBad([1e8, 1.0, 0.8, 0.7, -1e8], [1, 0, 1, 0, 0]),
    "pairs": WeightedOrders.from_pairs(-0.6 * np.tri(8, k=-1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimates_agree_with_exact_values(name):
    model = MODELS[name]
    found = [estimate_log_partition(model, 60, rng=seed) for seed in range(3)]
    exact = target_of(model).normalizer  # without the reference of wide scores
    means = np.array([logsumexp(one.log_weights) - np.log(60) for one in found])
    errors = [one.standard_error for one in found]
    z = (means - exact) / errors
    gaps = [one.value - model.log_partition() for one in found]
    np.testing.assert_allclose(gaps, means - exact, atol=1e-15 * abs(found[0].value) + 1e-9)
    assert np.abs(z).max() < 4.5
    assert abs(z.sum()) / np.sqrt(3.0) < 4.0
    kernel = "relocation" if name in ("tilted", "pairs") else "block"
    assert all(one.kernel == kernel and one.draws == 60 for one in found)
    assert all(20.0 < one.effective_sample_size <= 60.0 for one in found)
    assert all(one.temperatures[0] == 0.0 and one.temperatures[-1] == 1.0 for one in found)
    assert all((np.diff(one.temperatures) > 0.0).all() for one in found)


def test_the_variance_of_a_draw_is_the_one_asked_for():
    model = good_bad(40, 0.05)
    found = estimate_log_partition(model, 100, rng=0)
    assert 0.5 * VARIANCE < found.log_weights.var() < 2.0 * VARIANCE
    finer = estimate_log_partition(model, 100, steps=4 * found.steps, rng=0)
    assert finer.steps == 4 * found.steps
    assert finer.standard_error < 0.7 * found.standard_error
    gap = np.hypot(found.standard_error, finer.standard_error)
    assert abs(found.value - finer.value) < 4.5 * gap


def test_the_block_step_serves_tilted_models_on_request():
    model = MODELS["tilted"]
    found = estimate_log_partition(model, 100, kernel="block", thin=2, rng=0)
    assert abs(found.value - model.log_partition()) < 4.5 * found.standard_error


def test_equal_weights_leave_no_error():
    found = estimate_log_partition(GoodBad(np.zeros(30), np.arange(30) < 9), 10, rng=0)
    assert found.value == pytest.approx(gammaln(31.0), rel=1e-14)
    assert found.standard_error < 1e-12
    assert found.effective_sample_size == pytest.approx(10.0)


def test_a_target_from_outside_that_can_be_tempered():
    class Tempered(Footrule):
        def _target(self):
            target = super()._target()
            constants = target.constants
            functions = {
                name: getattr(target, name).py_func for name in ("peek", "restore", "swap")
            }

            def temper(share):
                return Constants(share * constants.theta, constants.center)

            return replace(target, temper=temper, **functions)

    model = Tempered(4, 0.3)
    exact = logsumexp(model.log_weight(enumerate_orders(4)))
    found = estimate_log_partition(model, 60, rng=0)
    assert abs(found.value - exact) < 4.5 * found.standard_error
    assert found.kernel == "relocation"


def test_the_same_seed_gives_the_same_bits():
    one, two, other = (estimate_log_partition(MODELS["graded"], 20, rng=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.log_weights, two.log_weights)
    assert one.value == two.value != other.value


def test_few_effective_draws_are_reported():
    model = good_bad(30, 1.0)
    with pytest.warns(RuntimeWarning, match=r"only \d.* of 40 draws are effective.*steps=8 or"):
        estimate_log_partition(model, 40, steps=2, rng=0)


def test_requests_that_cannot_be_met():
    model = MODELS["medium"]
    for other in (PlackettLuce([1.0, 0.0]), good_bad(9, 0.1, space="interleavings")):
        with pytest.raises(ValueError, match=r"dist: expected GoodBad over orders.*got"):
            estimate_log_partition(other)
    with pytest.raises(TypeError, match="dist: expected a Distribution, got str"):
        estimate_log_partition("model")
    for options, message in (
        ({"draws": 1}, "draws"),
        ({"steps": 0}, "steps"),
        ({"thin": 0}, "thin"),
        ({"kernel": "blok"}, "expected one of .*did you mean 'block'"),
        ({"kernel": "exact"}, "cannot be part of a mixture"),
    ):
        with pytest.raises(ValueError, match=message):
            estimate_log_partition(model, **options)
    with pytest.raises(ValueError, match="'block' needs a log-weight that adds up over pairs"):
        estimate_log_partition(MODELS["pairs"], kernel="block")


@pytest.mark.parametrize("model", [good_bad(40, 0.1), WeightedOrders.from_pairs(np.eye(40))])
def test_where_exact_sums_end_the_message_names_the_estimate(model):
    with pytest.raises(NotExactError, match=r"exact up to 21 items.*estimate_log_partition"):
        model.log_partition()
    assert target_of(model).temper is not None
