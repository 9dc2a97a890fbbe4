"""Is it the same posterior elsewhere? Races of drivers, sampled here and by NumPyro's NUTS.

(a) means and 95% intervals of the scores by both; (b) quantiles of two drivers' scores, by NUTS
against ours. NumPyro's model is the likelihood written in JAX; beside it the log-likelihood of this
library as a JAX function is evaluated, which other samplers can use as well.
"""

import numpy as np
from common import read_options, save, tell
from matplotlib.figure import Figure

from permdist import PlackettLuce, posterior

OURS, THEIRS, N, SD = "#4c72b0", "#c44e52", 10, 1.0
HINT = "NumPyro is not installed, so there is nothing to compare: pip install -e '.[numpyro]'"


def nuts(problem, orders, draws):
    """Draw scores by NumPyro, from the likelihood of whole orders written in JAX."""
    import jax
    import numpyro

    jax.config.update("jax_enable_x64", True)

    def log_likelihood(scores):
        placed = scores[orders]
        return (placed - jax.lax.cumlogsumexp(placed, axis=1, reverse=True)).sum()

    def model():
        prior = numpyro.distributions.Normal(0.0, SD).expand([N]).to_event(1)
        numpyro.factor("races", log_likelihood(numpyro.sample("scores", prior)))

    point, mine = np.linspace(-1.0, 1.0, N), posterior.to_jax(problem, prior=False)
    gap = np.abs(jax.grad(log_likelihood)(point) - jax.grad(mine)(point)).max()
    print(f"log-likelihood at a point: {log_likelihood(point):.6f} in JAX, {mine(point):.6f} ours")
    print(f"largest difference of the gradients: {gap:.1e}")
    kernel = numpyro.infer.NUTS(model)
    chain = numpyro.infer.MCMC(kernel, num_warmup=500, num_samples=draws, progress_bar=False)
    chain.run(jax.random.PRNGKey(1))
    return np.asarray(chain.get_samples()["scores"])


def main():
    options = read_options(__file__, __doc__, races=(60, "races"), draws=(2000, "draws per chain"))
    truth = PlackettLuce(np.linspace(1.2, -1.2, N), [f"driver {i + 1}" for i in range(N)])
    orders = np.asarray(truth.sample(options.races, rng=3))
    tell(options, f"simulated, {options.races} races of {N} drivers")
    problem = posterior.problem_of(PlackettLuce, orders, posterior.Normal(0.0, SD**2))
    found = posterior.sample(problem, draws=options.draws, rng=0)
    print(found.verdict)
    runs = {"permdist": (found.flat, OURS)}
    try:
        runs["NumPyro's NUTS"] = (nuts(problem, orders, options.draws), THEIRS)
    except ImportError:
        print(HINT)
    left, right = (figure := Figure((10, 4.2), layout="constrained")).subplots(1, 2)
    levels = np.linspace(0.01, 0.99, 99)
    for number, (name, (draws, color)) in enumerate(runs.items()):
        low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
        style = {"fmt": "o", "ms": 4, "color": color, "label": name}
        reach = np.stack([middle - low, high - middle])
        left.errorbar(middle, np.arange(N) + 0.25 * number, xerr=reach, **style)
        if number:
            away = np.abs(draws.mean(axis=0) - found.flat.mean(axis=0)) / found.flat.std(axis=0)
            print(f"means differ by {away.max():.3f} standard deviations at most")
            for item, mark in ((0, "o"), (N - 1, "x")):
                pair = (np.quantile(one[:, item], levels) for one in (found.flat, draws))
                right.plot(*pair, mark, color=color, markersize=4, label=truth.names[item])
            right.legend(frameon=False)
    left.set_yticks(np.arange(N) + 0.12, truth.names)
    left.invert_yaxis()
    left.set(title="(a) scores with 95% intervals", xlabel="score")
    left.legend(frameon=False, loc="lower right")
    right.axline((0.0, 0.0), slope=1.0, color="0.7", linewidth=0.8)
    right.set(title="(b) quantiles of scores", xlabel="permdist", ylabel="NUTS")
    save(figure, options)


if __name__ == "__main__":
    main()
