"""Rankings: total orders, top-k lists and bucket orders, and the distances between them.

``order[k]`` is the item at position ``k`` (0 is the top); ``ranks[i]`` is the position of item
``i``. Batches lead: ``(..., n)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from permdist.rankings.orders import (
    check_orders,
    compose,
    enumerate_orders,
    identity,
    inverse,
    order_by_scores,
    order_to_ranks,
    random_orders,
    rank_addition,
    ranks_by_scores,
    ranks_to_order,
)
from permdist.rankings.overlap import Overlap, rbo
from permdist.rankings.partial import BucketOrder, TopK

if TYPE_CHECKING:
    from permdist.consensus import Consensus, consensus
    from permdist.distances import DISTANCES
    from permdist.distances.compare import (
        cayley,
        distance_matrix,
        footrule,
        hamming,
        kendall,
        spearman,
        ulam,
        weighted_kendall,
    )

__all__ = [
    "DISTANCES",
    "BucketOrder",
    "Consensus",
    "Overlap",
    "TopK",
    "cayley",
    "check_orders",
    "compose",
    "consensus",
    "distance_matrix",
    "enumerate_orders",
    "footrule",
    "hamming",
    "identity",
    "inverse",
    "kendall",
    "order_by_scores",
    "order_to_ranks",
    "random_orders",
    "rank_addition",
    "ranks_by_scores",
    "ranks_to_order",
    "rbo",
    "spearman",
    "ulam",
    "weighted_kendall",
]


_MEASURES = ("cayley", "distance_matrix", "footrule", "hamming", "kendall", "spearman", "ulam")


def __getattr__(name: str) -> Any:
    """Load distances and the consensus when they are asked for: both are made of rankings."""
    if name in ("Consensus", "consensus"):
        from permdist import consensus

        return getattr(consensus, name)
    if name in (*_MEASURES, "DISTANCES", "weighted_kendall"):
        from permdist.distances import compare

        found = globals()[name] = getattr(compare, name)
        return found
    raise AttributeError(f"module 'permdist.rankings' has no attribute {name!r}")
