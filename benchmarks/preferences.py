"""Preference data: fits with errors beside choix, evalica and arena-rank, and equal estimates.

    pip install -e '.[bench]'
    python benchmarks/preferences.py [--quick]

Each task is timed in one run on one thread, the peers with their default tolerances and given their
own types of data, which are made beforehand; permdist makes its ballots from arrays unless a row
says otherwise. Results of equal models are compared, with tight tolerances. ``--quick`` leaves out
the slowest tasks of the peers and makes large data a tenth as large; a peer that is not installed
is left out. Peak memory is that of the process so far, simulated arrays included.

arena-rank pins its version of numpy, so it needs an environment of its own. It compiles its
optimizer in every fit, which is most of the time that it takes for small data; its bootstrap forks,
which JAX warns of and which did not end here, so its fits are repeated in this process instead.
"""

from __future__ import annotations

import importlib
import resource
import sys
import time
from unittest import mock

import harness
import numpy as np

from permdist import DavidsonLuce, PlackettLuce
from permdist.ballots import Ballots
from permdist.ballots.blocks import Tally
from permdist.inference.fit import fit_ballots

TIES = 1.3  # delta_2: about 40% ties
TIGHT = {"tolerance": 1e-12, "limit": 100_000}
TIGHT_ARENA = {"ftol": 0.0, "gtol": 1e-10}


def battles(n_items, n_battles, rng, *, delta=0.0, spread=0.8, covariates=0):
    """Simulate battles: items, results (0 and 1 are wins, 2 a tie), covariates of both, scores."""
    generator = np.random.default_rng(rng)
    scores = np.sort(generator.normal(scale=spread, size=n_items))[::-1]
    first = generator.integers(n_items, size=n_battles)
    second = (first + generator.integers(1, n_items, size=n_battles)) % n_items
    style = generator.normal(size=(2, n_battles, covariates))
    gap = scores[first] - scores[second]
    gap = gap + (style[0] - style[1]) @ np.linspace(-0.3, 0.3, covariates)
    weights = np.stack([np.exp(0.5 * gap), np.exp(-0.5 * gap), np.full_like(gap, delta)], axis=1)
    shares = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    result = np.minimum((generator.random(n_battles)[:, None] > shares).sum(axis=1), 2)
    return first, second, result, style


def ballots(first, second, result, style=None):
    """Return battles as ballots."""
    lost = result == 1
    features = None
    if style is not None:
        turned = lost[:, None]
        features = (np.where(turned, style[1], style[0]), np.where(turned, style[0], style[1]))
    return Ballots.from_pairs(
        np.where(lost, second, first),
        np.where(lost, first, second),
        ties=result == 2 if (result == 2).any() else None,
        features=features,
        feature_names=[f"style {k}" for k in range(0 if style is None else style.shape[2])],
    )


def peer(name):
    """Import a peer, or return None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def once(function):
    """Return the time of one run, for what takes long."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def centered(scores):
    return scores - scores.mean()


def agree(title, ours, theirs):
    print(f"  {title}: largest difference of a score {np.abs(ours - theirs).max():.1e}")


class Peers:
    """The peers' fits of battles, with items as numbers 0, 1, ... and results 0, 1 and 2."""

    def __init__(self, n_items, first, second, result):
        self.n_items = n_items
        self.choix, self.evalica = peer("choix"), peer("evalica")
        lost, some = result == 1, result != 2
        winners, losers = np.where(lost, second, first), np.where(lost, first, second)
        self.wins = list(zip(winners[some].tolist(), losers[some].tolist(), strict=True))
        if self.evalica is not None:
            kinds = (self.evalica.Winner.X, self.evalica.Winner.Y, self.evalica.Winner.Draw)
            self.lists = first.tolist(), second.tolist(), [kinds[r] for r in result]
        self.arena = peer("arena_rank.models.bradley_terry")
        if self.arena is not None:
            self.jnp, pairs = peer("jax.numpy"), peer("arena_rank.utils.data_utils")
            outcomes = np.array([1.0, 0.0, 0.5])[result]
            rows = np.column_stack([first, second, outcomes])
            unique, counts = np.unique(rows, axis=0, return_counts=True)
            ones, counts = self.jnp.ones(len(counts)), self.jnp.array(counts, dtype=float)
            self.dataset = pairs.PairDataset(
                competitors=list(range(n_items)),
                pairs=self.jnp.array(unique[:, :2].astype(np.int32)),
                outcomes=self.jnp.array(unique[:, 2]),
                counts=counts,
                weights=ones,
                opt_weights=counts,
            )

    def choix_fit(self, **options):
        """Fit Bradley and Terry's model to the wins."""
        return centered(self.choix.ilsr_pairwise(self.n_items, self.wins, **options))

    def evalica_fit(self, method="newman", **options):
        """Fit Newman's model, which is Davidson's, or Bradley and Terry's with half-wins."""
        found = getattr(self.evalica, method)(*self.lists, **options)
        return centered(np.log(found.scores.sort_index().to_numpy()))

    def arena_fit(self, **options):
        """Fit Bradley and Terry's model with half-wins, and compute sandwich errors."""
        model = self.arena.BradleyTerry(self.n_items, **options)
        found = model.compute_ratings_and_cis(self.dataset)
        return centered((np.asarray(found["ratings"]) - 1000.0) * np.log(10.0) / 400.0)

    def arena_bootstrap(self, replicates):
        """Repeat the fit as its bootstrap does, in this process."""
        rng, counts = np.random.default_rng(0), np.asarray(self.dataset.counts)
        model = self.arena.BradleyTerry(self.n_items)
        for _ in range(replicates):
            drawn = rng.multinomial(int(counts.sum()), counts / counts.sum()).astype(float)
            self.arena.fit_single_bootstrap_sample(self.jnp.array(drawn), model, self.dataset)


