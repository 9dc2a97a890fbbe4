"""What every model of items has: their number, their names, and that it does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import grades
from permdist._files import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import IntArray


class Items:
    """Items ``0, ..., n-1``, with names if these were given; immutable.

    Parameters
    ----------
    n_items : int
    names : sequence of str, optional
    """

    def __init__(self, n_items: int, names: Sequence[str] | None = None) -> None:
        self._n_items = n_items
        if names is not None and len(names) != n_items:
            raise ValueError(f"names: expected {n_items} names, got {len(names)}")
        if names is not None and len(set(map(str, names))) < n_items:
            twice = next(str(a) for a in names if [*map(str, names)].count(str(a)) > 1)
            raise ValueError(f"names: must be unique; {twice!r} appears more than once")
        self._given_names = None if names is None else tuple(str(name) for name in names)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self._n_items

    @property
    def names(self) -> tuple[str, ...]:
        """Item names, used in reprs, tables and plots; the items' numbers by default."""
        if self._given_names is None:
            check_size(f"n_items: the names of {self.n_items:,} items", 70.0 * self.n_items)
            return tuple(str(item) for item in range(self._n_items))
        return self._given_names

    @property
    def is_named(self) -> bool:
        """Whether the items were given names."""
        return self._given_names is not None

    def _quick(self) -> tuple[int, int]:
        """Return for how many items marginals take a fraction of a second: exact, and from draws.

        Only then do notebooks show them.
        """
        return 6, 0

    def _repr_html_(self) -> str:
        from permdist.distributions.view import distribution_html

        return distribution_html(self)

    def _labels(self, labels: ArrayLike | None) -> IntArray:
        """Check relevance labels, one for each item."""
        if labels is None:
            raise TypeError("labels: expected the items' relevance labels, got none")
        label = grades("labels", labels)
        if label.shape != (self.n_items,):
            raise ValueError(f"labels: expected {self.n_items} labels, got shape {label.shape}")
        return label

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copies and unpickled arrays are writable again.
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setattr__(self, name: str, value: Any) -> None:
        # cached_property writes to __dict__ itself and is not stopped here.
        if name.startswith("_") and name not in self.__dict__:
            object.__setattr__(self, name, value)
            return
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")
