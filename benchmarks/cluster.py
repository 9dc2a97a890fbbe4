"""Two worker processes against one: a fit whose evaluations dominate, on a store.

Prints wall and processor seconds of each pass, what an evaluation costs beyond the work itself,
bytes per evaluation, and whether the coefficients have the same bits. Usage::

    python benchmarks/cluster.py FOLDER [--queries 10000] [--iterations 10]

FOLDER gets the store, if it is not there yet.
"""

from __future__ import annotations

import argparse
import pickle
import time
import warnings
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

from permdist import data
from permdist.models import ConvexLoss
from permdist.models.crew import Crew

DOCUMENTS, FEATURES, STEP = 100, 136, 500


def simulated(n_queries, rng):
    """Yield blocks of queries whose features have raw scales."""
    weights = rng.normal(size=8).astype(np.float32)
    scale = (10.0 ** rng.integers(-2, 4, size=FEATURES)).astype(np.float32)
    for start in range(0, n_queries, STEP):
        X = rng.standard_normal((STEP * DOCUMENTS, FEATURES), dtype=np.float32)
        quality = X[:, :8] @ weights + 2.0 * rng.normal(size=len(X))
        labels = (quality > np.quantile(quality, 0.9)).astype(np.int64)
        ptr = np.arange(0, len(X) + 1, DOCUMENTS)
        yield data.Queries.trusted(X * scale, labels, ptr, np.arange(start, start + STEP))


class Meter:
    """Notes how long every question to the workers takes, and the bytes of the answers."""

    def __init__(self):
        self.seconds, self.sent, self.received = [], [], []
        self._ask = Crew.ask

    def __enter__(self):
        def ask(crew, function, *args):
            begin = time.perf_counter()
            found = self._ask(crew, function, *args)
            if function.__name__ == "sums":
                self.seconds.append(time.perf_counter() - begin)
                self.sent.append(len(crew) * len(pickle.dumps(args)))
                self.received.append(sum(len(pickle.dumps(one)) for one in found))
            return found

        Crew.ask = ask
        return self

    def __exit__(self, *details):
        Crew.ask = self._ask


def nothing(part):
    """Answer at once."""
    return part.block


def main():
    """Run the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--iterations", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    store = options.folder / f"simulated-{options.queries}"
    if not data.is_store(store):
        data.write_store(simulated(options.queries, np.random.default_rng(0)), store)
    print(data.open_store(store))
    settings = {"C": 0.01, "max_iter": options.iterations, "solver": "lbfgs", "n_jobs": 1}
    learner = ConvexLoss("ap", **settings)
    coefficients = []
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(np.ones, 1)
            # Compiles, and brings the store into memory.
            clone(learner).set_params(max_iter=1).fit(store, client=client)
            before = client.run(time.process_time)
            begin = time.perf_counter()
            with Meter() as meter:
                learner.fit(store, client=client)
            seconds = time.perf_counter() - begin
            used = [after - before[k] for k, after in client.run(time.process_time).items()]
            crew = learner_crew(store, client)
            begin = time.perf_counter()
            for _ in range(50):
                crew.ask(nothing)
            idle = (time.perf_counter() - begin) / 50
        coefficients.append(learner.coef_.tobytes())
        print(
            f"{workers} worker(s): {seconds:.1f} s for {len(meter.seconds)} passes, median "
            f"{np.median(meter.seconds):.3f} s, fastest {min(meter.seconds):.3f} s; processor "
            f"seconds {', '.join(f'{one:.1f}' for one in used)}; {1000 * idle:.1f} ms for a "
            f"question without work; {np.mean(meter.sent) / 1e3:.1f} kB out, "
            f"{np.mean(meter.received) / 1e3:.1f} kB back"
        )
    begin = time.perf_counter()
    learner.fit(data.open_store(store))
    print(f"one process, one thread: {time.perf_counter() - begin:.1f} s")
    coefficients.append(learner.coef_.tobytes())
    print("same bits:", len(set(coefficients)) == 1)


def learner_crew(store, client):
    """Return the parts of a fit, to ask them for nothing."""
    from permdist.models.cluster import ClusterTable

    return ClusterTable([str(store)], ConvexLoss("ap"), client, FEATURES).crew


if __name__ == "__main__":
    main()
