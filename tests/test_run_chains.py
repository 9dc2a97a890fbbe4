"""Chains: right, reproducible to the bit, interruptible, and on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from permdist import GaussianScores, GoodBad, PairSigns, PlackettLuce, WeightedOrders
from permdist._journal import Journal, unpack_record
from permdist.diagnostics import compare_to_exact
from permdist.distributions.base import NotExactError
from permdist.samplers import run_chains, sample_exact
from permdist.samplers.auto import applicable, choose_kernel
from permdist.samplers.kernels import KERNELS
from permdist.targets import target_of


def good_bad(n, spread=0.3, goods=3, **options):
    scores = spread * np.random.default_rng(n).normal(size=n)
    return GoodBad(scores, (np.arange(n) < goods).astype(int), **options)


LONG = {
    "good-bad 10, tilted": good_bad(10, tilt="ap", kappa=3.0),
    "graded 9": GoodBad(np.linspace(-0.2, 0.2, 9), [2, 1, 0] * 3, tilt="ndcg", kappa=2.0),
    "interleavings 14": good_bad(14, space="interleavings", tilt="ndcg", kappa=4.0),
    "plackett-luce 12": PlackettLuce(np.linspace(-1.0, 1.0, 12)),
    "mallows 12": WeightedOrders.from_pairs(-0.6 * np.tri(12, k=-1)),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("kernel", [*KERNELS, "adjacent+transposition", "exact"])
def test_long_chains_have_the_exact_marginals(name, kernel):
    dist = LONG[name]
    if kernel in KERNELS and kernel not in applicable(target_of(dist)):
        pytest.skip("needs classes of items")
    n = dist.n_items
    thin = {"adjacent": n**2, "block": 2, "exact": None}.get(kernel, 2 * n)
    chains = run_chains(dist, 3000, 300, kernel=kernel, thin=thin, rng=1)
    found = compare_to_exact(chains)
    assert found.worst_score < 5.0
    assert found.worst_error < 0.05
    exact_mean = -float(dist.entropy(method="exact"))
    spread = chains.log_prob.mean(axis=1).std(ddof=1) / 2 + 0.02
    assert abs(chains.log_prob.mean() - exact_mean) < 5 * spread


def test_gaussian_scores_by_their_log_probability():
    dist = GaussianScores([0.5, 0.0, -0.4])
    chains = run_chains(dist, 1500, 50, kernel="adjacent", thin=2, rng=0, chains=2)
    found = compare_to_exact(chains)
    assert found.worst_score < 5.0
    np.testing.assert_allclose(chains.log_prob[0, :5], dist.log_prob(chains.orders[0, :5]))
    assert found.total_variation < 4 * found.expected_total_variation


def test_same_bits_on_any_number_of_threads():
    dist = good_bad(30, goods=8)
    for kernel in ("adjacent", "relocation", "flip", "block", "adjacent+flip"):
        one = run_chains(dist, 400, kernel=kernel, rng=5, n_jobs=1)
        two = run_chains(dist, 400, kernel=kernel, rng=5, n_jobs=2)
        np.testing.assert_array_equal(one.orders, two.orders)
        np.testing.assert_array_equal(one.log_weight, two.log_weight)
        assert not (one.orders[0] == one.orders[1]).all()


def test_draws_do_not_depend_on_how_many_are_asked_for():
    for kernel in ("adjacent", "exact"):
        short = run_chains(good_bad(12), 700, 10, kernel=kernel, rng=5)
        long = run_chains(good_bad(12), 1500, 10, kernel=kernel, rng=5)
        np.testing.assert_array_equal(short.orders, long.orders[:, :700])


def test_rounding_does_not_add_up():
    dist = PlackettLuce(np.linspace(-3.0, 3.0, 40))
    chains = run_chains(dist, 2000, 0, kernel="adjacent", thin=200, rng=0, chains=1)
    np.testing.assert_allclose(chains.log_weight[0], dist.log_prob(chains.orders[0]), rtol=1e-11)


def test_auto_is_exact_where_that_is_affordable_and_chooses_the_same_every_time():
    assert run_chains(good_bad(10), 100, rng=0).kernel == "exact"
    assert run_chains(PlackettLuce(np.zeros(300)), 10, rng=0).kernel == "exact"
    dist = good_bad(40, spread=0.05, goods=8)
    target = target_of(dist)
    names = {choose_kernel(target, np.random.default_rng(4)) for _ in range(2)}
    assert len(names) == 1
    assert run_chains(dist, 50, rng=0).kernel in KERNELS


def test_mixtures():
    dist = good_bad(30, goods=5)
    chains = run_chains(dist, 50, kernel={"adjacent": 3, "flip": 1}, rng=0)
    assert chains.kernel == "0.75 adjacent+0.25 flip"
    again = run_chains(dist, 50, kernel="0.75 adjacent+0.25 flip", rng=0)
    np.testing.assert_array_equal(chains.orders, again.orders)


def test_start_and_thin():
    dist = good_bad(8, space="orders")
    start = np.arange(8)[::-1]
    chains = run_chains(dist, 5, 0, kernel="adjacent", thin=1, start=start, rng=0)
    moved = (chains.orders[:, 0] != start).sum(axis=1)
    assert set(moved.tolist()) <= {0, 2}


def test_moments_in_place_of_draws():
    dist = good_bad(12)
    draws = run_chains(dist, 3000, kernel="relocation", rng=2)
    moments = run_chains(dist, 3000, kernel="relocation", rng=2, keep="moments")
    np.testing.assert_allclose(moments.rank_marginals(), draws.rank_marginals(), atol=1e-12)
    assert moments.n_draws == 3000
    assert moments.moments[0].blocks.shape[0] == 512
    full, few = draws.summary().table, moments.summary().table
    np.testing.assert_allclose(few.loc["rank[3]", "mean"], full.loc["rank[3]", "mean"], rtol=5e-3)
    np.testing.assert_allclose(few["sd"], full.loc[few.index, "sd"], rtol=0.02)
    ratio = few["ess_bulk"] / full.loc[few.index, "ess_bulk"]
    assert ((ratio > 0.4) & (ratio < 2.5)).all()
    with pytest.raises(ValueError, match="kept moments, not draws"):
        _ = moments.ranks


def test_progress_shows_speed_acceptance_and_rhat(capsys):
    run_chains(good_bad(20), 2000, kernel="adjacent", rng=0, progress=True)
    shown = capsys.readouterr().err
    assert "4 chains, adjacent" in shown
    assert "draws/s" in shown
    assert "moved" in shown


# ---- what is refused ----------------------------------------------------------------------------


IMPOSSIBLE = WeightedOrders(9, lambda orders: np.full(len(orders), -np.inf))


@pytest.mark.parametrize(
    ("changed", "error", "argument"),
    [
        ({"draws": 0}, ValueError, "draws"),
        ({"chains": 0}, ValueError, "chains"),
        ({"tune": -1}, ValueError, "tune"),
        ({"thin": 0}, ValueError, "thin"),
        ({"kernel": "adjacnt"}, ValueError, "did you mean 'adjacent'"),
        ({"kernel": {"adjacent": -1}}, ValueError, "positive shares"),
        ({"kernel": "nan adjacent+flip"}, ValueError, "positive shares"),
        ({"kernel": "exact+adjacent"}, ValueError, "cannot be part of a mixture"),
        ({"kernel": 3}, TypeError, "kernel"),
        ({"keep": "all"}, ValueError, "keep"),
        ({"start": [0, 1]}, ValueError, "start"),
        ({"start": np.zeros((2, 10), int) + np.arange(10)}, ValueError, "start"),
        ({"checkpoint": ""}, ValueError, "checkpoint"),
        ({"dist": "dist"}, TypeError, "dist"),
        ({"dist": PairSigns([1.0, 0.0], [1, 0])}, TypeError, "dist"),
        ({"dist": PlackettLuce([1.0, 0.0]), "kernel": "flip"}, ValueError, "items in classes"),
        ({"dist": PlackettLuce([1.0, 0.0]), "kernel": "block"}, ValueError, "adds up over pairs"),
        ({"dist": good_bad(40), "kernel": "exact"}, NotExactError, "run_chains"),
        ({"dist": IMPOSSIBLE}, ValueError, "have weight 0"),
        (
            {"dist": GoodBad([1, 5, 3, 2], [1, 1, 0, 0], space="interleavings"), "start": range(4)},
            ValueError,
            "start: expected orders of positive probability",
        ),
    ],
)
def test_refusals(changed, error, argument):
    with pytest.raises(error, match=argument):
        run_chains(**{"dist": good_bad(10), "kernel": "adjacent", **changed})


def test_sample_exact():
    assert sample_exact(good_bad(10), (2, 3), rng=0).shape == (2, 3, 10)
    assert sample_exact(PlackettLuce(np.zeros(500)), rng=0).shape == (500,)
    with pytest.raises(NotExactError, match="exact up to 21 items"):
        sample_exact(good_bad(40), 2)
    with pytest.raises(TypeError, match="expected a Distribution"):
        sample_exact(PairSigns([1.0, 0.0], [1, 0]), 2)


def test_an_error_in_a_users_function_comes_through():
    def breaks(orders):
        if orders[0, 0] == 0:
            raise ZeroDivisionError("mine")
        return np.zeros(len(orders))

    with pytest.raises(ZeroDivisionError, match="mine"):
        run_chains(
            WeightedOrders(9, breaks), 200, kernel="adjacent", rng=0, start=np.arange(9)[::-1]
        )


# ---- checkpoints --------------------------------------------------------------------------------

KILLED = {
    "luce": PlackettLuce(np.linspace(-2, 2, 60)),
    "tilted": GoodBad(np.linspace(-0.1, 0.1, 60), [1, 0, 0] * 20, tilt="ap", kappa=2.0),
}
PROGRAM = """
import sys
from permdist.samplers import chain, run_chains
from test_run_chains import KILLED
chain.SAVE_EVERY = 0.0
run_chains(KILLED[sys.argv[1]], 40_000, 200, kernel="adjacent+transposition", rng=9,
           checkpoint=sys.argv[2], chains=2, keep=sys.argv[3])
