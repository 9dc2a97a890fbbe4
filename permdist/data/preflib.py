"""PrefLib files: ballots that rank some or all alternatives, with or without ties."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from permdist._files import check_size, read_bytes
from permdist._result import Result
from permdist._text import aligned, plural
from permdist.rankings import BucketOrder, TopK

if TYPE_CHECKING:
    import os

    import pandas as pd

    from permdist._typing import IntArray

FILE_TYPES = {
    "soc": "strict complete orders",
    "soi": "strict incomplete orders",
    "toc": "complete orders with ties",
    "toi": "incomplete orders with ties",
}
_NAME = re.compile(r"ALTERNATIVE NAME ([0-9]{1,18})")
# Blanks go first, so that no part of these can match the same text in two ways.
_BUCKET = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
_ITEMS = r"[^\s,{}]+"
_PLACE = rf"(?:{_ITEMS}|\{{{_ITEMS}(?:,{_ITEMS})*\}})"
_ORDER = re.compile(rf"{_PLACE}(?:,{_PLACE})*")
_SIGNS = re.compile(r"([,{}])")
LARGEST = 2**53


@dataclass(frozen=True)
class Preferences(Result):
    """Ballots over named alternatives, with how often each was cast.

    Attributes
    ----------
    names : tuple of str
        The name of each alternative; items are numbered from 0.
    ballots : tuple of tuples of tuples of int
        Each ballot's buckets, the best first. An incomplete ballot leaves items out.
    counts : array of int, shape (ballots,)
    kind : {"soc", "soi", "toc", "toi"}
    title : str
    """

    names: tuple[str, ...]
    ballots: tuple[tuple[tuple[int, ...], ...], ...]
    counts: IntArray
    kind: str
    title: str

    @property
    def n_items(self) -> int:
        """The number of alternatives."""
        return len(self.names)

    @property
    def n_voters(self) -> int:
        """The number of ballots cast."""
        return int(self.counts.sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the ballots as a data frame, a row per different ballot.

        Returns
        -------
        DataFrame
            With the columns ``ballot``, a text such as ``a > b = c``, and ``count``.
        """
        import pandas as pd

        texts = [
            " > ".join(" = ".join(self.names[item] for item in bucket) for bucket in ballot)
            for ballot in self.ballots
        ]
        return pd.DataFrame({"ballot": texts, "count": self.counts})

    @property
    def caption(self) -> str:
        """What was voted on, and by how many, in one line."""
        voters = plural(self.n_voters, "voter")
        return f"{self.title}: {plural(self.n_items, 'alternative')}, {voters}"

    def orders(self) -> IntArray:
        """Return the different orders, shape (ballots, n), of strict and complete ballots.

        Repeat them with ``np.repeat(p.orders(), p.counts, axis=0)``, or use `counts` as weights.
        """
        if any(len(ballot) != self.n_items for ballot in self.ballots):
            raise ValueError(
                f"orders: these are {FILE_TYPES[self.kind]}, not all are total orders; "
                "use bucket_orders() or top_k()"
            )
        return np.array([[bucket[0] for bucket in ballot] for ballot in self.ballots])

    def bucket_orders(self) -> list[BucketOrder]:
        """Return every ballot as a bucket order; unranked items form the last bucket."""
        result = []
        for ballot in self.ballots:
            listed = {item for bucket in ballot for item in bucket}
            rest = [item for item in range(self.n_items) if item not in listed]
            result.append(BucketOrder([*ballot, *([rest] if rest else [])]))
        return result

    def top_k(self) -> list[TopK]:
        """Return every ballot without ties as a top-k list."""
        if any(len(bucket) > 1 for ballot in self.ballots for bucket in ballot):
            raise ValueError("top_k: some ballots have ties; use bucket_orders()")
        return [TopK((bucket[0] for bucket in ballot), self.n_items) for ballot in self.ballots]

    def rankings(self) -> IntArray | list[TopK]:
        """Return ballots without ties: as orders if all are complete, else as top-k lists."""
        if any(len(bucket) > 1 for ballot in self.ballots for bucket in ballot):
            raise ValueError(
                f"orders: these are {FILE_TYPES[self.kind]}; models of orders have no ties, "
                "DavidsonLuce has"
            )
        whole = all(len(ballot) == self.n_items for ballot in self.ballots)
        return self.orders() if whole else self.top_k()

    def describe(self) -> str:
        """Summarize the contents of the file in a few lines."""
        lengths = np.array([sum(map(len, ballot)) for ballot in self.ballots])
        tied = np.array([any(len(b) > 1 for b in ballot) for ballot in self.ballots])
        mean = float(np.average(lengths, weights=self.counts))
        first = np.zeros(self.n_items)
        for ballot, number in zip(self.ballots, self.counts, strict=True):
            first[list(ballot[0])] += number / len(ballot[0])
        leader = int(first.argmax())
        rows = {
            "title": self.title or "none",
            "kind": FILE_TYPES[self.kind],
            "alternatives": f"{self.n_items:,}",
            "ballots": f"{self.n_voters:,}  ({len(self.ballots):,} different)",
            "alternatives on a ballot": f"{lengths.min()} to {lengths.max()}, mean {mean:.2f}",
            "ballots with ties": f"{int(self.counts[tied].sum()):,}",
            "most first places": f"{self.names[leader]} ({first[leader]:,.6g})",
        }
        return aligned(rows)


