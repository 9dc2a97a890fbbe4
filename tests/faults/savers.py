"""Faults in what saves files: each file is the old version or the new one, whole."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from processes import hear_signals, wait_until

from faults.disks import can_mount, limit_files, small_disk
from permdist import data, diagnostics, models

NAMES = ("learner.json", "report.html", "letor.txt.gz", "chains.nc")
SCRIPT = """
import pathlib, sys
import numpy as np
from permdist import PlackettLuce, data, models
from permdist.report import Report
from permdist.samplers import run_chains

def versions():
    for number in (1, 2):
        queries = data.make_letor(10 * number, n_features=4, n_constant=0, rng=number)
        report = Report(f"Version {number}", "")
        report.section("Words", "word " * 3000 * number)
        chains = run_chains(PlackettLuce(np.arange(5.0)), 100 * number, kernel="exact", rng=number)
        learner = models.MLE(C=float(number)).fit(queries)
        yield {
            "learner.json": learner.save,
            "report.html": report.save,
            "letor.txt.gz": lambda path, queries=queries: data.save_letor(queries, path),
            "chains.nc": chains.save,
        }

both = list(versions())
mode, folder = sys.argv[1], pathlib.Path(sys.argv[2])
if mode == "references":
    for number, version in enumerate(both):
        (folder / str(number)).mkdir()
        for name, save in version.items():
            save(folder / str(number) / name)
elif mode == "forever":
    while True:
        for version in both:
            for name, save in version.items():
                save(folder / name)
else:
    for name, save in both[1].items():
        try:
            save(folder / name)
            print("saved", name)
        except OSError as error:
            print("refused", name, str(folder / name) in str(error))
"""


def run(mode, folder, **options):
    """Run the script to its end."""
    command = [sys.executable, "-c", SCRIPT, mode, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@functools.cache
def references():
    """Return a folder with both versions of every file."""
    folder = Path(tempfile.mkdtemp(prefix="faults-references-"))
    found = run("references", folder)
    assert found.returncode == 0, found.stderr
    return folder


def which(path):
    """Tell which of the two versions a file is; anything else is an error."""
    for number in (0, 1):
        reference = references() / str(number) / path.name
        if path.suffix == ".json":
            one, other = models.load(path), models.load(reference)
            same = np.array_equal(one.coef_, other.coef_) and one.C == other.C
        elif path.suffix == ".gz":
            same = data.load_letor(path) == data.load_letor(reference)
        elif path.suffix == ".nc":
            one, other = diagnostics.load(path), diagnostics.load(reference)
            same = np.array_equal(one.orders, other.orders)
        else:
            same = path.read_bytes() == reference.read_bytes()
        if same:
            return number
    raise AssertionError(f"{path} is neither version")


def kill(folder, rng):
    """SIGKILL of a process that saves over and over."""
    command = [sys.executable, "-c", SCRIPT, "forever", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    last = folder / NAMES[-1]
    waited = wait_until(lambda: last.exists() or process.poll() is not None, 60)
    wait_until(lambda: process.poll() is not None, rng.uniform(0.0, 0.5))
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate()
    assert waited is not None, told
    assert process.returncode == -signal.SIGKILL, told
    for name in NAMES:
        which(folder / name)
    left = {path.name for path in folder.iterdir()} - set(NAMES)
    assert len(left) <= 1, left  # of the file that it was writing
    assert all(name.startswith(".") and name.endswith(".tmp") for name in left), left


def full(folder, rng):
    """A disk that fills up."""
    place = folder / "disk"
    size = rng.randrange(36, 72, 4)
    with small_disk(place, size) as mounted:
        (place / "learner.json").write_bytes((references() / "0" / "learner.json").read_bytes())
        (place / "report.html").write_bytes((references() / "0" / "report.html").read_bytes())
        limit = hear_signals if mounted else limit_files(rng.randrange(16, 30))
        found = run("once", place, preexec_fn=limit)
        _check(place, found, old=("learner.json", "report.html"))


def locked(folder, rng):
    """A folder that must not be written to: read-only for the superuser, locked for others."""
    place = folder / "locked"
    if os.geteuid() == 0 and not can_mount():  # who may write anywhere
        return
    with small_disk(place, 1000) as mounted:
        for name in NAMES[: rng.randrange(5)]:
            (place / name).write_bytes((references() / "0" / name).read_bytes())
        old = tuple(path.name for path in place.iterdir())
        if mounted:
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        else:
            place.chmod(0o555)
        try:
            found = run("once", place)
            _check(place, found, old=old)
            assert "saved" not in found.stdout
        finally:
            if not mounted:
                place.chmod(0o755)


def _check(place, found, old):
    """Check that what was refused is as it was, and what was saved is the new version."""
    assert found.returncode == 0, found.stderr
    lines = [line.split() for line in found.stdout.splitlines()]
    assert [line[1] for line in lines] == list(NAMES), found.stdout + found.stderr
    assert any(line[0] == "refused" for line in lines), found.stdout
    for what, name, *named in lines:
        if what == "saved":
            assert which(place / name) == 1
        else:
            assert named == ["True"], found.stdout
            assert (place / name).exists() == (name in old)
            assert name not in old or which(place / name) == 0
    assert {path.name for path in place.iterdir()} <= set(NAMES)


SAVERS = {"save-kill": kill, "save-full": full, "save-locked": locked}