"""


@pytest.mark.parametrize(("name", "keep"), [("luce", "draws"), ("tilted", "moments")])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, name, keep):
    path = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name, str(path), keep], cwd=Path(__file__).parent
    )
    deadline = time.monotonic() + 120
    while not (path.exists() and path.stat().st_size > 10_000) and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with Journal(path) as journal:
        done = {facts["chain"]: facts["done"] for facts, _ in map(unpack_record, journal)}
    assert min(done.get(k, 0) for k in range(2)) < 40_200, "it was killed too late"
    options = {"kernel": "adjacent+transposition", "rng": 9, "chains": 2, "keep": keep}
    resumed = run_chains(KILLED[name], 40_000, 200, checkpoint=path, **options)
    whole = run_chains(KILLED[name], 40_000, 200, **options)
    if keep == "draws":
        np.testing.assert_array_equal(resumed.orders, whole.orders)
        np.testing.assert_array_equal(resumed.log_weight, whole.log_weight)
    else:
        for mine, theirs in zip(resumed.moments, whole.moments, strict=True):
            np.testing.assert_array_equal(mine.blocks, theirs.blocks)
            np.testing.assert_array_equal(mine.counts, theirs.counts)
    np.testing.assert_array_equal(resumed.accept_rate, whole.accept_rate)


def test_a_finished_run_is_read_back_and_can_be_prolonged(tmp_path):
    dist = good_bad(12)
    options = {"kernel": "adjacent", "rng": 3, "chains": 2}
    first = run_chains(dist, 300, 50, checkpoint=tmp_path / "a", **options)
    again = run_chains(dist, 300, 50, checkpoint=tmp_path / "a", **options)
    np.testing.assert_array_equal(first.orders, again.orders)
    longer = run_chains(dist, 900, 50, checkpoint=tmp_path / "a", **options)
    np.testing.assert_array_equal(longer.orders, run_chains(dist, 900, 50, **options).orders)
    fewer = run_chains(dist, 100, 50, checkpoint=tmp_path / "a", **options)
    np.testing.assert_array_equal(fewer.orders, first.orders[:, :100])
    unseeded = run_chains(
        dist, 300, 50, checkpoint=tmp_path / "a", kernel="auto", chains=2, thin=first.thin
    )
    np.testing.assert_array_equal(unseeded.orders, first.orders)


@pytest.mark.parametrize("given", [{}, {"kernel": "relocation"}, {"kernel": "block", "thin": 3}])
def test_a_prolonged_run_keeps_the_defaults_of_the_first(tmp_path, given):
    dist, options = good_bad(12), {"rng": 3, "chains": 2, **given}
    if not given:  # beyond exact draws
        dist = GoodBad(np.linspace(0.3, -0.3, 30), np.arange(30) % 2, tilt="ap")
    first = run_chains(dist, 60, checkpoint=tmp_path / "run", **options)
    longer = run_chains(dist, 300, checkpoint=tmp_path / "run", **options)
    assert (longer.kernel, longer.thin, longer.tune) == (first.kernel, first.thin, first.tune)
    same = {**options, "kernel": first.kernel, "thin": first.thin}
    whole = run_chains(dist, 300, first.tune, **same)
    np.testing.assert_array_equal(longer.orders, whole.orders)
    np.testing.assert_array_equal(longer.log_weight, whole.log_weight)
    np.testing.assert_array_equal(longer.accept_rate, whole.accept_rate)


def test_a_checkpoint_of_another_run_is_refused_and_kept(tmp_path):
    path = tmp_path / "run"
    options = {"kernel": "adjacent", "rng": 3, "chains": 2, "checkpoint": path}
    run_chains(good_bad(12), 100, 50, **options)
    before = path.read_bytes()
    for dist, changed, message in (
        (good_bad(12, spread=0.4), {}, "it holds a run with another distribution"),
        (good_bad(12), {"rng": 4}, "it holds a run with another seed"),
        (good_bad(12), {"kernel": "flip"}, "it holds a run with kernel adjacent"),
        (good_bad(12), {"thin": 5}, "it holds a run with thin"),
        (good_bad(12), {"keep": "moments"}, "it holds a run with keep draws"),
        (good_bad(12), {"start": np.arange(12)}, "it holds a run with another start"),
    ):
        with pytest.raises(ValueError, match=message):
            run_chains(dist, 100, 50, **{**options, **changed})
        assert path.read_bytes() == before
    with pytest.raises(ValueError, match="it holds a run with tune 50, this run has 60"):
        run_chains(good_bad(12), 100, 60, **options)


def test_a_torn_checkpoint_goes_on_to_the_same_bits(tmp_path):
    options = {"kernel": "adjacent", "rng": 3, "chains": 2}
    whole = run_chains(good_bad(12), 200, 50, checkpoint=tmp_path / "run", **options)
    raw = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(raw[: -len(raw) // 3])
    again = run_chains(good_bad(12), 200, 50, checkpoint=tmp_path / "run", **options)
    np.testing.assert_array_equal(again.orders, whole.orders)


def test_files_that_cannot_be_checkpoints(tmp_path):
    options = {"kernel": "adjacent", "rng": 3, "chains": 2}
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.tex is something else"):
        run_chains(good_bad(12), 100, checkpoint=tmp_path / "thesis.tex", **options)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    with pytest.raises(ValueError, match="expected a file"):
        run_chains(good_bad(12), 100, checkpoint=tmp_path, **options)
    with pytest.raises(OSError, match="checkpoint: "):
        run_chains(good_bad(12), 100, checkpoint=tmp_path / "thesis.tex" / "below", **options)


def test_two_runs_cannot_share_a_checkpoint(tmp_path):
    with Journal(tmp_path / "run"), pytest.raises(ValueError, match="in use by another process"):
        run_chains(good_bad(12), 100, kernel="adjacent", checkpoint=tmp_path / "run")


INTERRUPTED = """
import _thread, signal, sys, threading, time
import numpy as np
from permdist import GoodBad
from permdist.samplers import run_chains
signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the parent ignores it
model = GoodBad(np.linspace(-.1, .1, 60), [1, 0, 0] * 20)
run_chains(model, 10, kernel="adjacent", rng=0)  # compiles
threading.Timer(1.0, _thread.interrupt_main).start()
chains = run_chains(model, 300_000, 100, kernel="adjacent", thin=2000, rng=0)
print(chains.complete, 10 < chains.n_draws < 300_000, "interrupted" in chains.summary().verdict)
same = run_chains(model, 50, 100, kernel="adjacent", thin=2000, rng=0)
print((same.orders == chains.orders[:, :50]).all())
"""


def test_ctrl_c_returns_what_was_drawn():
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["False", "True", "True", "True"]


# ---- faults that once were ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["adjacent", "transposition", "flip", "block"])
def test_no_parity_is_left_out_where_everything_is_accepted(kernel):
    dist = GoodBad(np.zeros(5), [1, 0, 0, 1, 0])
    chains = run_chains(dist, 4000, kernel=kernel, thin=60, chains=1, rng=0)
    found = compare_to_exact(chains)
    assert found.total_variation < 2 * found.expected_total_variation


def last_is_not_0(orders):
    return np.where(orders[:, 2] == 0, -np.inf, 0.3 * orders[:, 0])


def swap_last(order, k):
    other = order.copy()
    other[k], other[k + 1] = other[k + 1], other[k]
    with np.errstate(invalid="ignore"):
        return float(last_is_not_0(other[None])[0] - last_is_not_0(order[None])[0])


@pytest.mark.parametrize("kernel", ["adjacent", "transposition", "relocation"])
def test_differences_across_orders_of_weight_zero(kernel):
    dist = WeightedOrders(5, last_is_not_0, swap=swap_last)
    chains = run_chains(dist, 800, kernel=kernel, thin=12, rng=1)
    assert not (chains.orders[:, :, 2] == 0).any()
    assert np.isfinite(chains.log_weight).all()
    assert compare_to_exact(chains).worst_score < 5


def test_functions_that_return_nonsense_are_found_out():
    flat = WeightedOrders(9, lambda orders: np.zeros(len(orders)), swap=lambda order, k: np.nan)
    chains = run_chains(flat, 30, kernel="adjacent", rng=0)  # asked anew where it is no number
    assert (chains.log_weight == 0.0).all()
    endless = WeightedOrders(9, compiled_infinity)
    with pytest.raises(ValueError, match="expected log-weights that are finite or -inf, got inf"):
        run_chains(endless, 200, kernel="adjacent", rng=0)


@numba.njit
def compiled_infinity(orders):
    return np.where(orders[:, 0] == 3, np.inf, 0.0)


def test_exact_draws_need_no_start():
    def only_one(item, above):
        return np.where(above.sum(axis=1) == item, 0.0, -np.inf)

    chains = run_chains(WeightedOrders(10, step=only_one), 5, rng=0)
    assert (chains.orders == np.arange(10)).all()


def test_another_function_is_another_run(tmp_path):
    def make(strength):
        return WeightedOrders(9, lambda orders: strength * (orders[:, 0] == 4))

    options = {"kernel": "adjacent", "rng": 0, "checkpoint": tmp_path / "run"}
    run_chains(make(0.0), 20, **options)
    with pytest.raises(ValueError, match="another distribution"):
        run_chains(make(8.0), 20, **options)


SLOW = """
import os, signal, sys, threading, time
import numpy as np
from permdist import WeightedOrders
from permdist.samplers import run_chains
signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the parent ignores it
def slow(orders):
    time.sleep(5e-4)
    return -0.2 * np.abs(orders - np.arange(9)).sum(axis=1)
