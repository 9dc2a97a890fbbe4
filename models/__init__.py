"""Learners: scikit-learn estimators that fit a ranking function to labelled queries."""

from permdist.models.adarank import AdaRank
from permdist.models.base import Ranker, load
from permdist.models.convex_loss import ConvexLoss
from permdist.models.expected_gain import ExpectedGain
from permdist.models.l3 import L3
from permdist.models.mle import MLE
from permdist.models.permurank import PermuRank
from permdist.models.rankboost import RankBoost
from permdist.models.ranksvm import RankSVM
from permdist.models.svm_map import SVMNDCG, SVMMap
from permdist.models.validation import CrossValidation, cross_validate

__all__ = [
    "L3",
    "MLE",
    "SVMNDCG",
    "AdaRank",
    "ConvexLoss",
    "CrossValidation",
    "ExpectedGain",
    "PermuRank",
    "RankBoost",
    "RankSVM",
    "Ranker",
    "SVMMap",
    "cross_validate",
    "load",
]
