"""What a learner reports about the rankings that were drawn for it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._text import aligned
from permdist.models.attributes import Attribute, Count
from permdist.models.rules import is_number, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray


@dataclass(frozen=True, repr=False, eq=False)
class Sample:
    """How well the draws of a space stand for all its rankings, at a learner's coefficients.

    Of queries for which nothing is drawn because their sums are exact, `effective` is `size` and
    `std_error` is 0. What is not known is NaN.

    Attributes
    ----------
    size : int
        Draws per query.
    rounds : int
        How often rankings were drawn.
    effective : array of float, shape (queries,)
        The effective sample size of each query's weights, ``(sum w)^2 / sum w^2``.
    std_error : array of float, shape (queries,)
        The Monte Carlo standard error of each query's log-sum.
    distinct : array of float, shape (queries,)
        The share of draws that are different: of sign vectors in a restart sample.
    mass : array of float, shape (queries,)
        The probability, over all valid sign vectors, of those that were drawn; of a restart sample
        of short queries.
    """

    size: int
    rounds: int
    effective: FloatArray
    std_error: FloatArray
    distinct: FloatArray
    mass: FloatArray

    @classmethod
    def join(cls, parts: Sequence[tuple[Sample | None, int]]) -> Sample | None:
        """Join the reports on several parts of the queries.

        Parameters
        ----------
        parts : sequence of (Sample or None, int)
            None for a part for which nothing was drawn; and the number of its queries.

        Returns
        -------
        Sample or None
        """
        known = [part for part, _ in parts if part is not None]
        if not known:
            return None
        size, rounds = known[0].size, max(part.rounds for part in known)
        columns: list[list[FloatArray]] = [[], [], [], []]
        for part, number in parts:
            exact = (float(size), 0.0, 1.0, np.nan)  # of queries for which nothing is drawn
            for column, field, value in zip(columns, fields(cls)[2:], exact, strict=True):
                own = np.full(number, value) if part is None else getattr(part, field.name)
                column.append(own)
        return cls(size, rounds, *(np.concatenate(column) for column in columns))

    @property
    def smallest(self) -> float:
        """The smallest effective sample size."""
        return float(self.effective.min())

    def __repr__(self) -> str:
        rows = {
            "draws per query": f"{self.size:,}, drawn {self.rounds} times",
            "effective": f"{np.median(self.effective):.1f}, at least {self.smallest:.1f}",
        }
        texts = {
            "std_error": "standard error of log-sums",
            "distinct": "distinct",
            "mass": "probability covered",
        }
        for name, text in texts.items():
            known = getattr(self, name)[~np.isnan(getattr(self, name))]
            if len(known):
                rows[text] = f"{known.mean():.3f} (mean of {len(known):,} queries)"
        return aligned(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them, None for NaN."""
        found: dict[str, Any] = {"size": self.size, "rounds": self.rounds}
        for field in fields(self)[2:]:
            values = getattr(self, field.name).tolist()
            found[field.name] = [None if value != value else value for value in values]
        return found


class SampleReport(Attribute):
    """A `Sample`, or None where nothing is drawn."""

    optional = True

    def read(self, name: str, value: Any, width: int) -> Sample:
        """Return a `Sample`."""
        if isinstance(value, Sample):
            return value
        wanted = [field.name for field in fields(Sample)]
        if not isinstance(value, dict) or set(value) != set(wanted):
            raise ValueError(f"{name}: expected a dict of {', '.join(wanted)}, got {shown(value)}")
        counts = [Count(1).read(f"{name}[{key!r}]", value[key], width) for key in wanted[:2]]
        columns = []
        for key in wanted[2:]:
            entries = value[key]
            if not isinstance(entries, list) or len(entries) != len(value[wanted[2]] or ()):
                text = f"expected a number per query, got {shown(entries)}"
                raise ValueError(f"{name}[{key!r}]: {text}")
            for entry in entries:
                if entry is not None and not (is_number(entry) and np.isfinite(entry)):
                    raise ValueError(f"{name}[{key!r}]: expected numbers, got {shown(entry)}")
            columns.append(np.array([np.nan if e is None else float(e) for e in entries]))
        if not len(columns[0]):
            raise ValueError(f"{name}: expected at least one query, got none")
        size, rounds = counts
        return Sample(size, rounds, *columns)
