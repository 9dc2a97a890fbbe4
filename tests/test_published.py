"""Published figures: in range, sourced and found; collections recognized by their sizes."""

import numpy as np
import pytest

from permdist.comparison.figure_three import CLAIMED, FIGURE_THREE, count_wins, stack_cells
from permdist.comparison.figure_three import COLLECTIONS as FIGURE_COLUMNS
from permdist.comparison.published import COLLECTIONS, PUBLISHED, Size, published, recognize
from permdist.data import Queries, make_letor
from permdist.measures import letor4, parse

NAMES = sorted({row.collection for row in PUBLISHED})
COUNTED = ("MQ2008", "OHSUMED, LETOR 2.0", "OHSUMED, LETOR 3.0")


def collection(size: Size, folds: int = 5) -> list[tuple[Queries, Queries, Queries]]:
    """Folds whose test parts have these sizes together; the other parts are never looked at."""
    numbers = np.arange(size.queries)
    sizes = np.full(size.queries, size.documents // size.queries)
    sizes[: size.documents - sizes.sum()] += 1
    tests = []
    for fold in range(folds):
        qid = np.repeat(numbers[fold::folds], sizes[fold::folds])
        tests.append(Queries(np.zeros((len(qid), size.features)), np.zeros(len(qid), int), qid))
    return [(tests[0], tests[1], test) for test in tests]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.collection} {row.learner}")
def test_rows(row):
    low, high = parse(row.measure).range
    assert low < row.value < high
    assert row.source.strip() == row.source != ""
    assert row.learner
    assert round(row.value, 4) == row.value  # no more digits than were printed


def test_no_row_twice():
    keys = [(row.collection, row.learner, row.measure, row.source) for row in PUBLISHED]
    assert len(set(keys)) == len(keys)


def test_collections():
    assert len(set(COLLECTIONS.values())) == len(COLLECTIONS)
    # Cormack, Clarke and Buettcher (SIGIR 2009), Table 3: all pairs of LETOR 3.0.
    third = [size for name, size in COLLECTIONS.items() if name.endswith("LETOR 3.0")]
    assert len(third) == 7
    assert sum(size.documents for size in third) == 583_850
    assert sum(size.queries for size in third) == 681


@pytest.mark.parametrize("name", COUNTED)
def test_recognize(name):
    folds = collection(COLLECTIONS[name])
    assert recognize(folds) == name
    assert recognize(iter(folds)) == name
    assert recognize(folds[:4]) is None  # one fold of the five is missing


@pytest.mark.parametrize(
    "size", [Size(784, 15_211, 45), Size(784, 15_210, 46), Size(783, 15_211, 46)]
)
def test_nearly_is_not_recognized(size):
    assert recognize(collection(size)) is None


def test_unknown():
    part = make_letor(5, rng=0)
    assert recognize([(part, part, part)]) is None
    assert recognize([]) is None
    assert published(None, "map") == []


@pytest.mark.parametrize("name", NAMES)
def test_published_is_sorted_and_complete(name):
    measures = {parse(row.measure) for row in PUBLISHED if row.collection == name}
    found = [published(name, measure) for measure in measures]
    assert sum(map(len, found)) == sum(row.collection == name for row in PUBLISHED)
    for rows in found:
        assert [row.value for row in rows] == sorted((row.value for row in rows), reverse=True)


def test_spellings_of_a_measure():
    assert published("MQ2008", "map") == published("MQ2008", letor4("map"))
    assert [row.learner for row in published("MQ2008", "map")][:2] == ["AdaRank-NDCG", "ListNet"]
    assert published("MQ2007", "letor4:ndcg@10")
    assert published("MQ2007", "trec:ndcg@10") == []
    assert published("NP2003, LETOR 3.0", "map") == []  # known by its size alone


def test_names_are_checked():
    with pytest.raises(ValueError, match="did you mean 'MQ2008'"):
        published("MQ20008", "map")
    with pytest.raises(ValueError, match="unknown name"):
        published("MQ2008", "nonsense")


def test_real_data(real_data):
    from permdist.data import load_letor_folds

    assert recognize(load_letor_folds(real_data / "mq2008")) == "MQ2008"


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


def test_wins_need_every_learner():
    table = dict(FIGURE_THREE["MAP"])
    del table["L3-AUC"]
    with pytest.raises(ValueError, match="table: no row for L3-AUC"):
        count_wins(table)
