"""Objectives of scores and labels: values and gradients, without a learner."""

from permdist.models.objectives.base import (
    OBJECTIVES,
    Objective,
    parse_objective,
    register_objective,
)
from permdist.models.objectives.boltzrank import Boltzmann
from permdist.models.objectives.conditional import (
    ConvexLoss,
    ExpectedGain,
    ExpectedLoss,
    Likelihood,
    LikelihoodAndLoss,
)
from permdist.models.objectives.cosine import Cosine
from permdist.models.objectives.hinges import PairHinge, RankingHinge
from permdist.models.objectives.lambda_loss import LambdaLoss
from permdist.models.objectives.listmle import ListMLE
from permdist.models.objectives.listnet import ListNet
from permdist.models.objectives.luce import LuceLikelihood
from permdist.models.objectives.prepared import Derivatives, Prepared
from permdist.models.objectives.smooth import SmoothMeasure
from permdist.models.objectives.softrank import NoisyMeasure

__all__ = [
    "OBJECTIVES",
    "Boltzmann",
    "ConvexLoss",
    "Cosine",
    "Derivatives",
    "ExpectedGain",
    "ExpectedLoss",
    "LambdaLoss",
    "Likelihood",
    "LikelihoodAndLoss",
    "ListMLE",
    "ListNet",
    "LuceLikelihood",
    "NoisyMeasure",
    "Objective",
    "PairHinge",
    "Prepared",
    "RankingHinge",
    "SmoothMeasure",
    "parse_objective",
    "register_objective",
]
