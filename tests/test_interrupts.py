"""Ctrl-C ends every long call soon, and costs short ones nothing."""

import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from permdist import GoodBad, PlackettLuce
from permdist._interrupts import LONG, parts, patiently
from permdist._signals import handled, kept_interrupts

# Each takes far longer than the second after which it is interrupted; a small one before it makes
# sure that the kernels are compiled.
CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from permdist import GaussianScores, GoodBad, PlackettLuce, data, rankings
from permdist.models import ConvexLoss
from permdist.samplers import RestartSampler, run_chains

def labels(n):
    return np.arange(n) % 2

def query(n):
    return data.Queries(np.random.default_rng(0).normal(size=(n, 2)), labels(n), np.zeros(n))

CALLS = {
    "marginals": (lambda n: PlackettLuce(np.linspace(0, 1, n)).rank_marginals(), 9, 4000),
    "gradient": (
        lambda n: GaussianScores(np.linspace(0, 1, n)).expect_gradient("ndcg", labels(n)), 9, 3000
    ),
    "expect": (lambda n: PlackettLuce(np.linspace(0, 1, n)).expect("ap", labels(n)), 9, 5000),
    "lattice": (
        lambda n: GoodBad(np.linspace(0, 1, n), labels(n), tilt="ap").expect_gradient("ap"), 5, 21
    ),
    "order": (lambda n: GaussianScores(np.linspace(0, 1, n)).log_prob(np.arange(n)), 5, 4000),
    "distances": (
        lambda n: rankings.distance_matrix(rankings.random_orders(n // 100 + 2, n, rng=0)), 9, 9000
    ),
    "draws": (lambda n: PlackettLuce(np.zeros(n)).sample(5 * n, rng=0), 9, 10_000),
    "learner": (lambda n: ConvexLoss("ap", n_jobs=1, max_iter=2).fit(query(n)), 9, 8000),
    "thin": (
        lambda n: run_chains(
            GoodBad(np.arange(9.0), labels(9)), 5, tune=0, thin=10**n, kernel="adjacent", rng=0
        ),
        1,
        10,
    ),
    "stride": (lambda n: RestartSampler(stride=10**n).sample(labels(9), 9, rng=0), 1, 9),
}
for name in sys.argv[1:]:
    call, small, large = CALLS[name]
    call(small)
    print("start", flush=True)
    try:
        call(large)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    sys.stdin.readline()
"""
GROUPS = (
    ("marginals", "gradient", "expect", "distances", "draws", "order"),
    ("learner", "stride", "thin", "lattice"),
)


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_ctrl_c_ends_long_calls(names):
    # As in a background job of a script, which is told to ignore Ctrl-C and hands that on.
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    command = [*ignoring, sys.executable, "-W", "error", "-c", CHILD, *names]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as child:
        lines = queue.Queue()
        reader = threading.Thread(target=lambda: [*map(lines.put, child.stdout)])
        reader.start()
        try:
            for name in names:
                assert lines.get(timeout=120) == "start\n", name
                time.sleep(0.5)
                child.send_signal(signal.SIGINT)
                begin = time.perf_counter()
                assert lines.get(timeout=30) == "interrupted\n", name
                # One second is what is promised; the machine may have other things to do.
                assert time.perf_counter() - begin < 3.0, name
                child.stdin.write("\n")
                child.stdin.flush()
        finally:
            child.kill()
            reader.join()


def test_parts_cover_all_rows_once():
    assert list(parts(0, 1e9)) == []
    assert list(parts(7, 1.0)) == [(0, 7)]
    assert list(parts(3, 1e30)) == [(0, 1), (1, 2), (2, 3)]
    for cost in (0.0, 0.3, 1.0, 2.5, 100.0):
        ranges = list(parts(1000, cost, most=50.0))
        rows = [row for a, b in ranges for row in range(a, b)]
        assert rows == list(range(1000))
        assert all((b - a) * cost <= 50.0 or b - a == 1 for a, b in ranges)


def test_a_long_call_is_made_in_a_thread_and_looks_like_any_other():
    def where(*given):
        return threading.current_thread(), given

    assert patiently(LONG / 2, where, 1) == (threading.main_thread(), (1,))
    thread, given = patiently(LONG, where, 1, 2)
    assert thread is not threading.main_thread()
    assert given == (1, 2)
    with pytest.raises(ZeroDivisionError):
        patiently(LONG, lambda: 1 / 0)
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert patiently(LONG, lambda: np.float64(1e300) * np.float64(1e300)) == np.inf
    found = []
    inner = threading.Thread(target=lambda: found.append(patiently(LONG, where)[0]))
    inner.start()
    inner.join()
    assert found == [inner]


def test_work_in_parts_has_the_same_bits(monkeypatch):
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=12), rng.integers(0, 2, 12)

    def everything():
        from permdist import GaussianScores, rankings
        from permdist.measures import NDCG

        luce, gauss = PlackettLuce(scores), GaussianScores(scores)
        orders = luce.sample(30, rng=0)
        model = GoodBad(scores, labels, space="interleavings", tilt="ap")
        value, slope = gauss.expected_sum(NDCG().positional(labels))
        return [
            luce.rank_marginals(),
            luce.top_k(3),
            luce.expect("ap", labels),
            value,
            slope,
            luce.log_prob(orders),
            luce.log_prob(orders[:, :4], subset=False),
            luce.log_prob_gradient(orders),
            gauss.log_prob(orders[:5]),
            gauss.log_prob_gradient(orders[:5]),
            rankings.distance_matrix(orders),
            rankings.distance_matrix(orders, orders[:4], distance="ulam"),
            rankings.kendall(rankings.TopK([1, 2], 12), orders),
            rankings.weighted_kendall(orders, orders[0]),
            model.expect_gradient("ap"),
            model.rank_marginals(),
        ]

    whole = everything()
    monkeypatch.setitem(parts.__kwdefaults__, "most", 50.0)
    monkeypatch.setattr("permdist._interrupts.LONG", 50.0)
    monkeypatch.setattr("permdist.rankings.distances.LONG", 50.0)
    monkeypatch.setattr("permdist.distributions.plackett_luce.FEW_ENTRIES", 0)
    for expected, found in zip(whole, everything(), strict=True):
        assert np.array_equal(expected, found)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_discards_comes_again(number):
    sent = []

    def callback(phase, info):
        if not sent:
            sent.append(phase)
            signal.raise_signal(number)

    class Last:
        def __del__(self):
            signal.raise_signal(number)

    def collect_and_wait():
        gc.collect()
        time.sleep(10.0)

    def delete_and_wait():
        Last()
        time.sleep(10.0)

    gc.callbacks.append(callback)
    try:
        for call in (collect_and_wait, delete_and_wait):
            with (
                handled(number, signal.default_int_handler),
                kept_interrupts(),
                pytest.raises(KeyboardInterrupt),
            ):
                call()
    finally:
        gc.callbacks.remove(callback)
    assert sent


def test_other_errors_that_python_discards_are_told_as_before(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    class Bad:
        def __del__(self):
            raise ValueError("told")

    with kept_interrupts():
        Bad()
    assert [one.exc_type for one in told] == [ValueError]
    assert sys.unraisablehook == told.append
