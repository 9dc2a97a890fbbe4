"""A distribution with a compiled target and a kernel, added from outside the library."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from extension import kernel
from extension.distribution import (
    Constants,
    Footrule,
    PlainFootrule,
    peek_footrule,
    restore_footrule,
    swap_footrule,
)
from extension.kernel import rotation
from naive import transition_matrix

from permdist import GoodBad
from permdist.diagnostics import compare_to_exact
from permdist.rankings import enumerate_orders
from permdist.samplers import register_kernel, run_chains
from permdist.samplers.auto import applicable
from permdist.samplers.kernels import KERNELS
from permdist.targets import Target, target_of


@pytest.fixture(autouse=True)
def registered():
    KERNELS.discard("rotation")  # as the guide has one, too
    kernel.register()
    yield
    KERNELS.discard("rotation")


@pytest.mark.parametrize("name", ["adjacent", "transposition", "relocation", "rotation"])
@pytest.mark.parametrize("kind", [Footrule, PlainFootrule])
def test_every_kernel_leaves_the_target_as_it_is(kind, name):
    dist, orders = kind(4, 0.4), enumerate_orders(4)
    chances = np.exp(dist.log_prob(orders))
    matrix = transition_matrix(target_of(dist), name, orders)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(chances @ matrix - chances).max() < 1e-12


@pytest.mark.parametrize("name", ["rotation", "relocation"])
def test_the_kernel_leaves_targets_of_the_library_as_they_are(name):
    dist, orders = GoodBad([0.5, 0.1, -0.3, 0.2], [1, 0, 0, 1], tilt="ap"), enumerate_orders(4)
    chances = np.exp(dist.log_prob(orders))
    matrix = transition_matrix(target_of(dist), name, orders)
    assert np.abs(chances @ matrix - chances).max() < 1e-12


@pytest.mark.parametrize("kind", [Footrule, PlainFootrule])
def test_chains_agree_with_exact_marginals(kind):
    chains = run_chains(kind(6, 0.3), 3000, kernel="adjacent+rotation", thin=20, rng=0)
    assert chains.kernel == "adjacent+rotation"
    assert compare_to_exact(chains).worst_score < 5
    np.testing.assert_allclose(chains.log_weight, chains.dist.log_weight(chains.orders), atol=1e-9)


def test_compiled_and_interpreted_chains_are_the_same():
    class Slow(Footrule):
        def _target(self):
            return Target(self.n_items, *SLOW, Constants(0.3, np.arange(6)), 6, exact=False)

    options = {"kernel": "rotation+relocation", "rng": 1, "chains": 2}
    compiled_run, plain = (run_chains(kind(6, 0.3), 40, **options) for kind in (Footrule, Slow))
    np.testing.assert_array_equal(compiled_run.orders, plain.orders)


SLOW = (peek_footrule.py_func, restore_footrule.py_func, swap_footrule.py_func)


def test_a_run_continues_from_its_checkpoint(tmp_path):
    options = {"kernel": "rotation+adjacent", "rng": 0, "chains": 2}
    run_chains(Footrule(8, 0.2), 40, 10, checkpoint=tmp_path / "run", **options)
    resumed = run_chains(Footrule(8, 0.2), 90, 10, checkpoint=tmp_path / "run", **options)
    whole = run_chains(Footrule(8, 0.2), 90, 10, **options)
    np.testing.assert_array_equal(resumed.orders, whole.orders)
    with pytest.raises(ValueError, match="it holds a run with another distribution"):
        run_chains(Footrule(8, 0.3), 90, 10, checkpoint=tmp_path / "run", **options)


def test_auto_tries_kernels_whose_costs_are_known():
    assert run_chains(Footrule(12, 0.2), 10, rng=0).kernel != "rotation"
    assert "rotation" in applicable(target_of(Footrule(12, 0.2)))


def test_names_that_cannot_be_registered():
    for name in ("auto", "exact", "a b", "a+b", "", 3):
        with pytest.raises(ValueError, match="name: expected one word"):
            register_kernel(name, rotation)
    with pytest.raises(ValueError, match="the name 'adjacent' is taken"):
        register_kernel("adjacent", rotation)
    with pytest.raises(TypeError, match="function: expected a function, got str"):
        register_kernel("mine", "rotation")
    with pytest.raises(ValueError, match="sweep: expected a positive number"):
        register_kernel("mine", rotation, sweep=0)
    with pytest.raises(ValueError, match=r"expected one of auto, exact, adjacent, .*rotation"):
        run_chains(Footrule(5, 0.1), kernel="rotatoin+adjacent")


PLUGIN = """
from permdist.samplers.kernels import accept, compiled, peek, pick, register_kernel, swap

@compiled
def top(target, state, rng):
    k = pick(rng, 2)
    value = peek(target, state, k)
    if pick(rng, 2) == 0 and accept(rng, value - state.value[0]):
        swap(target, state, k, value)
        return True
    return False

register_kernel("top", top)
"""


def test_the_command_line_finds_the_kernel_of_a_plug_in_and_caches_it(tmp_path):
    (tmp_path / "my_kernels.py").write_text(PLUGIN)
    (tmp_path / "data.txt").write_text("".join(f"{i % 2} qid:1 1:{i}\n" for i in range(3)))
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PERMDIST_PLUGINS": "my_kernels",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "permdist", "sample", "data.txt", "--feature", "1"]
    command += ["--kernel", "top", "--draws", "50", "--distribution", "plackett-luce"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 200
    assert [*(tmp_path / "cache").rglob("*advance*plackett_luce_peek_top*.nbi")]
