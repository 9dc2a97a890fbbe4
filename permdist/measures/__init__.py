"""Ranking measures: objects with explicit conventions, a text name and a range.

Call one with orders and labels, run many over many queries with `evaluate`, or evaluate a run
against judgements with `evaluate_run`.
"""

from permdist.measures.ap import AP
from permdist.measures.auc import AUC, KendallTau
from permdist.measures.base import Measure, Positional
from permdist.measures.bing import BinG
from permdist.measures.bpref import BPref, GMBPref
from permdist.measures.composite import Composite
from permdist.measures.err import ERR
from permdist.measures.evaluation import (
    DEFAULT,
    Evaluation,
    evaluate,
    evaluate_orders,
    evaluate_random,
)
from permdist.measures.gains import RNDCG, G, NDCGRel
from permdist.measures.gmap import GMAP
from permdist.measures.infap import InfAP
from permdist.measures.interpolated import ElevenPoint, InterpolatedPrecision
from permdist.measures.judged import RunMeasure
from permdist.measures.ndcg import NDCG
from permdist.measures.overlap import RunOverlap, compare_runs
from permdist.measures.persistence import TopKPersistence
from permdist.measures.precision import (
    WTA,
    Precision,
    Recall,
    RelativePrecision,
    RPrecision,
    Success,
)
from permdist.measures.rbp import RBP
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
from permdist.measures.runs import (
    DEFAULT_RUN,
    OFFICIAL,
    RunEvaluation,
    evaluate_judged,
    evaluate_run,
)
from permdist.measures.sets import (
    Count,
    Judged,
    RBPResidual,
    SetAP,
    SetF,
    SetPrecision,
    SetRecall,
    SetRelativePrecision,
    Utility,
)
from permdist.measures.trec_names import trec_name

__all__ = [
    "AP",
    "AUC",
    "DEFAULT",
    "DEFAULT_RUN",
    "ERR",
    "GMAP",
    "NDCG",
    "OFFICIAL",
    "PRESETS",
    "RBP",
    "RNDCG",
    "RR",
    "WTA",
    "BPref",
    "BinG",
    "Composite",
    "Count",
    "ElevenPoint",
    "Evaluation",
    "G",
    "GMBPref",
    "InfAP",
    "InterpolatedPrecision",
    "Judged",
    "KendallTau",
    "Measure",
    "NDCGRel",
    "Positional",
    "Precision",
    "Preset",
    "RBPResidual",
    "RPrecision",
    "Recall",
    "RelativePrecision",
    "RunEvaluation",
    "RunMeasure",
    "RunOverlap",
    "SetAP",
    "SetF",
    "SetPrecision",
    "SetRecall",
    "SetRelativePrecision",
    "Success",
    "TopKPersistence",
    "Utility",
    "burges",
    "compare_runs",
    "evaluate",
    "evaluate_judged",
    "evaluate_orders",
    "evaluate_random",
    "evaluate_run",
    "kinds",
    "letor3",
    "letor4",
    "parse",
    "trec",
    "trec_name",
]
