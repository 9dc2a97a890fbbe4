"""What the papers print: their tables, beside the same learners on the data at hand.

Shared by the scripts of the papers. Results on cleaned data, or by conventions that a paper does
not state, are in `FIGURE_THREE` only, as they are not comparable with those of whole collections.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from permdist.comparison import compare, read_entries
from permdist.models import SVMMap
from permdist.models.batch import teaching

# ---- collections and their published results ----------------------------------------------------


class Published(NamedTuple):
    """A published result: the mean over the test queries of all folds."""

    collection: str
    learner: str
    measure: str
    value: float
    source: str


# Queries, documents and features, by which a collection is recognized.
# MQ2007, MQ2008 and their lists: as the library ptranking counted them. OHSUMED: Qin et al.,
# section 6.1, and LETOR 3.0. The seven of LETOR 3.0 add up to the 583,850 documents that Cormack,
# Clarke and Buettcher (SIGIR 2009) give in their Table 3.
COLLECTIONS = {
    "MQ2007": (1_692, 69_623, 46),
    "MQ2008": (784, 15_211, 46),
    "MQ2007-list": (1_692, 1_231_351, 46),
    "MQ2008-list": (784, 902_220, 46),
    "OHSUMED, LETOR 2.0": (106, 16_140, 25),
    "OHSUMED, LETOR 3.0": (106, 16_140, 45),
    "TD2003, LETOR 3.0": (50, 49_058, 64),
    "TD2004, LETOR 3.0": (75, 74_146, 64),
    "NP2003, LETOR 3.0": (150, 148_657, 64),
    "NP2004, LETOR 3.0": (75, 73_834, 64),
    "HP2003, LETOR 3.0": (150, 147_606, 64),
    "HP2004, LETOR 3.0": (75, 74_409, 64),
}

SOURCES = {
    "LETOR3": "LETOR 3.0, baselines",
    "LETOR4": "LETOR 4.0, baselines of supervised ranking",
    "XU": "Xu, Li, Liu, Peng, Lu, Ma: Direct Optimization of Evaluation Measures in Learning to "
    "Rank, Tables 2 and 3",
    "QIN": "Qin, Liu, Li: A General Approximation Framework for Direct Optimization of IR Measures",
    "WANG": "Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, "
    "Table 1",
}

# One block per printed table: collection | source | place in it | measures; then the learners.
# - MQ2008-list: printed as Kendall distances 0.180, 0.196, ...; tau is 1 - 2 distance.
# - QIN, sections 6.4 and 6.5: NDCG of whole rankings by equation (5), with gain 2^label - 1 and
#   discount log2(1 + k).
# - XU, TD2003 and TD2004: without SVMmap; Qin et al., footnote 9, report an error in an earlier
#   printing of these tables.
TABLES = """
MQ2008 | LETOR4 | | letor4:map
RankSVM-Struct 0.4696
RankBoost 0.4775
ListNet 0.4775
AdaRank-MAP 0.4764
AdaRank-NDCG 0.4824

MQ2008-list | WANG | | tau persistence@10
DiffRank 0.640 0.337
BL-FeatureRank 0.608 0.322
FeatureRank 0.584 0.322
ListMLE 0.412 0.099
SVMmap 0.592 0.207
RankCosine 0.104 0.014

OHSUMED, LETOR 3.0 | LETOR3 | | letor3:ndcg@1 letor3:ndcg@3 letor3:ndcg@5 letor3:ndcg@10 \
letor3:p@10 letor3:map
RankSVM 0.4958 0.4207 0.4164 0.4140 0.4864 0.4334
RankBoost 0.4632 0.4555 0.4494 0.4302 0.4966 0.4411
ListNet 0.5326 0.4732 0.4432 0.4410 0.4975 0.4457
AdaRank-MAP 0.5388 0.4682 0.4613 0.4429 0.4976 0.4487

OHSUMED, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
SVMmap 0.4456 0.4669
AdaRank 0.4419 0.4803
PermuRank 0.4495 0.4764
RankSVM 0.4469 0.4649
RankBoost 0.4403 0.4726

OHSUMED, LETOR 2.0 | QIN | sections 6.4 and 6.5 | ndcg
SoftRank 0.6680
AdaRank-NDCG 0.6589
ApproxNDCG 0.6698
ApproxAP 0.6693

