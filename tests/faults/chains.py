"""Faults in `run_chains` with a checkpoint: it goes on to the bits it would have had."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from processes import hear_signals, wait_until

from faults.disks import limit_files, small_disk
from permdist import GoodBad
from permdist.samplers import run_chains

# Written often, so that many faults meet a write.
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[3])
from faults.chains import run
from permdist.samplers import chain
chain.SAVE_EVERY, chain.SLICE = 0.0, 0.001
try:
    run(sys.argv[2], sys.argv[1])
except OSError as error:
    sys.exit(f"{error.strerror}: {error.filename}")
"""
MODEL = GoodBad(np.linspace(-0.1, 0.1, 30), [1, 0, 0] * 10, tilt="ap", kappa=2.0)


def run(keep, checkpoint=None):
    """Run the chains that meet with faults."""
    options = {"kernel": "adjacent+transposition", "rng": 9, "chains": 2, "thin": 40}
    return run_chains(MODEL, 3000, 100, keep=keep, checkpoint=checkpoint, **options)


def command(checkpoint, keep):
    """Return the command line of a run."""
    here = str(Path(__file__).resolve().parents[1])
    return [sys.executable, "-c", SCRIPT, str(checkpoint), keep, here]


@functools.cache
def whole(keep):
    """Return what a run without faults gives."""
    return run(keep)


def ends_well(checkpoint, keep):
    """Go on from a checkpoint, and compare with a run without faults."""
    found, expected = run(keep, checkpoint), whole(keep)
    assert found.complete
    np.testing.assert_array_equal(found.orders, expected.orders)
    np.testing.assert_array_equal(found.log_weight, expected.log_weight)
    np.testing.assert_array_equal(found.rank_marginals(), expected.rank_marginals())
    np.testing.assert_array_equal(found.accept_rate, expected.accept_rate)


def kill(folder, rng):
    """SIGKILL at random moments, several times in the same run."""
    keep = rng.choice(["draws", "moments"])
    checkpoint = folder / "run"
    for _ in range(rng.randrange(1, 4)):
        process = subprocess.Popen(command(checkpoint, keep), stderr=subprocess.PIPE, text=True)
        before = _written(checkpoint)
        wait_until(
            lambda p=process, b=before: _written(checkpoint) != b or p.poll() is not None, 60
        )
        wait_until(lambda p=process: p.poll() is not None, rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        _, told = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), told
    ends_well(checkpoint, keep)


def _written(checkpoint):
    try:
        return os.stat(checkpoint).st_mtime_ns
    except OSError:
        return 0


def full(folder, rng):
    """A disk that fills up under a checkpoint."""
    disk = folder / "disk"
    with small_disk(disk, rng.randrange(24, 400, 4)) as mounted:
        limit = hear_signals if mounted else limit_files(rng.randrange(2, 200))
        found = subprocess.run(
            command(disk / "run", "draws"),
            capture_output=True,
            text=True,
            preexec_fn=limit,
        )
        assert found.returncode == 1, found.stderr
        message = "No space left on device" if mounted else "File too large"
        assert message in found.stderr.splitlines()[-1], found.stderr
        kept = (disk / "run").read_bytes()
    (folder / "run").write_bytes(kept)  # the same run on a larger disk
    ends_well(folder / "run", "draws")


CHAINS = {"chains-kill": kill, "chains-full": full}
