"""Cases in a child process with limits, so that a crash, a hang or a flood of memory is caught.

The child writes every case to shared memory before it runs it. Processor time is limited by a
timer of the system whose signal no loop, compiled or not, can outlive; the parent watches the
clock on the wall.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.coverage import Tracer, library_roots
from fuzz.engine import Outcome, Target, judge, make_case, of_library, short
from fuzz.mutate import MAX_LENGTH

MEMORY = 3 << 29  # bytes that a case may take, beside what the libraries take
FILES = 1 << 27  # bytes that it may write to a file
WALL = 8  # seconds on the wall for each second of processor time
PATIENCE = 6.0  # times as long for a case that may have compiled kernels


@dataclass
class State:
    """What is known of a target: cases that found something, arcs, failures, counts."""

    target: Target
    corpus: list[bytes]
    pool: list[bytes] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)
    failures: dict[tuple[str, str, str], tuple[Outcome, bytes]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    cases: int = 0


class Board:
    """Shared memory that outlives the child: the number of the case it is at, and the case."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MAX_LENGTH + 16)

    def write(self, number: int, data: bytes) -> None:
        self._memory[16 : 16 + len(data)] = data
        self._memory[8:16] = len(data).to_bytes(8, "little")
        self._memory[:8] = number.to_bytes(8, "little")

    def read(self) -> tuple[int, bytes]:
        number, length = (int.from_bytes(self._memory[i : i + 8], "little") for i in (0, 8))
        return number, bytes(self._memory[16 : 16 + length])


