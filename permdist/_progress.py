"""Progress of long work: a bar on the terminal or in a notebook, or a function that is told."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from permdist._text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Thing = TypeVar("Thing")
PAUSE = 0.2  # seconds between two pictures of a bar in a notebook


class Bar(Protocol):
    """A bar that is on show."""

    def update(self, completed: float, told: str | None = None, *, text: str | None = None) -> None:
        """Show how much is done, what else there is to tell, and what is being done."""


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
        tell = progress
        yield lambda amount: tell(amount, total)
        return
    if not progress:
        yield lambda _: None
        return
    with live_bar(text, total, transient=True) as bar:
        yield bar.update


def tracked(things: Iterable[Thing], text: str, total: int) -> Iterator[Thing]:
    """Yield things one by one, with a bar of how many have been taken.

    Parameters
    ----------
    things : iterable
    text : str
        What is done.
    total : int
        The number of things.
    """
    with live_bar(text, total) as bar:
        for number, thing in enumerate(things, start=1):
            yield thing
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
    display = _notebook_display()
    if display is None:
        with _on_terminal(text, total, transient, counted) as bar:
            yield bar
        return
    shown = _InNotebook(display, text, total, counted)
    try:
        yield shown
    finally:
        shown.finish(transient)


def in_notebook() -> bool:
    """Check whether this process is the kernel of a notebook, which shows HTML.

    Examples
    --------
    >>> in_notebook()
    False
    """
    return _notebook_display() is not None


def _notebook_display() -> Any:
    """Return what displays outputs of a notebook; None where there is no notebook."""
    module = sys.modules.get("IPython")  # never imported for this: a kernel has done so
    shell = None if module is None else module.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


class _InNotebook:
    """A bar as an output of a notebook that is replaced from time to time."""

    def __init__(self, display: Any, text: str, total: float, counted: str) -> None:
        self._text, self._total, self._counted = text, total, counted
        self._done, self._told, self._gone = 0.0, "", False
        self._begin = self._looked = time.perf_counter()
        self._handle = display(self, display_id=True)

    def update(self, completed: float, told: str | None = None, *, text: str | None = None) -> None:
        """Take note, and show it if the last picture is some time ago."""
        self._done = completed
        self._told = self._told if told is None else told
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
        """Return in words how far it is."""
        seconds = time.perf_counter() - self._begin
        parts = []
        if not math.isnan(self._total):
            share = self._done / self._total if self._total else 1.0
            counted = f"{self._done:g}/{self._total:g} {self._counted}"
            parts.append(counted if self._counted else f"{share:.0%}")
            if 0.0 < share < 1.0:
                parts.append(f"{_clock(seconds * (1.0 / share - 1.0))} left")
            else:
                parts.append(_clock(seconds))
        return ", ".join([*parts, *([self._told] if self._told else [])])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


@contextlib.contextmanager
def _on_terminal(text: str, total: float, transient: bool, counted: str) -> Iterator[Bar]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(
            (MofNCompleteColumn(), TextColumn(counted))
            if counted
            else (TextColumn("{task.percentage:>3.0f}%"),)
        ),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[told]}", markup=False),
    )
    # A notebook never comes here, so rich must not take an IPython shell for one.
    console = Console(file=sys.stderr, force_jupyter=False)
    with Progress(*columns, console=console, transient=transient) as bar:
        task = bar.add_task(visible(text), total=None if math.isnan(total) else total, told="")

        class OnTerminal:
            """What rich shows."""

            def update(
                self, completed: float, told: str | None = None, *, text: str | None = None
            ) -> None:
                """Hand it on."""
                more: dict[str, Any] = {} if told is None else {"told": visible(told)}
                text = None if text is None else visible(text)
                bar.update(task, completed=completed, description=text, **more)

        yield OnTerminal()
