"""Default fits to a million documents: 1,000 queries of 1,000 documents with 50 features.

    python benchmarks/million.py [LEARNER ...] [--queries 1000]

Of each query 1 to 8 documents are relevant. Every learner is fitted to three queries first, which
compiles what it needs; then the time of one fit is taken, by the clock and of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from permdist import data, models


def simulate(n_queries: int, n: int = 1000, width: int = 50) -> data.Queries:
    """Simulate long queries with few relevant documents."""
    rng = np.random.default_rng(0)
    X = rng.random((n_queries, n, width)) ** 3
    signal = X @ rng.standard_normal(width)
    judged = signal / signal.std() + 0.5 * rng.standard_normal((n_queries, n))
    place = np.argsort(np.argsort(-judged, axis=1), axis=1)
    y = (place < rng.integers(1, 9, (n_queries, 1))).astype(int)
    return data.Queries(X.reshape(-1, width), y.ravel(), np.repeat(np.arange(n_queries), n))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("learners", nargs="*", metavar="LEARNER", help="all by default")
    parser.add_argument("--queries", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    queries = simulate(options.queries)
    number = np.arange(len(queries))
    few, some = queries.where(number < 3), queries.where(number < 50)
    print(f"{'learner':<15} {'clock, s':>9} {'processor, s':>13} {'iterations':>11} {'NDCG@10':>8}")
    for name in options.learners or [kind.__name__ for kind in models.all_learners()]:
        models.LEARNERS[name]().fit(few)
        learner = models.LEARNERS[name]()
        clock, processor = time.perf_counter(), time.process_time()
        learner.fit(queries)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        times = f"{clock:9.1f} {processor:13.1f} {learner.n_iter_:11}"
        print(f"{name:<15} {times} {learner.score(some, measure='ndcg@10'):8.3f}", flush=True)


if __name__ == "__main__":
    main()
