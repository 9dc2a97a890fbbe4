import naive
import numpy as np
import pytest
from hypothesis import given

from permdist import strategies
from permdist.data import Queries


@given(strategies.queries())
def test_queries_are_views(queries):
    assert sum(len(query.y) for query in queries) == queries.n_documents
    assert len(queries) == queries.n_queries == len(queries.sizes)
    for q, query in enumerate(queries):
        assert np.shares_memory(query.X, queries.X)
        assert query.qid == queries.qids[q]
        assert (queries.qid[queries.ptr[q] : queries.ptr[q + 1]] == query.qid).all()
        assert queries.n_relevant[q] == (query.y > 0).sum()
    assert queries[-1].qid == queries.qids[-1]
    assert Queries(queries.X, queries.y, queries.qid, doc_ids=queries.doc_ids) == queries


@given(strategies.queries())
def test_normalising_works_query_by_query(queries):
    scaled, standard = queries.normalize(), queries.normalize("zscore")
    for query, unit, score in zip(queries, scaled, standard, strict=True):
        for j in range(queries.n_features):
            column = query.X[:, j]
            spread = column.max() - column.min()
            if spread == 0:
                assert (unit.X[:, j] == 0).all()
                assert (score.X[:, j] == 0).all()
            else:
                assert np.allclose(unit.X[:, j], (column - column.min()) / spread)
                if column.std() > max(1e-9 * np.abs(column).max(), 1e-150):
                    assert np.allclose(score.X[:, j], (column - column.mean()) / column.std())
    assert (scaled.y == queries.y).all()


@given(strategies.queries())
def test_a_mask_and_numbers_choose_the_same(queries):
    mask = np.arange(len(queries)) % 2 == 0
    assert queries.where(mask) == queries.where(np.flatnonzero(mask))
    halves = [queries.where(mask)] + ([queries.where(~mask)] if (~mask).any() else [])
    joined = Queries.concatenate(halves)
    assert sorted(joined.qids) == sorted(queries.qids)
    assert joined.n_documents == queries.n_documents


def small(**options):
    X = [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [5.0, 6.0], [7.0, 8.0]]
    return Queries(X, [0, 1, 1, 0, 0, 0], [1, 1, 1, 2, 2, 3], **options)


def test_cleaning_as_in_the_paper():
    cleaned = small().clean()
    assert cleaned.X.tolist() == [[3.0, 4.0]]  # the twins disagree, the other queries are barren
    assert small().clean(conflicts=None).n_documents == 3
    assert small().clean(irrelevant=False).n_documents == 4
    named = small(doc_ids=["a", "b", "c", "d", "d", "e"])
    assert named.clean(conflicts="ids").n_documents == 3


def test_it_describes_itself():
    description = small().describe()
    assert description.n_queries == 3
    assert description.label_counts == {0: 4, 1: 2}
    assert description.documents_per_query == (1, 2.0, 3)
    assert description.queries_without_relevant == 2
    assert description.constant_features == ()
    assert description.conflicting_documents == 2
    constant = Queries([[1.0, 2.0], [1.0, 3.0]], [0, 1]).describe()
    assert constant.constant_features == (1,)


def test_arrays_cannot_be_changed_behind_its_back():
    with pytest.raises(ValueError, match="read-only"):
        small().X[0, 0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        small()[0].y[0] = 9


def test_regrouping():
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match="query a starts again at index 2"):
        Queries(X, [0, 1, 0, 1], ["a", "b", "a", "b"])
    gathered = Queries(X, [0, 1, 0, 1], ["a", "b", "a", "b"], doc_ids=list("wxyz"), regroup=True)
    assert gathered.X.ravel().tolist() == [0.0, 2.0, 1.0, 3.0]
    assert gathered.doc_ids.tolist() == list("wyxz")
    assert gathered.qid.tolist() == ["a", "a", "b", "b"]


def test_equality_sees_everything():
    assert small() == small()
    assert small() != small(doc_ids=list("abcdef"))
    assert small(doc_ids=list("abcdef")) != small(doc_ids=list("abcdeg"))
    assert small() != "queries"
    assert small() != small().normalize()


def test_choosing_queries_by_number():
    queries = small()
    assert queries.where([-1]).qids.tolist() == [3]
    assert queries.where([2, 0]).qids.tolist() == [3, 1]


def test_pandas_columns_are_welcome():
    import pandas as pd

    frame = pd.DataFrame({"x": [0.1, 0.7, 0.3], "y": [0, 1, 0], "q": ["a", "a", "b"]})
    queries = Queries(frame[["x"]], frame["y"], frame["q"], doc_ids=frame["q"])
    assert [query.qid for query in queries] == ["a", "b"]
    with pytest.raises(TypeError, match="qid: expected whole numbers or names, got NoneType, str"):
        Queries([[1.0], [2.0]], [0, 1], pd.Series(["a", None], dtype=object))