def warm(state: State) -> None:
    """Run the cases to begin with once, untraced: they compile or load the kernels.

    First in a child, then those that came through here, whose memory all children share.
    """
    found: list[Outcome] = []
    trial = State(state.target, state.corpus)
    many = len(state.corpus)
    while len(found) < many:
        end = time.perf_counter() + 1e9
        if _session(trial, 0, many, end, patience=4 * PATIENCE, found=found) is not None:
            found.append(Outcome("died"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for outcome, data in zip(found, state.corpus, strict=False):
            if outcome.kind == "returned" and len(data) < MAX_LENGTH:
                judge(state.target, data)


def run(state: State, *, seed: int, cases: int | None = None, seconds: float = 1e9) -> None:
    """Go on with a target for so many cases or seconds, but run its corpus in any case.

    What comes of it is noted in `state`.
    """
    if not state.cases:
        warm(state)
    begin = time.perf_counter()
    last = None if cases is None else state.cases + cases
    end = begin + seconds
    while (last is None or state.cases < last) and (
        time.perf_counter() < end or state.cases < len(state.corpus)
    ):
        died = _session(state, seed, last, end)
        if died is not None:
            _note(state, *died)


def _note(state: State, outcome: Outcome, data: bytes) -> None:
    """Note the death of a child; a hang is one only if it hangs again, with kernels compiled."""
    new = outcome.signature not in state.failures
    if outcome.kind == "hang" and new and attempt_warm(state.target, data).kind != "hang":
        state.outcomes["slow"] += 1
        return
    state.outcomes[outcome.kind] += 1
    state.failures.setdefault(outcome.signature, (outcome, data))


def attempt(one: Target, data: bytes, *, patience: float = 1.0) -> Outcome:
    """Run a single case in a child of its own."""
    state = State(one, [data])
    found: list[Outcome] = []
    died = _session(state, 0, 1, time.perf_counter() + 1e9, patience=patience, found=found)
    return died[0] if died is not None else found[0]


def attempt_warm(one: Target, data: bytes) -> Outcome:
    """Run a single case once its kernels are compiled."""
    found = attempt(one, data, patience=PATIENCE)
    return found if found.kind in ("hang", "crash") else attempt(one, data)


def _session(
    state: State,
    seed: int,
    last: int | None,
    end: float,
    *,
    patience: float | None = None,
    found: list[Outcome] | None = None,
) -> tuple[Outcome, bytes] | None:
    """Let one child work until it has done its part, or has died of a case: then say of which."""
    board = Board()
    with _pipe() as (receiver, sender), tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        arguments = state, seed, last, end, patience, board, sender, Path(folder)
        Path(folder, "trace").touch()
        child = multiprocessing.get_context("fork").Process(target=_work, args=arguments)
        child.start()
        sender.close()
        limit = state.target.seconds * WALL
        at, since = 0, time.perf_counter()
        stuck, ended = False, False
        try:
            while _take(receiver, state, found):
                number = board.read()[0]
                if number != at:
                    at, since = number, time.perf_counter()
                if time.perf_counter() - since > limit * (patience or 1.0):
                    stuck = True
                    break
            ended = not stuck
        finally:
            if not ended:  # it hangs, or Ctrl-C ended the watch
                child.kill()
            child.join()
        if child.exitcode == 0:
            return None
        number, data = board.read()
        state.cases = max(state.cases, number)
        trace = Path(folder, "trace").read_text(errors="replace")
        return _autopsy(child.exitcode or 0, stuck, trace), data


def _take(receiver: Connection, state: State, found: list[Outcome] | None) -> bool:
    """Take in what the child tells; False when it has ended."""
    if not receiver.poll(0.25):
        return True
    try:
        what, value = receiver.recv()
    except EOFError:
        return False
    if what == "kept":
        data, fresh = value
        state.pool.append(data)
        state.seen |= fresh
    elif what == "failure":
        outcome, data = value
        state.failures.setdefault(outcome.signature, (outcome, data))
    elif what == "counts":
        state.cases, counts = value
        state.outcomes.update(counts)
    elif found is not None:
        found.append(value)
    return True


def _autopsy(code: int, stuck: bool, trace: str) -> Outcome:
    """Say what a child died of."""
    lines = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', trace)
    ours = [one for one in lines if of_library(one[0])][:1]
    if stuck or -code == signal.SIGPROF:
        # Where a loop is caught differs from time to time: its function does not.
        where = "".join(f"{short(file)}, {function}" for file, _, function in ours)
        return Outcome("hang", "took too long", where, trace)
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return Outcome("crash", name, "".join(f"{short(file)}:{line}" for file, line, _ in ours), trace)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[Connection, Connection]]:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    try:
        yield receiver, sender
    finally:
        receiver.close()
        sender.close()


# ---- in the child ------------------------------------------------------------------------------


def _work(
    state: State,
    seed: int,
    last: int | None,
    end: float,
    patience: float | None,
    board: Board,
    sender: Connection,
    folder: Path,
) -> None:
    """Make cases, run them, and tell the parent what is new."""
    trace = (folder / "trace").open("w")  # open until the end: the system writes to it
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGPROF, trace, chain=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.unraisablehook = lambda _: None  # h5netcdf complains of damaged files when they are closed
    _limit_memory()
    parent = os.getppid()
    tracer = Tracer(library_roots(), state.seen)
    work = folder / "work"
    counts: Counter[str] = Counter()
    number = state.cases
    told = time.perf_counter()
    while (last is None or number < last) and os.getppid() == parent:
        now = time.perf_counter()
        first = number < len(state.corpus)
        if now > end and not first:
            break
        if first:
            data = state.corpus[number][:MAX_LENGTH]
        else:
            data = make_case(state.target, state.pool or state.corpus, seed, number)
        number += 1
        board.write(number, data)
        work.mkdir(exist_ok=True)
        os.chdir(work)
        signal.setitimer(signal.ITIMER_PROF, state.target.seconds * (patience or 1.0))
        if patience is None:
            with tracer.watching() as fresh:
                outcome = judge(state.target, data)
        else:  # a single case: what it runs through does not matter
            fresh, outcome = set(), judge(state.target, data)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        if any(work.iterdir()):
            shutil.rmtree(work, ignore_errors=True)
        counts[outcome.kind] += 1
        if outcome.feature not in tracer.seen:
            fresh.add(outcome.feature)
            tracer.seen.add(outcome.feature)
        if outcome.failed:
            if outcome.signature not in state.failures:
                state.failures[outcome.signature] = outcome, data
                sender.send(("failure", (outcome, data)))
        elif fresh or first:
            state.pool.append(data)
            sender.send(("kept", (data, fresh)))
        if patience is not None:
            sender.send(("outcome", outcome))
        if now - told > 1.0:
            sender.send(("counts", (number, counts)))
            counts, told = Counter(), now
    sender.send(("counts", (number, counts)))
    sender.close()
    os._exit(0)


def _limit_memory() -> None:
    """Let a case have so much memory and no more; files likewise."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILES, FILES))
    statm = Path("/proc/self/statm")
    if statm.exists():
        present = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (present + MEMORY, present + MEMORY))
