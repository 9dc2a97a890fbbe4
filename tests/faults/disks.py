"""Disks that fill up: a small file system where one can be mounted, else a limit on files."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path


@functools.cache
def can_mount():
    """Tell whether this user may mount a small file system."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return _mount(Path(folder), 64) and _unmount(Path(folder))


def _mount(folder, kilobytes):
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


def _unmount(folder):
    return subprocess.run(["umount", "-l", str(folder)], capture_output=True).returncode == 0


@contextlib.contextmanager
def small_disk(folder, kilobytes):
    """Make a folder a disk of its own; tell whether that worked."""
    folder.mkdir(exist_ok=True)
    mounted = can_mount() and _mount(folder, kilobytes)
    try:
        yield mounted
    finally:
        if mounted:
            _unmount(folder)


def limit_files(kilobytes):
    """Return what limits the size of files in a child; for `preexec_fn`."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, resource.RLIM_INFINITY))

    return limit
