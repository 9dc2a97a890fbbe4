"""Progress of long work: a bar on the terminal or in a notebook, or a function that is called."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
PAUSE = 0.2  # seconds between two pictures of a bar in a notebook


class Bar(Protocol):
    """A bar that is on show."""

    def update(self, completed: float, note: str | None = None, *, text: str | None = None) -> None:
        """Show how much is done, a note beside it, and what is being done."""


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
        Whether to show a bar on the terminal or in the notebook, or a function that is called with
        the work done and the total.

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
        yield lambda amount: progress(amount, total)
    elif not progress:
        yield lambda _: None
    else:
        with live_bar(text, total, transient=True) as bar:
            yield bar.update


def tracked(items: Iterable[Item], text: str, total: int) -> Iterator[Item]:
    """Yield items one by one, with a bar of how many have been taken.

    Parameters
    ----------
    items : iterable
    text : str
        What is done.
    total : int
        The number of items.
    """
    with live_bar(text, total) as bar:
        for number, item in enumerate(items, start=1):
            yield item
            bar.update(number)


@contextlib.contextmanager
def live_bar(
    text: str, total: float, *, transient: bool = False, counted: str = ""
) -> Iterator[Bar]:
    """Show a bar: in a notebook as one of its outputs, otherwise on the terminal.

    Where standard error is neither, nothing is shown before the end, and then one line, or none if
    the bar is transient.

    Parameters
    ----------
    text : str
        What is done.
    total : float
        The amount of work, in any unit; NaN if it is not known.
    transient : bool
        Whether the bar disappears at the end.
    counted : str
        What is counted, for "3/10 fits"; by default a percentage is shown.

    Yields
    ------
    Bar
    """
    if in_notebook():
        shown = _NotebookBar(text, total, counted)
        try:
            yield shown
        finally:
            shown.finish(transient)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    share = TextColumn("{task.percentage:>3.0f}%")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *((MofNCompleteColumn(), TextColumn(counted)) if counted else (share,)),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}", markup=False),
    )
    # A notebook never comes here, so rich must not take an IPython shell for one.
    console = Console(file=sys.stderr, force_jupyter=False)
    with Progress(*columns, console=console, transient=transient) as bar:
        task = bar.add_task(text, total=None if math.isnan(total) else total, note="")

        class TerminalBar:
            def update(
                self, completed: float, note: str | None = None, *, text: str | None = None
            ) -> None:
                fields: dict[str, Any] = {} if note is None else {"note": note}
                bar.update(task, completed=completed, description=text, **fields)

        yield TerminalBar()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which shows HTML.

    Examples
    --------
    >>> in_notebook()
    False
    """
    module = sys.modules.get("IPython")  # never imported for this: a kernel has done so
    return module is not None and hasattr(module.get_ipython(), "kernel")


class _NotebookBar:
    """A bar as an output of a notebook that is replaced from time to time."""

    def __init__(self, text: str, total: float, counted: str) -> None:
        from IPython.display import display

        self._text, self._total, self._counted = text, total, counted
        self._done, self._note, self._gone = 0.0, "", False
        self._begin = self._looked = time.perf_counter()
        self._handle: Any = display(self, display_id=True)

    def update(self, completed: float, note: str | None = None, *, text: str | None = None) -> None:
        """Show progress if the last picture is some time ago."""
        self._done = completed
        self._note = self._note if note is None else note
        self._text = self._text if text is None else text
        if time.perf_counter() - self._looked >= PAUSE:
            self._show()

    def finish(self, transient: bool) -> None:
        """Show the end, or take the bar away."""
        self._gone = transient
        self._show()

    def _show(self) -> None:
        self._looked = time.perf_counter()
        if self._handle is not None:
            self._handle.update(self)

    def __repr__(self) -> str:
        return "" if self._gone else f"{self._text}: {self._state()}"

    def _repr_html_(self) -> str:
        if self._gone:
            return ""
        known = not math.isnan(self._total)
        share = f' value="{self._done:g}" max="{max(self._total, 1e-9):g}"' if known else ""
        return (
            f'<div>{escape(self._text)} <progress{share} style="vertical-align:middle"></progress> '
            f"{escape(self._state())}</div>"
        )

    def _state(self) -> str:
        """Return in words how much is done."""
        seconds, parts = time.perf_counter() - self._begin, []
        if not math.isnan(self._total):
            share = self._done / self._total if self._total else 1.0
            count = f"{self._done:g}/{self._total:g} {self._counted}"
            parts.append(count if self._counted else f"{share:.0%}")
            rest = 0.0 < share < 1.0
            clock = divmod(round(seconds * (1.0 / share - 1.0) if rest else seconds), 60)
            parts.append(f"{clock[0] // 60}:{clock[0] % 60:02}:{clock[1]:02}{' left' * rest}")
        return ", ".join([*parts, *filter(None, [self._note])])
