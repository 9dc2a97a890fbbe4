"""Tables that many queries share, laid end to end in one flat array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Tables:
    """Flat tables by key, each made once, for one batch of queries or for several.

    Examples
    --------
    >>> tables = Tables()
    >>> tables.place("a", np.array([1.0, 2.0])), tables.place("b", np.ones(1))
    (0, 2)
    >>> "a" in tables, tables.place("a"), tables.flat
    (True, 0, array([1., 2., 1.]))
    """

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._parts: list[NDArray[Any]] = []
        self._size = 0

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def place(self, key: Any, table: NDArray[Any] | None = None) -> int:
        """Return where the table of a key starts; a new key needs its table."""
        if key not in self._places:
            if table is None:
                raise KeyError(key)
            self._places[key] = self._size
            self._parts.append(table.ravel())
            self._size += table.size
        return self._places[key]

    @property
    def flat(self) -> NDArray[Any]:
        """All tables."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate(self._parts) if self._parts else np.zeros(0)]
        return self._parts[0]