def with_ties(quick):
    first, second, result, _ = battles(25, 10_000, 0, delta=TIES)
    print(f"\n10,000 battles of 25 items, {(result == 2).mean():.0%} ties")
    peers = Peers(25, first, second, result)

    def ours():
        found = DavidsonLuce.fit(ballots(first, second, result)).fit_result
        found.standard_errors()
        return found

    fit = ours()
    rows = {
        "permdist, Davidson, with errors": harness.seconds(ours),
        "permdist, with sandwich errors": harness.seconds(
            lambda: DavidsonLuce.fit(ballots(first, second, result)).fit_result.standard_errors(
                "sandwich"
            )
        ),
    }
    data = ballots(first, second, result)
    rows["permdist, ballots already made"] = harness.seconds(
        lambda: DavidsonLuce.fit(data).fit_result.standard_errors()
    )
    if peers.evalica:
        rows["evalica, Newman (the same model), no errors"] = harness.seconds(peers.evalica_fit)
        rows["evalica, half-wins, no errors"] = harness.seconds(
            lambda: peers.evalica_fit("bradley_terry")
        )
    if peers.choix:
        rows["choix, ties left out, no errors"] = harness.seconds(
            lambda: peers.choix_fit(), repeat=3
        )
    if peers.arena:
        rows["arena-rank, half-wins, sandwich"] = harness.seconds(peers.arena_fit, repeat=3)
    harness.table("One fit", rows)
    if peers.evalica:
        agree("evalica's Newman", fit.scores, peers.evalica_fit(**TIGHT))

    rows = {
        "permdist, 1,000, Davidson": once(lambda: ours().bootstrap(1000, n_jobs=1)),
        "permdist, 1,000, two threads": once(lambda: ours().bootstrap(1000, n_jobs=2)),
    }
    some = 20 if quick else 100
    if peers.evalica:
        took = once(
            lambda: peers.evalica.bootstrap(
                peers.evalica.newman,
                *peers.lists,
                n_resamples=some,
                tie_weight=1.0,
                bootstrap_method="percentile",
                random_state=0,
            )
        )
        rows[f"evalica, Newman, {some} fits, times {1000 // some}"] = took * 1000 / some
    if peers.arena:
        few = 5
        took = once(lambda: peers.arena_bootstrap(few))
        rows[f"arena-rank, half-wins, {few} fits, times {1000 // few}"] = took * 1000 / few
    harness.table("1,000 bootstraps", rows, unit="s")


def without_ties():
    first, second, result, _ = battles(25, 10_000, 0)
    print("\n10,000 battles of 25 items without ties: one model, Bradley-Terry")
    peers = Peers(25, first, second, result)
    fit = PlackettLuce.fit(ballots(first, second, result)).fit_result
    rows = {
        "permdist, with errors": harness.seconds(
            lambda: PlackettLuce.fit(ballots(first, second, result)).fit_result.standard_errors()
        )
    }
    if peers.choix:
        rows["choix, I-LSR"] = harness.seconds(lambda: peers.choix_fit(), repeat=3)
    if peers.evalica:
        rows["evalica, Bradley-Terry"] = harness.seconds(lambda: peers.evalica_fit("bradley_terry"))
    if peers.arena:
        rows["arena-rank, sandwich"] = harness.seconds(peers.arena_fit, repeat=3)
    harness.table("One fit", rows)
    if peers.choix:
        agree("choix", fit.scores, peers.choix_fit(tol=1e-10))
    if peers.evalica:
        agree("evalica", fit.scores, peers.evalica_fit("bradley_terry", **TIGHT))
    if peers.arena:
        agree("arena-rank", fit.scores, peers.arena_fit(**TIGHT_ARENA))


