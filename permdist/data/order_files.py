"""Tables of rankings: a row per ballot, with the items in order or the rank of each item."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from permdist._check import choice
from permdist.data.battle_columns import find_column
from permdist.data.battle_files import text_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from permdist.ballots import Ballots

T = TypeVar("T")
KINDS = ("orders", "ranks")
_PLACE = re.compile(r"(?:rank|place|position|pos|choice|preference)[ _.-]*([0-9]{1,9})", re.I)
_WHOLE = re.compile(r"[0-9]+\.0")


def load_orders(
    path: str | os.PathLike[str],
    *,
    kind: str = "orders",
    subset: bool | None = None,
    unranked: float | None = None,
    voter: str | None = None,
) -> Ballots:
    r"""Read a table of rankings from a CSV or TSV file.

    Parameters
    ----------
    path : str or path
        Separated by commas, tabs, semicolons or bars, whichever the first line has most of.
    kind : {"orders", "ranks"}
        ``"orders"``: in each row the items of a ballot, the best first; a tie is ``"{a, b}"``.
        A header, if there is one, has columns such as ``rank1, rank2, ...`` (or place, position,
        choice, preference). ``"ranks"``: the header has the names of the items, a row the rank of
        each, the lowest for the best; equal ranks are ties, an empty cell is an item that was not
        ranked. With a header, a column ``weight``, ``count`` or ``votes`` says how often a
        ballot was cast; other columns of orders are ignored.
    subset : bool, optional
        What a ballot that leaves items out means, as in `Ballots.from_orders` and
        `Ballots.from_ranks`.
    unranked : float, optional
        In a table of ranks, a number that stands for "not ranked", as in `Ballots.from_ranks`.
    voter : str, optional
        A column that says who cast the ballots; those of one voter are a cluster.

    Returns
    -------
    Ballots

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text('rank1,rank2,rank3,votes\ntea,milk,cola,2\n"{milk, tea}",cola,,1\n')
    >>> ballots = load_orders(path)
    >>> ballots.names, ballots.weights.tolist(), ballots.largest_tie
    (('cola', 'milk', 'tea'), [2.0, 1.0], 2)
    """
    from permdist.ballots import Ballots
    from permdist.ballots.reading import WEIGHTS, check_item_columns

    choice("kind", kind, KINDS)
    file = Path(path)
    rows = _rows(file)
    head = rows[0][1]
    weigh = next((k for k, name in enumerate(head) if name.lower() in WEIGHTS), None)
    who = None if voter is None else head.index(find_column(head, voter, "voter", str(file)))
    if kind == "ranks":
        items = [k for k in range(len(head)) if k not in (weigh, who)]
        names = [head[k] for k in items]
        _named(file, lambda: check_item_columns(names, "voter"))
        table, weights = _ranks(file, head, rows[1:], items, weigh)
        clusters = _voters(rows[1:], who)
        return _named(
            file,
            lambda: Ballots.from_ranks(
                table,
                unranked=unranked,
                subset=subset,
                names=names,
                weights=weights,
                clusters=clusters,
            ),
        )
    if unranked is not None:
        raise ValueError("unranked: only for a table of ranks")
    places = {k: int(found[1]) for k, name in enumerate(head) if (found := _PLACE.fullmatch(name))}
    columns = sorted(places, key=lambda k: places[k]) if places else None
    weights = None
    clusters = None
    if columns is None:
        if who is not None:
            raise ValueError(f"voter: expected a header with columns rank1, rank2, ... in {file}")
    else:
        rows = rows[1:]
        _refuse_longer(file, rows, head)
        weights = _weights(file, rows, weigh)
        clusters = _voters(rows, who)
    orders = [_order(file, line, row, columns) for line, row in rows]
    if not orders:
        raise ValueError(f"{file}: expected at least one ballot below the header")
    return _named(
        file,
        lambda: Ballots.from_orders(orders, subset=subset, weights=weights, clusters=clusters),
    )


def _rows(file: Path) -> list[tuple[int, list[str]]]:
    """Return the cells of each row, with the number of its line."""
    text = text_of(file).removeprefix("\ufeff").lstrip("\r\n")
    separator = max(",\t;|", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{file}, line {reader.line_num}: {error}") from None
    rows = [(line, row) for line, row in rows if any(row)]
    if not rows:
        raise ValueError(f"{file}: the file is empty")
    return rows


def _order(file: Path, line: int, row: list[str], columns: list[int] | None) -> list[Any]:
    """Return the items of a row, ties as lists."""
    cells = row if columns is None else [row[k] if k < len(row) else "" for k in columns]
    while cells and not cells[-1]:
        cells = cells[:-1]
    if not cells:
        raise ValueError(f"{file}, line {line}: no item is listed")
    if "" in cells:
        raise ValueError(
            f"{file}, line {line}: cell {cells.index('') + 1} is empty; items must be in the first "
            "cells of a row"
        )
    order: list[Any] = []
    for cell in cells:
        if cell.startswith("{") and cell.endswith("}"):
            members = [part.strip() for part in cell[1:-1].split(",")]
            if "" in members:
                raise ValueError(
                    f"{file}, line {line}: expected a tie such as {{a, b}}, got {cell}"
                )
            order.append([_name(part) for part in members])
        else:
            order.append(_name(cell))
    return order


def _named(file: Path, make: Callable[[], T]) -> T:
    """Add the name of the file to what is wrong with its ballots."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _name(cell: str) -> str:
    """Return a name; numbers that were saved as floats lose their ``.0``."""
    return cell[:-2] if _WHOLE.fullmatch(cell) else cell


def _number(file: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{file}, line {line}: {column}: expected a finite number, got {text!r}")
    return value


def _weights(
    file: Path, rows: list[tuple[int, list[str]]], column: int | None
) -> list[float] | None:
    if column is None:
        return None
    return [
        _number(file, line, "weight", row[column] if column < len(row) else "")
        for line, row in rows
    ]


def _refuse_longer(file: Path, rows: list[tuple[int, list[str]]], head: list[str]) -> None:
    """Refuse rows with more cells than the header."""
    for line, row in rows:
        if len(row) > len(head):
            raise ValueError(f"{file}, line {line}: expected {len(head)} cells, got {len(row)}")


def _voters(rows: list[tuple[int, list[str]]], column: int | None) -> list[str] | None:
    """Return who cast each ballot."""
    if column is None:
        return None
    return [row[column] if column < len(row) else "" for _, row in rows]


def _ranks(
    file: Path,
    head: list[str],
    rows: list[tuple[int, list[str]]],
    columns: list[int],
    weigh: int | None,
) -> tuple[list[list[float]], list[float] | None]:
    """Return the ranks of a table, NaN for empty cells, and the weights."""
    if not rows:
        raise ValueError(f"{file}: expected at least one ballot below the header")
    _refuse_longer(file, rows, head)
    table = []
    for line, row in rows:
        cells = row + [""] * (len(head) - len(row))
        table.append(
            [_number(file, line, head[k], cells[k]) if cells[k] else math.nan for k in columns]
        )
    return table, _weights(file, rows, weigh)
