"""The loop over cases: one after the other, with a seed for each, until the time is over."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import traceback
from pathlib import Path

from faults.chains import CHAINS
from faults.comparisons import COMPARISONS
from faults.savers import SAVERS

CASES = {**COMPARISONS, **CHAINS, **SAVERS}


def run_case(name, seed):
    """Run one case in a folder of its own; a fault that loses something is an AssertionError."""
    with tempfile.TemporaryDirectory(prefix=f"faults-{name}-") as folder:
        CASES[name](Path(folder), random.Random(f"{name} {seed}"))


def main(arguments=None):
    """Run cases until the time is over; return 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--case", choices=list(CASES), help="this one only")
    options = parser.parse_args(arguments)
    names = [options.case] if options.case else list(CASES)
    tried, lost = dict.fromkeys(names, 0), []
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    while time.monotonic() < end:
        for name in names:
            if time.monotonic() >= end and all(tried.values()):
                break
            try:
                run_case(name, seed)
            except Exception:
                lost.append((name, seed))
                print(f"\n{name}, seed {seed}:\n{traceback.format_exc()}", flush=True)
            tried[name] += 1
            print(f"\r{sum(tried.values())} faults, {len(lost)} losses", end="", flush=True)
        seed += 1
    print()
    for name, number in tried.items():
        losses = [str(seed) for one, seed in lost if one == name]
        told = f"LOST with --seed {', '.join(losses)}" if losses else "nothing lost"
        print(f"{name:15} {number:5} times  {told}")
    return 1 if lost else 0
