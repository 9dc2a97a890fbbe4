"""Parts of something large, each held by a worker: what is asked of them, and who answers.

A part is made by a worker from a recipe, a few words that say what to open and which range of it to
hold; it never travels. If a worker is lost, the scheduler has its parts made again by the others.
Parts that remember what they were told are told again: every question comes with what had to be
said before it.
"""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# With more than one, idle workers take over questions, and must make the part anew for them.
PER_THREAD = 1  # parts


class Recipe(Protocol):
    """How a part is made; small, and the same on every worker."""

    def make(self) -> Any:
        """Make the part."""


class Part:
    """What a recipe makes when it is first asked for; another process makes it again.

    Parameters
    ----------
    recipe : Recipe
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._lock = threading.Lock()
        self._held: Any = None

    @property
    def held(self) -> Any:
        """What the recipe makes; in the thread of a task, not while it is unpacked."""
        with self._lock:
            if self._held is None:
                self._held = self.recipe.make()
            return self._held

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (self.recipe,)


class Crew:
    """Parts, and the workers that hold them: those of a cluster, or this process.

    Parameters
    ----------
    recipes : iterable of Recipe
    client : distributed.Client, optional
        Of the cluster; without it everything happens in this process.
    """

    def __init__(self, recipes: Iterable[Recipe], client: Any = None) -> None:
        self.client = client
        if client is None:
            self._parts: list[Any] = [Part(recipe) for recipe in recipes]
            return
        # One after the other in turn; where the scheduler is free to choose, it may be lopsided.
        slots = [address for address, threads in client.nthreads().items() for _ in range(threads)]
        if not slots:
            raise ValueError("client: the cluster has no workers yet")
        self._parts = [
            client.submit(
                Part, recipe, pure=False, workers=slots[k % len(slots)], allow_other_workers=True
            )
            for k, recipe in enumerate(recipes)
        ]

    def __len__(self) -> int:
        return len(self._parts)

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(part, *args)`` for all parts, each where it is held.

        Parameters
        ----------
        function : callable
            Of a module, or a method of the class of the parts.
        *args
            Small; they are sent along with every call.

        Returns
        -------
        list
            The results, in the order of the recipes.
        """
        calls = [(part, function, args) for part in self._parts]
        return on_workers(self.client, _asked, calls)


def _asked(part: Part, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(part.held, *args)


def on_workers(
    client: Any, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Call a function on workers, once for every tuple of arguments, and return the results.

    Parameters
    ----------
    client : distributed.Client or None
        Without it the function is called here.
    function : callable
    calls : sequence of tuple
        Futures among the arguments are replaced by what they stand for.

    Raises
    ------
    RuntimeError
        If workers were lost again and again, or the scheduler.
    """
    if client is None:
        return [function(*call) for call in calls]
    from distributed import KilledWorker

    try:
        # Not pure: what is in files may change, and parts remember.
        futures = client.map(function, *zip(*calls, strict=True), pure=False)
        found: list[Any] = client.gather(futures)
    except KilledWorker as error:
        raise RuntimeError(
            "client: the workers that held a part of the data were lost, one after the other, the "
            f"last of them {error.last_worker.address}; do they have enough memory?"
        ) from error
    except CancelledError as error:
        raise RuntimeError(f"client: the connection to the scheduler was lost ({error})") from error
    return found


def n_parts(client: Any) -> int:
    """Return into how many parts to cut the data: some for each thread of the cluster.

    Parameters
    ----------
    client : distributed.Client or None
    """
    if client is None:
        return 1
    return PER_THREAD * max(1, sum(client.nthreads().values()))
