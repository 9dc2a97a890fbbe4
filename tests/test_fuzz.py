"""A bounded run of the fuzz harness on every target, and the harness's own promises.

The run takes the same cases every time; `python tests/fuzz --minutes 60` goes on from there.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fuzz.targets
import numpy as np
import pytest
from fuzz.engine import TARGETS, Target, expect, make_case
from fuzz.guard import State, attempt, run
from fuzz.mutate import pack, unpack
from fuzz.run import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forked children")

# What a group's targets get: cases of each, and seconds for all of them.
BOUNDS = {
    "readers": (300, 7),
    "names": (100, 7),
    "models": (25, 9),
    "state": (100, 8),
    "arrays": (150, 8),
    "commands": (20, 12),
}


@functools.cache
def bounded(group: str) -> dict[str, dict]:
    """Fuzz the targets of one group in a process of its own."""
    cases, seconds = BOUNDS[group]
    command = [sys.executable, Path(__file__).parent / "fuzz", "--target", group, "--json"]
    command += ["--cases", cases, "--minutes", seconds / 60, "--seed", 0]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    return {facts["target"]: facts for facts in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("name", list(TARGETS))
def test_bounded_run(name):
    facts = bounded(TARGETS[name].group)[name]
    assert not facts["failures"], "\n".join(facts["failures"])
    assert facts["cases"] >= facts["corpus"]
    assert facts["outcomes"]["returned"] > 0  # a target that refuses everything finds nothing


def test_every_group_has_its_bounds():
    assert {one.group for one in TARGETS.values()} == set(BOUNDS)
    assert len(vars(fuzz.targets)["__all__"]) == len(BOUNDS)


# ---- the harness finds what it is there for ------------------------------------------------------


def faulty(case: bytes) -> None:
    if case.startswith(b"loop"):
        while True:
            pass
    if case.startswith(b"sleep"):
        time.sleep(60.0)
    if case.startswith(b"segv"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if case.startswith(b"memory"):
        np.ones(2**33)
    if case.startswith(b"key"):
        {}["key"]
    if case.startswith(b"unicode"):
        b"\xff".decode()
    if case.startswith(b"lines"):
        raise ValueError("one\ntwo")
    if case.startswith(b"words"):
        raise ValueError("nothing of the file")
    if case.startswith(b"warning"):
        np.float64(1e308) * np.ones(1) * 10
    if case.startswith(b"broken"):
        expect(False, "this never holds")
    if case:
        raise ValueError("case.txt: no such thing")


FAULTY = Target("faulty", "test", faulty, says="case.txt", seconds=0.4)


@pytest.mark.parametrize(
    ("case", "kind", "text"),
    [
        (b"", "returned", ""),
        (b"x", "refused", "ValueError: case.txt: no such thing"),
        (b"loop", "hang", "took too long"),
        (b"segv", "crash", "SIGSEGV"),
        (b"memory", "wrong error", "MemoryError"),
        (b"key", "wrong error", "KeyError"),
        (b"unicode", "wrong error", "UnicodeDecodeError"),
        (b"lines", "bad message", "ValueError"),
        (b"words", "bad message", "ValueError"),
        (b"warning", "wrong error", "RuntimeWarning"),
        (b"broken", "broken promise", "this never holds"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_becomes_of_a_case(case, kind, text):
    found = attempt(FAULTY, case)
    assert found.kind == kind
    assert text in found.text
    assert found.failed == (kind not in ("returned", "refused"))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_sleeps_is_found_by_the_clock(monkeypatch):
    monkeypatch.setattr("fuzz.guard.WALL", 1)
    assert attempt(FAULTY, b"sleep").kind == "hang"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_run_goes_on_after_a_crash_and_names_the_case():
    state = State(FAULTY, [b"", b"segv", b"key", b"x"])
    run(state, seed=0, cases=60)
    assert state.cases == 60
    found = {outcome.text.partition(":")[0]: data for outcome, data in state.failures.values()}
    assert found["SIGSEGV"] == b"segv"
    assert found["KeyError"] == b"key"
    assert state.pool[:2] == [b"", b"x"]


def digits(case: bytes) -> int:
    """Stand for a reader that fails behind several steps, each of them a line."""
    from permdist.measures import parse

    parse(case.decode(errors="replace"))
    return 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_coverage_guides_and_the_same_seed_makes_the_same_cases():
    one = Target("digits", "test", digits, tokens=[b"ndcg", b"@10", b"[gain=linear]"])
    states = [State(one, [b"x"]) for _ in range(2)]
    for state in states:
        run(state, seed=3, cases=250)
    assert states[0].pool == states[1].pool
    assert states[0].seen == states[1].seen
    assert len(states[0].pool) > 4
    assert states[0].outcomes["returned"] > 0
    assert make_case(one, [b"a", b"b"], 1, 7) == make_case(one, [b"a", b"b"], 1, 7)


# ---- mutations -----------------------------------------------------------------------------------


def test_bundles_survive_packing_and_stay_in_their_folder():
    files = {"a.txt": b"1\n", "b/c.npz": b"\0>>>\n", "empty": b""}
    assert unpack(pack(files)) == files
    assert set(unpack(b">>> ../../etc/passwd\nx\n>>> /root\ny\n")) == {"etc/passwd", "root"}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_failure_is_reported_saved_and_kept_apart(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TARGETS, "faulty", replace(FAULTY, seeds=lambda: [b"key to nothing", b""]))
    saved = tmp_path / "crashes"
    command = ["--target", "faulty", "--cases", "4", "--crashes", str(saved)]
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "KeyError" in shown.err
    assert "1 wrong error" in shown.out
    (case,) = (saved / "faulty").iterdir()
    assert case.read_bytes() == b"key to nothing"
    assert str(case) in shown.err
    assert main(["--replay", str(case)]) == 1
