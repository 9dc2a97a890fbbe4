"""Processes for tests: started as a terminal would, found again by their session, waited for."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path


def hear_signals():
    """Undo what a parent such as `nohup` has its children ignore; for `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def start(command, **options):
    """Start a command in a session of its own, with signals as a terminal leaves them."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command, start_new_session=True, preexec_fn=hear_signals, **options)


def members(session):
    """List the processes of a session that are alive, where Linux tells."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = status.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # it has ended
            continue
        if int(number) == session and state not in "ZX":
            found.append(int(status.parent.name))
    return found


def workers(session):
    """List the processes of a session that were started to make fits."""
    found = []
    for number in members(session):
        try:
            command = (Path("/proc") / str(number) / "cmdline").read_bytes()
        except OSError:
            continue
        if b"popen_loky" in command:
            found.append(number)
    return found


def wait_until(condition, seconds):
    """Wait for a condition; tell how long it took, or None if it did not come."""
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < seconds:
        if condition():
            return waited
        time.sleep(0.01)
    return None
