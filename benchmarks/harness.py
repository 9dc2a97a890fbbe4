"""Shared by the benchmarks: best-of-several timing and a table with ratios."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist.data import Queries

# One thread everywhere, so that the ratios compare algorithms and not core counts.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def seconds(function: Callable[[], Any], *, repeat: int = 7, limit: float = 20.0) -> float:
    """Return the best time of several runs after a first one that may compile."""
    function()
    best, spent = float("inf"), 0.0
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
        if spent > limit:
            break
    return best


def table(title: str, rows: dict[str, float | str], unit: str = "ms") -> None:
    """Print times and how many times slower than the first row each of the others is."""
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    width = max(map(len, rows))
    print(f"\n{title}")
    reference = next(value for value in rows.values() if not isinstance(value, str))
    for name, value in rows.items():
        if isinstance(value, str):
            print(f"  {name:<{width}}  {value}")
        else:
            print(f"  {name:<{width}}  {value * scale:>10.3f} {unit}  {value / reference:>8.1f}x")


def training_part(arguments: list[str], queries: int) -> Queries:
    """Return the training part of the first fold of a folder, or simulated queries without one."""
    from permdist import data

    if arguments:
        return data.load_letor_folds(arguments[0])[0].train
    return data.make_letor(queries, rng=0)


def training(learner: Any, queries: Queries) -> tuple[Any, Any]:
    """Return the features and the batch that a learner is trained on."""
    return learner.training_data(queries)


def objective(learner: Any, batch: Any) -> Callable[[Any], tuple[float, Any]]:
    """Return a learner's objective: a function of scores to value and gradient."""
    return learner.build_objective().bind(batch, learner.n_jobs)


def fits(title: str, learners: dict[str, Any], queries: Queries) -> None:
    """Print the times of whole fits."""
    rows = {
        name: seconds(lambda m=learner: m.fit(queries), repeat=3)
        for name, learner in learners.items()
    }
    table(title, rows, unit="s")


def machine() -> str:
    """Describe the machine in one line."""
    return f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
