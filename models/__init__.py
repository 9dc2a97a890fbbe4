"""Learners: scikit-learn estimators that fit a ranking function to labelled queries."""

from permdist.models.adarank import AdaRank
from permdist.models.approx import Approx, ApproxAP, ApproxNDCG
from permdist.models.base import Ranker
from permdist.models.boltzrank import BoltzRank
from permdist.models.boosted import Boosted
from permdist.models.convex_loss import ConvexLoss
from permdist.models.descent import Descent, LinearRanker
from permdist.models.diffrank import DiffRank
from permdist.models.expected_gain import ExpectedGain
from permdist.models.feature_rank import BLFeatureRank, FeatureRank
from permdist.models.files import load
from permdist.models.l2 import L2
from permdist.models.l3 import L3
from permdist.models.listmle import ListMLE
from permdist.models.listnet import ListNet
from permdist.models.mle import MLE
from permdist.models.network import Network
from permdist.models.options import learned, option
from permdist.models.paths import KappaPath, kappa_path
from permdist.models.permurank import PermuRank
from permdist.models.rank_cosine import RankCosine
from permdist.models.rankboost import RankBoost
from permdist.models.ranksvm import RankSVM
from permdist.models.shared import Standardized
from permdist.models.softrank import SoftRank
from permdist.models.svm_map import SVMNDCG, SVMMap
from permdist.models.table import LEARNERS, all_learners, nonlinear_learners, register

__all__ = [
    "L2",
    "L3",
    "LEARNERS",
    "MLE",
    "SVMNDCG",
    "AdaRank",
    "Approx",
    "ApproxAP",
    "ApproxNDCG",
    "BLFeatureRank",
    "BoltzRank",
    "Boosted",
    "ConvexLoss",
    "Descent",
    "DiffRank",
    "ExpectedGain",
    "FeatureRank",
    "KappaPath",
    "LinearRanker",
    "ListMLE",
    "ListNet",
    "Network",
    "PermuRank",
    "RankBoost",
    "RankCosine",
    "RankSVM",
    "Ranker",
    "SVMMap",
    "SoftRank",
    "Standardized",
    "all_learners",
    "kappa_path",
    "learned",
    "load",
    "nonlinear_learners",
    "option",
    "register",
]
