"""Faults in `permdist compare`: whatever ends it, finished fits are kept and it goes on."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import hear_signals, members, start, wait_until, workers

from faults.disks import limit_files, small_disk
from permdist import data
from permdist.comparison import compare
from permdist.comparison.fits import digest

LINUX = sys.platform.startswith("linux")
# The command without its report, whose pictures take longer than all the rest.
COMMAND = """
import sys
from permdist.cli import main
from permdist import data
from permdist.report import comparison
comparison.comparison_report = lambda *_, **__: type("Report", (), {"save": lambda *_: None})()
sys.argv = ["permdist", *sys.argv[1:]]
main()
"""
SETTINGS = "|".join(f"{number}e-2" for number in range(1, 13))
FITS = 3 * 12


@functools.cache
def collection():
    """Make the collection that is compared on, once."""
    folder = Path(tempfile.mkdtemp(prefix="faults-data-"))
    data.save_letor(data.make_letor(30, n_features=6, n_constant=0, rng=0), folder / "data.txt")
    return folder / "data.txt"


def command(output, jobs=2):
    """Return the command line of the comparison."""
    options = ["-M", f"MLE[C={SETTINGS}]", "-m", "map", "--folds", "3", "--identities", "0"]
    where = ["-o", str(output), "-j", str(jobs), "--json"]
    return [sys.executable, "-c", COMMAND, "compare", str(collection()), *options, *where]


def table(output=None):
    """Make the same comparison in this process, without faults; return its table."""
    folds = data.make_folds(data.load_letor(collection()), 3, rng=0)
    found = compare(folds, f"MLE[C={SETTINGS}]", measures="map", directory=output)
    return found.to_dict()["tables"], found.values("map").tolist()


@functools.cache
def whole():
    """Return the table that a comparison without faults gives."""
    tables, values = table()
    return _timeless(tables), values


def _timeless(tables):
    for rows in tables.values():
        for row in rows.values():
            row.pop("seconds", None)
    return tables


def kept(output):
    """Check the fits that were kept; return when each was written."""
    times = {}
    for path in (output / "cells").glob("*.json"):
        stored = json.loads(path.read_bytes())
        assert stored.pop("digest") == digest(stored), path
        times[path.name] = path.stat().st_mtime_ns
    return times


def goes_on(output, before):
    """Make the same comparison again: the same table, and no fit is made twice."""
    tables, values = table(output)
    assert (_timeless(tables), values) == whole()
    after = kept(output)
    assert len(after) == FITS
    assert all(after[name] == when for name, when in before.items())


def one_line(told, message):
    """Check that an error is one line, and no traceback."""
    lines = [line for line in told.splitlines() if line.startswith("permdist:")]
    assert len(lines) == 1, told
    assert message in lines[0], told
    assert "Traceback" not in told, told


def _begin(output, rng, jobs=2):
    """Start a comparison and wait for a random moment of its life."""
    process = start(command(output, jobs))
    moment = rng.choice(["loading", "starting", "fitting", "fitting"])
    if moment == "loading":
        wait_until(lambda: process.poll() is not None, rng.uniform(0.0, 1.0))
    elif moment == "starting" and LINUX and jobs > 1:
        wait_until(lambda: workers(process.pid) or process.poll() is not None, 60)
        wait_until(lambda: process.poll() is not None, rng.uniform(0.0, 1.0))
    else:
        wanted = rng.randrange(1, FITS // 2)
        wait_until(
            lambda: len(list(output.glob("cells/*.json"))) >= wanted or process.poll() is not None,
            120,
        )
    return process


def kill(folder, rng):
    """SIGKILL at a random moment."""
    output = folder / "out"
    process = _begin(output, rng)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if LINUX:
        # A worker that is still starting ends as soon as it has started.
        assert wait_until(lambda: not members(process.pid), 10) is not None, "a worker is left"
    process.communicate()
    goes_on(output, kept(output))


def term(folder, rng):
    """SIGTERM at a random moment, as a batch system sends it."""
    output = folder / "out"
    process = _begin(output, rng, jobs=rng.choice([1, 2]))
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    # Before Python has come to the command, the signal ends it as it ends any process.
    assert process.returncode in (130, 0, -signal.SIGTERM), told
    if process.returncode == 130:
        one_line(told, "interrupted")
    goes_on(output, kept(output))


def worker(folder, rng):
    """SIGKILL of one worker."""
    output = folder / "out"
    process = start(command(output))
    wanted = rng.randrange(1, FITS // 2)
    wait_until(
        lambda: len(list(output.glob("cells/*.json"))) >= wanted or process.poll() is not None, 120
    )
    for number in workers(process.pid)[:1]:
        os.kill(number, signal.SIGKILL)
    _, told = process.communicate(timeout=120)
    assert process.returncode in (0, 1), told  # it may have been at its end
    if process.returncode == 1:
        one_line(told, "a worker was lost")
    goes_on(output, kept(output))


def full(folder, rng):
    """A disk that fills up while fits are kept."""
    output = folder / "out"
    with small_disk(output, rng.randrange(24, 100, 4)) as mounted:
        limit = hear_signals if mounted else limit_files(1)
        found = subprocess.run(command(output, 1), capture_output=True, text=True, preexec_fn=limit)
        assert found.returncode == 1, found.stderr
        one_line(found.stderr, "no space left on device" if mounted else "file too large")
        before = kept(output)
        assert not list(output.glob("cells/.*"))
        saved = {path.name: path.read_bytes() for path in (output / "cells").glob("*.json")}
    (output / "cells").mkdir(parents=True, exist_ok=True)
    for name, contents in saved.items():  # the same fits on a larger disk
        (output / "cells" / name).write_bytes(contents)
    assert kept(output).keys() == before.keys()
    goes_on(output, kept(output))


COMPARISONS = {
    "compare-kill": kill,
    "compare-term": term,
    "compare-worker": worker,
    "compare-full": full,
}
