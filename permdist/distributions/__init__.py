"""Distributions over rankings, one file each; import them from `permdist` itself."""

from permdist.distributions.base import Distribution, Estimate, NotExactError
from permdist.distributions.compare_families import FamilyComparison, compare_families
from permdist.distributions.custom import WeightedOrders
from permdist.distributions.davidson_luce import DavidsonLuce
from permdist.distributions.estimates import EstimatedOrder, Estimates
from permdist.distributions.exposures import position_weights
from permdist.distributions.gaussian import GaussianScores
from permdist.distributions.gaussian_batch import GaussianScoresBatch
from permdist.distributions.good_bad import GoodBad
from permdist.distributions.mallows import GeneralizedMallows, Mallows
from permdist.distributions.mallows_fit import GeneralizedMallowsFit, MallowsFit
from permdist.distributions.mixture import Mixture
from permdist.distributions.mixture_fit import MixtureFit
from permdist.distributions.pair_signs import PairSigns
from permdist.distributions.plackett_luce import PlackettLuce
from permdist.distributions.plackett_luce_batch import PlackettLuceBatch
from permdist.distributions.tied_rankings import TiedRankings
from permdist.distributions.valid_signs import ValidSigns

__all__ = [
    "DavidsonLuce",
    "Distribution",
    "Estimate",
    "EstimatedOrder",
    "Estimates",
    "FamilyComparison",
    "GaussianScores",
    "GaussianScoresBatch",
    "GeneralizedMallows",
    "GeneralizedMallowsFit",
    "GoodBad",
    "Mallows",
    "MallowsFit",
    "Mixture",
    "MixtureFit",
    "NotExactError",
    "PairSigns",
    "PlackettLuce",
    "PlackettLuceBatch",
    "TiedRankings",
    "ValidSigns",
    "WeightedOrders",
    "compare_families",
    "position_weights",
]
