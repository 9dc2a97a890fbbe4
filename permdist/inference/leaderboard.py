"""Leaderboards: estimated scores with their errors and what is known of the true places."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from permdist._check import choice, count, finite
from permdist._files import write_atomically
from permdist._result import Result
from permdist._text import csv_text, plural, text_table, to_tex
from permdist.inference.comparisons import names_of
from permdist.inference.normal import DRAWS, check_estimate, check_level
from permdist.inference.ranks import error_draws, prob_best, rank_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.inference.results import Fit

ELO_SCALE = 400.0 / np.log(10.0)
ELO_ANCHOR = 1000.0
# Rows of a table that is printed.
MOST_SHOWN = 1000
# Items up to which notebooks show rank sets, and errors, of a fit.
FEW_ITEMS, WITH_ERRORS = 20, 200

# How the columns are headed where a person reads, and the digits they are shown with.
_HEADS = {
    "place": "place",
    "name": "name",
    "score": "score",
    "low": "low",
    "high": "high",
    "standard_error": "s.e.",
    "rank_low": "best",
    "rank_high": "worst",
    "prob_best": "P(best)",
    "n": "n",
    "elo": "Elo",
    "elo_low": "Elo low",
    "elo_high": "Elo high",
}
_DIGITS = {"score": 3, "low": 3, "high": 3, "standard_error": 3, "prob_best": 3}
_WHOLE = ("elo", "elo_low", "elo_high")


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Result):
    """Items by estimated score, with what is known of their true scores and places.

    It answers how sure the estimates are. Where an item may stand in one future ranking is another
    question, for `rank_marginals` of the fitted distribution. Prints as a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row per item, from the highest score; see `make` for the columns.
    level : float
        The level of the intervals, and of the sets of places.
    kind : str
        The kind of the errors.
    missing : str
        What is not computed, for the caption; empty where the table is complete.

    Examples
    --------
    >>> import numpy as np
    >>> print(make(["a", "b", "c"], [0.1, 0.9, -1.0], 0.01 * np.eye(3)))
    3 items; errors: observed; 95% intervals; best, worst: true places, simultaneous at 95%
    place  name   score     low    high   s.e.  best  worst  P(best)
    1      b      0.900   0.704   1.096  0.100     1      1    1.000
    2      a      0.100  -0.096   0.296  0.100     2      2    0.000
    3      c     -1.000  -1.196  -0.804  0.100     3      3    0.000
    """

    frame: pd.DataFrame
    level: float
    kind: str
    missing: str = ""
    _most_rows: ClassVar[int] = 100

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def caption(self) -> str:
        """What the table shows, in one line."""
        percent = f"{100.0 * self.level:g}%"
        if self.missing:
            errors = f"errors: {self.kind}; {percent} intervals; " if "low" in self.frame else ""
            return f"{plural(len(self), 'item')}; {errors}not computed: {self.missing}"
        return (
            f"{plural(len(self), 'item')}; errors: {self.kind}; {percent} intervals; "
            f"best, worst: true places, simultaneous at {percent}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the table as a data frame.

        Examples
        --------
        >>> import numpy as np
        >>> make(["a", "b"], [0.1, -0.1], 0.01 * np.eye(2)).to_frame()["name"].tolist()
        ['a', 'b']
        """
        return self.frame.copy()

    def __repr__(self) -> str:
        head, rows = self._cells(MOST_SHOWN)
        left_out = len(self) - len(rows)
        more = f"\n... and {left_out:,} more, in to_frame()" if left_out else ""
        return f"{self.caption}\n{text_table(head, rows, left=['name'])}{more}"

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the table as CSV, with all digits, and write it if a path is given.

        Parameters
        ----------
        path : str or path, optional

        Examples
        --------
        >>> import numpy as np
        >>> print(make(["a"], [0.0], [[0.0]]).to_csv().splitlines()[0])
        place,name,score,low,high,standard_error,rank_low,rank_high,prob_best
        """
        return _written(csv_text(self.frame), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the table as JSON, one object per item, and write it if a path is given.

        Parameters
        ----------
        path : str or path, optional

        Examples
        --------
        >>> import json, numpy as np
        >>> found = json.loads(make(["a"], [0.0], [[0.0]]).to_json())
        >>> found["level"], found["items"][0]["name"]
        (0.95, 'a')
        """
        items = [
            {column: _plain(value) for column, value in row.items()}
            for row in self.frame.to_dict("records")
        ]
        whole = {"level": self.level, "errors": self.kind, "items": items}
        return _written(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", path)

    def to_latex(self, path: str | Path | None = None) -> str:
        r"""Return the table as a LaTeX ``tabular``, and write it if a path is given.

        Parameters
        ----------
        path : str or path, optional

        Examples
        --------
        >>> print(make(["a_1"], [0.0], [[0.0]]).to_latex().splitlines()[4])
        1 & a\_1 & 0.000 & 0.000 & 0.000 & 0.000 & 1 & 1 & 1.000 \\
        """
        head, rows = self._cells()
        columns = "".join("l" if title == "name" else "r" for title in head)
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
        lines += [" & ".join(map(to_tex, head)) + r" \\", r"\hline"]
        lines += [" & ".join(map(to_tex, row)) + r" \\" for row in rows]
        return _written("\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n", path)

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows as they are read by people, so many at most."""
        columns = list(self.frame.columns)
        rows = [
            [_shown(column, value) for column, value in zip(columns, row, strict=True)]
            for row in self.frame.iloc[:most].itertuples(index=False, name=None)
        ]
        return [_HEADS[column] for column in columns], rows


def make(
    names: Sequence[str] | None,
    scores: ArrayLike,
    covariance: ArrayLike,
    level: float = 0.95,
    counts: ArrayLike | None = None,
    elo: bool = False,
    anchor: str | None = None,
    *,
    intervals: ArrayLike | None = None,
    kind: str = "observed",
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> Leaderboard:
    """Make a leaderboard of estimated scores.

    Parameters
    ----------
    names : sequence of str or None
        Of the items; None for their numbers.
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    level : float
        Of the intervals, and of the sets of places.
    counts : array of float, shape (n,), optional
        How often each item was in a ballot.
    elo : bool
        Whether to add the scores and their intervals on the Elo scale, on which 400 points are
        odds of 10 to 1 and the mean item has 1000.
    anchor : str, optional
        The item that has 1000 points on the Elo scale instead. It shifts the scale; the errors
        are still those around the mean item.
    intervals : array of float, shape (n, 2), optional
        Intervals of the scores that were found in another way, such as profile likelihood; by
        default those of the normal distribution.
    kind : str
        The kind of the errors, for the caption.
    draws : int
        The size of the simulations behind `rank_sets` and `prob_best`.
    rng : int, numpy.random.Generator or None
        Of the simulations.

    Returns
    -------
    Leaderboard
        With the columns ``place`` (by score, equal scores by number), ``name``, ``score``, ``low``
        and ``high`` (the interval of this score alone), ``standard_error``, ``rank_low`` and
        ``rank_high`` (best and worst true place, for all items at once, see `rank_sets`),
        ``prob_best`` (how sure it is that the item is truly the best one, see `prob_best`), ``n``
        if there are counts, and ``elo``, ``elo_low``, ``elo_high`` if asked for.

    Examples
    --------
    >>> import numpy as np
    >>> board = make(["a", "b"], [0.5, -0.5], [[0.02, -0.02], [-0.02, 0.02]], elo=True, anchor="b")
    >>> board.to_frame()["elo"].round(1).tolist()
    [1173.7, 1000.0]
    """
    import pandas as pd

    values, matrix = check_estimate(scores, covariance)
    labels, level = names_of(names, len(values)), check_level(level)
    errors = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    reach = special.ndtri(0.5 + 0.5 * level) * errors
    bounds = np.column_stack([values - reach, values + reach])
    if intervals is not None:
        # Profile intervals of items that never won, or never lost, have an infinite end.
        bounds = _checked_bounds(intervals, len(values))
    # One seed gives the same draws twice: they are made once.
    drawn = error_draws(matrix, count("draws", draws), rng) if isinstance(rng, int) else None
    places = rank_sets(values, matrix, level, draws=draws, rng=rng, errors=drawn)
    columns: dict[str, Any] = {
        "name": labels,
        "score": values,
        "low": bounds[:, 0],
        "high": bounds[:, 1],
        "standard_error": errors,
        "rank_low": places[:, 0],
        "rank_high": places[:, 1],
        "prob_best": prob_best(values, matrix, draws=draws, rng=rng, errors=drawn),
    }
    if counts is not None:
        columns["n"] = _checked_counts(counts, len(values))
    if elo or anchor is not None:
        zero = 0.0 if anchor is None else values[_anchor(anchor, labels)]
        _add_elo(columns, zero)
    frame = pd.DataFrame(columns).iloc[np.argsort(-values, kind="stable")].reset_index(drop=True)
    frame.insert(0, "place", np.arange(1, len(values) + 1))
    return Leaderboard(frame, level, kind)


def make_large(
    names: Sequence[str],
    scores: FloatArray,
    *,
    level: float,
    counts: FloatArray,
    elo: bool,
    anchor: str | None,
    which: IntArray | None,
    errors: FloatArray | None,
    kind: str,
) -> Leaderboard:
    """Make a leaderboard of many items, without what needs a matrix of items by items.

    Parameters
    ----------
    names, scores, level, counts, elo, anchor, kind
        As in `make`.
    which : array of int, or None
        The items to show; None for all.
    errors : array of float, or None
        Their standard errors; None where there are none.
    """
    import pandas as pd

    places = np.empty(len(scores), dtype=np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    shown = np.arange(len(scores)) if which is None else which
    columns: dict[str, Any] = {
        "place": places[shown],
        "name": [names[item] for item in shown.tolist()],
        "score": scores[shown],
    }
    missing = "rank sets, P(best)"
    if errors is None:
        missing = "errors (ask for them by items=...), " + missing
    else:
        reach = special.ndtri(0.5 + 0.5 * level) * errors
        columns["low"], columns["high"] = columns["score"] - reach, columns["score"] + reach
        columns["standard_error"] = errors
    columns["n"] = _checked_counts(counts, len(scores))[shown]
    if elo or anchor is not None:
        _add_elo(columns, 0.0 if anchor is None else scores[_anchor(anchor, list(names))])
    frame = pd.DataFrame(columns).sort_values("place", ignore_index=True)
    return Leaderboard(frame, level, kind, missing)


def quick_leaderboard(fit: Fit) -> Leaderboard:
    """Return a leaderboard that takes a fraction of a second, for notebooks.

    Rank sets are simulated for all pairs of items, which takes seconds with a hundred of them:
    with more than a few items they are left out, with many the errors, too.

    Parameters
    ----------
    fit : Fit
    """
    if fit.n_items <= FEW_ITEMS:
        return fit.leaderboard()
    found = make_large(
        fit.names,
        fit.scores,
        level=0.95,
        counts=fit.ballots.counts()[: fit.n_items],
        elo=False,
        anchor=None,
        which=None,
        errors=fit.standard_errors() if fit.n_items <= WITH_ERRORS else None,
        kind="observed",
    )
    left = "rank sets, P(best): see leaderboard()"
    return replace(found, missing=left if "low" in found.frame else f"errors, {left}")


def _add_elo(columns: dict[str, Any], zero: float) -> None:
    """Add the scores and their intervals, where there are some, on the Elo scale."""
    for column, points in (("elo", "score"), ("elo_low", "low"), ("elo_high", "high")):
        if points in columns:
            columns[column] = ELO_ANCHOR + ELO_SCALE * (columns[points] - zero)


def _anchor(anchor: str, labels: list[str]) -> int:
    return labels.index(choice("anchor", anchor, labels))


def _checked_counts(counts: ArrayLike, n: int) -> FloatArray | IntArray:
    values = finite("counts", counts, ndim=1)
    if len(values) != n or (values < 0.0).any():
        raise ValueError(f"counts: expected {n} non-negative numbers, got shape {values.shape}")
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _checked_bounds(intervals: ArrayLike, n: int) -> FloatArray:
    bounds = np.asarray(intervals, dtype=np.float64)
    if bounds.shape != (n, 2) or np.isnan(bounds).any() or (bounds[:, 0] > bounds[:, 1]).any():
        raise ValueError(
            f"intervals: expected shape {(n, 2)}, low before high, without NaN, got shape "
            f"{bounds.shape}"
        )
    return bounds


def _shown(column: str, value: Any) -> str:
    if column in _DIGITS:
        return f"{value:.{_DIGITS[column]}f}"
    if column in _WHOLE:
        return f"{value:.0f}"
    if column == "n":
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    return str(value)


def _plain(value: Any) -> Any:
    """Return a number as JSON has it; an infinite one is null."""
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_atomically(Path(path), [text.encode()])
    return text
