"""The spaces of rankings that objectives sum over."""

from permdist.models.batch import Batch
from permdist.models.spaces.base import SPACES, Space, Sums, parse_space, register_space
from permdist.models.spaces.hinge import StructuredHinge
from permdist.models.spaces.interleavings import Interleavings
from permdist.models.spaces.orders import Orders, ValidSigns
from permdist.models.spaces.pairs import Pairs
from permdist.models.spaces.restart import Restart
from permdist.models.spaces.rows import Rows
from permdist.models.spaces.sample import Sample
from permdist.models.spaces.utilities import UtilitySums

__all__ = [
    "SPACES",
    "Batch",
    "Interleavings",
    "Orders",
    "Pairs",
    "Restart",
    "Rows",
    "Sample",
    "Space",
    "StructuredHinge",
    "Sums",
    "UtilitySums",
    "ValidSigns",
    "parse_space",
    "register_space",
]
