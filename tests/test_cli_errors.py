"""How commands end: one line and an exit code, whatever is raised and wherever output goes."""

from __future__ import annotations

import errno
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest
from test_cli import LETOR, permdist

from permdist import data

BIG = 2**70


@pytest.fixture
def files(tmp_path):
    (tmp_path / "data.txt").write_text(LETOR)
    return tmp_path


RAISED = {
    "memory of numpy": (MemoryError("Unable to allocate 8 TiB"), 1, "not enough memory: Unable to"),
    "overflow": (OverflowError("int too large"), 1, "OverflowError: int too large (--debug shows"),
    "typing": (numba.TypingError("no\n\nimplementation " * 200), 1, "TypingError: no implement"),
    "nothing said": (AssertionError(), 1, "AssertionError (--debug"),
    "value": (ValueError("C: expected\n 1"), 2, "C: expected 1"),
    "full disk": (OSError(errno.ENOSPC, "No space left on device", "x"), 1, "x: no space left on"),
    "full output": (OSError(errno.ENOSPC, "No space left on device"), 1, "no space left on device"),
    "no file": (FileNotFoundError(errno.ENOENT, "No such file", "x"), 2, "x: no such file"),
    "lost worker": (ConnectionError("a worker was lost"), 1, "a worker was lost"),
}


@pytest.mark.parametrize("name", RAISED)
def test_whatever_is_raised_is_one_line(files, monkeypatch, name):
    error, code, message = RAISED[name]

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(data, "load_letor", fail)
    monkeypatch.delenv("PERMDIST_DEBUG", raising=False)
    text = permdist("describe", "data.txt", cwd=files, code=code)
    assert text.startswith(f"permdist: {message}")
    assert len(text.splitlines()) == 1
    assert len(text) < 1200
    shown = permdist("describe", "data.txt", "--debug", cwd=files, code=code)
    assert shown.startswith("Traceback")
    assert shown.endswith(text)
    monkeypatch.setenv("PERMDIST_DEBUG", "1")
    assert permdist("describe", "data.txt", cwd=files, code=code).startswith("Traceback")


def test_debug_is_forgotten_after_a_command(files):
    assert permdist("describe", "none.txt", "--debug", cwd=files, code=2).startswith("Traceback")
    assert permdist("describe", "none.txt", cwd=files, code=2).startswith("permdist:")
    assert "--debug" in permdist("--help")
    # Behind a lone -- it is a name like any other.
    text = permdist("describe", "--", "--debug", cwd=files, code=2)
    assert text == "permdist: --debug: no such file\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sample", "data.txt", "--draws", BIG),
        ("sample", "data.txt", "--seed", BIG),
        ("sample", "data.txt", "--seed", -1),
        ("sample", "data.txt", "--kernel", "adjacent", "--chains", BIG),
        ("sample", "data.txt", "--feature", BIG),
        ("inspect", "data.txt", "--measure", f"ndcg@{BIG}"),
        ("compare", "data.txt", "--folds", BIG),
        ("compare", "data.txt", "--jobs", BIG),
        ("compare", "data.txt", "--identities", BIG),
        ("fit", "data.txt", "MLE", "--jobs", -BIG),
        ("fit", "data.txt", f"MLE[C={'(' * 200_000}]"),
        ("fit", "data.txt", f"MLE[C={'(' * 50_000}{')' * 50_000}]"),
        ("demo", "--queries", BIG),
        ("identities", "--examples", BIG),
    ],
    ids=lambda one: " ".join(map(str, one))[:40],
)
def test_numbers_without_measure_are_one_clear_error(files, arguments):
    text = permdist(*arguments, cwd=files, code=2)
    assert "Traceback" not in text
    assert "Invalid value for" in text or text.startswith("permdist: ")
    assert [path.name for path in files.iterdir()] == ["data.txt"]


# ---- where output goes -------------------------------------------------------------------------


def run(*arguments, cwd, **options):
    command = [sys.executable, "-m", "permdist", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_told_and_not_replaced(files):
    arguments = ("sample", "data.txt", "-n", "2000", "-o", "/dev/full")
    text = permdist(*arguments, cwd=files, code=1)
    assert text.splitlines()[-1] == "permdist: /dev/full: no space left on device"
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    with Path("/dev/full").open("w") as full:
        found = run("describe", "data.txt", cwd=files, stdout=full)
    assert (found.returncode, found.stderr) == (1, "permdist: no space left on device\n")


def test_a_closed_output_is_no_error(files):
    script = f"{sys.executable} -m permdist describe data.txt >&-"
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=files)
    assert (found.returncode, found.stderr) == (0, "")


def test_output_goes_where_it_is_sent(files):
    out = files / "out.txt"
    out.write_text("old\n")
    out.chmod(0o600)
    (files / "link.txt").symlink_to("out.txt")
    permdist("sample", "data.txt", "-n", "3", "-o", "link.txt", cwd=files)
    assert (files / "link.txt").is_symlink()
    assert len(out.read_text().splitlines()) == 3
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert sorted(path.name for path in files.iterdir()) == ["data.txt", "link.txt", "out.txt"]


def test_places_that_cannot_be_written_are_told_before_any_work(files, monkeypatch):
    monkeypatch.setattr(data, "load_letor", lambda *_, **__: pytest.fail("it began to work"))
    (files / "folder.html").mkdir()
    for arguments in (("fit", "data.txt", "MLE"), ("sample", "data.txt"), ("inspect", "data.txt")):
        text = permdist(*arguments, "-o", "no/x.html", cwd=files, code=2)
        assert text == "permdist: no: no such directory\n"
        text = permdist(*arguments, "-o", "folder.html", cwd=files, code=2)
        assert text == "permdist: folder.html: expected a file name, got a folder\n"


# ---- signals -----------------------------------------------------------------------------------

WAITS = """
import signal, sys, time
signal.signal(signal.{name}, signal.{how})
from permdist import data
from permdist.cli import main
def wait(*_, **__):
    print("waiting", flush=True)
    time.sleep({seconds})
    raise ValueError("it went on")
data.load_letor = wait
sys.argv = ["permdist", "describe", "data.txt"]
main()
"""


@pytest.mark.parametrize(
    ("name", "ignored"), [("SIGINT", False), ("SIGTERM", False), ("SIGINT", True)]
)
def test_signals_end_a_command_unless_the_parent_ignores_them(files, name, ignored):
    how = "SIG_IGN" if ignored else "SIG_DFL"
    if not ignored and name == "SIGINT":
        how = "default_int_handler"  # what Python starts with where nobody ignores it
    script = WAITS.format(name=name, how=how, seconds=0.3 if ignored else 60)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=files,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "waiting\n"
    begin = time.monotonic()
    process.send_signal(getattr(signal, name))
    _, told = process.communicate(timeout=30)
    assert time.monotonic() - begin < 10
    if ignored:
        assert (process.returncode, told) == (2, "permdist: it went on\n")
    else:
        assert (process.returncode, told) == (130, "permdist: interrupted\n")
