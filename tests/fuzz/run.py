"""The command: runs every target for a while, saves what fails and replays cases."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fuzz.engine import HERE, TARGETS, Outcome, Target
from fuzz.guard import State, attempt_warm, run


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
    states = [State(one, one.corpus()) for one in chosen]
    seconds = 60.0 * options.minutes / len(states)
    with contextlib.suppress(KeyboardInterrupt):
        for state in states:
            run(state, seed=options.seed, cases=options.cases, seconds=seconds)
            report_failures(state, options.crashes)
            if not options.json:
                counts = ", ".join(f"{n:,} {kind}" for kind, n in state.outcomes.most_common())
                print(f"{state.target.name}: {state.cases:,} cases, {counts}", flush=True)
    if options.json:
        print(json.dumps([facts(state) for state in states]))
    return int(any(state.failures for state in states))


def replay(path: Path, chosen: list[Target]) -> int:
    """Run one case on the target that its folder, or --target, names."""
    named = TARGETS.get(path.resolve().parent.name)
    one = named if named is not None and len(chosen) != 1 else chosen[0]
    outcome = attempt_warm(one, path.read_bytes())
    print(f"{one.name}: {outcome.kind}\n{outcome.text}\n{outcome.details}".rstrip())
    return int(outcome.failed)


def report_failures(state: State, folder: Path) -> None:
    """Save a case for each failure and say how to see it again."""
    for outcome, data in state.failures.values():
        path = folder / state.target.name / hashlib.sha256(data).hexdigest()[:12]
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


def facts(state: State) -> dict[str, Any]:
    """Sum up a target in plain values."""
    return {
        "target": state.target.name,
        "cases": state.cases,
        "corpus": len(state.corpus),
        "outcomes": dict(state.outcomes),
        "failures": [
            describe(state.target, outcome, data) for outcome, data in state.failures.values()
        ],
    }


def _wanted(one: Target, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch(one.name, p) or one.group == p for p in patterns)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=1.0, help="how long, all targets together; default: 1")
    add("--cases", type=int, help="so many cases of each target, within --minutes")
    add("--seed", type=int, default=0, help="the same seed makes the same cases")
    add("--target", action="append", default=[], help="a name, a pattern or a group; repeatable")
    add("--list", action="store_true", help="list the targets and stop")
    add("--replay", type=Path, metavar="FILE", help="run one case and show what comes of it")
    add("--crashes", type=Path, default=HERE / "crashes", help="where cases that fail are saved")
    add("--json", action="store_true", help="print JSON")
    return parser
