"""What `fit` accepts: rankings, top-k lists, bucket orders, choices, battles, and their weights.

Neither distributions nor data are imported here; both meet in these types.
"""

from permdist.ballots.ballots import Ballots
from permdist.ballots.blocks import whole
from permdist.ballots.fading import cast_ballots, fading
from permdist.ballots.levels import levels_of
from permdist.ballots.rankings import (
    LARGEST_TOTAL,
    SMALLEST_TOTAL,
    Collection,
    Rankings,
    are_ballots,
    check_existence,
    check_independent,
    check_names,
    check_penalty,
    default_to,
    is_item_lists,
)

__all__ = [
    "LARGEST_TOTAL",
    "SMALLEST_TOTAL",
    "Ballots",
    "Collection",
    "Rankings",
    "are_ballots",
    "cast_ballots",
    "check_existence",
    "check_independent",
    "check_names",
    "check_penalty",
    "default_to",
    "fading",
    "is_item_lists",
    "levels_of",
    "whole",
]