TD2003, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
AdaRank 0.1373 0.2912
PermuRank 0.2768 0.3823
RankSVM 0.2564 0.3787
RankBoost 0.2125 0.2704

TD2003, LETOR 2.0 | QIN | Tables 2 and 3 | letor3:map
AdaRank-MAP 0.137
SVMmap 0.198
ApproxAP 0.233
ApproxNDCG 0.238

TD2004, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
AdaRank 0.3308 0.4017
PermuRank 0.3636 0.4467
RankSVM 0.3505 0.4092
RankBoost 0.3835 0.4640

TD2004, LETOR 2.0 | QIN | Tables 2 and 3 | letor3:map
AdaRank-MAP 0.331
SVMmap 0.304
ApproxAP 0.350
ApproxNDCG 0.318
"""


def read_table(block):
    """Return the results of one block of `TABLES`."""
    head, *rows = block.splitlines()
    collection, source, place, measures = map(str.strip, head.split("|"))
    source = ", ".join(filter(None, (SOURCES[source], place)))
    return [
        Published(collection, learner, measure, float(value), source)
        for learner, *values in map(str.split, rows)
        for measure, value in zip(measures.split(), values, strict=True)
    ]


PUBLISHED = [one for block in TABLES.strip().split("\n\n") for one in read_table(block)]


def recognize(folds):
    """Return the name of the collection that folds belong to, by the sizes of their test parts.

    The test parts of LETOR's folds are disjoint and together make up the collection.
    """
    tests = [test for _, _, test in folds]
    totals = (sum(getattr(one, name) for one in tests) for name in ("n_queries", "n_documents"))
    size = (*totals, max(test.n_features for test in tests))
    return next((name for name, known in COLLECTIONS.items() if known == size), None)


# ---- Figure 3 of Dubey et al. -------------------------------------------------------------------

FIGURE_COLUMNS = ("TD2003", "TD2004", "HP2003", "HP2004", "NP2003", "NP2004", "OHSUMED", "all")
BASELINES = ("SVMMap", "RankBoost", "RankSVM")

# Of seven cleaned collections. One block per measure, a row per learner; the last column is the
# mean over the queries of all collections, which is not printed for SVMMap and MAP.
FIGURE_THREE = {
    measure: {name: np.array(values, float) for name, *values in map(str.split, rows)}
    for measure, *rows in map(
        str.splitlines,
        """
MAP
SVMMap 0.296 0.259 0.781 0.746 0.707 0.709 0.563 nan
RankBoost 0.277 0.263 0.782 0.739 0.740 0.664 0.545 0.624
RankSVM 0.244 0.233 0.794 0.764 0.726 0.718 0.563 0.629
MLE 0.330 0.258 0.820 0.755 0.732 0.695 0.543 0.639
ExpectedGain-AUC 0.274 0.259 0.802 0.774 0.732 0.715 0.557 0.637
ExpectedGain-MAP 0.314 0.232 0.808 0.775 0.754 0.723 0.516 0.638
ExpectedGain-NDCG 0.294 0.220 0.804 0.772 0.752 0.718 0.517 0.633
L3-AUC 0.342 0.259 0.807 0.771 0.739 0.704 0.544 0.641
L3-MAP 0.340 0.259 0.813 0.786 0.749 0.703 0.540 0.646
L3-NDCG 0.323 0.259 0.825 0.773 0.745 0.705 0.541 0.645
ConvexLoss-AUC 0.262 0.252 0.809 0.778 0.750 0.696 0.558 0.640
ConvexLoss-MAP 0.334 0.261 0.807 0.791 0.744 0.689 0.542 0.642
ConvexLoss-NDCG 0.325 0.260 0.816 0.793 0.762 0.720 0.543 0.651

