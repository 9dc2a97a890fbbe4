"""The tables of the papers beside the same learners on the data at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from permdist._check import choice
from permdist._text import text_table
from permdist.comparison.entries import read_entries
from permdist.comparison.figure_three import COLLECTIONS, FIGURE_THREE
from permdist.comparison.published import PUBLISHED, recognize
from permdist.comparison.run import compare
from permdist.models import SVMMap
from permdist.models.batch import teaching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from permdist._typing import BoolArray, IntArray
    from permdist.comparison.results import Comparison
    from permdist.data import Queries


class Paper(NamedTuple):
    """A paper with printed results.

    `learners` are its names of learners and ours, with the settings to choose from; `measures` the
    measures here, the first one for the choice, and their printed names; `source` is how its
    entries of `PUBLISHED` begin; `data` the collections of the printed table; `halves` the learners
    that need good and bad documents, and learn from labels above the median of their query.
    """

    table: str
    learners: Mapping[str, str]
    measures: Mapping[str, str]
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

PAPERS: Mapping[str, Paper] = {
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

    def lessons(self, queries: Queries) -> tuple[IntArray, BoolArray]:
        """Return which documents are good, and which queries teach anything."""
        good = [query.y > np.median(query.y) for query in queries]
        labels = np.concatenate(good).astype(np.int64)
        return labels, teaching(labels, queries.ptr)


@dataclass(frozen=True, repr=False)
class PaperTable:
    """Printed results of a paper beside ours; prints as text that says what was compared.

    Attributes
    ----------
    paper : Paper
    comparison : Comparison
        Of the learners on the data at hand.
    notes : tuple of str
        Which data, which cleaning, which rules.
    printed : dict of dicts
        By measure here, then by collection: the printed values by learner.
    """

    paper: Paper
    comparison: Comparison
    notes: tuple[str, ...]
    printed: dict[str, dict[str, dict[str, float]]]

    def to_frame(self, measure: str | None = None) -> pd.DataFrame:
        """Return one measure as a data frame: ours, its standard error, and the printed columns.

        Parameters
        ----------
        measure : str, optional
            A key of `paper.measures`; by default the first.
        """
        import pandas as pd

        name = next(iter(self.paper.measures)) if measure is None else measure
        choice("measure", name, dict.fromkeys(self.paper.measures))
        values = pd.DataFrame(self.comparison.values(name), index=self.comparison.names)
        frame = pd.DataFrame(index=pd.Index(list(self.paper.learners), name="learner"))
        frame["here"] = values.mean(axis=1)  # NaN for a learner that could not be fitted
        frame["standard_error"] = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        for collection, column in self.printed[name].items():
            frame[collection] = [column.get(learner, np.nan) for learner in frame.index]
        return frame

    def to_markdown(self) -> str:
        """Return the tables of all measures in Markdown, after what was compared."""
        parts = [f"{self.paper.table}\n", *(f"- {note}" for note in self.notes)]
        for name in self.paper.measures:
            head, rows = self._cells(name)
            lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
            parts += ["", *(f"| {' | '.join(line)} |" for line in lines)]
        return "\n".join(parts)

    def __str__(self) -> str:
        parts = ["\n".join((self.paper.table, *self.notes))]
        return "\n\n".join(
            [*parts, *(text_table(*self._cells(name)) for name in self.paper.measures)]
        )

    def _cells(self, name: str) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of the table of a measure, as texts."""
        frame = self.to_frame(name)
        rows = [
            [
                str(learner),
                "" if np.isnan(row.iloc[0]) else f"{row.iloc[0]:.4f}{mark} ± {row.iloc[1]:.4f}",
                *("" if np.isnan(one) else f"{one:.4g}" for one in row.iloc[2:]),
            ]
            for learner, row in frame.iterrows()
            for mark in ["*" * (learner in self.comparison.edges)]
        ]
        return [name, "here", *frame.columns[2:]], rows


def paper_table(
    paper: str,
    folds: Iterable[Sequence[Queries]],
    *,
    directory: str | Path | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> PaperTable:
    """Fit the learners of a paper's table on folds, and put the printed values beside ours.

    Settings are chosen on the validation part of every fold, by the first measure, from those of
    `PAPERS`. If the folds are not the collection of the paper, differences between learners can be
    compared with the printed ones, levels cannot. What LETOR published for the collection at hand
    is a column, too.

    Parameters
    ----------
    paper : {"dubey2009", "xu2010", "qin2008", "wang"}
        The results of ``dubey2009`` are of cleaned queries; the folds are then cleaned, too, by
        `permdist.data.Queries.clean`.
    folds : iterable of (train, validation, test)
        As from `permdist.data.load_letor_folds`.
    directory : path, optional
        A folder to store finished fits in, as in `compare`.
    n_jobs : int, optional
        Number of worker processes, as in `compare`.
    progress : bool or callable
        As in `compare`.

    Returns
    -------
    PaperTable

    Examples
    --------
    >>> from permdist import data
    >>> folds = data.load_letor_folds("MQ2008")  # doctest: +SKIP
    >>> print(paper_table("xu2010", folds))  # doctest: +SKIP
    Xu et al. (2010), Tables 2 and 3
    Data here: MQ2008: 784 queries, 15,211 documents, 46 features; 5 folds; not cleaned, ...
    """
    choice("paper", paper, dict.fromkeys(PAPERS))
    chosen, given = PAPERS[paper], [tuple(fold) for fold in folds]
    known = recognize(given)  # type: ignore[arg-type]
    used = [tuple(part.clean() for part in fold) for fold in given] if chosen.cleaned else given
    found = compare(
        used,
        {name: _entry(text, name in chosen.halves) for name, text in chosen.learners.items()},
        measures=list(chosen.measures),
        directory=directory,
        n_jobs=n_jobs,
        progress=progress,
    )
    printed = {measure: _printed(chosen, name, known) for measure, name in chosen.measures.items()}
    left_out = [f"Left out: {name}: {reason}" for name, reason in found.failures.items()]
    marks = [found.explain_marks()] if found.edges else []
    notes = (*_notes(chosen, given, used, known), *left_out, *marks)
    return PaperTable(chosen, found, notes, printed)


def _entry(text: str, halves: bool) -> Any:
    """Return a learner with the settings that are named, and no others, to choose from."""
    entry = read_entries(text)[0]
    learner = Halves() if halves else entry.learner
    return learner, {name: entry.settings[name] for name in entry.given}


def _printed(paper: Paper, name: str, known: str | None) -> dict[str, dict[str, float]]:
    """Return the printed columns of a measure: by collection, then by learner."""
    columns: dict[str, dict[str, float]] = {}
    if paper.cleaned:
        for place, one in enumerate(COLLECTIONS):
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


def _notes(paper: Paper, given: list[Any], used: list[Any], known: str | None) -> tuple[str, ...]:
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
