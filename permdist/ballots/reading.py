"""Rankings, choices and contests as people have them, turned into flat arrays."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count, finite, integers
from permdist._files import check_size
from permdist._parallel import pointers
from permdist._text import hint
from permdist.ballots.fading import read_times
from permdist.rankings import BucketOrder, TopK
from permdist.rankings.partial import check_lists, check_subset, refuse_short, refuse_top_as_subset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray

Flat = dict[str, Any]
# Columns of a table of ranks that are no items.
WEIGHTS = ("weight", "weights", "count", "counts", "votes")
_WHO = ("voter", "ballot", "user", "judge", "rater", "respondent", "participant", "person")
VOTERS = ("id", *(f"{who}{end}" for who in _WHO for end in ("", "s", "id", "_id", " id", ".id")))


def is_collection(ballots: Any) -> bool:
    """Check for ballots with counts and names, as `permdist.data.load_preflib` reads them."""
    return all(hasattr(ballots, name) for name in ("ballots", "counts", "names", "n_items"))


def check_names(names: Sequence[str], n_items: int | None) -> tuple[str, ...]:
    """Return names as text, one for each item, all different."""
    texts = tuple(str(name) for name in names)
    if n_items is not None and len(texts) != n_items:
        raise ValueError(f"names: expected {n_items} names, got {len(texts)}")
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise ValueError(f"names: must be unique; {twice!r} appears more than once")
    return texts


def read_orders(
    orders: Any, n_items: int | None, subset: bool | None, names: Sequence[str] | None
) -> Flat:
    """Read rankings; parameters as in `Ballots.from_orders`."""
    subset = check_subset(subset)
    if isinstance(orders, BucketOrder | TopK):
        orders = [orders]
    table = orders if isinstance(orders, np.ndarray) else None
    if table is None and hasattr(orders, "to_numpy"):
        table = orders.to_numpy()
    if table is not None and table.dtype.kind in "iu":
        return _from_table(table, n_items, subset, names)
    if table is not None and (table.ndim != 2 or table.dtype.kind not in "OUST"):
        raise ValueError(
            "orders: expected an array of item numbers or names, shape (ballots, k), got shape "
            f"{table.shape} of {table.dtype}"
        )
    try:
        rankings = list(orders if table is None else table.tolist())
    except TypeError:
        raise TypeError(
            f"orders: expected a sequence of rankings, got {type(orders).__name__}"
        ) from None
    if not rankings:
        raise ValueError("orders: expected at least one ranking, got none")
    declared = {entry.n_items for entry in rankings if isinstance(entry, BucketOrder | TopK)} | (
        {count("n_items", n_items)} if n_items is not None else set()
    )
    if len(declared) > 1:
        raise ValueError(f"orders: rankings out of {sorted(declared)} items do not mix")
    if subset and any(isinstance(entry, TopK) for entry in rankings):
        refuse_top_as_subset()
    buckets = [_buckets_of(entry, row) for row, entry in enumerate(rankings)]
    sizes = np.array([len(bucket) for ranking in buckets for bucket in ranking], dtype=np.int64)
    stages = pointers([len(ranking) for ranking in buckets])
    entries = list(chain.from_iterable(chain.from_iterable(buckets)))
    numbers, found = _numbers("orders", entries, declared.pop() if declared else None, names)
    lengths = np.add.reduceat(sizes, stages[:-1])
    short = lengths < len(found)
    tops = np.array([isinstance(entry, TopK) for entry in rankings])
    if subset is None and (short & ~tops).any():
        row = int(np.argmax(short & ~tops))
        refuse_short("orders", int(lengths[row]), len(found), f"ranking {row}")
    rest = short & (tops | (subset is False))
    return _assembled(numbers, lengths, sizes, stages, rest, found)


def _buckets_of(ranking: Any, row: int) -> list[list[Any]]:
    """Return the buckets of one ranking as lists."""
    if isinstance(ranking, BucketOrder):
        return [list(bucket) for bucket in ranking.buckets]
    if isinstance(ranking, TopK):
        return [[item] for item in ranking.items]
    if isinstance(ranking, str) or not hasattr(ranking, "__iter__"):
        raise TypeError(f"orders: expected a list of items as ranking {row}, got {ranking!r}")
    result = [
        list(entry) if isinstance(entry, list | tuple | set | frozenset | np.ndarray) else [entry]
        for entry in ranking
    ]
    if not result or not all(result):
        raise ValueError(f"orders: expected no empty ranking or tie, got {ranking!r} as {row}")
    return result


def _from_table(
    table: IntArray, n_items: int | None, subset: bool | None, names: Sequence[str] | None
) -> Flat:
    """Read orders that are the rows of an array."""
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"orders: expected shape (ballots, k), got {table.shape}")
    rows = integers("orders", table, what="item numbers")
    wanted = n_items if n_items is not None else None if names is None else len(names)
    n = int(rows.max()) + 1 if wanted is None else count("n_items", wanted)
    check_lists(rows, n)
    k = rows.shape[1]
    if k < n and subset is None:
        refuse_short("orders", k, n)
    ones = np.ones(rows.size, dtype=np.int64)
    stages = np.arange(len(rows) + 1) * k
    rest = np.full(len(rows), k < n and not subset)
    found = _default_names(n) if names is None else check_names(names, n)
    return _assembled(rows.ravel(), np.full(len(rows), k), ones, stages, rest, found)


def read_ranks(
    ranks: Any, unranked: float | None, subset: bool | None, names: Sequence[str] | None
) -> Flat:
    """Read the rank of each item; parameters as in `Ballots.from_ranks`."""
    subset = check_subset(subset)
    if names is None and hasattr(ranks, "columns"):
        names = list(map(str, ranks.columns))
        check_item_columns(names)
    table = finite("ranks", ranks, ndim=2, nan=True)
    if not table.size:
        raise ValueError(f"ranks: expected shape (ballots, n), got {table.shape}")
    known = _default_names(table.shape[1]) if names is None else check_names(names, table.shape[1])
    row, item = np.nonzero(_ranked_entries("ranks", table, unranked))
    if len(np.unique(row)) < len(table):
        empty = int(np.setdiff1d(np.arange(len(table)), row)[0])
        raise ValueError(f"ranks: expected a rank on every ballot, {empty} has none")
    return _ranked(row, item, table[row, item], known, below=subset is False)


def check_item_columns(columns: Iterable[str], voter: str = "clusters") -> None:
    """Refuse a table of ranks with a column whose name is not an item's by all appearances.

    Parameters
    ----------
    columns : iterable of str
    voter : str
        The argument that takes who cast the ballots; it is given a column, or its values.
    """
    for column in columns:
        name = column.strip().casefold()
        if name in VOTERS:
            meant = f"pass {voter}='{column}'" if voter == "voter" else f"pass it as {voter}"
        elif name in WEIGHTS:
            meant = "pass it as weights" if voter != "voter" else "keep one column of weights"
        else:
            continue
        raise ValueError(
            f"ranks: expected items as columns, got {column!r}; {meant}, or rename it if it is an "
            "item"
        )


def _ranked_entries(what: str, ranks: FloatArray, unranked: float | None) -> BoolArray:
    """Return which entries are ranks; parameters as in `Ballots.from_ranks`."""
    none = np.isnan(ranks)
    if unranked is not None:
        none |= ranks == unranked
    bad = ~none & ((ranks < 0) if unranked is not None else (ranks <= 0))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{what}: expected ranks from 1, got {ranks[at]:g} at index "
            f"{at if len(at) > 1 else at[0]}; pass unranked={min(ranks[at], 0):g} if it says that "
            "an item was not ranked, unranked=nan if 0 is the best rank"
        )
    return ~none


def read_long(
    ballot: Any, item: Any, rank: Any, unranked: float | None, names: Sequence[str] | None
) -> Flat:
    """Read one row for each item of each ballot; parameters as in `Ballots.from_long`."""
    import pandas as pd

    labels = pd.factorize(np.asarray(ballot))[0]
    place = finite("rank", rank, ndim=1)
    entries = np.asarray(item)
    if not len(labels) or not labels.shape == entries.shape == place.shape:
        raise ValueError(
            "item: expected as many items and ranks as ballots, at least one, got shapes "
            f"{labels.shape}, {entries.shape} and {place.shape}"
        )
    if (labels < 0).any():
        raise ValueError(f"ballot: expected a label, row {int(np.argmax(labels < 0))} has none")
    numbers, found = _numbers("item", entries, None, names)
    _refuse_repeats("item", numbers, labels, found)
    kept = _ranked_entries("rank", place, unranked)
    if not kept.all():
        missing = np.setdiff1d(labels, labels[kept])
        if len(missing):
            row = int(np.argmax(labels == missing[0]))
            raise ValueError(f"rank: expected a rank on every ballot, that of row {row} has none")
    return _ranked(labels[kept], numbers[kept], place[kept], found)


def _ranked(
    row: IntArray,
    item: IntArray,
    rank: FloatArray,
    names: tuple[str, ...],
    *,
    below: bool = False,
) -> Flat:
    """Return ballots whose items have ranks; with `below`, the other items follow them."""
    sequence = np.lexsort((item, rank, row))
    row, item, rank = row[sequence], item[sequence], rank[sequence]
    opens = np.ones(len(row), np.bool_)
    opens[1:] = (np.diff(row) != 0) | (np.diff(rank) != 0)
    bucket = np.cumsum(opens) - 1
    lengths = np.bincount(row)
    rest = below & (lengths < len(names))
    stages = pointers(np.bincount(row[opens]))
    return _assembled(item, lengths, np.bincount(bucket), stages, rest, names)


def read_choices(
    chosen: Mapping[str, Any],
    menus: Sequence[Any] | None,
    n_items: int | None,
    names: Sequence[str] | None,
) -> Flat:
    """Read choices of the best, and perhaps the worst, out of menus."""
    columns = {name: list(values) for name, values in chosen.items()}
    number = len(next(iter(columns.values())))
    for name, values in columns.items():
        if len(values) != number or not values:
            raise ValueError(f"{name}: expected {number or 'some'} choices, got {len(values)}")
    if menus is not None and len(menus) != number:
        raise ValueError(f"menus: expected {number} menus, got {len(menus)}")
    entries = [*chain.from_iterable(columns.values())]
    lengths = np.zeros(number, dtype=np.int64)
    if menus is not None:
        lengths = np.array([len(menu) for menu in menus], dtype=np.int64)
        entries += list(chain.from_iterable(menus))
    numbers, found = _numbers(next(iter(columns)), entries, n_items, names)
    picked = numbers[: number * len(columns)].reshape(len(columns), number)
    if menus is None:
        lengths = np.full(number, len(found))
        offered = np.tile(np.arange(len(found)), number)
    else:
        offered = numbers[number * len(columns) :]
    owner = np.repeat(np.arange(number), lengths)
    _refuse_repeats("menus", offered, owner, found)
    for name, items in zip(columns, picked, strict=True):
        there = np.zeros(number, np.bool_)
        there[owner[offered == items[owner]]] = True
        if not there.all():
            row = int(np.argmin(there))
            raise ValueError(f"{name}: {found[items[row]]!r} is not on its menu, choice {row}")
    if (lengths < 2).any():
        raise ValueError(f"menus: expected two items or more, menu {int(np.argmax(lengths < 2))}")
    best = picked[0]
    # The chosen one first, then the others; for the worst without the best.
    sequence = np.lexsort((offered != best[owner], owner))
    if len(columns) == 1:
        return _flat(offered[sequence], lengths, np.ones(number, np.int64), np.arange(number + 1),
                     found)  # fmt: skip
    worst = picked[1]
    if (best == worst).any():
        row = int(np.argmax(best == worst))
        raise ValueError(f"worst: the same item as the best, {found[best[row]]!r}, choice {row}")
    left = offered != best[owner]
    others, other_owner = offered[left], owner[left]
    after = np.lexsort((others != worst[other_owner], other_owner))
    items = np.concatenate([offered[sequence], others[after]])
    record = np.concatenate([2 * owner, 2 * other_owner + 1])
    together = np.argsort(record, kind="stable")
    flat = _flat(
        items[together],
        np.bincount(record),
        np.ones(2 * number, np.int64),
        np.arange(2 * number + 1),
        found,
    )
    flat["signs"] = np.tile([1.0, -1.0], number)
    flat["ballot"] = np.repeat(np.arange(number), 2)
    return flat


def read_pairs(
    winners: ArrayLike,
    losers: ArrayLike,
    ties: ArrayLike | None,
    n_items: int | None,
    names: Sequence[str] | None,
    features: tuple[ArrayLike, ArrayLike] | None,
    feature_names: Sequence[str],
) -> Flat:
    """Read contests of two; parameters as in `Ballots.from_pairs`."""
    first, second = np.asarray(winners), np.asarray(losers)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(
            "losers: expected as many losers as winners, at least one, got shapes "
            f"{first.shape} and {second.shape}"
        )
    rows = len(first)
    tied = np.zeros(rows, np.bool_) if ties is None else np.asarray(ties)
    if tied.shape != (rows,) or tied.dtype != np.bool_:
        raise ValueError(f"ties: expected {rows} booleans, got {tied.dtype} of shape {tied.shape}")
    entries: Any = np.concatenate([first, second])
    numbers, found = _numbers("winners", entries, n_items, names)
    a, b = numbers[:rows], numbers[rows:]
    if (a == b).any():
        row = int(np.argmax(a == b))
        raise ValueError(f"losers: {found[a[row]]!r} cannot meet itself, contest {row}")
    # The members of a tie in the order of their numbers, so that equal contests are equal.
    swap = tied & (a > b)
    items = np.column_stack([np.where(swap, b, a), np.where(swap, a, b)])
    flat = _flat(items.ravel(), np.full(rows, 2), np.where(tied, 2, 1), np.arange(rows + 1), found)
    if features is None:
        return flat
    parts = [finite("features", part, ndim=2) for part in features]
    if len(parts) != 2 or parts[0].shape != parts[1].shape or len(parts[0]) != rows:
        raise ValueError(
            f"features: expected a pair of arrays of shape ({rows}, q), got shapes "
            f"{' and '.join(str(part.shape) for part in parts)}"
        )
    width = parts[0].shape[1]
    both = np.stack(parts, axis=1)
    both[swap] = both[swap, ::-1]
    flat["features"] = both.reshape(2 * rows, width)
    flat["feature_names"] = tuple(map(str, feature_names)) or default_features(width)
    if len(flat["feature_names"]) != width:
        raise ValueError(f"feature_names: expected {width}, got {len(flat['feature_names'])}")
    return flat


def default_features(width: int) -> tuple[str, ...]:
    """Return names for covariates that have none."""
    return tuple(f"x{column}" for column in range(width))


def _default_names(n: int) -> tuple[str, ...]:
    check_size(f"n_items: the names of {n:,} items", 70.0 * n)
    return tuple(str(item) for item in range(n))


def _numbers(
    what: str, entries: Any, n_items: int | None, names: Sequence[str] | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Return items as numbers, and the names of all items."""
    known = None if names is None else check_names(names, n_items)
    array = np.asarray(entries)
    if array.dtype.kind in "iu":
        numbers = integers(what, array, what="item numbers")
        n = n_items if n_items is not None else len(known) if known else int(numbers.max()) + 1
        bad = (numbers < 0) | (numbers >= n)
        if bad.any():
            raise ValueError(
                f"{what}: expected items from 0 to {n - 1}, got {numbers[int(np.argmax(bad))]}"
            )
        return numbers, known or _default_names(n)
    if array.dtype.kind not in "OUT":
        raise TypeError(f"{what}: expected item numbers or names, got dtype {array.dtype}")
    mixed = next((item for item in entries if not isinstance(item, str)), "")
    if not isinstance(mixed, str):
        raise TypeError(f"{what}: expected item numbers or names, not both, got {mixed!r}")
    import pandas as pd

    codes, labels = pd.factorize(array.astype(object), sort=known is None)
    if known is None:
        if n_items is not None and n_items != len(labels):
            raise ValueError(
                f"n_items: {len(labels)} names occur, got {n_items}; give all names in `names`"
            )
        return codes.astype(np.int64), tuple(map(str, labels))
    place = {name: number for number, name in enumerate(known)}
    for label in labels:
        if label not in place:
            raise ValueError(f"{what}: unknown item {label!r}{hint(label, known)}")
    return np.array([place[label] for label in labels], dtype=np.int64)[codes], known