model = WeightedOrders(9, slow)
options = dict(tune=2, kernel="adjacent", thin=40, chains=2, rng=0, n_jobs=1)
whole = run_chains(model, 12, **options)
for delays in ((0.01,), (0.05, 0.1), (0.2, 0.22)):
    for delay in delays:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        run_chains(model, 12, checkpoint=sys.argv[1], **options)
    except KeyboardInterrupt:
        pass
    for _ in range(3):
        try:
            time.sleep(0.2)
        except KeyboardInterrupt:
            pass
    alive = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    assert not alive, alive
resumed = run_chains(model, 12, checkpoint=sys.argv[1], **options)
print((resumed.orders == whole.orders).all())
"""


def test_ctrl_c_at_any_moment_leaves_a_good_checkpoint(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", SLOW, str(tmp_path / "run")], capture_output=True, text=True
    )
    assert result.stdout.split() == ["True"], result.stderr


def test_a_draw_of_many_steps_in_parts_has_the_same_bits(monkeypatch, tmp_path):
    model = GoodBad(np.arange(9.0), np.arange(9) % 2)
    options = {"draws": 6, "tune": 2, "thin": 50, "kernel": "adjacent", "chains": 2, "rng": 1}
    whole = run_chains(model, **options)
    monkeypatch.setattr("permdist.samplers.orders.MANY_STEPS", 7)
    apart = run_chains(model, **options)
    assert np.array_equal(apart.orders, whole.orders)
    assert np.array_equal(apart.log_weight, whole.log_weight)
    assert np.array_equal(apart.accept_rate, whole.accept_rate)