def with_covariates():
    first, second, result, style = battles(60, 140_000, 1, covariates=10)
    data = ballots(first, second, result, style)

    def ours():
        found = PlackettLuce.fit(data).fit_result
        found.standard_errors()
        return found

    fit = ours()
    rows = {
        "permdist, with errors": harness.seconds(ours, repeat=3),
        "permdist, making the ballots, too": harness.seconds(
            lambda: PlackettLuce.fit(
                ballots(first, second, result, style)
            ).fit_result.standard_errors(),
            repeat=3,
        ),
    }
    models, sets = (
        peer("arena_rank.models.contextual_bradley_terry"),
        peer("arena_rank.utils.data_utils"),
    )
    if models is not None:
        jnp = peer("jax.numpy")
        dataset = sets.ContextualPairDataset(
            competitors=list(range(60)),
            pairs=jnp.array(np.column_stack([first, second]).astype(np.int32)),
            outcomes=jnp.array((result == 0).astype(float)),
            features=jnp.array(style[0] - style[1]),
            weights=jnp.ones(len(first)),
        )

        def theirs(**options):
            model = models.ContextualBradleyTerry(60, 10, reg=0.0, **options)
            return model.compute_ratings_and_cis(dataset)

        rows["arena-rank, sandwich"] = harness.seconds(theirs, repeat=3)
    harness.table("140,000 votes on 60 items with 10 covariates", rows, unit="s")
    if models is not None:
        found = theirs(**TIGHT_ARENA)
        agree(
            "arena-rank",
            fit.scores,
            centered((np.asarray(found["ratings"]) - 1000.0) * np.log(10.0) / 400.0),
        )
        ours_, theirs_ = fit.coefficients["estimate"].to_numpy(), np.asarray(found["coeffs"])
        print(f"  coefficients: largest difference {np.abs(ours_ - theirs_).max():.1e}")


def many(quick):
    first, second, result, _ = battles(500, 1_000_000, 2, delta=TIES)
    peers = Peers(500, first, second, result)

    def ours():
        found = DavidsonLuce.fit(ballots(first, second, result)).fit_result
        found.standard_errors()
        return found

    fit = ours()
    rows = {
        "permdist, Davidson, with errors": harness.seconds(ours, repeat=2),
        "permdist, the rank sets of the fit": harness.seconds(fit.rank_sets, repeat=2),
    }
    if peers.evalica and not quick:
        rows["evalica, Newman, no errors"] = harness.seconds(peers.evalica_fit, repeat=1)
    if peers.arena:
        rows["arena-rank, half-wins, sandwich"] = harness.seconds(peers.arena_fit, repeat=1)
    harness.table(
        f"1,000,000 battles of 500 items, {(result == 2).mean():.0%} ties", rows, unit="s"
    )
    if peers.evalica and not quick:
        agree("evalica's Newman", fit.scores, peers.evalica_fit(**TIGHT))


def in_blocks(quick):
    """Fit battles that come in blocks, which are simulated on the way."""
    number, size = (10, 1_000_000) if quick else (100, 1_000_000)
    spent = {"making ballots of arrays": 0.0, "counting": 0.0}
    before, tally = peak(), Tally()
    for k in range(number):
        arrays = battles(500, size, (3, k), delta=TIES)[:3]
        start = time.perf_counter()
        block = ballots(*arrays)
        made = time.perf_counter()
        tally.add(block)
        spent["making ballots of arrays"] += made - start
        spent["counting"] += time.perf_counter() - made
    whole = tally.ballots()
    start = time.perf_counter()
    fit = DavidsonLuce.fit(whole).fit_result
    fit.standard_errors()
    spent["fit and errors"] = time.perf_counter() - start
    harness.table(f"{number * size:,} battles of 500 items in blocks of {size:,}", spent, unit="s")
    print(
        f"  {whole.n_ballots:,} different battles; peak memory {peak():.0f} MB, {before:.0f} MB "
        "before the first block"
    )


def many_items(quick):
    """Fit many items, of which each meets few others."""
    n, number = (100_000, 1_000_000) if quick else (1_000_000, 10_000_000)
    data = ballots(*battles(n, number, 4, delta=TIES)[:3])
    before = peak()
    start = time.perf_counter()
    fit = DavidsonLuce.fit(data, prior=0.1).fit_result
    fitted = time.perf_counter()
    fit.errors_of([0, n // 2, n - 1], "penalized")
    rows = {
        "fit": fitted - start,
        "one standard error, of three": (time.perf_counter() - fitted) / 3,
    }
    harness.table(f"{number:,} battles of {n:,} items, prior 0.1", rows, unit="s")
    print(
        f"  {fit.n_iter} Newton steps, scores within {fit.accuracy:.0e}; peak memory "
        f"{peak():.0f} MB, {before:.0f} MB with the ballots alone"
    )
    data = ballots(*battles(500, 100_000, 5, delta=TIES)[:3])
    dense = fit_ballots(data, (2,))
    with mock.patch("permdist.inference.fit.DENSE_ITEMS", 1):
        sparse = fit_ballots(data, (2,))
    agree("500 items, sparse and dense equations", sparse.scores, dense.scores)


def peak():
    """Return the largest memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    quick = "--quick" in sys.argv[1:]
    print(harness.machine())
    without_ties()
    with_ties(quick)
    with_covariates()
    many(quick)
    in_blocks(quick)
    many_items(quick)


if __name__ == "__main__":
    main()