def _refuse_repeats(what: str, items: IntArray, owner: IntArray, names: Sequence[str]) -> None:
    """Refuse lists that hold an item twice."""
    sequence = np.lexsort((items, owner))
    same = (np.diff(items[sequence]) == 0) & (np.diff(owner[sequence]) == 0)
    if same.any():
        at = sequence[int(np.argmax(same))]
        raise ValueError(f"{what}: {names[items[at]]!r} is listed twice, at index {owner[at]}")


def _assembled(
    numbers: IntArray,
    lengths: IntArray,
    sizes: IntArray,
    stages: IntArray,
    rest: BoolArray,
    names: tuple[str, ...],
) -> Flat:
    """Put members of a bucket in order, and all other items behind lists that are below `rest`."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    _refuse_repeats("orders", numbers, owner, names)
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    if (sizes > 1).any():
        numbers = numbers[np.lexsort((numbers, bucket))]
    if not rest.any():
        return _flat(numbers, lengths, sizes, stages, names)
    n = len(names)
    free = np.ones((int(rest.sum()), n), np.bool_)
    row = np.cumsum(rest) - 1
    among = rest[owner]
    free[row[owner[among]], numbers[among]] = False
    which, others = np.nonzero(free)
    record = np.concatenate([owner, np.flatnonzero(rest)[which]])
    together = np.argsort(record, kind="stable")
    items = np.concatenate([numbers, others])[together]
    return _flat(items, np.bincount(record, minlength=len(lengths)), sizes, stages, names)


def _flat(
    items: IntArray, lengths: IntArray, sizes: IntArray, stages: IntArray, names: Iterable[str]
) -> Flat:
    """Return flat arrays of one record per ballot."""
    number = len(lengths)
    return {
        "items": items,
        "ptr": pointers(lengths),
        "sizes": sizes,
        "stages": np.asarray(stages, dtype=np.int64),
        "signs": np.ones(number),
        "ballot": np.arange(number),
        "names": tuple(names),
    }


def per_ballot(number: int, clusters: ArrayLike | None, times: ArrayLike | None) -> dict[str, Any]:
    """Check what may be given for every ballot; what is None is left out."""
    found: dict[str, Any] = {}
    if clusters is not None:
        labels = np.asarray(clusters)
        if labels.shape != (number,):
            raise ValueError(f"clusters: expected {number} labels, got shape {labels.shape}")
        found["clusters"] = labels
    if times is not None:
        if np.shape(times) != (number,):
            raise ValueError(f"times: expected {number} times, got shape {np.shape(times)}")
        found["times"], found["time_unit"] = read_times(times)
        bad = ~np.isfinite(found["times"])
        if bad.any():
            row = int(np.argmax(bad))
            got = np.asarray(times)[row]
            raise ValueError(f"times: expected finite numbers or dates, got {got} at index {row}")
    return found
