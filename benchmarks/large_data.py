"""A collection of MSLR-WEB30K's size: text to store, fits, evaluation; seconds and memory.

    python benchmarks/large_data.py [--scale 0.1] [--folder large] [--json results.json]
    python benchmarks/large_data.py --growth [--picture growth.png]

The collection is simulated (`large_collection`): 30,000 queries of about 120 documents with 136
features at raw scales. Every row is measured in a process of its own, which compiles what it needs
on a few queries first. `peak` is how far the largest resident size (ru_maxrss) is above that before
the work, which includes the pages of mapped files; `own` is the same without these pages, which the
system may drop at any time. LightGBM and XGBoost grow 100 trees of 31 leaves in the same run.
NDCG@10 is that on other queries. --growth fits collections of growing numbers of queries, documents
per query and features, and draws the times with their slopes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import large_collection as collection
import numpy as np

from permdist import data, measures, models

if TYPE_CHECKING:
    from collections.abc import Callable

LEARNERS: dict[str, dict[str, Any]] = {
    "MLE": {},
    "ConvexLoss": {},
    "ListNet": {},
    "RankSVM": {},
    "AdaRank": {},
    "RankBoost": {"max_iter": 100},
}
PEERS = ("LightGBM", "XGBoost")
STEPS = ("text", "convert", "open", "verify", "describe")
TEST = 10_000  # the number of the first block of the queries that are held out
GROWTH = {
    "queries": [(200, 60, 32), (400, 60, 32), (800, 60, 32), (1600, 60, 32)],
    "documents per query": [(200, 30, 32), (200, 60, 32), (200, 120, 32), (200, 240, 32)],
    "features": [(200, 60, 16), (200, 60, 32), (200, 60, 64), (200, 60, 128)],
}


# ---- measuring -----------------------------------------------------------------------------------


class Meter:
    """Measures the time and the memory of a block."""

    def __enter__(self) -> Meter:
        self._ended = threading.Event()
        self._peak = self._before = _own_memory()
        self._largest = _largest()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._start, self._processor = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.processor = time.process_time() - self._processor
        self._ended.set()
        self._thread.join()
        self.peak = max(0, _largest() - self._largest)
        self.own = max(0, self._peak - self._before)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self._peak = max(self._peak, _own_memory())

    def facts(self) -> dict[str, Any]:
        """Return what was measured, memory in bytes."""
        names = ("seconds", "processor", "peak", "own")
        return {name: getattr(self, name) for name in names}


def _largest() -> int:
    """Return the largest resident size so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _own_memory() -> int:
    """Return the memory that belongs to no file, in bytes; 0 where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return int(lines.get("RssAnon", "0 kB").split()[0]) * 1024


# ---- what is measured ----------------------------------------------------------------------------


def run_step(name: str, folder: Path, scale: float) -> dict[str, Any]:
    text, store = folder / "mslr.txt", folder / "mslr.store"
    few = data.Queries.concatenate(collection.blocks(20))
    warm = folder / f"warm-{name}"
    if name in STEPS[1:]:
        data.save_letor(few, warm.with_suffix(".txt"))
        data.write_store(warm.with_suffix(".txt"), warm, overwrite=True).describe()
    facts: dict[str, Any] = {}
    with Meter() as meter:
        if name == "text":
            parts = collection.blocks(round(scale * collection.QUERIES))
            facts["bytes"] = collection.write_text(text, parts)
        elif name == "convert":
            data.write_store(text, store, overwrite=True)
        elif name == "open":
            data.open_store(store)
        elif name == "verify":
            data.open_store(store, verify=True)
        elif name == "describe":
            facts["says"] = str(data.open_store(store).describe())
    if name == "convert":
        facts["bytes"] = text.stat().st_size
        facts["X"] = (store / "X.npy").stat().st_size
    return meter.facts() | facts


def run_fit(name: str, folder: Path) -> dict[str, Any]:
    """Fit one learner to the store, and evaluate it on other queries."""
    few = data.Queries.concatenate(collection.blocks(20, first=TEST))
    few = data.Queries(few.X.astype(np.float32), few.y, few.qid)
    fit: Callable[[data.Queries], Any] = _peer(name) if name in PEERS else _learner(name)
    fit(few)
    train = data.open_store(folder / "mslr.store")
    with Meter() as meter:
        predict = fit(train)
    test = data.Queries.concatenate(collection.blocks(1000, first=TEST))
    scores = predict(test.X)
    value = measures.evaluate(scores, test.y, test.qid, "ndcg@10").mean("ndcg@10")
    facts = meter.facts() | {"ndcg@10": value}
    return facts | getattr(predict, "facts", {})


def _learner(name: str) -> Callable[[data.Queries], Any]:
    def fit(queries: data.Queries) -> Any:
        learner = models.LEARNERS[name](**LEARNERS[name]).fit(queries)

        def predict(X: Any) -> Any:
            return learner.predict(X)

        predict.facts = {  # type: ignore[attr-defined]
            "iterations": learner.n_iter_,
            "converged": bool(getattr(learner, "converged_", True)),
        }
        return predict

    return fit


def _peer(name: str) -> Callable[[data.Queries], Any]:
    def lightgbm(queries: data.Queries) -> Any:
        import lightgbm

        # It keeps X until the bins are made; the raw data are not needed after that.
        options = {"objective": "lambdarank", "num_leaves": 31, "verbose": -1}
        options["num_threads"] = os.cpu_count()  # whatever OMP_NUM_THREADS says
        found = lightgbm.train(
            options, lightgbm.Dataset(queries.X, queries.y, group=queries.sizes), 100
        )
        return found.predict

    def xgboost(queries: data.Queries) -> Any:
        import xgboost

        options = {"objective": "rank:ndcg", "tree_method": "hist", "max_leaves": 31}
        options |= {"grow_policy": "lossguide", "max_depth": 0, "ndcg_exp_gain": True}
        options |= {"nthread": os.cpu_count()}
        table = xgboost.QuantileDMatrix(queries.X, queries.y, group=queries.sizes)
        found = xgboost.train(options, table, 100)
        return lambda X: found.predict(xgboost.DMatrix(X))

    return {"LightGBM": lightgbm, "XGBoost": xgboost}[name]


def run_evaluation(folder: Path) -> dict[str, Any]:
    """Predict and evaluate all queries of the store."""
    store = data.open_store(folder / "mslr.store")
    few = store.where(np.arange(20))
    learner = models.MLE().fit(few)
    learner.score(few, measure="ndcg@10")
    with Meter() as meter:
        learner.score(store, measure="ndcg@10")
    return meter.facts()


def run_growth(name: str) -> dict[str, Any]:
    """Take the times of fits to collections that grow in one way."""
    fit: Any = _peer(name) if name in PEERS else _learner(name)
    times: dict[str, list[float]] = {}
    for way, sizes in GROWTH.items():
        times[way] = []
        for queries, documents, features in sizes:
            parts = collection.blocks(queries, documents=documents, features=features)
            train = data.Queries.concatenate(parts)
            train = data.Queries(train.X.astype(np.float32), train.y, train.qid)
            if not times[way]:
                fit(train)
            with Meter() as meter:
                fit(train)
            times[way].append(meter.processor)
    return {"growth": times}


def run(name: str, folder: Path, scale: float) -> dict[str, Any]:
    """Run one row, in this process."""
    warnings.simplefilter("ignore")
    what, _, which = name.partition(" ")
    if what == "fit":
        return run_fit(which, folder)
    if what == "growth":
        return run_growth(which)
    return run_evaluation(folder) if what == "evaluate" else run_step(what, folder, scale)


# ---- tables and pictures -------------------------------------------------------------------------


def in_process(name: str, folder: Path, scale: float) -> dict[str, Any]:
    """Run one row in a process of its own."""
    command = [sys.executable, __file__, "--row", name, "--folder", str(folder)]
    command += ["--scale", str(scale)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        told = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"error": told[:300]}
    return json.loads(done.stdout.splitlines()[-1])


def show(name: str, facts: dict[str, Any]) -> None:
    """Print one line of the table."""
    if "error" in facts:
        print(f"{name:<16} {facts['error']}", flush=True)
        return
    mega = {one: facts[one] / 2**20 for one in ("peak", "own")}
    line = f"{name:<16} {facts['seconds']:9.2f} {facts['processor']:9.2f}"
    line += f" {mega['peak']:8.0f} {mega['own']:8.0f}"
    if "ndcg@10" in facts:
        line += f" {facts['ndcg@10']:8.4f} {facts.get('iterations', 100):6}"
        line += "" if facts.get("converged", True) else "  not converged"
    elif "bytes" in facts:
        rates = [facts["bytes"] / 1e6 / facts[one] for one in ("seconds", "processor")]
        line += f"   {facts['bytes'] / 1e6:,.0f} MB of text: {rates[0]:.0f} MB/s,"
        line += f" {rates[1]:.0f} MB/s per core"
    print(line, flush=True)


def table(folder: Path, scale: float, rows: list[str]) -> dict[str, Any]:
    print(f"{'':<16} {'clock, s':>9} {'cores, s':>9} {'peak, MB':>8} {'own, MB':>8}", end="")
    print(f" {'NDCG@10':>8} {'rounds':>6}")
    found = {}
    for name in rows:
        found[name] = in_process(name, folder, scale)
        show(name.removeprefix("fit "), found[name])
    return found


def draw(found: dict[str, Any], picture: Path) -> None:
    """Draw times against sizes, with the slopes of the lines in a double logarithmic picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 5.4), layout="constrained")
    for axis, (way, sizes) in zip(axes, GROWTH.items(), strict=True):
        place = list(GROWTH).index(way)
        across = [{0: one[0], 1: one[1], 2: one[2]}[place] for one in sizes]
        for name, facts in found.items():
            times = facts["growth"][way]
            slope = np.polyfit(np.log(across), np.log(times), 1)[0]
            axis.loglog(across, times, marker="o", label=f"{name}: {slope:.2f}")
        axis.set_xlabel(way)
        axis.set_xticks(across, [str(one) for one in across])
        axis.minorticks_off()
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2}
        axis.legend(title="slopes", frameon=False, **below)
    axes[0].set_ylabel("processor time of a fit, s")
    figure.savefig(picture, dpi=90)
    print(f"picture: {picture}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the queries")
    parser.add_argument("--folder", type=Path, default=Path("large"), help="for text and store")
    parser.add_argument("--rows", nargs="*", help="these only, such as 'convert' or 'fit MLE'")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--picture", type=Path, default=Path("growth.png"))
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(run(options.row, options.folder, options.scale)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    names = [*LEARNERS, *PEERS]
    if options.growth:
        rows = options.rows or names
        found = {name: in_process(f"growth {name}", options.folder, 1.0) for name in rows}
        for name, facts in found.items():
            if "error" in facts:
                print(f"{name}: {facts['error']}")
        draw({name: facts for name, facts in found.items() if "growth" in facts}, options.picture)
    else:
        usual = [*STEPS, *(f"fit {name}" for name in names), "evaluate"]
        found = table(options.folder, options.scale, options.rows or usual)
    if options.json:
        facts = {"scale": options.scale, "cores": os.cpu_count(), "rows": found}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
