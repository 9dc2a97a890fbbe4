"""Data frames: names, query ids of all kinds, tables of other libraries, scattered queries."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from permdist import data
from permdist.comparison import compare, tune
from permdist.data import Queries
from permdist.measures import evaluate
from permdist.models import MLE, RankBoost, load

NAMES = ["length", "tf idf", "clicks"]


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(24, n_features=3, rng=1)


@pytest.fixture(scope="module")
def frame(queries):
    names = [f"query {number}" for number in queries.qid]
    return pd.DataFrame(queries.X, columns=NAMES).assign(label=queries.y, query=names)


@pytest.fixture(scope="module")
def fitted(frame):
    return MLE().fit(frame[NAMES], frame["label"], frame["query"])


def test_rows_in_another_order_are_refused(queries, frame, fitted):
    X, y, qid = frame[NAMES], frame["label"], frame["query"]
    turned = y.iloc[::-1]
    text = r"y: expected rows in the order of X, .* pass \.loc\[X\.index\], or \.to_numpy\(\)"
    for call in (
        lambda: MLE().fit(X, turned, qid),
        lambda: MLE().fit(X, y, qid, eval_set=(X, turned, qid)),
        lambda: RankBoost(early_stopping=2).fit(X, turned, qid),
        lambda: fitted.score(X, turned, qid),
        lambda: Queries(X, turned, qid),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(ValueError, match="qid: expected rows in the order of y"):
        Queries(X.to_numpy(), y, qid.iloc[::-1])
    with pytest.raises(ValueError, match="doc_ids: expected rows in the order of X"):
        Queries(X, y, qid, doc_ids=qid.sort_index(ascending=False))
    with pytest.raises(ValueError, match="qid: expected rows in the order of X"):
        MLE(normalize=True).fit(queries).predict(X, qid.iloc[::-1])
    with pytest.raises(ValueError, match="y: expected rows in the order of scores"):
        evaluate(X[NAMES[0]], turned, qid)
    assert np.array_equal(Queries(X, turned.loc[X.index], qid).y, y)
    assert np.array_equal(Queries(X, turned.to_numpy(), qid).y, y.to_numpy()[::-1])


def test_other_indexes_are_left_alone(frame):
    X, y, qid = frame[NAMES], frame["label"], frame["query"]
    for index in (y.index + 1, [f"row {row}" for row in y.index], np.zeros(len(y), int)):
        assert np.array_equal(Queries(X, y.set_axis(index), qid).y, y)
    # Labels that repeat have no order to go by: only their values help.
    twice = np.arange(len(y)) // 2
    with pytest.raises(ValueError, match=r"another order, .*: pass \.to_numpy\(\)"):
        Queries(X.set_axis(twice), y.set_axis(twice[::-1]), qid)
    pairs = pd.MultiIndex.from_arrays([twice, np.arange(len(y))])
    with pytest.raises(ValueError, match="y: expected rows in the order of X"):
        Queries(X.set_axis(pairs), y.set_axis(pairs).iloc[::-1], qid)


class Capsule:
    """A table that offers nothing but the Arrow PyCapsule interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Interchanged:
    """A table that offers nothing but the data frame interchange protocol."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.frame.__dataframe__(**options)


def _arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def _polars(frame):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


TABLES = {
    "pandas": lambda frame: frame,
    "pandas of arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "nullable": lambda frame: frame.convert_dtypes(),
    "arrow": _arrow,
    "record batch": lambda frame: _arrow(frame).to_batches()[0],
    "capsule": lambda frame: Capsule(_arrow(frame)),
    "interchange": Interchanged,
    "polars": _polars,
}


# ---- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_all_kinds_keep_their_names(kind, frame, fitted, queries):
    if kind == "pandas of arrow":
        pytest.importorskip("pyarrow")
    table = TABLES[kind](frame[NAMES])
    collected = Queries(table, frame["label"], frame["query"])
    assert collected.feature_names == tuple(NAMES)
    assert (queries.X == collected.X).all()
    again = MLE().fit(table, frame["label"], frame["query"], eval_set=collected)
    assert again.feature_names_in_.tolist() == NAMES
    assert (again.coef_ == fitted.coef_).all()
    scores = fitted.predict(table)
    assert isinstance(scores, np.ndarray)
    assert (scores == fitted.predict(frame[NAMES])).all()
    other = TABLES[kind](frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(other)
    with pytest.raises(ValueError, match="column 1 is 'clicks', expected 'length'"):
        again.fit(table, frame["label"], frame["query"], eval_set=(other, *_columns(frame)))


def _columns(frame):
    return frame["label"], frame["query"]


@pytest.mark.parametrize("kind", ["pandas", "arrow", "capsule", "interchange", "polars"])
def test_missing_values_of_tables_are_nan(kind, frame):
    holes = frame[NAMES].copy()
    holes.iloc[3, 1] = np.nan
    table = TABLES[kind](holes)
    with pytest.raises(ValueError, match=r"got nan at index \(3, 1\); missing='allow'"):
        Queries(table, *_columns(frame))
    assert Queries(table, *_columns(frame), missing="allow").has_missing
    assert MLE(missing="mean").fit(table, *_columns(frame)).feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("kind", ["pandas", "arrow", "capsule", "interchange", "polars"])
def test_a_column_of_texts_is_named(kind, frame, fitted):
    table = TABLES[kind](frame[[*NAMES, "query"]].astype({"query": object}))
    for refused in (lambda X: Queries(X, frame["label"]), fitted.predict):
        with pytest.raises(TypeError, match=r"X: expected numbers, got texts .* column 'query'"):
            refused(table)


def test_categories_and_dates_are_no_features(frame):
    for column, message in (
        (frame["query"].astype("category"), "column 'query' is categorical; encode it"),
        (pd.Categorical([1] * len(frame)), "column 'query' is categorical; encode it"),
        (pd.Timestamp("2020-01-01"), "got texts or dates in column 'query'"),
    ):
        table = frame[NAMES].assign(query=column)
        for take in (Queries, MLE().fit):
            with pytest.raises(TypeError, match=message):
                take(table, *_columns(frame))


def test_a_column_is_no_table(frame):
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="X: expected 2 dimension"):
        Queries(arrow.chunked_array([frame["length"].to_numpy()]), frame["label"])


def test_a_table_that_needs_arrow_says_so(frame, monkeypatch):
    table = Capsule(_arrow(frame[NAMES]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TypeError, match=r"X: to read \w+\.Capsule, install pyarrow"):
        Queries(table, *_columns(frame))


def test_polars_needs_no_arrow(frame, fitted, monkeypatch):
    table = _polars(frame[NAMES])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert Queries(table, *_columns(frame)).feature_names == tuple(NAMES)
    assert (fitted.predict(table) == fitted.predict(frame[NAMES])).all()


# ---- queries -------------------------------------------------------------------------------------


def _polars_series(names, **options):
    return pytest.importorskip("polars").Series(names, **options)


IDS = {
    "texts": lambda names: pd.Series(names),
    "strings": lambda names: pd.Series(names, dtype="string"),
    "categories": lambda names: pd.Categorical(names),
    "unused categories": lambda names: pd.Series(
        pd.Categorical(names, categories=["never", *sorted(set(names)), "asked"])
    ),
    "ordered categories": lambda names: pd.Series(
        pd.Categorical(names, categories=sorted(set(names), reverse=True), ordered=True)
    ),
    "arrow": lambda names: pytest.importorskip("pyarrow").array(names),
    "arrow dictionary": lambda names: (
        pytest.importorskip("pyarrow").chunked_array([names[:7], names[7:]]).dictionary_encode()
    ),
    "polars": _polars_series,
    "polars categories": lambda names: _polars_series(
        names, dtype=pytest.importorskip("polars").Categorical
    ),
}


@pytest.mark.parametrize("kind", IDS)
def test_query_ids_of_all_kinds_are_kept(kind, frame, fitted, queries):
    names = frame["query"].tolist()
    ids = IDS[kind](names)
    collected = Queries(frame[NAMES], frame["label"], ids)
    assert collected.qids.tolist() == list(dict.fromkeys(names))
    assert (collected.ptr == queries.ptr).all()
    assert (MLE().fit(frame[NAMES], frame["label"], ids).coef_ == fitted.coef_).all()
    scores = fitted.predict(frame[NAMES], ids)
    assert fitted.score(frame[NAMES], frame["label"], ids) == fitted.score(collected)
    found = evaluate(scores, frame["label"], ids, "map")
    assert found.to_frame().index.tolist() == list(dict.fromkeys(names))


def test_categories_of_numbers_and_holes(frame, queries):
    numbers = pd.Series(pd.Categorical(queries.qid, categories=range(100)))
    assert Queries(frame[NAMES], frame["label"], numbers).qids.dtype.kind == "i"
    holes = pd.Categorical([None, *frame["query"][1:]])
    with pytest.raises(TypeError, match="qid: expected whole numbers or names"):
        Queries(frame[NAMES], frame["label"], holes)


# ---- names on their way --------------------------------------------------------------------------


def test_names_are_kept_on_the_whole_way(frame, fitted, tmp_path):
    collected = Queries(frame[NAMES], frame["label"], frame["query"].astype("category"))
    folds = data.make_folds(collected, 3, rng=0)
    assert all(part.feature_names == tuple(NAMES) for fold in folds for part in fold)
    tuned = tune("MLE[C=1|10]", *folds[0][:2], "map")
    assert tuned.learner.feature_names_in_.tolist() == NAMES
    found = compare(folds, "MLE[C=1]", measures="map", directory=tmp_path / "fits")
    assert sorted(found.qids.tolist()) == sorted(set(frame["query"]))
    for learner in (*found.learners("MLE[C=1]"), tuned.learner, fitted):
        learner.save(tmp_path / "model.json")
        loaded = load(tmp_path / "model.json")
        assert loaded.feature_names_in_.tolist() == NAMES
        assert (loaded.predict(frame[NAMES]) == learner.predict(collected)).all()
        with pytest.raises(ValueError, match="yet now missing:\n- clicks"):
            loaded.predict(frame[NAMES[:2]])
        with pytest.raises(ValueError, match="must be in the same order"):
            loaded.predict(frame[NAMES[::-1]])
        with pytest.raises(ValueError, match="unseen at fit time:\n- label"):
            loaded.predict(frame[[*NAMES, "label"]])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            loaded.predict(frame[NAMES].to_numpy())


# ---- scattered queries ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shuffled(frame):
    return frame.sample(frac=1.0, random_state=3)


@pytest.mark.parametrize("normalize", [False, "zscore"])
def test_scattered_queries_are_gathered_on_request(normalize, shuffled):
    X, y, qid = shuffled[NAMES], shuffled["label"], shuffled["query"]
    # What the rows would be, had the user gathered them by hand.
    first = {name: number for number, name in enumerate(dict.fromkeys(qid))}
    order = np.argsort(qid.map(first).to_numpy(), kind="stable")
    by_hand = [column.iloc[order] for column in (X, y, qid)]
    model = MLE(normalize=normalize).fit(*by_hand, eval_set=tuple(by_hand))
    fitted = MLE(normalize=normalize)
    with pytest.raises(ValueError, match=r"qid: .*\(regroup=True gathers them\)"):
        fitted.fit(X, y, qid)
    fitted.fit(X, y, qid, eval_set=(X, y, qid), regroup=True)
    assert (fitted.coef_ == model.coef_).all()
    assert fitted.history_["measure"] == model.history_["measure"]
    scores = fitted.predict(X, qid, regroup=True)
    assert (scores[order] == model.predict(by_hand[0], by_hand[2])).all()
    if not normalize:
        assert (fitted.predict(X) == scores).all()
    assert (fitted.rank(X, qid, regroup=True) == order[model.rank(by_hand[0], by_hand[2])]).all()
    assert fitted.score(X, y, qid, regroup=True) == model.score(*by_hand)


@pytest.mark.parametrize("method", ["predict", "rank", "score"])
def test_scattered_queries_are_refused_without_it(method, shuffled, frame):
    fitted = MLE(normalize="zscore").fit(frame[NAMES], *_columns(frame))
    taken = [shuffled[NAMES], shuffled["label"], shuffled["query"]]
    if method != "score":
        taken.pop(1)
    with pytest.raises(ValueError, match=r"\(regroup=True gathers them\)"):
        getattr(fitted, method)(*taken)
    getattr(fitted, method)(*taken, regroup=True)
