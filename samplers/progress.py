"""The progress bar of a run: speed, acceptance and the worst R-hat so far."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import numpy as np

from permdist._chains import worst_rhat
from permdist._progress import live_bar
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from permdist.samplers.worker import Worker


class Bar:
    """A progress bar with speed, acceptance and the worst R-hat so far; nothing if not shown."""

    def __init__(self, workers: list[Worker], shown: bool, name: str) -> None:
        self.workers, self.shown, self.name = workers, shown, name
        self._open = contextlib.ExitStack()
        self._looked = 0.0
        self._rhat = np.nan

    def __enter__(self) -> Bar:
        if self.shown:
            total = sum(worker.total for worker in self.workers)
            self._before = sum(worker.done for worker in self.workers)
            self._begin = time.perf_counter()
            text = f"{len(self.workers)} chains, {self.name}"
            self._bar = self._open.enter_context(live_bar(text, total))
        return self

    def update(self) -> None:
        """Show the progress of the chains."""
        if not self.shown:
            return
        done = sum(worker.done for worker in self.workers)
        now = time.perf_counter()
        if now - self._looked > 1.0 or done == sum(worker.total for worker in self.workers):
            self._looked, self._rhat = now, _rhat_so_far(self.workers)
        speed = (done - self._before) / max(now - self._begin, 1e-9)
        moved = sum(worker.moved.sum(axis=0) + worker.tuned.sum(axis=0) for worker in self.workers)
        told = f"{speed:,.0f} draws/s, {moved[1] / max(1, moved[0]):.0%} moved"
        told += "" if np.isnan(self._rhat) else f", R-hat {self._rhat:.3f}"
        self._bar.update(done, told)

    def __exit__(self, *details: object) -> None:
        self._open.close()


def _rhat_so_far(workers: list[Worker], most: int = 400) -> float:
    """Return the worst split R-hat of log-weights and of some items' ranks, from some draws."""
    if workers[0].moments is not None:
        tables = [worker.moments.block_means() for worker in workers if worker.moments is not None]
        length = min(map(len, tables))
        table = np.stack([table[:length] for table in tables])
    else:
        kept = min(worker.kept for worker in workers)
        if kept < 8:
            return np.nan
        at = np.unique(np.linspace(0, kept - 1, min(kept, most)).astype(int))
        orders = np.stack([worker.orders[at] for worker in workers])
        values = np.stack([worker.values[at] for worker in workers])
        items = np.unique(np.linspace(0, orders.shape[2] - 1, 12).astype(int))
        table = np.concatenate([order_to_ranks(orders)[..., items], values[..., None]], axis=2)
    return worst_rhat(table)
