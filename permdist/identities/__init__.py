"""The mathematical claims of the library as checkable objects: identities, bounds, derivatives.

``check_all()`` tries every entry on generated instances and prints as a table;
``check_distribution(dist)`` tests a distribution of your own.
"""

from permdist.identities import (
    approximations,
    bounds,
    figure_one,
    general,
    mallows,
    mixtures,
    pair_model,
    rows,
    ties,
)
from permdist.identities.catalogue import CATALOGUE, Identity, Result, Results, check_all
from permdist.identities.distribution import check_distribution

__all__ = [
    "CATALOGUE",
    "Identity",
    "Result",
    "Results",
    "approximations",
    "bounds",
    "check_all",
    "check_distribution",
    "figure_one",
    "general",
    "mallows",
    "mixtures",
    "pair_model",
    "rows",
    "ties",
]
