"""Ballots in blocks: equal ones are counted, so that memory is for the different ones only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from itertools import count as counting
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist.rankings.sorting import sort

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.ballots.ballots import Ballots

# Why ballots that carry these cannot be counted together.
NOT_COUNTED = {
    "clusters": "ballots of two clusters are different",
    "times": "a time makes every ballot different",
    "features": "covariates make every ballot different",
}

# Contests of two with items below this have codes of their own.
HALF = 2**30


def whole(ballots: Any, **given: Any) -> Any:
    """Return the merged ballots of blocks, and anything else as it is.

    Parameters
    ----------
    ballots : object
        Blocks are an iterator, a list or a tuple of `Ballots` or of things that have some as
        ``ballots`` (`permdist.data.Battles`), a single such thing, or an object that says of
        itself that iterating over it gives such blocks (``yields_blocks``, as that of
        `permdist.data.read_battles`).
    **given
        What is given for every ballot, or None; blocks bring their own.

    Examples
    --------
    >>> from permdist import Ballots
    >>> monday, tuesday = Ballots.from_pairs([0], [1]), Ballots.from_pairs([0, 2], [1, 1])
    >>> whole([monday, tuesday]).weights
    array([2., 1.])
    >>> whole([[0, 1], [1, 0]])
    [[0, 1], [1, 0]]
    """
    rest: Iterable[Any] = ballots
    if isinstance(ballots, Iterator):
        first = next(ballots, None)
        if not _is_block(first):
            return [] if first is None else [first, *ballots]
        rest = chain([first], ballots)
    elif not getattr(ballots, "yields_blocks", False):
        several = isinstance(ballots, list | tuple)
        if not (several and ballots and _is_block(ballots[0])):
            return _ballots_in(ballots) if not several and _is_block(ballots) else ballots
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: ballots in blocks bring their own; give none here")
    return merge_blocks(rest)


def merge_blocks(blocks: Iterable[Any]) -> Ballots:
    """Return the different ballots of all blocks with their weights added up.

    Names decide which items are the same. The result, to the last bit, depends on the sequence of
    the ballots and not on where it is cut into blocks. See `Ballots.from_blocks`.

    Parameters
    ----------
    blocks : iterable of Ballots or Battles
    """
    tally = Tally()
    for block in blocks:
        if not _is_block(block):
            raise TypeError(f"blocks: expected Ballots in each block, got {type(block).__name__}")
        tally.add(_ballots_in(block))
    return tally.ballots()


def _is_block(value: Any) -> bool:
    from permdist.ballots.ballots import Ballots

    return isinstance(value, Ballots) or isinstance(getattr(value, "ballots", None), Ballots)


def _ballots_in(block: Any) -> Ballots:
    from permdist.ballots.ballots import Ballots

    found: Ballots = block if isinstance(block, Ballots) else block.ballots
    return found


class Tally:
    """Counts of different ballots, in the order of their first occurrence.

    Examples
    --------
    >>> from permdist import Ballots
    >>> tally = Tally()
    >>> tally.add(Ballots.from_pairs(["tea", "tea"], ["milk", "milk"]))
    >>> tally.add(Ballots.from_pairs(["milk", "tea"], ["cola", "milk"]))
    >>> tally.ballots().names, tally.ballots().weights
    (('cola', 'milk', 'tea'), array([3., 1.]))
    """

    def __init__(self) -> None:
        self._names: list[str] = []  # in the order of their numbers here
        self._place: dict[str, int] = {}
        self._last: tuple[str, ...] | None = None
        self._alike = True
        # What is known of each different ballot, with room for more: alternatives, sizes of
        # buckets; sign and ends of each record; number, weight and last record of each ballot.
        self._items, self._sizes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._signs = np.empty(0)
        self._ends = np.empty((0, 2), np.int64)  # of a record in items and in sizes
        self._counts, self._units = np.empty(0, np.int64), np.empty(0)
        self._records = np.empty(0, np.int64)  # the record after the last one of a ballot
        self._table = np.full((2**10, 2), -1, np.int64)  # code and number of a ballot
        self._used = np.zeros(4, np.int64)  # items, sizes, records, ballots

    def add(self, block: Ballots) -> None:
        """Count the ballots of a block.

        Parameters
        ----------
        block : Ballots
            Without clusters, times and features.
        """
        for what, reason in NOT_COUNTED.items():
            if getattr(block, what) is not None:
                raise ValueError(
                    f"blocks: ballots with {what} cannot be counted together, since {reason}; "
                    f"leave the {what} out, or add up the blocks with + if all fit into memory"
                )
        numbers = self._numbers(block.names)
        items = np.array(block.items) if numbers is None else numbers[block.items]
        records = pointers(np.bincount(block.ballot, minlength=block.n_ballots))
        _sort_buckets(items, block.ptr, block.sizes, block.stages)
        done = 0
        arrays = (items, block.ptr, block.sizes, block.stages, block.signs, records)
        counts, units = block.units()
        given = (*arrays, counts, units)
        while True:
            done = _count(
                *given,
                done,
                self._items,
                self._sizes,
                self._signs,
                self._ends,
                self._records,
                self._counts,
                self._units,
                self._table,
                self._used,
            )
            if done == block.n_ballots:
                return
            self._grow(np.diff(block.ptr).max(), block.sizes, np.diff(records).max())

    def ballots(self) -> Ballots:
        """Return the different ballots so far; their weights say how often each was cast."""
        from permdist.ballots.ballots import Ballots

        n_items, n_sizes, n_records, n_ballots = self._used.tolist()
        if not n_ballots:
            raise ValueError("blocks: expected at least one block of ballots, got none")
        items, sizes = self._items[:n_items].copy(), self._sizes[:n_sizes].copy()
        ptr, stages = (np.r_[0, self._ends[:n_records, column]] for column in range(2))
        names = tuple(self._names)
        if not self._alike:
            names = joint_names(names)
            place = {name: number for number, name in enumerate(names)}
            items = np.array([place[name] for name in self._names], dtype=np.int64)[items]
            _sort_buckets(items, ptr, sizes, stages)
        units = self._units[:n_ballots].copy()
        return Ballots(
            items=items,
            ptr=ptr,
            sizes=sizes,
            stages=stages,
            signs=self._signs[:n_records].copy(),
            ballot=np.repeat(
                np.arange(n_ballots), np.diff(self._records[:n_ballots], prepend=np.int64(0))
            ),
            weights=self._counts[:n_ballots] * units,
            names=self._last if self._alike and self._last is not None else names,
            unit_weights=None if (units == 1.0).all() else units,
        )

    def _numbers(self, names: tuple[str, ...]) -> IntArray | None:
        """Return the numbers here of a block's items; None where they are the same."""
        if self._last is None:
            self._names, self._last = list(names), names
            return None
        if self._alike and (names is self._last or names == self._last):
            return None
        self._alike = False
        if len(self._place) < len(self._names):
            self._place = {name: number for number, name in enumerate(self._names)}
        for name in names:
            if self._place.setdefault(name, len(self._names)) == len(self._names):
                self._names.append(name)
        return np.array([self._place[name] for name in names], dtype=np.int64)

    def _grow(self, longest: int, sizes: IntArray, most_records: int) -> None:
        """Make room for more ballots, at least for one of the largest of a block."""
        room = longest * most_records + len(self._items) // 2 + 2**12
        buckets = min(len(sizes), longest * most_records) + len(self._sizes) // 2 + 2**12
        self._items, self._sizes = _wider(self._items, room), _wider(self._sizes, buckets)
        more = most_records + len(self._signs) // 2 + 2**12
        self._signs, self._ends = _wider(self._signs, more), _wider(self._ends, more)
        more = len(self._counts) // 2 + 2**12
        self._counts, self._records = _wider(self._counts, more), _wider(self._records, more)
        self._units = _wider(self._units, more)
        # At most half of the table is in use.
        size = len(self._table)
        while size < 2 * len(self._counts):
            size *= 2
        if size > len(self._table):
            table = np.full((size, 2), -1, np.int64)
            _enter(self._table, table)
            self._table = table


