"""The spaces of rankings that objectives sum over; one file each."""

from permdist.models.spaces.base import Batch, Space
from permdist.models.spaces.hinge import StructuredHinge
from permdist.models.spaces.interleavings import Interleavings, Lattices
from permdist.models.spaces.pairs import Pairs
from permdist.models.spaces.restart import Restarts
from permdist.models.spaces.utilities import Utilities

SPACES = {
    "pairs": Pairs,
    "interleavings": Interleavings,
    "lattice": Lattices,
    "restart": Restarts,
}

__all__ = [
    "SPACES",
    "Batch",
    "Interleavings",
    "Lattices",
    "Pairs",
    "Restarts",
    "Space",
    "StructuredHinge",
    "Utilities",
]
