"""The command: takes turns between the targets, shows what was found, keeps and replays cases."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fuzz.engine import HERE, TARGETS, Outcome, Target
from fuzz.guard import State, attempt_warm, run, shrink

TURN = 10.0  # seconds of a target before the next one has its turn


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if something failed."""
    import fuzz.targets  # noqa: F401  # declares them

    options = _parser().parse_args(arguments)
    chosen = [one for one in TARGETS.values() if _wanted(one, options.target)]
    if options.list:
        print("\n".join(f"{one.group:<10} {one.name}" for one in chosen))
        return 0
    if not chosen:
        sys.exit(f"--target: no target is named {', '.join(options.target)}; see --list")
    if options.replay:
        return replay(options.replay, chosen)
    begin = time.perf_counter()
    states = [State(one, one.corpus()) for one in chosen]
    try:
        take_turns(states, options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    if options.keep:
        for state in states:
            keep(state)
    if options.json:
        print(json.dumps([facts(state) for state in states]))
    else:
        show(states, time.perf_counter() - begin)
    return int(any(state.failures for state in states))


def take_turns(states: list[State], options: argparse.Namespace) -> None:
    """Let every target have its turn until the time is over, or its number of cases once."""
    total = 60.0 * options.minutes
    end = time.perf_counter() + total
    turn = total / len(states) if options.cases else min(TURN, total / len(states))
    while True:
        for state in states:
            left = end - time.perf_counter()
            if left <= 0.0 and state.cases:
                return
            if sys.stderr.isatty():
                print(f"\r{state.target.name:<30}", end="", file=sys.stderr)
            run(state, seed=options.seed, cases=options.cases, seconds=turn)
            report_failures(state, options.crashes, options.shrink)
        if options.cases or time.perf_counter() > end:
            return


def replay(path: Path, chosen: list[Target]) -> int:
    """Run one case on the target that its folder, or --target, names."""
    named = TARGETS.get(path.resolve().parent.name)
    one = named if named is not None and len(chosen) != 1 else chosen[0]
    outcome = attempt_warm(one, path.read_bytes())
    print(f"{one.name}: {outcome.kind}\n{outcome.text}\n{outcome.details}".rstrip())
    return int(outcome.failed)


def report_failures(state: State, folder: Path, smaller: bool) -> None:
    """Save a case for each new failure and say how to see it again."""
    for signature in [one for one in state.failures if one not in state.reported]:
        outcome, data = state.failures[signature]
        state.reported.add(signature)
        if smaller:
            data = shrink(state.target, outcome, data)
        path = folder / state.target.name / f"{_name(data)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        shown = f"{describe(state.target, outcome, data)}\n  replay: {path}"
        print(shown, file=sys.stderr, flush=True)


def describe(one: Target, outcome: Outcome, data: bytes) -> str:
    """Describe a failure in a few lines."""
    return (
        f"{one.name}: {outcome.kind}\n  {outcome.text or 'no message'}\n  at {outcome.where}\n"
        f"  case: {data[:200]!r}{'...' if len(data) > 200 else ''}"
    )


def keep(state: State) -> None:
    """Add the cases that reached something new to the corpus, the short ones."""
    known = set(state.corpus)
    for data in state.pool:
        if data not in known and len(data) <= 400:
            state.target.folder.mkdir(parents=True, exist_ok=True)
            (state.target.folder / f"kept-{_name(data)}").write_bytes(data)


def facts(state: State) -> dict[str, Any]:
    """Sum up a target in plain values."""
    return {
        "target": state.target.name,
        "cases": state.cases,
        "seconds": round(state.seconds, 2),
        "arcs": len(state.seen),
        "corpus": len(state.corpus),
        "pool": len(state.pool),
        "outcomes": dict(state.outcomes),
        "failures": [
            describe(state.target, outcome, data) for outcome, data in state.failures.values()
        ],
    }


def show(states: list[State], seconds: float) -> None:
    """Print a line for each target and one for all."""
    head = ("target", "cases", "a second", "returned", "refused", "arcs", "pool", "failures")
    rows = [head]
    for state in states:
        rate = state.cases / max(state.seconds, 1e-9)
        counts = (state.outcomes[kind] for kind in ("returned", "refused"))
        numbers = (state.cases, round(rate), *counts, len(state.seen), len(state.pool))
        rows.append((state.target.name, *(f"{n:,}" for n in (*numbers, len(state.failures)))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        first, *others = (f"{one:>{width}}" for one, width in zip(row, widths, strict=True))
        print(f"{row[0]:<{len(first)}}  {'  '.join(others)}")
    cases = sum(state.cases for state in states)
    failures = sum(len(state.failures) for state in states)
    slow = sum(state.slow for state in states)
    print(
        f"\n{cases:,} cases of {len(states)} targets in {seconds:.0f} s: {failures} kinds of "
        f"failure{f'; {slow} slow only at first' if slow else ''}"
    )


def _wanted(one: Target, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch(one.name, p) or one.group == p for p in patterns)


def _name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=1.0, help="how long, all targets together; default: 1")
    add("--cases", type=int, help="so many cases of each target, within --minutes")
    add("--seed", type=int, default=0, help="the same seed makes the same cases")
    add("--target", action="append", default=[], help="a name, a pattern or a group; repeatable")
    add("--list", action="store_true", help="list the targets and stop")
    add("--keep", action="store_true", help="add cases that reached something new to the corpus")
    add("--replay", type=Path, metavar="FILE", help="run one case and show what comes of it")
    add("--crashes", type=Path, default=HERE / "crashes", help="where cases that fail are saved")
    add("--no-shrink", dest="shrink", action="store_false", help="save failing cases as they are")
    add("--json", action="store_true", help="print JSON instead of a table")
    return parser
