"""Hypothesis strategies for rankings and query data, for our tests and for yours.

Options are keyword-only, in Hypothesis's own manner. Examples shrink towards few items, the
identity order, equal scores and labels 0. With ``wide=True``, scores of magnitudes from 1e-8 to
1e8 occur beside one another. Importing this
package registers our types: ``st.from_type(BucketOrder)``.

Say you have written a rank correlation and want to know that it does not depend on how items are
numbered:

>>> from hypothesis import given
>>> from permdist import rankings, strategies
>>> def my_distance(a, b):  # the code under test
...     return int(rankings.footrule(a, b))
>>> @given(strategies.order_tuples(count=3, max_items=6))
... def test_relabelling_changes_nothing(three):
...     a, b, relabel = three
...     assert my_distance(relabel[a], relabel[b]) == my_distance(a, b)
>>> test_relabelling_changes_nothing()
"""

from permdist.strategies.ballots import ballots
from permdist.strategies.distributions import (
    davidson_luces,
    gaussian_scores,
    generalized_mallows,
    good_bads,
    mallows,
    mixtures,
    pair_signs,
    plackett_luces,
    valid_signs,
)
from permdist.strategies.values import (
    LabelledQuery,
    labelled_queries,
    labels,
    order_tuples,
    orders,
    queries,
    rankings_with_ties,
    scores,
    top_k_lists,
)

__all__ = [
    "LabelledQuery",
    "ballots",
    "davidson_luces",
    "gaussian_scores",
    "generalized_mallows",
    "good_bads",
    "labelled_queries",
    "labels",
    "mallows",
    "mixtures",
    "order_tuples",
    "orders",
    "pair_signs",
    "plackett_luces",
    "queries",
    "rankings_with_ties",
    "scores",
    "top_k_lists",
    "valid_signs",
]