NDCG@1
SVMMap 0.364 0.493 0.765 0.665 0.591 0.573 0.676 0.621
RankBoost 0.360 0.453 0.714 0.653 0.636 0.530 0.617 0.600
RankSVM 0.242 0.413 0.765 0.695 0.622 0.600 0.667 0.615
MLE 0.444 0.493 0.786 0.665 0.629 0.596 0.734 0.652
ExpectedGain-AUC 0.302 0.480 0.779 0.695 0.637 0.600 0.696 0.638
ExpectedGain-MAP 0.467 0.453 0.779 0.680 0.660 0.613 0.696 0.652
ExpectedGain-NDCG 0.467 0.453 0.765 0.680 0.653 0.613 0.696 0.647
L3-AUC 0.467 0.480 0.779 0.695 0.629 0.584 0.714 0.649
L3-MAP 0.467 0.520 0.786 0.709 0.653 0.582 0.706 0.661
L3-NDCG 0.427 0.520 0.800 0.681 0.653 0.579 0.705 0.657
ConvexLoss-AUC 0.322 0.453 0.778 0.682 0.661 0.568 0.676 0.633
ConvexLoss-MAP 0.427 0.507 0.771 0.724 0.660 0.541 0.705 0.651
ConvexLoss-NDCG 0.447 0.507 0.772 0.709 0.667 0.598 0.724 0.662

NDCG@5
SVMMap 0.368 0.363 0.829 0.835 0.801 0.830 0.621 0.706
RankBoost 0.325 0.349 0.854 0.821 0.816 0.768 0.597 0.698
RankSVM 0.312 0.336 0.842 0.852 0.811 0.823 0.618 0.705
MLE 0.367 0.365 0.874 0.854 0.822 0.817 0.614 0.720
ExpectedGain-AUC 0.347 0.365 0.849 0.862 0.813 0.833 0.618 0.715
ExpectedGain-MAP 0.372 0.339 0.859 0.875 0.838 0.825 0.570 0.714
ExpectedGain-NDCG 0.370 0.332 0.860 0.872 0.836 0.834 0.569 0.714
L3-AUC 0.385 0.368 0.860 0.880 0.824 0.836 0.610 0.724
L3-MAP 0.396 0.362 0.866 0.883 0.827 0.829 0.603 0.724
L3-NDCG 0.370 0.366 0.876 0.885 0.830 0.825 0.606 0.726
ConvexLoss-AUC 0.319 0.354 0.860 0.890 0.820 0.813 0.616 0.716
ConvexLoss-MAP 0.389 0.371 0.866 0.874 0.826 0.831 0.605 0.724
ConvexLoss-NDCG 0.385 0.368 0.878 0.892 0.843 0.828 0.608 0.732

