"""Posterior draws: calibration of every family, and effective draws per second beside NUTS.

    python benchmarks/posteriors.py                  # speed, against NumPyro where it is there
    python benchmarks/posteriors.py --calibration    # 2,000 replications per family: minutes

The model of the comparison is Plackett-Luce with 100 items, 1,000 lists of the first 10 and a
standard normal prior of each score, in the same process, on the same processor; PyMC is timed,
too, where it can be imported. Compilation is timed apart, by a short run before the one that
counts. Effective draws are those of arviz (bulk), the least of all scores.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from permdist import DavidsonLuce, GaussianScores, PlackettLuce
from permdist.ballots import Ballots
from permdist.models import ListMLE
from permdist.posterior import Gamma, Normal, problem_of, sample, simulation_based_calibration

ITEMS, LISTS, PLACES = 100, 1000, 10


def effective(draws: np.ndarray) -> float:
    """Return the least bulk effective sample size of centered scores (chains, draws, items)."""
    import arviz

    centered = draws - draws.mean(axis=2, keepdims=True)
    columns = (np.ascontiguousarray(centered[..., i]) for i in range(centered.shape[2]))
    return min(float(arviz.ess(column)) for column in columns)


def show(name: str, draws: np.ndarray, seconds: float, compiling: float) -> float:
    """Print a line of the table; return effective draws per processor second."""
    import arviz

    ess = effective(draws)
    rhat = max(float(arviz.rhat(np.ascontiguousarray(draws[..., i]))) for i in range(0, ITEMS, 9))
    print(
        f"{name:30} {draws.shape[0] * draws.shape[1]:8,} draws {seconds:8.2f} s "
        f"{ess:9,.0f} effective {ess / seconds:10,.0f} per s  R-hat {rhat:.4f}  "
        f"(first run {compiling:.1f} s)"
    )
    return ess / seconds


def lists() -> np.ndarray:
    """Return the lists that everybody is given."""
    rng = np.random.default_rng(0)
    return PlackettLuce(rng.normal(size=ITEMS)).sample(LISTS, rng=rng)[:, :PLACES]


def ours(table: np.ndarray, draws: int) -> float:
    """Time `permdist.posterior.sample`."""
    ballots = Ballots.of(table, n_items=ITEMS, subset=False)
    begin = time.process_time()
    sample(PlackettLuce, ballots, Normal(0.0, 1.0), 4, rng=0, progress=False, n_jobs=1)
    first, begin = time.process_time() - begin, time.process_time()
    found = sample(PlackettLuce, ballots, Normal(0.0, 1.0), draws, rng=0, progress=False, n_jobs=1)
    # The search for the mode and the discarded draws are part of it.
    return show("permdist", found.draws, time.process_time() - begin, first)


def numpyro_nuts(table: np.ndarray, draws: int, warmup: int) -> float:
    """Time NumPyro's NUTS, vectorized by hand as well as I know how, in double precision."""
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    listed = jnp.asarray(table)
    wins = jnp.asarray(np.bincount(table.ravel(), minlength=ITEMS).astype(float))

    def model() -> None:
        scores = numpyro.sample(
            "scores", distributions.Normal(0.0, 1.0).expand([ITEMS]).to_event(1)
        )
        worths = jnp.exp(scores)
        chosen = worths[listed]
        # What is left at each stage: everything less the places above it.
        left = worths.sum() - (jnp.cumsum(chosen, axis=1) - chosen)
        numpyro.factor("lists", wins @ scores - jnp.log(left).sum())

    def run(number: int, tune: int) -> MCMC:
        chain = MCMC(
            NUTS(model), num_warmup=tune, num_samples=number, num_chains=1, progress_bar=False
        )
        chain.run(jax.random.PRNGKey(0))
        chain.get_samples()["scores"].block_until_ready()
        return chain

    begin = time.process_time()
    run(draws, warmup)
    first, begin = time.process_time() - begin, time.process_time()
    found = run(draws, warmup)
    seconds = time.process_time() - begin
    chains = np.asarray(found.get_samples(group_by_chain=True)["scores"])
    halves = np.stack([chains[0, : draws // 2], chains[0, draws // 2 :]])
    return show("NumPyro NUTS", halves, seconds, first)


def pymc_nuts(table: np.ndarray, draws: int, warmup: int) -> float:
    """Time PyMC's NUTS; its compilation is in the first run only as far as it is cached."""
    import pymc
    import pytensor.tensor as tensor

    wins = np.bincount(table.ravel(), minlength=ITEMS).astype(float)
    with pymc.Model():
        scores = pymc.Normal("scores", 0.0, 1.0, shape=ITEMS)
        worths = tensor.exp(scores)
        chosen = worths[table]
        left = worths.sum() - (tensor.cumsum(chosen, axis=1) - chosen)
        pymc.Potential("lists", tensor.dot(wins, scores) - tensor.log(left).sum())
        options = {"chains": 2, "cores": 1, "progressbar": False, "random_seed": 0}
        begin = time.process_time()
        pymc.sample(4, tune=4, compute_convergence_checks=False, **options)
        first, begin = time.process_time() - begin, time.process_time()
        found = pymc.sample(draws // 2, tune=warmup, **options)
    seconds = time.process_time() - begin
    return show("PyMC NUTS", np.asarray(found.posterior["scores"]), seconds, first)


def speed(args: argparse.Namespace) -> None:
    """Print effective draws per processor second."""
    table = lists()
    mine = ours(table, args.draws)
    for name, function in (("NumPyro", numpyro_nuts), ("PyMC", pymc_nuts)):
        try:
            other = function(table, args.nuts_draws, args.nuts_warmup)
        except ImportError as error:
            print(f"{name}: not here ({error})")
            continue
        print(f"permdist is {mine / other:.1f} times as fast as {name}")


def calibration(args: argparse.Namespace) -> None:
    """Print the least p-value of each family, times the number of quantities."""
    rng = np.random.default_rng(1)
    orders = PlackettLuce(np.zeros(5)).sample(8, rng=rng)
    features = rng.normal(size=(5, 2))
    tied = [[0, [1, 2]], [[1, 0], 2], [2, 1, 0]]
    X, ids = rng.normal(size=(20, 2)), np.repeat(np.arange(4), 5)
    priced = Ballots.of(orders).with_features(rng.normal(size=(8, 5, 2)))
    ties = {"scores": 1.0, "log_ties": Normal(-1.0, 1.0)}
    both = {"scores": 1.0, "covariates": Normal(0.0, 1.0)}
    families = {
        "Plackett-Luce, normal": (PlackettLuce, orders, Normal(0.0, 1.5), {}),
        "Plackett-Luce, centered": (PlackettLuce, orders, 0.5, {}),
        "Plackett-Luce, gamma": (PlackettLuce, orders, Gamma(0.7, 2.0), {}),
        "Plackett-Luce, features": (PlackettLuce, orders, 1.0, {"features": features}),
        "Plackett-Luce, covariates": (PlackettLuce, priced, both, {}),
        "Davidson-Luce": (DavidsonLuce, tied, ties, {"tie_sizes": [2]}),
        "Gaussian, pairs": (GaussianScores, Ballots.from_pairs([0, 1, 2], [1, 2, 0]), 1.0, {}),
        "Gaussian, orders of 3": (GaussianScores, [[0, 1, 2], [2, 1, 0]], 1.0, {}),
    }
    print(f"{args.replications:,} replications, least p-value times the number of quantities")
    for name, (model, data, prior, options) in families.items():
        run(name, lambda data, m=model, p=prior, o=options: problem_of(m, data, p, **o), data, args)
    labels = np.tile([4, 3, 2, 1, 0], 4)
    learner = ListMLE(ties="index")
    run("ListMLE", lambda y: problem_of(learner, (X, y, ids), Normal(0.0, 1.0)), labels, args)


def run(name: str, make: object, data: object, args: argparse.Namespace) -> None:
    """Calibrate one family."""
    begin = time.process_time()
    found = simulation_based_calibration(
        make, data, replications=args.replications, draws=63, rng=0
    )
    quantity, p_value = found.worst(32)
    seconds = time.process_time() - begin
    print(f"{name:28} {quantity:18} {p_value:8.4f}   {seconds:6.1f} s", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--nuts-draws", type=int, default=1000)
    parser.add_argument("--nuts-warmup", type=int, default=500)
    args = parser.parse_args()
    (calibration if args.calibration else speed)(args)


if __name__ == "__main__":
    main()
