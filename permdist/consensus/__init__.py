"""Consensus rankings: one order that represents many ballots, and how much they support it.

`permdist.rankings` offers `consensus` and `Consensus`, too.
"""

from permdist.consensus.find import consensus
from permdist.consensus.kemeny import components
from permdist.consensus.majorities import Majorities, count_pairs
from permdist.consensus.methods import METHODS
from permdist.consensus.result import Consensus

__all__ = ["METHODS", "Consensus", "Majorities", "components", "consensus", "count_pairs"]
