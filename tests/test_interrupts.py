"""Ctrl-C ends long calls between draws, iterations and blocks."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from permdist import GaussianScores, GoodBad, PlackettLuce, WeightedOrders, rankings
from permdist.cli._errors import kept_interrupts

# Each takes far longer than the second after which it is interrupted; a small one before it makes
# sure that the kernels are compiled.
CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from permdist import GoodBad, PlackettLuce, data
from permdist.models import ConvexLoss
from permdist.samplers import run_chains

def labels(n):
    return np.arange(n) % 2

def query(n):
    return data.Queries(np.random.default_rng(0).normal(size=(n, 2)), labels(n), np.zeros(n))

CALLS = {
    "draws": (lambda n: PlackettLuce(np.zeros(n)).sample(5 * n, rng=0), 9, 10_000),
    "learner": (lambda n: ConvexLoss("ap", n_jobs=1, max_iter=10**6, tol=0).fit(query(n)), 9, 3000),
    "thin": (
        lambda n: run_chains(
            GoodBad(np.arange(9.0), labels(9)), 5, tune=0, thin=10**n, kernel="adjacent", rng=0
        ),
        1,
        10,
    ),
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
NAMES = ("draws", "learner", "thin")


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_ends_long_calls():
    # As in a background job of a script, which is told to ignore Ctrl-C and hands that on.
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    command = [*ignoring, sys.executable, "-W", "error", "-c", CHILD, *NAMES]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as child:
        lines = queue.Queue()
        reader = threading.Thread(target=lambda: [*map(lines.put, child.stdout)])
        reader.start()
        try:
            for name in NAMES:
                assert lines.get(timeout=120) == "start\n", name
                time.sleep(0.5)
                child.send_signal(signal.SIGINT)
                assert lines.get(timeout=30) == "interrupted\n", name
                child.stdin.write("\n")
                child.stdin.flush()
        finally:
            child.kill()
            reader.join()


def uniform(orders):
    return np.zeros(len(orders))


def test_a_batch_drawn_in_blocks_has_the_same_bits(monkeypatch):
    signs = {"labels": [1, 0, 0, 1, 0], "scores": [0.1, 0.5, 0.2, 0.9, -1.0]}
    models = (
        PlackettLuce([0.1, 0.5, 0.2, 0.9, -1.0]),
        PlackettLuce([900.0, 0.5, 0.2, 0.9, -1.0]),
        GaussianScores([0.1, 0.5, 0.2, 0.9, -1.0]),
        GoodBad(**signs),
        GoodBad(**signs, space="interleavings"),
        WeightedOrders(5, log_weight=uniform),
    )
    whole = [model.sample((7, 3), rng=1) for model in models]
    tops = models[0].sample_top_k(2, 21, rng=1)
    everything = rankings.random_orders(5, 21, rng=1)
    monkeypatch.setattr("permdist._parallel.BLOCK", 20)
    monkeypatch.setattr("permdist.distributions.base.FEW_ENTRIES", 0)
    monkeypatch.setattr("permdist.rankings.orders.FEW_ENTRIES", 0)
    for model, expected in zip(models, whole, strict=True):
        assert np.array_equal(model.sample((7, 3), rng=1), expected)
    assert np.array_equal(models[0].sample_top_k(2, 21, rng=1), tops)
    assert np.array_equal(rankings.random_orders(5, 21, rng=1), everything)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_discards_comes_again(number):
    class Last:
        def __del__(self):
            signal.raise_signal(number)

    def delete_and_wait():
        Last()
        time.sleep(1.0)

    before = signal.signal(number, signal.default_int_handler)
    try:
        with kept_interrupts(), pytest.raises(KeyboardInterrupt):
            delete_and_wait()
    finally:
        signal.signal(number, before)
