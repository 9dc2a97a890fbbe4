"""Progress of long work: a bar on the terminal, or a function that is told."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(
    text: str, total: float, progress: bool | Callable[[float, float], object]
) -> Iterator[Callable[[float], object]]:
    """Show how much of some work is done and how long the rest takes, at the present speed.

    Parameters
    ----------
    text : str
        What is done.
    total : float
        The amount of work, in any unit; NaN if it is not known.
    progress : bool or callable
        Whether to show a bar on the terminal, or a function that is called with the work done and
        the total.

    Yields
    ------
    callable
        To be called with the amount that is done so far.

    Examples
    --------
    >>> with progress_bar("Counting", 2, print) as done:
    ...     done(1)
    1 2
    """
    if callable(progress):
        tell = progress
        yield lambda amount: tell(amount, total)
        return
    if not progress:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None if math.isnan(total) else total)
        yield lambda amount: bar.update(task, completed=amount)