def load_preflib(path: str | os.PathLike[str], *, strict: bool = False) -> Preferences:
    r"""Read a PrefLib file of orders: ``.soc``, ``.soi``, ``.toc`` or ``.toi``.

    Parameters
    ----------
    path : path
        In the format with ``# NAME: value`` headers; ``.gz`` and ``.bz2`` are understood.
    strict : bool
        Refuse a file whose ballots disagree with what its header counts: the voters, the
        different orders, the alternatives that have a name. By default that is a warning, and the
        ballots are taken as they are.

    Returns
    -------
    Preferences

    Raises
    ------
    ValueError
        With the file, the line and the reason.

    Warns
    -----
    UserWarning
        Where the ballots and the header disagree.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.toc"
    >>> _ = path.write_text("# NUMBER ALTERNATIVES: 3\n2: 1,{2,3}\n1: 3,2,1\n")
    >>> load_preflib(path).bucket_orders()
    [BucketOrder([[0], [1, 2]]), BucketOrder([[2], [1], [0]])]
    """
    file = Path(path)
    kind = next((part[1:] for part in file.suffixes[::-1] if part[1:] in FILE_TYPES), None)
    raw = read_bytes(file)
    if b"\0" in raw:
        raise ValueError(f"{file}: binary data: this is not a text file")
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError:  # older files are in Latin-1, which reads any bytes
        lines = raw.decode("latin-1").splitlines()
    headers: dict[str, str] = {}
    n = 0
    ballots: list[tuple[tuple[int, ...], ...]] = []
    counts: list[int] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            key, colon, value = line[1:].partition(":")
            if colon and key.strip():
                headers[key.strip().upper()] = value.strip()
        elif line.strip():
            where = f"{file}, line {number}"
            if "NUMBER ALTERNATIVES" not in headers:
                raise ValueError(f"{where}: no '# NUMBER ALTERNATIVES: n' before the first ballot")
            if n == 0:
                n = _whole(headers["NUMBER ALTERNATIVES"], f"{file}: NUMBER ALTERNATIVES")
                check_size(f"{file}: {n:,} alternatives", 100.0 * n)
            count, ballot = _read_ballot(line, n, where)
            counts.append(count)
            ballots.append(ballot)
    if not ballots:
        raise ValueError(f"{file}: expected at least one ballot, the file has none")
    declared = headers.get("DATA TYPE", kind or "none").lower()
    if declared not in FILE_TYPES:
        raise ValueError(f"{file}: expected data of type {', '.join(FILE_TYPES)}, got {declared}")
    _check_kind(file, declared, ballots, n)
    if sum(counts) > LARGEST:
        raise ValueError(f"{file}: expected at most 2^53 voters, the lines add up to {sum(counts)}")
    names = [f"alternative {item + 1}" for item in range(n)]
    named = {int(found[1]): key for key in headers if (found := _NAME.fullmatch(key))}
    for number, key in named.items():
        if 1 <= number <= n:
            names[number - 1] = headers[key]
    _check_counts(file, headers, ballots, counts, named, strict)
    title = headers.get("TITLE", "")
    return Preferences(tuple(names), tuple(ballots), np.array(counts), declared, title)