def test_extreme_values_are_normalized():
    for values in ([-1e308, 1e308], [0.0, 5e-324], [1e200, -1e200], [1.0, 1.0 + 2**-52]):
        queries = Queries(np.array(values)[:, None], [0, 1])
        assert sorted(queries.normalize().X.ravel()) == [0.0, 1.0]
        assert np.allclose(sorted(queries.normalize("zscore").X.ravel()), [-1.0, 1.0])


def test_features_as_ranks_and_several_views():
    X = np.array(
        [[3.0, 1.0, 5.0], [1.0, 1.0, 5.0], [3.0, 1.0, 7.0], [2.0, 4.0, 0.0], [9.0, 4.0, 0.0]]
    )
    queries = Queries(X, [0, 1, 0, 1, 0], [1, 1, 1, 2, 2])
    ranks = queries.normalize("rank").X
    np.testing.assert_allclose(ranks[:, 0], [0.75, 0.0, 0.75, 0.0, 1.0])
    np.testing.assert_allclose(ranks[:, 1], 0.0)
    np.testing.assert_allclose(ranks[:, 2], [0.25, 0.25, 1.0, 0.0, 0.0])
    both = queries.normalize(["raw", "zscore", "rank"])
    assert both.n_features == 9
    np.testing.assert_array_equal(both.X[:, :3], X)
    np.testing.assert_array_equal(both.X[:, 3:6], queries.normalize("zscore").X)
    np.testing.assert_array_equal(both.X[:, 6:], ranks)


def test_the_names_of_features_go_along():
    import pandas as pd

    frame = pd.DataFrame({"x": [0.1, 0.7, 0.3, 0.2], "z": [1, 2, 3, 4]})
    queries = Queries(frame, [0, 1, 0, 1], [1, 1, 2, 2])
    assert queries.feature_names == ("x", "z")
    assert queries == Queries(
        frame.to_numpy(), [0, 1, 0, 1], [1, 1, 2, 2], feature_names=["x", "z"]
    )
    assert queries != Queries(frame.to_numpy(), [0, 1, 0, 1], [1, 1, 2, 2])
    for same in (
        queries.where([1]),
        queries.clean(conflicts=None),
        queries.normalize(),
        queries.normalize("zscore"),
        queries.normalize(["rank"]),
        Queries.concatenate([queries.where([0]), queries.where([1])]),
        Queries(frame, [0, 1, 0, 1], [1, 2, 1, 2], regroup=True),
    ):
        assert same.feature_names == ("x", "z")
    assert queries.normalize(["raw", "rank"]).feature_names == (
        "raw:x",
        "raw:z",
        "rank:x",
        "rank:z",
    )
    assert Queries(frame.to_numpy(), [0, 1, 0, 1]).feature_names is None
    assert Queries(pd.DataFrame(frame.to_numpy()), [0, 1, 0, 1]).feature_names is None
    other = Queries(frame[["z", "x"]], [0, 1, 0, 1], [3, 3, 4, 4])
    with pytest.raises(ValueError, match="parts: column 1 is 'z', expected 'x'"):
        Queries.concatenate([queries, other])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Queries([[np.inf]], [0]), ValueError, "X: expected finite numbers, got inf"),
        (lambda: Queries([1.0], [0]), ValueError, "X: "),
        (lambda: Queries([["a"]], [0]), TypeError, "X: "),
        (lambda: Queries([[True]], [0]), TypeError, "X: "),
        (lambda: Queries([[1.0]], [0, 1]), ValueError, "y: "),
        (lambda: Queries([[1.0]], [-1]), ValueError, "y: expected non-negative integers"),
        (lambda: Queries([[1.0]], [0], doc_ids=[]), ValueError, "doc_ids: "),
        (lambda: Queries(np.zeros((0, 2)), []), ValueError, "at least one document"),
        (lambda: Queries([[1.0]], [0], feature_names="x"), TypeError, "feature_names: "),
        (lambda: small()[3], IndexError, "query 3 of 3"),
        (lambda: small()[0:2], TypeError, "see where()"),
        (lambda: small().where([True]), ValueError, "keep: "),
        (lambda: small().where([0, 0]), ValueError, "each query once"),
        (lambda: small().where([-4]), ValueError, "below 3"),
        (lambda: small().where([]), ValueError, "at least one query"),
        (lambda: small().where([0.5]), TypeError, "keep: "),
        (lambda: small().normalize("max"), ValueError, "method: "),
        (lambda: small().clean(conflicts="ids"), ValueError, "no document ids to compare"),
        (lambda: Queries([[1.0], [1.0]], [0, 1]).clean(), ValueError, "conflicting labels"),
        (lambda: Queries([[1.0], [2.0]], [0, 0]).clean(), ValueError, "no query has a relevant"),
        (lambda: Queries.concatenate([small(), small()]), ValueError, "is in two of the"),
        (lambda: Queries.concatenate([small(), Queries([[1.0]], [1])]), ValueError, "parts: "),
    ],
)
def test_refusals(call, error, message):
    naive.refuses(call, error, message)
