"""Distances between rankings, one file each: sums, draws, moments, centers and chains of each.

A distance from outside the package is a subclass of `Distance`, `AdditiveDistance` or
`Displacement` that was given to `register`.
"""

from permdist.distances.base import (
    DISTANCES,
    AdditiveDistance,
    Distance,
    Sums,
    distance_named,
    register,
)
from permdist.distances.cayley import Cayley
from permdist.distances.displacement import Displacement
from permdist.distances.footrule import Footrule
from permdist.distances.hamming import Hamming
from permdist.distances.kendall import Kendall
from permdist.distances.spearman import Spearman
from permdist.distances.staged import StagedDistance
from permdist.distances.ulam import Ulam

__all__ = [
    "DISTANCES",
    "AdditiveDistance",
    "Cayley",
    "Displacement",
    "Distance",
    "Footrule",
    "Hamming",
    "Kendall",
    "Spearman",
    "StagedDistance",
    "Sums",
    "Ulam",
    "distance_named",
    "register",
]

for _kind in (Kendall, Cayley, Hamming, Ulam, Footrule, Spearman):
    register(_kind)
