"""Ranking measures as values: each knows its conventions, its name, its range and its parts.

Call one with orders and labels, or run many over many queries with `evaluate`.
"""

from permdist.measures.ap import AP
from permdist.measures.auc import AUC
from permdist.measures.base import Measure, Positional
from permdist.measures.err import ERR
from permdist.measures.evaluation import DEFAULT, Evaluation, evaluate, evaluate_orders
from permdist.measures.kendall import KendallTau
from permdist.measures.ndcg import NDCG
from permdist.measures.persistence import TopKPersistence
from permdist.measures.precision import Precision
from permdist.measures.registry import (
    PRESETS,
    Preset,
    burges,
    kinds,
    letor3,
    letor4,
    parse,
    trec,
)
from permdist.measures.rr import RR
from permdist.measures.wta import WTA

__all__ = [
    "AP",
    "AUC",
    "DEFAULT",
    "ERR",
    "NDCG",
    "PRESETS",
    "RR",
    "WTA",
    "Evaluation",
    "KendallTau",
    "Measure",
    "Positional",
    "Precision",
    "Preset",
    "TopKPersistence",
    "burges",
    "evaluate",
    "evaluate_orders",
    "kinds",
    "letor3",
    "letor4",
    "parse",
    "trec",
]