NDCG@10
SVMMap 0.385 0.343 0.840 0.845 0.821 0.847 0.601 0.712
RankBoost 0.347 0.340 0.868 0.845 0.836 0.806 0.582 0.711
RankSVM 0.314 0.315 0.850 0.877 0.830 0.856 0.598 0.712
MLE 0.387 0.338 0.883 0.872 0.843 0.830 0.581 0.724
ExpectedGain-AUC 0.353 0.346 0.862 0.885 0.832 0.862 0.600 0.723
ExpectedGain-MAP 0.372 0.323 0.870 0.895 0.855 0.847 0.558 0.722
ExpectedGain-NDCG 0.366 0.309 0.867 0.890 0.859 0.850 0.553 0.719
L3-AUC 0.405 0.341 0.874 0.898 0.844 0.851 0.582 0.729
L3-MAP 0.402 0.335 0.871 0.900 0.848 0.848 0.576 0.727
L3-NDCG 0.400 0.337 0.884 0.900 0.842 0.843 0.582 0.729
ConvexLoss-AUC 0.331 0.334 0.872 0.905 0.838 0.842 0.602 0.724
ConvexLoss-MAP 0.390 0.338 0.873 0.885 0.848 0.853 0.577 0.726
ConvexLoss-NDCG 0.397 0.336 0.884 0.904 0.858 0.853 0.578 0.733
""".strip().split("\n\n"),
    )
}

# As section 5.2 states them, out of the 32 cells of 4 measures and 8 columns.
CLAIMED = {
    "MLE beats all baselines": 16,
    "ExpectedGain is the best": 26,
    "ExpectedGain-MAP beats SVMMap": 23,
    "ExpectedGain-AUC beats RankSVM": 30,
    "ExpectedGain beats MLE": 21,
    "ConvexLoss is the best": 26,
    "ConvexLoss-MAP beats SVMMap": 26,
    "ConvexLoss-AUC beats RankSVM": 25,
    "ConvexLoss beats MLE": 29,
    "ConvexLoss beats ExpectedGain": 25,
    "ConvexLoss-NDCG beats ExpectedGain-NDCG": 25,
    "the worse of ConvexLoss-MAP and -NDCG beats all baselines": 23,
}


def count_wins(table):
    """Count in how many cells the statements of section 5.2 hold.

    A family, such as ConvexLoss, stands for the best of its three learners; one beats another by a
    higher value as printed, with three digits. To be the best means two things: better than all
    baselines, which is what the counts of the paper agree with, and the best of all learners.

    `table` has the values of each learner of the figure, in one cell per measure and collection. A
    cell that is NaN counts for nobody.
    """
    cells = {name: np.round(np.asarray(values, float), 3) for name, values in table.items()}
    families = {
        kind: [f"{kind}-{measure}" for measure in ("AUC", "MAP", "NDCG")]
        for kind in ("ExpectedGain", "L3", "ConvexLoss")
    }
    best = {kind: highest(cells[name] for name in names) for kind, names in families.items()}
    baseline = highest(cells[name] for name in BASELINES)
    best_of_all = highest(cells.values())
    worse = np.minimum(cells["ConvexLoss-MAP"], cells["ConvexLoss-NDCG"])
    expected, convex = best["ExpectedGain"], best["ConvexLoss"]
    found = {
        "MLE beats all baselines": cells["MLE"] > baseline,
        "ExpectedGain is the best": expected > baseline,
        "ExpectedGain is the best of all learners": expected >= best_of_all,
        "ExpectedGain-MAP beats SVMMap": cells["ExpectedGain-MAP"] > cells["SVMMap"],
        "ExpectedGain-AUC beats RankSVM": cells["ExpectedGain-AUC"] > cells["RankSVM"],
        "ExpectedGain beats MLE": expected > cells["MLE"],
        "ConvexLoss is the best": convex > baseline,
        "ConvexLoss is the best of all learners": convex >= best_of_all,
        "L3 is the best of all learners": best["L3"] >= best_of_all,
        "ConvexLoss-MAP beats SVMMap": cells["ConvexLoss-MAP"] > cells["SVMMap"],
        "ConvexLoss-AUC beats RankSVM": cells["ConvexLoss-AUC"] > cells["RankSVM"],
        "ConvexLoss beats MLE": convex > cells["MLE"],
        "ConvexLoss beats ExpectedGain": convex > expected,
        "ConvexLoss-NDCG beats ExpectedGain-NDCG": cells["ConvexLoss-NDCG"]
        > cells["ExpectedGain-NDCG"],
        "the worse of ConvexLoss-MAP and -NDCG beats all baselines": worse > baseline,
    }
    return {statement: int(np.sum(wins)) for statement, wins in found.items()}


def stack_cells(tables):
    """Put the cells of several tables, one per measure, into one row per learner."""
    tables = list(tables)
    return {name: np.concatenate([one[name] for one in tables]) for name in tables[0]}


def highest(rows):
    """Return the highest of several rows, cell by cell."""
    return np.fmax.reduce(list(rows))


# ---- tables of papers ---------------------------------------------------------------------------


class Paper(NamedTuple):
    """A paper with printed results.

    `learners` are its names of learners and ours, with the settings to choose from; `measures` the
    measures here, the first one for the choice, and their printed names; `source` is how its
    entries of `PUBLISHED` begin; `data` the collections of the printed table; `halves` the learners
    that need good and bad documents, and learn from labels above the median of their query.
    """

    table: str
    learners: dict[str, str]
    measures: dict[str, str]
    source: str
    data: str
    cleaned: bool = False
    halves: tuple[str, ...] = ()


_C = "C=1e-6|1e-5|0.0001|0.001|0.01|0.1|1|10|100"
_SUMS = "C=1e-8|1e-7|1e-6|1e-5|0.0001|0.001|0.01|0.1|1|10"
_SMALL = "C=1e-5|0.0001|0.001|0.01|0.1|1"
_SMOOTH, _CYCLES = "alpha=10|100,C=0.01|0.1|1|10|100|1000|10000", "intervals=8|1,cycles=1|4"
_HINGE, _PAIRS = f"SVMMap[{_C}]", f"RankSVM[{_C}]"
_BOOST = "RankBoost[thresholds=50,early_stopping=30]"
_AP, _NDCG = (f"AdaRank[measure={name},early_stopping=30]" for name in ("ap", "ndcg"))

PAPERS = {
    "dubey2009": Paper(
        "Dubey et al. (2009), Figure 3",
        {
            "SVMMap": _HINGE,
            "RankBoost": _BOOST,
            "RankSVM": _PAIRS,
            "MLE": f"MLE[graded=False,{_SUMS}]",
            "ExpectedGain-MAP": f"ExpectedGain[measure=ap,{_SUMS}]",
            "L3-MAP": f"L3[measure=ap,{_SUMS},kappa=1|100]",
            "ConvexLoss-MAP": f"ConvexLoss[measure=ap,{_SUMS},kappa=1|100]",
        },
        {"map": "MAP", "ndcg@10[discount=jk]": "NDCG@10"},
        "Dubey",
        "seven collections of LETOR 3.0, cleaned in ways that the paper describes in part",
        cleaned=True,
    ),
    "xu2010": Paper(
        "Xu et al. (2010), Tables 2 and 3",
        {
            "SVMmap": _HINGE,
            "AdaRank": _AP,
            "PermuRank": f"PermuRank[measure=ap,max_iter=10,early_stopping=4,{_SMALL}]",
            "RankSVM": _PAIRS,
            "RankBoost": _BOOST,
        },
        {"letor4:map": "map", "letor4:ndcg@3": "ndcg@3"},
        "Xu",
        "OHSUMED, TD2003 and TD2004 of LETOR 2.0, all queries",
    ),
    "qin2008": Paper(
        "Qin et al. (2008), Tables 2 and 3, and sections 6.4 and 6.5",
        {
            "AdaRank-MAP": _AP,
            "SVMmap": _HINGE,
            "ApproxAP": f"ApproxAP[{_SMOOTH}]",
            "AdaRank-NDCG": _NDCG,
            "SoftRank": "SoftRank[measure=ndcg,method=softrank,C=0.1|1|10|100|1000|10000|100000]",
            "ApproxNDCG": f"ApproxNDCG[{_SMOOTH}]",
        },
        {"map": "map", "ndcg": "ndcg"},
        "Qin",
        "OHSUMED, TD2003 and TD2004 of LETOR 2.0, all queries",
    ),
    "wang": Paper(
        "Wang et al. (2012), Table 1",
        {
            "DiffRank": f"DiffRank[{_CYCLES}]",
            "BL-FeatureRank": f"BLFeatureRank[{_CYCLES}]",
            "FeatureRank": f"FeatureRank[{_CYCLES}]",
            "ListMLE": f"ListMLE[{_C}]",
            "SVMmap": _HINGE,
            "RankCosine": "RankCosine[C=inf]",
        },
        {"tau": "tau", "persistence@10": "persistence@10"},
        "Wang",
        "MQ2008-list, strict lists of up to 1,831 documents",
        halves=("SVMmap",),
    ),
}


class Halves(SVMMap):
    """SVMMap for strict lists: documents above the median label of their query are good."""

    listed: ClassVar[bool] = False

    def lessons(self, queries):
        """Return which documents are good, and which queries teach anything."""
        good = [query.y > np.median(query.y) for query in queries]
        labels = np.concatenate(good).astype(np.int64)
        return labels, teaching(labels, queries.ptr)


@dataclass(frozen=True, repr=False)
class PaperTable:
    """Printed results of a paper beside ours; prints as text that says what was compared."""

    paper: Paper
    comparison: Any
    notes: tuple[str, ...]
    printed: dict[str, dict[str, dict[str, float]]]

    def to_frame(self, measure=None):
        """Return one measure as a data frame: ours, its standard error, and the printed columns."""
        name = next(iter(self.paper.measures)) if measure is None else measure
        values = pd.DataFrame(self.comparison.values(name), index=self.comparison.names)
        frame = pd.DataFrame(index=pd.Index(list(self.paper.learners), name="learner"))
        frame["here"] = values.mean(axis=1)  # NaN for a learner that could not be fitted
        frame["standard_error"] = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        for collection, column in self.printed[name].items():
            frame[collection] = [column.get(learner, np.nan) for learner in frame.index]
        return frame

    def to_markdown(self):
        """Return the tables of all measures in Markdown, after what was compared."""
        parts = [f"{self.paper.table}\n", *(f"- {note}" for note in self.notes)]
        for name in self.paper.measures:
            frame = self.shown(name)
            head = [name, *frame.columns]
            rows = [[learner, *row] for learner, row in zip(frame.index, frame.values, strict=True)]
            lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
            parts += ["", *(f"| {' | '.join(line)} |" for line in lines)]
        return "\n".join(parts)

    def __str__(self):
        tables = (self.shown(name).to_string() for name in self.paper.measures)
        return "\n\n".join(["\n".join((self.paper.table, *self.notes)), *tables])

    def shown(self, name):
        """Return the table of a measure as texts."""
        frame = self.to_frame(name)
        texts = frame.iloc[:, 2:].map(lambda one: "" if np.isnan(one) else f"{one:.4g}")
        edges = self.comparison.edges
        ours = [
            "" if np.isnan(mean) else f"{mean:.4f}{'*' * (learner in edges)} ± {error:.4f}"
            for learner, mean, error in zip(
                frame.index, frame["here"], frame["standard_error"], strict=True
            )
        ]
        texts.insert(0, "here", ours)
        return texts.rename_axis(name)


def paper_table(paper, folds):
    """Fit the learners of a paper's table on folds, and put the printed values beside ours.

    Settings are chosen on the validation part of every fold, by the first measure, from those of
    `PAPERS`. If the folds are not the collection of the paper, differences between learners can be
    compared with the printed ones, levels cannot. What LETOR published for the collection at hand
    is a column, too. Where the results of the paper are of cleaned queries, the folds are cleaned
    as well.
    """
    chosen, given = PAPERS[paper], [tuple(fold) for fold in folds]
    known = recognize(given)
    used = [tuple(part.clean() for part in fold) for fold in given] if chosen.cleaned else given
    entries = {name: entry(text, name in chosen.halves) for name, text in chosen.learners.items()}
    found = compare(used, entries, measures=list(chosen.measures))
    printed = {
        measure: printed_columns(chosen, name, known) for measure, name in chosen.measures.items()
    }
    left_out = [f"Left out: {name}: {reason}" for name, reason in found.failures.items()]
    marks = [found.explain_marks()] if found.edges else []
    notes = (*notes_on(chosen, given, used, known), *left_out, *marks)
    return PaperTable(chosen, found, notes, printed)


def entry(text, halves):
    """Return a learner with the settings that are named, and no others, to choose from."""
    read = read_entries(text)[0]
    return Halves() if halves else read.learner, {name: read.settings[name] for name in read.given}


def printed_columns(paper, name, known):
    """Return the printed columns of a measure: by collection, then by learner."""
    columns = {}
    if paper.cleaned:
        for place, one in enumerate(FIGURE_COLUMNS):
            rows = FIGURE_THREE[name].items()
            columns[f"{one}, cleaned"] = {learner: float(row[place]) for learner, row in rows}
        return columns
    for row in PUBLISHED:
        own = row.source.startswith(paper.source)
        ours = row.collection == known and row.source.startswith("LETOR")
        if (own or ours) and row.measure.split(":")[-1] == name:
            learner = row.learner.removesuffix("-Struct")
            if learner not in paper.learners:
                learner = learner.removesuffix("-MAP")
            label = row.collection if own else f"{row.collection}, LETOR's baselines"
            columns.setdefault(label, {})[learner] = row.value
    return columns


def notes_on(paper, given, used, known):
    """Say which data, which cleaning and which rules."""
    before, after = ([test for _, _, test in folds] for folds in (given, used))
    queries, documents = (
        [sum(getattr(test, name) for test in tests) for tests in (before, after)]
        for name in ("n_queries", "n_documents")
    )
    empty = sum(int((test.n_relevant == 0).sum()) for test in before)
    size = f"{queries[0]:,} queries, {documents[0]:,} documents, {before[0].n_features} features"
    cleaning = f"not cleaned, {empty} queries without a relevant document count as 0"
    if paper.cleaned:
        cleaning = (
            f"cleaned: {queries[1]:,} queries and {documents[1]:,} documents are left, without "
            "queries that have no relevant document and documents with conflicting labels"
        )
    rules, first = ", ".join(paper.measures), next(iter(paper.measures))
    data = f"{known}: {size}" if known else size
    halves = [f"{name} learns from labels above the median as good." for name in paper.halves]
    return (
        f"Data here: {data}; {len(given)} folds; {cleaning}.",
        *halves,
        f"Rules: {rules}; settings chosen by {first} on the validation part of each fold.",
        f"Printed: {paper.data}. Compare differences between learners, not levels, where the "
        "collections differ.",
    )