def _check_counts(
    file: Path,
    headers: dict[str, str],
    ballots: list[tuple[tuple[int, ...], ...]],
    counts: list[int],
    named: dict[int, str],
    strict: bool,
) -> None:
    """Compare the ballots with what the header counts; warn, or refuse the file."""
    different = {tuple(tuple(sorted(bucket)) for bucket in ballot) for ballot in ballots}
    found = {
        "NUMBER VOTERS": ("voters, the lines add up to", sum(counts)),
        "NUMBER UNIQUE ORDERS": ("different orders, the lines have", len(different)),
    }
    if named:
        found["NUMBER ALTERNATIVES"] = ("alternatives, the number of names is", len(named))
    wrong = []
    for key, (what, number) in found.items():
        declared = headers.get(key)
        if declared is not None and _whole(declared, f"{file}: {key}", least=0) != number:
            wrong.append(f"{declared} {what} {number}")
    if not wrong:
        return
    text = f"{file}: the header has {'; '.join(wrong)}"
    if strict:
        raise ValueError(f"{text}; strict=False reads it with a warning")
    warnings.warn(f"{text}; strict=True refuses such a file", stacklevel=3)


def _whole(text: str, where: str, *, least: int = 1) -> int:
    """Read a whole number."""
    digits = text.strip()
    kind = "a positive whole number" if least else "a whole number"
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{where}: expected {kind}, got {digits[:40]!r}")
    # The length first: to turn many digits into a number takes long.
    value = int(digits) if len(digits.lstrip("0")) <= 16 else LARGEST + 1
    if value > LARGEST:
        raise ValueError(f"{where}: expected a number up to 2^53, got {digits[:40]!r}")
    if value < least:
        raise ValueError(f"{where}: expected {kind}, got {digits[:40]!r}")
    return value


def _read_ballot(line: str, n: int, where: str) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Read ``count: 3,{1,2},4``."""
    number, colon, text = line.partition(":")
    if not colon:
        raise ValueError(f"{where}: expected 'count: order', got {line.strip()[:40]!r}")
    count = _whole(number, where)
    bare = "".join(piece.strip() for piece in _SIGNS.split(text))
    if not _ORDER.fullmatch(bare):
        shown = text.strip()[:40]
        raise ValueError(f"{where}: expected an order such as '3,{{1,2}},4', got {shown!r}")
    buckets = []
    seen: set[int] = set()
    for tied, single in _BUCKET.findall(bare):
        bucket = tuple(_whole(item, where) - 1 for item in (tied or single).split(","))
        for item in bucket:
            if item >= n:
                raise ValueError(f"{where}: expected alternatives 1 to {n}, got {item + 1}")
            if item in seen:
                raise ValueError(f"{where}: alternative {item + 1} is listed twice")
            seen.add(item)
        buckets.append(bucket)
    return count, tuple(buckets)


def _check_kind(file: Path, kind: str, ballots: list[tuple[tuple[int, ...], ...]], n: int) -> None:
    """Compare the ballots with what their type promises."""
    for ballot in ballots:
        if kind[0] == "s" and any(len(bucket) > 1 for bucket in ballot):
            raise ValueError(f"{file}: {FILE_TYPES[kind]} ({kind}), but a ballot has ties")
        if kind[2] == "c" and sum(map(len, ballot)) != n:
            raise ValueError(f"{file}: {FILE_TYPES[kind]} ({kind}), but a ballot leaves items out")
