"""How much of the library five common uses pass through: files, functions and calls between files.

    python benchmarks/journeys.py [JOURNEY ...] [--list]

Each journey runs once to import and compile what it needs, and once under `sys.setprofile`, on this
thread and those that it starts. Compiled kernels are not seen; the foundations (``permdist/_*``:
argument checks and the like) are counted apart. ``--list`` prints the files and
functions of each journey, in the order in which they are first called.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import permdist
from permdist import PlackettLuce, data, models, samplers
from permdist.comparison import compare

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

FOLDERS = [Path(part.__file__ or "").resolve().parent for part in (permdist, samplers, models)]
SCORES, LABELS = np.linspace(1.0, -1.0, 8), np.array([2, 0, 1, 0, 0, 1, 0, 0])
QUERIES = data.make_letor(30, n_features=5, n_constant=0, rng=0)
X, Y, QID = QUERIES.X, QUERIES.y, QUERIES.qid


def rank_marginals(_: Path) -> None:
    PlackettLuce(SCORES).rank_marginals()


def expected_ndcg(_: Path) -> None:
    PlackettLuce(SCORES).expect("ndcg", LABELS)


def convex_loss(_: Path) -> None:
    models.ConvexLoss("ap").fit(X, Y, QID)


def chains(_: Path) -> None:
    samplers.run_chains(PlackettLuce(SCORES), draws=100, tune=50, rng=0).summary()


def comparison(folder: Path) -> None:
    queries = data.load_letor(folder / "letor.txt")
    folds = data.make_folds(queries, 3, rng=0)[:2]
    learners = ["ConvexLoss[C=10]", "AdaRank[max_iter=20]"]
    compare(folds, learners).report(folder / "report.html", folds=folds)


JOURNEYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "marginals": ("PlackettLuce(...) -> rank_marginals", rank_marginals),
    "expect": ('PlackettLuce(...).expect("ndcg")', expected_ndcg),
    "fit": ("ConvexLoss.fit(X, y, qid)", convex_loss),
    "chains": ("run_chains -> summary", chains),
    "compare": ("LETOR file -> compare (4 fits) -> report.html", comparison),
}


class Trace:
    """Counts the functions of the library that are called, and who calls them."""

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, None]] = defaultdict(dict)  # in order, by file
        self.foundations: set[tuple[str, str]] = set()
        self.edges: set[tuple[str, str]] = set()
        self.names: dict[str, str | None] = {}

    def file(self, frame: FrameType | None) -> str | None:
        """Return the file of a frame as a path inside the library, None outside of it."""
        if frame is None:
            return None
        path = frame.f_code.co_filename
        if path not in self.names:
            inside = [one for one in FOLDERS if Path(path).resolve().is_relative_to(one)]
            top = inside[0].parent if inside else None
            self.names[path] = str(Path(path).resolve().relative_to(top)) if top else None
        return self.names[path]

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one event of the profiler."""
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        here = self.file(frame)
        if here is None:
            return
        if Path(here).name.startswith("_") and Path(here).name != "__init__.py":
            self.foundations.add((here, frame.f_code.co_qualname))
            return
        # Comprehensions and lambdas belong to the function that they stand in.
        self.functions[here][frame.f_code.co_qualname.split(".<locals>.<")[0]] = None
        caller = frame.f_back
        while caller is not None and self.file(caller) is None:
            caller = caller.f_back
        there = self.file(caller)
        if there is not None and there != here:
            self.edges.add((there, here))

    @property
    def both_ways(self) -> int:
        """How many pairs of files call each other."""
        return sum((b, a) in self.edges for a, b in self.edges) // 2


def follow(journey: Callable[[Path], None], folder: Path) -> Trace:
    """Run a journey twice, and trace the second time."""
    journey(folder)
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        journey(folder)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("journeys", nargs="*", metavar="JOURNEY", help=", ".join(JOURNEYS))
    parser.add_argument("--list", action="store_true", help="print files and functions, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    unknown = set(options.journeys) - set(JOURNEYS)
    if unknown:
        parser.error(f"JOURNEY: expected some of {', '.join(JOURNEYS)}, got {', '.join(unknown)}")
    print(f"permdist of {FOLDERS[0].parent}")
    heads = f"{'files':>6} {'functions':>10} {'edges':>6} {'both ways':>10} {'foundations':>12}"
    print(f"{'journey':<46} {heads}")
    with tempfile.TemporaryDirectory() as folder:
        data.save_letor(QUERIES, Path(folder) / "letor.txt")
        for name in options.journeys or JOURNEYS:
            title, journey = JOURNEYS[name]
            trace = follow(journey, Path(folder))
            functions = sum(map(len, trace.functions.values()))
            numbers = f"{len(trace.functions):6} {functions:10} {len(trace.edges):6}"
            below = f"{len({file for file, _ in trace.foundations})} / {len(trace.foundations)}"
            print(f"{title:<46} {numbers} {trace.both_ways:10} {below:>12}", flush=True)
            for file, called in trace.functions.items() if options.list else ():
                print(f"    {file}: {', '.join(called)}")


if __name__ == "__main__":
    main()
