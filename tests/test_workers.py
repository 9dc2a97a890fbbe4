"""The processes of a comparison: a safe path to start in, and an end with their parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from processes import members, start, wait_until, workers

from permdist import data

COMMAND = str(Path(sysconfig.get_path("scripts")) / "permdist")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
# Names that Python or joblib import while a worker starts.
HOSTILE = ("joblib", "pickle", "numpy", "permdist", "multiprocessing", "signal", "ctypes", "runpy")


@pytest.fixture
def hostile(tmp_path):
    """A folder whose files have the names of modules, and leave a mark when they are executed."""
    for name in HOSTILE:
        (tmp_path / f"{name}.py").write_text(f"open('executed-{name}', 'w').close()\n")
    data.save_letor(data.make_letor(30, rng=0), tmp_path / "data.txt")
    return tmp_path


def executed(folder):
    return sorted(path.name for path in folder.glob("executed-*"))


def test_files_in_the_working_directory_are_not_executed(hostile):
    subprocess.run([sys.executable, "-c", "import pickle"], cwd=hostile, check=True)
    assert executed(hostile) == ["executed-pickle"]  # as Python does where it is let
    (hostile / "executed-pickle").unlink()
    arguments = ["compare", "data.txt", "-M", "MLE[C=1|10]", "-j", "2", "--folds", "3", "-o", "out"]
    found = subprocess.run(
        [COMMAND, *arguments, "--identities", "0"], cwd=hostile, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert executed(hostile) == []
    assert len(list((hostile / "out" / "cells").iterdir())) == 6


OWN = """
import os, sys
from permdist import data, models
class Mine(models.MLE):
    def _learn(self, *args):
        assert "PYTHONSAFEPATH" not in os.environ
        with open(f"seen-{os.getpid()}", "w"):
            super()._learn(*args)
"""
USES = """
import mine
from permdist import data
from permdist.comparison import compare
folds = data.make_folds(data.make_letor(30, rng=0), 3, rng=0)
for jobs in (1, 2):
    print(compare(folds, {"own": mine.Mine()}, measures="map", n_jobs=jobs).values("map").tolist())
"""


def test_learners_of_the_users_own_are_found_where_the_parent_finds_them(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    found = subprocess.run(
        [sys.executable, "-c", USES], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    alone, together = found.stdout.splitlines()
    assert alone == together
    assert len(list(tmp_path.glob("seen-*"))) >= 2  # in the parent and in a worker


SLEEPS = """
import sys, time
from joblib import delayed
from permdist.comparison.workers import make_pool
print("started", flush=True)
make_pool(2)(delayed(time.sleep)(600) for _ in range(4))
"""


@linux
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_workers_end_with_their_parent(delay):
    parent = start([sys.executable, "-c", SLEEPS])
    assert parent.stdout.readline() == "started\n"
    assert wait_until(lambda: workers(parent.pid), 30) is not None
    wait_until(lambda: False, delay)  # in the middle of their start, or at work
    assert workers(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until(lambda: not members(parent.pid), 10) is not None, members(parent.pid)
    parent.communicate()


THREADS = """
import os, threading
from joblib import delayed
from permdist.comparison.workers import make_pool
found = []
def run():
    found.append(set(make_pool(2)(delayed(os.getpid)() for _ in range(8))))
for _ in range(2):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
print(bool(found[0] & found[1]))
"""


def test_workers_outlive_a_thread_that_started_them():
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert found.stdout == "True\n", found.stderr
