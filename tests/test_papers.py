"""What the papers print, and their tables beside the same learners on the data at hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

from permdist import data
from permdist.comparison import read_entries
from permdist.measures import parse

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import published
from published import (
    CLAIMED,
    COLLECTIONS,
    FIGURE_COLUMNS,
    FIGURE_THREE,
    PAPERS,
    PUBLISHED,
    count_wins,
    paper_table,
    recognize,
    stack_cells,
)


@pytest.fixture(scope="module")
def folds():
    queries = data.make_letor(18, n_documents=(4, 8), relevant=0.2, rng=0)
    return data.make_folds(queries, 3, rng=0)


def short(monkeypatch, name, learners):
    """Let a paper have few learners, which are fast."""
    paper = PAPERS[name]._replace(learners=learners)
    monkeypatch.setattr(published, "PAPERS", {**PAPERS, name: paper})


def test_every_paper_can_be_read():
    for paper in PAPERS.values():
        for learner, text in paper.learners.items():
            assert len(read_entries(text)) == 1, learner
        for measure in paper.measures:
            parse(measure)
        # Every learner is printed somewhere, and nothing printed by the paper is left out.
        shown = {
            learner
            for name in paper.measures.values()
            for column in published.printed_columns(paper, name, None).values()
            for learner in column
        }
        assert set(paper.learners) <= shown
        if not paper.cleaned:
            assert shown <= set(paper.learners)
            values = [row.value for row in PUBLISHED if row.source.startswith(paper.source)]
            assert len(values) == sum(
                len(column)
                for name in paper.measures.values()
                for column in published.printed_columns(paper, name, None).values()
            )


def test_a_table_says_what_was_compared(folds, monkeypatch):
    short(monkeypatch, "xu2010", {"RankSVM": "RankSVM[C=1]", "AdaRank": "AdaRank[max_iter=5]"})
    table = paper_table("xu2010", folds)
    text = str(table)
    empty = sum(int((fold.test.n_relevant == 0).sum()) for fold in folds)
    assert empty > 0
    assert f"3 folds; not cleaned, {empty} queries without a relevant document count as 0." in text
    assert "Rules: letor4:map, letor4:ndcg@3; settings chosen by letor4:map" in text
    assert "Printed: OHSUMED, TD2003 and TD2004 of LETOR 2.0" in text
    frame = table.to_frame("letor4:ndcg@3")
    assert frame.loc["AdaRank", "OHSUMED, LETOR 2.0"] == 0.4803
    values = table.comparison.values("letor4:ndcg@3")
    assert frame["here"].to_numpy() == pytest.approx(values.mean(axis=1))
    assert frame["standard_error"].to_numpy() == pytest.approx(
        values.std(axis=1, ddof=1) / np.sqrt(18)
    )
    assert "| AdaRank |" in table.to_markdown()


def test_cleaned_queries_are_counted(folds, monkeypatch):
    short(monkeypatch, "dubey2009", {"RankSVM": "RankSVM[C=1]"})
    table = paper_table("dubey2009", folds)
    left = sum(fold.test.clean().n_queries for fold in folds)
    assert left < 18
    assert f"cleaned: {left} queries and" in table.notes[0]
    assert table.comparison.values("map").shape == (1, left)
    assert table.to_frame().loc["RankSVM", "OHSUMED, cleaned"] == 0.563


def size(folds):
    tests = [test for _, _, test in folds]
    totals = (sum(getattr(test, name) for test in tests) for name in ("n_queries", "n_documents"))
    return (*totals, tests[0].n_features)


def test_collections_are_recognized_by_their_sizes(folds, monkeypatch):
    assert recognize(folds) is None
    tests = [test for _, _, test in folds]
    totals = (sum(getattr(test, name) for test in tests) for name in ("n_queries", "n_documents"))
    monkeypatch.setitem(COLLECTIONS, "MQ2008", (*totals, tests[0].n_features))
    assert recognize(folds) == "MQ2008"
    assert recognize(folds[:2]) is None  # one fold is missing
    short(monkeypatch, "xu2010", {"RankSVM": "RankSVM[C=1]"})
    table = paper_table("xu2010", folds)
    assert table.to_frame().loc["RankSVM", "MQ2008, LETOR's baselines"] == 0.4696


def test_collections():
    # Cormack, Clarke and Buettcher (SIGIR 2009), Table 3: all pairs of LETOR 3.0.
    third = [size for name, size in COLLECTIONS.items() if name.endswith("LETOR 3.0")]
    assert len(third) == 7
    assert np.sum(third, axis=0)[:2].tolist() == [681, 583_850]


def test_published_results():
    assert len({one[:3] for one in PUBLISHED}) == len(PUBLISHED)
    for one in PUBLISHED:
        low, high = parse(one.measure).range
        assert low < one.value < high
        assert round(one.value, 4) == one.value  # no more digits than were printed


def test_figure_three_has_every_learner_and_column():
    assert list(FIGURE_THREE) == ["MAP", "NDCG@1", "NDCG@5", "NDCG@10"]
    for table in FIGURE_THREE.values():
        assert len(table) == 13
        for values in table.values():
            assert len(values) == len(FIGURE_COLUMNS)
            assert np.all((values[~np.isnan(values)] > 0.2) & (values[~np.isnan(values)] < 1.0))


def test_wins_of_figure_three():
    """The paper's own table supports four of its twelve counts to the letter, the others nearly."""
    counted = count_wins(stack_cells(FIGURE_THREE.values()))
    assert set(CLAIMED) <= set(counted)
    for statement, claimed in CLAIMED.items():
        assert abs(counted[statement] - claimed) <= 3, statement
    equal = {statement for statement, claimed in CLAIMED.items() if counted[statement] == claimed}
    assert equal == {
        "MLE beats all baselines",
        "ConvexLoss is the best",
        "ConvexLoss-AUC beats RankSVM",
        "the worse of ConvexLoss-MAP and -NDCG beats all baselines",
    }
    assert counted["ConvexLoss is the best of all learners"] == 15


def test_strict_lists_with_labels_from_1(monkeypatch):
    queries = data.make_letor(18, n_documents=(6, 9), strict=True, rng=0)
    folds = data.make_folds(data.Queries(queries.X, queries.y + 1, queries.qid), 3, rng=0)
    short(monkeypatch, "wang", {"FeatureRank": "FeatureRank[cycles=1]", "SVMmap": "SVMMap[C=1]"})
    table = paper_table("wang", folds)
    assert not table.comparison.failures
    assert table.to_frame()["here"].notna().all()
    assert "SVMmap learns from labels above the median as good." in table.notes
    # A learner that could not be fitted is left out, and named.
    monkeypatch.setattr(published, "PAPERS", {"wang": published.PAPERS["wang"]._replace(halves=())})
    table = paper_table("wang", folds)
    assert table.to_frame()["here"].notna().to_dict() == {"FeatureRank": True, "SVMmap": False}
    assert "Left out: SVMmap: " in str(table)