def joint_names(*names: Iterable[str]) -> tuple[str, ...]:
    """Return all names: 0, 1, 2, ..., as items without names are called, then the others, sorted.

    Examples
    --------
    >>> joint_names(("tea", "milk"), ("0", "1", "2"))
    ('0', '1', '2', 'milk', 'tea')
    """
    union = set().union(*names)
    numbers = tuple(takewhile(union.__contains__, map(str, counting())))
    return numbers + tuple(sorted(union.difference(numbers)))


def _wider(array: Any, more: int) -> Any:
    """Return a copy of an array with more rows."""
    result = np.empty((len(array) + more, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


# ---- kernels: items, ptr, sizes, stages and signs as in Ballots --------------------------------


@kernel
def _sort_buckets(items: IntArray, ptr: IntArray, sizes: IntArray, stages: IntArray) -> None:
    """Put the members of each bucket, and those never chosen, in order of number, in place."""
    for row in range(len(ptr) - 1):
        start = ptr[row]
        for stage in range(stages[row], stages[row + 1] + 1):
            end = start + sizes[stage] if stage < stages[row + 1] else ptr[row + 1]
            if end - start == 2:
                if items[start] > items[start + 1]:
                    items[start], items[start + 1] = items[start + 1], items[start]
            elif end - start > 2:
                sort(items[start:end])
            start = end


@kernel(inline=True)
def _mixed(code: int) -> int:
    """Spread the bits of a code, so that the lowest ones depend on all."""
    code = (code ^ (code >> 32)) * -7723592293110705685
    code = (code ^ (code >> 29)) * -4658895280553007687
    return code ^ (code >> 32)


@kernel
def _enter(before: IntArray, table: IntArray) -> None:
    """Move what a table holds to a larger one."""
    mask = len(table) - 1
    for place in range(len(before)):
        if before[place, 1] >= 0:
            at = _mixed(before[place, 0]) & mask
            while table[at, 1] >= 0:
                at = (at + 1) & mask
            table[at, 0], table[at, 1] = before[place, 0], before[place, 1]


@kernel
def _count(
    items: IntArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    signs: FloatArray,
    records: IntArray,
    counts: IntArray,
    units: FloatArray,
    done: int,
    known_items: IntArray,
    known_sizes: IntArray,
    known_signs: FloatArray,
    known_ends: IntArray,
    known_records: IntArray,
    known_counts: IntArray,
    known_units: FloatArray,
    table: IntArray,
    used: IntArray,
) -> int:
    """Count ballots from number `done` on; return the first one for which there is no room.

    Ballot b has the records ``records[b]`` to ``records[b + 1]``. The table holds, at a place that
    the code of a ballot determines or after it, this code and the ballot's number among the
    different ones; -1 where there is none.
    """
    mask = len(table) - 1
    bits = units.view(np.int64)
    for ballot in range(done, len(counts)):
        first, last = records[ballot], records[ballot + 1]
        low, high = ptr[first], ptr[last]
        bottom, top = stages[first], stages[last]
        pair = last - first == 1 and high - low == 2 and top - bottom == 1 and signs[first] > 0.0
        pair = pair and units[ballot] == 1.0
        if pair and items[low] < HALF and items[low + 1] < HALF:
            # The code of a contest of two is negative and says all; those of others do not.
            code = (-items[low] - 1) * 2 * HALF + 2 * items[low + 1] + sizes[bottom] - 1
        else:
            pair = False
            code = last - first + bits[ballot]
            for row in range(first, last):
                code = code * 1000003 + (ptr[row + 1] - ptr[row])
                code = code * 1000003 + (1 if signs[row] > 0.0 else 2)
            for stage in range(bottom, top):
                code = code * 1000003 + sizes[stage]
            for k in range(low, high):
                code = (code ^ (code >> 29)) * -4658895280553007687 + items[k]
            code &= 0x7FFFFFFFFFFFFFFF
        at = _mixed(code) & mask
        found = table[at, 1]
        while found >= 0:
            if table[at, 0] == code:
                if pair:
                    break
                record = known_records[found - 1] if found > 0 else 0
                start = known_ends[record - 1, 0] if record > 0 else 0
                begin = known_ends[record - 1, 1] if record > 0 else 0
                same = known_records[found] - record == last - first
                same = same and known_units[found] == units[ballot]
                for row in range(first, last):
                    if not same:
                        break
                    other = record + row - first
                    same = (
                        known_ends[other, 0] - start == ptr[row + 1] - low
                        and known_ends[other, 1] - begin == stages[row + 1] - bottom
                        and known_signs[other] == signs[row]
                    )
                k = 0
                while same and k < top - bottom:
                    same = known_sizes[begin + k] == sizes[bottom + k]
                    k += 1
                k = 0
                while same and k < high - low:
                    same = known_items[start + k] == items[low + k]
                    k += 1
                if same:
                    break
            at = (at + 1) & mask
            found = table[at, 1]
        if found >= 0:
            known_counts[found] += counts[ballot]
            continue
        start, begin, record, new = used
        if (
            start + high - low > len(known_items)
            or begin + top - bottom > len(known_sizes)
            or record + last - first > len(known_signs)
            or new + 1 > len(known_counts)
            or 2 * (new + 1) > len(table)
        ):
            return ballot
        for k in range(high - low):
            known_items[start + k] = items[low + k]
        for k in range(top - bottom):
            known_sizes[begin + k] = sizes[bottom + k]
        for row in range(first, last):
            known_signs[record + row - first] = signs[row]
            known_ends[record + row - first, 0] = start + ptr[row + 1] - low
            known_ends[record + row - first, 1] = begin + stages[row + 1] - bottom
        known_records[new] = record + last - first
        known_counts[new], known_units[new] = counts[ballot], units[ballot]
        table[at, 0], table[at, 1] = code, new
        used[0], used[1] = start + high - low, begin + top - bottom
        used[2], used[3] = record + last - first, new + 1
    return len(counts)
