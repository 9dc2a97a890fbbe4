"""Learners: scikit-learn estimators that fit a linear ranking function to labelled queries."""

from permdist.models.base import Ranker, load
from permdist.models.convex_loss import ConvexLoss
from permdist.models.expected_gain import ExpectedGain
from permdist.models.l3 import L3
from permdist.models.mle import MLE
from permdist.models.validation import CrossValidation, cross_validate

__all__ = [
    "L3",
    "MLE",
    "ConvexLoss",
    "CrossValidation",
    "ExpectedGain",
    "Ranker",
    "cross_validate",
    "load",
]
