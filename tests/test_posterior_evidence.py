"""Marginal likelihoods against closed forms and quadrature; exact posteriors against draws."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from permdist import DavidsonLuce, Mallows, PlackettLuce
from permdist.posterior import (
    Gamma,
    Normal,
    bridge_sampling,
    compare_evidence,
    exact,
    problem_of,
    sample,
)

BATTLES = [["tea", "milk"]] * 7 + [["milk", "tea"]] * 3
ORDERS = [[0, 1, 2]] * 5 + [[0, 2, 1]] * 3 + [[1, 0, 2]] * 2 + [[2, 1, 0]]


# ---- bridge sampling -----------------------------------------------------------------------------


def test_known_integrals_within_their_errors():
    misses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        k = 1 + seed % 3
        shape = 2.0 + rng.random(k) * 5.0
        draws = np.log(rng.gamma(shape, size=(4, 400, k)))  # skewed
        found = bridge_sampling(
            lambda x, a=shape: float((a * x - np.exp(x)).sum()), draws, rng=seed
        )
        misses.append((found.log_evidence - special.gammaln(shape).sum()) / found.error)
    # Errors of errors apart, a chi-square of 12 degrees; 43 has probability 2e-5.
    assert np.square(misses).sum() < 43.0
    assert np.abs(misses).max() > 0.01


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    draws = rng.standard_t(8, size=(2, 600, 2))
    one = bridge_sampling(lambda x: float(stats.t.logpdf(x, 8).sum()), draws, rng=1)
    scale = np.array([1e-6, 1e5])
    two = bridge_sampling(
        lambda x: float(stats.t.logpdf(x / scale, 8).sum() - np.log(scale).sum()),
        draws * scale,
        rng=1,
    )
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)
    assert abs(one.log_evidence) < 5.0 * one.error
    assert one.error < 0.05


@pytest.mark.parametrize("shape", [0.7, 3.0])
def test_two_items_with_gamma_worths_are_a_beta_binomial(shape):
    # The chance that tea wins is Beta(shape, shape): conjugate.
    wanted = special.betaln(shape + 7, shape + 3) - special.betaln(shape, shape)
    posterior = sample(PlackettLuce, BATTLES, Gamma(shape, 2.0), draws=400, rng=0)
    found = posterior.log_evidence()
    assert found.log_evidence == pytest.approx(wanted, abs=5.0 * found.error + 1e-9)
    assert found.error < 0.05
    assert posterior.exact().log_evidence == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("prior", [Normal(0.3, 2.0), Normal(0.0, 1.5, centered=True)])
def test_evidence_agrees_with_quadrature(prior):
    problem = problem_of(PlackettLuce, BATTLES, prior)
    # Only the difference matters: it has variance 2 v, and scores sum to 0 or to something.
    sd = np.sqrt(2.0 * float(prior.covariance))
    wanted, _ = integrate.quad(
        lambda d: stats.norm.pdf(d, scale=sd) * special.expit(d) ** 7 * special.expit(-d) ** 3,
        -30,
        30,
    )
    assert exact(problem).log_evidence == pytest.approx(np.log(wanted), abs=1e-7)
    found = sample(problem, draws=400, rng=0).log_evidence()
    assert found.log_evidence == pytest.approx(np.log(wanted), abs=5.0 * found.error)


def test_evidence_of_ties_agrees_with_the_grid():
    battles = [["a", "b"], ["b", "c"], ["c", "a"], [["a", "b"]], ["a", "c"], [["b", "c"]]]
    prior = {"scores": Normal(0.0, 1.0), "log_ties": Normal(0.0, 1.0)}
    posterior = sample(DavidsonLuce, battles, prior, draws=500, rng=0, subset=True)
    found, grid = posterior.log_evidence(), posterior.exact()
    assert found.log_evidence == pytest.approx(grid.log_evidence, abs=5.0 * found.error)
    assert grid.error < 1e-6


def test_models_are_compared_by_bayes_factors():
    wide = sample(PlackettLuce, BATTLES, Gamma(0.2, 1.0), draws=400, rng=0)
    near = sample(PlackettLuce, BATTLES, Gamma(3.0, 1.0), draws=400, rng=0)
    table = compare_evidence({"wide": wide, "near": near})
    betas = {a: special.betaln(a + 7, a + 3) - special.betaln(a, a) for a in (0.2, 3.0)}
    assert list(table.index) == ["near", "wide"]
    row = table.loc["wide"]
    assert row["log_bayes_factor"] == pytest.approx(
        betas[3.0] - betas[0.2], abs=5.0 * row["bayes_factor_error"]
    )
    assert table["probability"].sum() == pytest.approx(1.0)


# ---- exact posteriors ----------------------------------------------------------------------------


def test_exact_moments_and_places_agree_with_draws():
    posterior = sample(PlackettLuce, ORDERS, 0.5, draws=4000, rng=1)
    grid = posterior.exact()
    table = posterior.summary().table
    error = 5.0 * table["mcse"].iloc[:3]
    assert (np.abs(table["mean"].iloc[:3] - grid.mean) < error).all()
    np.testing.assert_allclose(table["sd"].iloc[:3], grid.sd, rtol=0.05)
    assert grid.error < 1e-6
    shares = grid.rank_probabilities()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(posterior.rank_probabilities(), shares, atol=0.03)
    assert "Exact posterior of Plackett-Luce" in grid._repr_html_()


def test_exact_places_of_two_items_are_an_integral():
    grid = exact(problem_of(PlackettLuce, BATTLES, Gamma(1.0, 1.0)))
    # P(p > 1/2) under Beta(8, 4); items are sorted by name.
    wanted = stats.beta.sf(0.5, 8, 4)
    assert grid.rank_probabilities().loc["tea", 1] == pytest.approx(wanted, abs=1e-7)


def test_exact_places_without_data_are_even():
    grid = exact(problem_of(PlackettLuce, None, 1.0, n_items=4))
    np.testing.assert_allclose(grid.rank_probabilities(), 0.25, atol=1e-9)
    assert grid.log_evidence == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bridge_sampling(lambda x: 0.0, np.zeros((2, 20, 1))), "draws: expected at least"),
        (lambda: exact(problem_of(PlackettLuce, [[0, 1, 2, 3, 4, 5]], 1.0)), "at most 4 free par"),
        (lambda: sample(PlackettLuce, ORDERS, draws=20).log_evidence(), "with an improper prior"),
        (lambda: sample(Mallows, ORDERS, Gamma(), draws=9).log_evidence(), "compare"),
        (lambda: sample(Mallows, ORDERS, Gamma(), draws=9).exact(), "exact: known for smooth"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
