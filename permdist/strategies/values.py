"""Strategies for rankings, scores, labels and queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np
from hypothesis import strategies as st

from permdist.data import Queries
from permdist.rankings import BucketOrder, TopK

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class LabelledQuery(NamedTuple):
    """Scores and labels of the documents of one query."""

    scores: FloatArray
    labels: IntArray


class Sizes(TypedDict, total=False):
    """How many items a ranking has: keyword arguments that most strategies take.

    `n_items` is their exact number; where it is not given, it is `min_items` to `max_items`.
    """

    n_items: int | None
    min_items: int
    max_items: int


def orders(**sizes: Unpack[Sizes]) -> st.SearchStrategy[IntArray]:
    """Generate total orders as arrays of int64.

    Parameters
    ----------
    n_items : int, optional
        The exact number of items; it overrides the other two.
    min_items, max_items : int
        The range of the number of items, 1 to 8 by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(orders(min_items=3), lambda order: order[0] != 0)
    array([1, 0, 2])
    """
    return sizes_of(**sizes).flatmap(permutations_of)


def order_tuples(
    *, count: int = 2, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[tuple[IntArray, ...]]:
    """Generate several orders of the same items.

    Parameters
    ----------
    count : int
        How many orders.
    n_items, min_items, max_items : int
        As in `orders`.
    """
    return sizes_of(**sizes).flatmap(lambda n: st.tuples(*[permutations_of(n)] * count))


def rankings_with_ties(**sizes: Unpack[Sizes]) -> st.SearchStrategy[BucketOrder]:
    """Generate bucket orders; they shrink towards one bucket.

    Parameters
    ----------
    n_items, min_items, max_items : int
        As in `orders`.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(rankings_with_ties(), lambda ranking: len(ranking.buckets) > 1)
    BucketOrder([[1], [0]])
    """

    def of_size(n: int) -> st.SearchStrategy[BucketOrder]:
        levels = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
        return levels.map(BucketOrder.from_scores)

    return sizes_of(**sizes).flatmap(of_size)


def top_k_lists(
    *, min_k: int = 1, max_k: int | None = None, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[TopK]:
    """Generate top-k lists.

    Parameters
    ----------
    min_k, max_k : int
        The range of the length, which is never above the number of items.
    n_items, min_items, max_items : int
        As in `orders`.
    """

    def of_size(n: int) -> st.SearchStrategy[TopK]:
        lengths = st.integers(min(min_k, n), n if max_k is None else min(max_k, n))
        return st.builds(TopK.from_order, permutations_of(n), lengths)

    return sizes_of(**sizes).flatmap(of_size)


def scores(
    *,
    min_value: float = -10.0,
    max_value: float = 10.0,
    ties: bool | None = None,
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[FloatArray]:
    """Generate finite scores as arrays of float64.

    Parameters
    ----------
    min_value, max_value : float
    ties : bool, optional
        True makes equal scores likely, False excludes them, None leaves it to chance.
    wide : bool
        Whether magnitudes from 1e-8 to 1e8 occur as well, beside one another, regardless of
        `min_value` and `max_value`: exact answers must stay exact on them.
    n_items, min_items, max_items : int
        As in `orders`.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(scores(ties=False, min_items=3), lambda values: True)
    array([0., 1., 2.])
    >>> find(scores(wide=True), lambda values: abs(values).max() > 1e7).size
    1
    """
    value = st.floats(min_value, max_value, allow_nan=False, allow_subnormal=False)
    if wide:
        value = st.one_of(value, _of_any_size())
    # Sums with 0 turn -0.0 into 0.0: they rank alike, and so should look alike.
    value = value.map(lambda x: x + 0.0)

    def of_size(n: int) -> st.SearchStrategy[FloatArray]:
        if ties is True:
            few = st.lists(value, min_size=1, max_size=max(1, n // 2), unique=True)
            drawn = few.flatmap(
                lambda pool: st.lists(st.sampled_from(pool), min_size=n, max_size=n)
            )
        else:
            drawn = st.lists(value, min_size=n, max_size=n, unique=ties is False)
        return drawn.map(lambda values: np.array(values, dtype=np.float64))

    return sizes_of(**sizes).flatmap(of_size)


def labels(
    *,
    max_grade: int = 2,
    min_relevant: int = 0,
    min_irrelevant: int = 0,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[IntArray]:
    """Generate relevance labels.

    Parameters
    ----------
    max_grade : int
        Labels are 0 to this.
    min_relevant, min_irrelevant : int
        The least number of items with labels above 0, and with label 0.
    n_items, min_items, max_items : int
        As in `orders`; `min_items` and `max_items` are raised to what the labels need.
    """
    least, n_items = min_relevant + min_irrelevant, sizes.get("n_items")
    if n_items is not None and n_items < least:
        raise ValueError(
            f"n_items: expected at least {least} items for these labels, got {n_items}"
        )

    def of_size(n: int) -> st.SearchStrategy[IntArray]:
        one = st.integers(1, max_grade) if min_relevant else st.nothing()
        good = st.lists(one, min_size=min_relevant, max_size=min_relevant)
        free = n - min_relevant - min_irrelevant
        rest = st.lists(st.integers(0, max_grade), min_size=free, max_size=free)
        drawn = st.builds(lambda g, r: [*g, *([0] * min_irrelevant), *r], good, rest)
        return drawn.flatmap(st.permutations).map(lambda values: np.array(values, dtype=np.int64))

    least = max(sizes.get("min_items", 1), least)
    return sizes_of(n_items, least, max(sizes.get("max_items", 8), least)).flatmap(of_size)


def labelled_queries(
    *, ties: bool | None = None, wide: bool = False, **label_options: Any
) -> st.SearchStrategy[LabelledQuery]:
    """Generate the scores and labels of one query.

    Parameters
    ----------
    ties, wide : bool
        As in `scores`.
    max_grade, min_relevant, min_irrelevant, n_items, min_items, max_items : int
        As in `labels`.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(labelled_queries(min_relevant=1, min_irrelevant=1), lambda query: True)
    LabelledQuery(scores=array([0., 0.]), labels=array([1, 0]))
    """

    def with_scores(values: IntArray) -> st.SearchStrategy[LabelledQuery]:
        drawn = scores(n_items=len(values), ties=ties, wide=wide)
        return drawn.map(lambda score: LabelledQuery(score, values))

    return labels(**label_options).flatmap(with_scores)


def queries(
    *,
    min_queries: int = 1,
    max_queries: int = 4,
    min_items: int = 1,
    max_items: int = 5,
    min_features: int = 1,
    max_features: int = 3,
    max_grade: int = 2,
    doc_ids: bool | None = None,
) -> st.SearchStrategy[Queries]:
    """Generate small collections of queries.

    Parameters
    ----------
    min_queries, max_queries : int
    min_items, max_items : int
        The number of documents per query.
    min_features, max_features : int
    max_grade : int
    doc_ids : bool, optional
        With document ids, without, or either.
    """

    @st.composite
    def collection(draw: st.DrawFn) -> Queries:
        sizes = draw(
            st.lists(st.integers(min_items, max_items), min_size=min_queries, max_size=max_queries)
        )
        ids = draw(
            st.lists(st.integers(0, 10**6), min_size=len(sizes), max_size=len(sizes), unique=True)
        )
        n, width = sum(sizes), draw(st.integers(min_features, max_features))
        values: Any = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)
        X = draw(st.lists(values, min_size=n * width, max_size=n * width))
        y = draw(st.lists(st.integers(0, max_grade), min_size=n, max_size=n))
        named = draw(st.booleans()) if doc_ids is None else doc_ids
        names = [f"D{number}" for number in range(n)] if named else None
        return Queries(np.reshape(X, (n, width)), y, np.repeat(ids, sizes), doc_ids=names)

    return collection()


def _of_any_size() -> st.SearchStrategy[float]:
    """Generate numbers of either sign whose logarithms are spread evenly; they shrink to 1."""
    digits = st.floats(1.0, 10.0, exclude_max=True)
    exponents = st.sampled_from(sorted(range(-8, 8), key=abs))
    signs = st.sampled_from([1.0, -1.0])
    return st.builds(lambda sign, x, k: sign * x * 10.0**k, signs, digits, exponents)


def sizes_of(
    n_items: int | None = None, min_items: int = 1, max_items: int = 8
) -> st.SearchStrategy[int]:
    """Generate numbers of items, checked as Hypothesis checks its own bounds."""
    if n_items is not None:
        min_items = max_items = n_items
    if not 1 <= min_items <= max_items:
        raise ValueError(
            f"min_items, max_items: expected 1 <= min <= max, got {min_items} and {max_items}"
        )
    return st.integers(min_items, max_items)


def permutations_of(n: int) -> st.SearchStrategy[IntArray]:
    """Generate orders of n items."""
    return st.permutations(range(n)).map(lambda items: np.array(items, dtype=np.int64))


st.register_type_strategy(BucketOrder, rankings_with_ties())
st.register_type_strategy(TopK, top_k_lists())
st.register_type_strategy(Queries, queries())
