"""Estimates from preference data and their errors: fits, priors, comparisons, rank sets.

`fit` of a distribution returns a model whose `fit_result` is a `Fit`; everything else is reached
from there.
"""

from permdist.inference.bootstrap import Bootstrap
from permdist.inference.large import LargeFit
from permdist.inference.priors import Normal, PseudoWins, Ridge
from permdist.inference.results import Fit
from permdist.inference.teams import team_features

__all__ = ["Bootstrap", "Fit", "LargeFit", "Normal", "PseudoWins", "Ridge", "team_features"]
