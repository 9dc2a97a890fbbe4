"""The same log-densities in JAX: values, gradients, and draws by other samplers."""

import naive
import numpy as np
import pytest

from permdist import DavidsonLuce, GaussianScores, Mallows, PlackettLuce
from permdist.posterior import Gamma, Normal, problem_of, sample, to_jax
from permdist.posterior.interop import value_and_gradient

ORDERS = [[0, 1, 2, 3]] * 4 + [[1, 0, 3, 2]] * 3 + [[3, 2, 0, 1]] * 2
TIES = [["a", "b"], ["b", "c"], ["c", "a"], [["a", "b"]], ["a", "c"], [["b", "c"]]]
PROBLEMS = {
    "normal": lambda: problem_of(PlackettLuce, ORDERS, Normal(0.2, 2.0)),
    "centered": lambda: problem_of(PlackettLuce, ORDERS, 0.5),
    "gamma": lambda: problem_of(PlackettLuce, ORDERS, Gamma(2.0, 1.0)),
    "ties": lambda: problem_of(
        DavidsonLuce,
        TIES,
        {"scores": Normal(0.0, 1.0), "log_ties": Normal(0.0, 1.0)},
        subset=True,
    ),
    "features": lambda: problem_of(
        PlackettLuce, ORDERS, 1.0, features=np.random.default_rng(0).normal(size=(4, 2))
    ),
    "gaussian": lambda: problem_of(GaussianScores, ORDERS, Normal(0.0, 1.0)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients_agree_with_difference_quotients(name):
    problem = PROBLEMS[name]()
    both = value_and_gradient(problem)
    rng = np.random.default_rng(1)
    theta = 0.7 * rng.normal(size=problem.n_parameters)
    slopes = naive.gradient(lambda at: both(at)[0], theta)
    np.testing.assert_allclose(both(theta)[1], slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["normal", "gamma", "ties", "gaussian"])
def test_it_is_prior_times_likelihood(name):
    problem = PROBLEMS[name]()
    theta = 0.5 * np.random.default_rng(2).normal(size=problem.n_parameters)
    value, _ = value_and_gradient(problem)(theta)
    assert value == pytest.approx(float(problem.log_density(theta[None])[0]), abs=1e-10)
    if name != "gaussian":
        likelihood, _ = value_and_gradient(problem, prior=False)(theta)
        assert likelihood == pytest.approx(problem.log_likelihood(theta[None]).sum(), abs=1e-10)


def test_refusals():
    with pytest.raises(TypeError, match="expected a smooth one"):
        value_and_gradient(problem_of(Mallows, ORDERS, Gamma(1.0, 1.0)))
    both = value_and_gradient(PROBLEMS["normal"]())
    with pytest.raises(ValueError, match="expected 4 parameters"):
        both(np.zeros(3))
    assert both(np.full(4, np.nan))[0] == -np.inf


def test_jax_has_values_and_gradients():
    jax = pytest.importorskip("jax")
    with (
        jax.experimental.enable_x64()
        if hasattr(jax.experimental, "enable_x64")
        else (jax.enable_x64(True))
    ):
        problem = PROBLEMS["ties"]()
        log_density, both = to_jax(problem), value_and_gradient(problem)
        theta = np.linspace(-1.0, 1.0, problem.n_parameters)
        value, gradient = jax.jit(jax.value_and_grad(log_density))(theta)
        assert float(value) == pytest.approx(both(theta)[0], abs=1e-12)
        np.testing.assert_allclose(gradient, both(theta)[1], atol=1e-12)
        rows = np.stack([theta, 2.0 * theta, -theta])
        many = jax.vmap(log_density)(rows)
        np.testing.assert_allclose(many, [both(row)[0] for row in rows], atol=1e-12)


def test_nuts_draws_from_the_same_posterior():
    jax = pytest.importorskip("jax")
    numpyro = pytest.importorskip("numpyro")
    problem = PROBLEMS["normal"]()
    log_likelihood = to_jax(problem, prior=False)

    def model():
        normal = numpyro.distributions.Normal(0.2, np.sqrt(2.0)).expand([4]).to_event(1)
        scores = numpyro.sample("scores", normal)
        numpyro.factor("ballots", log_likelihood(scores))

    kernel = numpyro.infer.NUTS(model, max_tree_depth=4)
    mcmc = numpyro.infer.MCMC(kernel, num_warmup=60, num_samples=150, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    theirs = np.asarray(mcmc.get_samples()["scores"])
    ours = sample(problem, draws=2000, rng=0)
    # Standard deviations are 0.7: errors of means are about 0.07 with 100 effective draws.
    np.testing.assert_allclose(theirs.mean(axis=0), ours.flat.mean(axis=0), atol=0.25)
    np.testing.assert_allclose(theirs.std(axis=0), ours.flat.std(axis=0), rtol=0.3)
