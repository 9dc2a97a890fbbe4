"""The spaces of rankings that objectives sum over."""

from permdist.models.batch import Batch
from permdist.models.spaces.base import SPACES, Space, Sums, parse_space, register_space
from permdist.models.spaces.hinge import StructuredHinge
from permdist.models.spaces.named import Interleavings, Lattice, Pairs, Restart
from permdist.models.spaces.utilities import UtilitySums

__all__ = [
    "SPACES",
    "Batch",
    "Interleavings",
    "Lattice",
    "Pairs",
    "Restart",
    "Space",
    "StructuredHinge",
    "Sums",
    "UtilitySums",
    "parse_space",
    "register_space",
]
