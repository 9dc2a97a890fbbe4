"""Partial rankings: bucket orders (ties) and top-k lists."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from permdist._check import as_rng, choice, count, finite, integers
from permdist._files import check_size
from permdist.rankings.orders import check_orders, describe_fault, first_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState

MAX_EXTENSIONS = 1_000_000
MAX_FACTORIAL = 20_000
LOG_10 = math.log(10.0)


def check_lists(lists: ArrayLike, n_items: int, *, name: str = "orders") -> IntArray:
    """Return lists of different items out of ``0 .. n-1`` as int64, or name the wrong entry.

    Parameters
    ----------
    lists : array of int, shape (..., k) with k <= n_items
    n_items : int
    name : str
        The argument's name in error messages.

    Examples
    --------
    >>> check_lists([4, 2], n_items=5)
    array([4, 2])
    """
    array = integers(name, lists, what="item numbers")
    if array.ndim == 0 or not 1 <= array.shape[-1] <= n_items:
        raise ValueError(f"{name}: expected lists of 1 to {n_items} items, got shape {array.shape}")
    at = first_fault(array.reshape(-1, array.shape[-1]), n_items)
    if at >= 0:
        raise ValueError(f"{name}: {describe_fault(array, at, n_items)}")
    return array


def check_subset(subset: bool | None) -> bool | None:
    """Return whether short lists rank the listed items only; None is "not said"."""
    if subset is not None and not isinstance(subset, bool | np.bool_):
        raise TypeError(f"subset: expected True, False or None, got {subset!r}")
    return None if subset is None else bool(subset)


def refuse_short(name: str, k: int, n_items: int, which: str = "a list") -> NoReturn:
    """Refuse lists shorter than the number of items if `subset` is not given."""
    raise ValueError(
        f"{name}: expected all {n_items} items in each list, or subset=True or False, got {k} "
        f"item(s) in {which}; pass subset=True if lists rank only the items they hold, as a "
        f"winner and a loser do, or subset=False (or TopK lists) if they are the first places "
        f"out of all {n_items}"
    )


def refuse_top_as_subset() -> NoReturn:
    """Refuse TopK lists where the user says that lists rank the listed items only."""
    raise ValueError(
        "subset: expected False or None with TopK lists, which are the first places of all "
        "items, got True; pass plain lists of their items to rank these among themselves"
    )


@dataclass(frozen=True, init=False)
class BucketOrder:
    """A ranking with ties: a sequence of buckets, the best first, that contain all items.

    Parameters
    ----------
    buckets : iterable of iterables of int
        Every item ``0 .. n-1`` in exactly one bucket; no bucket is empty.

    Attributes
    ----------
    buckets : tuple of tuples of int
        Items in increasing number within a bucket, so that equal bucket orders compare equal.

    Examples
    --------
    >>> ballot = BucketOrder([[2], [0, 3], [1]])
    >>> ballot
    BucketOrder([[2], [0, 3], [1]])
    >>> ballot.ranks()
    array([1.5, 3. , 0. , 1.5])
    >>> ballot.order()
    array([2, 0, 3, 1])
    """

    buckets: tuple[tuple[int, ...], ...]

    def __init__(self, buckets: Iterable[Iterable[int]]) -> None:
        try:
            groups = tuple(tuple(sorted(bucket)) for bucket in buckets)
        except TypeError as error:
            raise TypeError("buckets: expected lists of items, as in [[0], [1, 2]]") from error
        for number, group in enumerate(groups):
            if not group:
                raise ValueError(f"buckets: expected no empty bucket, got one at index {number}")
        check_orders([item for group in groups for item in group], name="buckets")
        plain = tuple(tuple(int(item) for item in group) for group in groups)
        object.__setattr__(self, "buckets", plain)

    @classmethod
    def from_order(cls, order: ArrayLike) -> BucketOrder:
        """Make a bucket order without ties from a total order."""
        return cls([item] for item in _one_order(order).tolist())

    @classmethod
    def from_scores(cls, scores: ArrayLike) -> BucketOrder:
        """Put items with equal scores into one bucket, the highest score first.

        Examples
        --------
        >>> BucketOrder.from_scores([0.5, 1.0, 0.5])
        BucketOrder([[1], [0, 2]])
        """
        values = finite("scores", scores, ndim=1)
        levels, bucket = np.unique(-values, return_inverse=True)
        groups: list[list[int]] = [[] for _ in levels]
        for item, number in enumerate(bucket.tolist()):
            groups[number].append(item)
        return cls(groups)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return sum(map(len, self.buckets))

    @property
    def is_total(self) -> bool:
        """Whether no two items are tied."""
        return len(self.buckets) == self.n_items

    @property
    def n_extensions(self) -> int:
        """The number of total orders that agree with this one."""
        return math.prod(_factorial(len(bucket)) for bucket in self.buckets)

    def ranks(self, method: str = "average") -> FloatArray:
        """Return each item's 0-based rank; the members of a bucket share one.

        Parameters
        ----------
        method : {"average", "min", "dense"}
            The mean position of the bucket, its first position, or its number.
        """
        choice("method", method, ("average", "min", "dense"))
        result = np.empty(self.n_items)
        above = 0
        for number, bucket in enumerate(self.buckets):
            mean = above + (len(bucket) - 1) / 2
            shared = mean if method == "average" else above if method == "min" else number
            result[list(bucket)] = shared
            above += len(bucket)
        return result

    def order(self) -> IntArray:
        """Break ties by item number, as everywhere in the library."""
        return np.array(list(itertools.chain.from_iterable(self.buckets)), dtype=np.int64)

    def linear_extensions(self) -> Iterator[IntArray]:
        """List the total orders that agree with this one, up to a million of them."""
        # By logarithms first: the number itself may have more digits than can be written.
        logs = sum(math.lgamma(len(bucket) + 1.0) for bucket in self.buckets)
        if logs > math.log(MAX_EXTENSIONS) + 1e-9:
            number = f"{math.exp(logs):,.0f}" if logs < 34.0 else f"about 10^{logs / LOG_10:,.0f}"
            raise ValueError(
                f"linear_extensions: limited to {MAX_EXTENSIONS:,}, this bucket order has "
                f"{number}; draw some with sample()"
            )
        for parts in itertools.product(*map(itertools.permutations, self.buckets)):
            yield np.array(list(itertools.chain.from_iterable(parts)), dtype=np.int64)

    def sample(self, rng: RandomState = None) -> IntArray:
        """Draw one of the agreeing total orders, all equally likely."""
        generator = as_rng(rng)
        return np.concatenate([generator.permutation(bucket) for bucket in self.buckets])

    def __repr__(self) -> str:
        return f"BucketOrder({[list(bucket) for bucket in self.buckets]})"


@dataclass(frozen=True, init=False)
class TopK:
    """The best ``k`` of ``n`` items, in order; the order of the rest is unknown.

    Parameters
    ----------
    items : iterable of int
        Different items out of ``0 .. n-1``, the best first.
    n_items : int
        The total number of items.

    Examples
    --------
    >>> podium = TopK([3, 1], n_items=5)
    >>> podium.k, podium.n_extensions
    (2, 6)
    >>> podium.to_bucket_order()
    BucketOrder([[3], [1], [0, 2, 4]])
    """

    items: tuple[int, ...]
    n_items: int

    def __init__(self, items: Iterable[int], n_items: int) -> None:
        n = count("n_items", n_items)
        listed = list(items)
        if not listed:
            raise ValueError("items: expected at least one item, got none")
        if len(listed) > n:
            raise ValueError(f"items: expected at most n_items = {n} items, got {len(listed)}")
        _check_items(listed, n)
        object.__setattr__(self, "items", tuple(int(item) for item in listed))
        object.__setattr__(self, "n_items", n)

    @classmethod
    def from_order(cls, order: ArrayLike, k: int) -> TopK:
        """Keep the first ``k`` items of a total order."""
        items = _one_order(order)
        return cls(items[: count("k", k)].tolist(), len(items))

    @property
    def k(self) -> int:
        """The number of listed items."""
        return len(self.items)

    @property
    def n_extensions(self) -> int:
        """The number of total orders that start with this list."""
        return _factorial(self.n_items - self.k)

    def to_bucket_order(self) -> BucketOrder:
        """Put all unlisted items into one last bucket."""
        check_size(f"n_items: a bucket order of {self.n_items:,} items", 300.0 * self.n_items)
        listed = set(self.items)
        rest = [item for item in range(self.n_items) if item not in listed]
        return BucketOrder([*([item] for item in self.items), *([rest] if rest else [])])

    def __repr__(self) -> str:
        return f"TopK({list(self.items)}, n_items={self.n_items})"


def _check_items(listed: list[int], n_items: int) -> None:
    """Refuse repeated and unknown items, without memory for those not listed."""
    array = integers("items", listed, what="item numbers")
    if array.ndim != 1:
        raise ValueError(f"items: expected a list of items, got shape {array.shape}")
    outside, again = (array < 0) | (array >= n_items), np.ones(len(array), dtype=bool)
    again[np.unique(array, return_index=True)[1]] = False
    wrong = outside | again
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"items: {describe_fault(array, at, n_items)}")


def _factorial(n: int) -> int:
    """Return a factorial; refused where it would have too many digits."""
    if n > MAX_FACTORIAL:
        raise ValueError(
            f"n_extensions: expected up to {MAX_FACTORIAL:,} items in no known order, got "
            f"{n:,}; take math.lgamma(n + 1) for the logarithm of n!"
        )
    return math.factorial(n)


def _one_order(order: ArrayLike) -> IntArray:
    """Check a single order."""
    items = check_orders(order, name="order")
    if items.ndim != 1:
        raise ValueError(f"order: expected 1 dimension(s), got shape {items.shape}")
    return items
