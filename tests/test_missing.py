"""Missing values: refused by default, filled within queries when asked for, by every learner."""

import warnings

import naive_comparison
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from permdist import data, models
from permdist.data import Queries, load_letor, save_letor
from permdist.models.missing import Filling

LEARNERS = list(models.all_learners())
QUICK = {"max_iter": 20, "n_starts": 1, "cycles": 2, "method": "softrank"}


def with_holes(seed=0, n_queries=12, share=0.2):
    """Return queries of which two features have missing values."""
    whole = data.make_letor(n_queries, n_documents=(5, 9), n_features=5, empty=0.0, rng=seed)
    X = np.array(whole.X)
    holes = np.random.default_rng(seed).random((len(X), 2)) < share
    X[:, [1, 3]] = np.where(holes, np.nan, X[:, [1, 3]])
    return Queries(X, whole.y, whole.qid, missing="allow")


def quick(kind, **params):
    known = kind.parameter_names()
    fast = {name: value for name, value in QUICK.items() if name in known}
    return kind(**fast, **params)


def fitted(learner, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few iterations do not converge
        return learner.fit(*args, **options)


# ---- collections ---------------------------------------------------------------------------------

tables = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.lists(st.one_of(st.just(np.nan), st.floats(-9, 9)), min_size=3, max_size=3),
            min_size=n,
            max_size=n,
        ),
        st.lists(st.integers(0, 3), min_size=n, max_size=n).map(sorted),
    )
)


@given(tables, st.sampled_from(["zero", "mean"]))
def test_filling_equals_the_loop(table, method):
    rows, qid = table
    queries = Queries(rows, [0] * len(rows), qid, missing="allow")
    filled = queries.fill_missing(method)
    assert not filled.has_missing
    expected = np.array(naive_comparison.fill(rows, qid, method))
    np.testing.assert_allclose(filled.X, expected, rtol=0, atol=1e-12)


def test_filling_at_the_limits_of_doubles():
    huge = Queries([[1e308], [1e308], [np.nan]], [0, 1, 0], missing="allow").fill_missing()
    assert huge.X.ravel().tolist() == [1e308] * 3
    equal = [[0.1]] * 3 + [[np.nan]] + [[0.1]] * 4
    assert set(Queries(equal, [0] * 8, missing="allow").fill_missing().X.ravel()) == {0.1}


def test_collections_carry_missing_values_when_asked():
    queries = with_holes()
    assert queries.has_missing
    assert queries.where([2, 0]).has_missing
    assert Queries.concatenate([queries.where([0, 1]), queries.where([2])]).has_missing
    assert queries == Queries(queries.X, queries.y, queries.qid, missing="allow")
    assert queries.describe().missing_values == np.isnan(queries.X).sum() > 0
    assert "missing values" in str(queries.describe())
    assert not Queries([[1.0]], [0], missing="allow").has_missing
    assert queries.normalize("raw") is queries
    for train, _, test in data.make_folds(queries, 3, rng=0):
        assert train.has_missing
        assert test.n_features == 5
    with pytest.raises(ValueError, match=r"got nan at index .*; missing='allow' accepts"):
        Queries(queries.X, queries.y, queries.qid)
    with pytest.raises(ValueError, match="got inf at index"):
        Queries([[np.inf]], [0], missing="allow")
    with pytest.raises(ValueError, match=r"normalize: features are missing .* fill_missing"):
        queries.normalize()
    with pytest.raises(ValueError, match="missing: expected one of error, allow"):
        Queries([[1.0]], [0], missing="mean")


def test_files_with_missing_values(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("1 qid:1 1:nan 2:NULL\n0 qid:1 1:3 2:1e-3\n0 qid:2 1:NaN 2:1\n")
    read = load_letor(path, null="missing")
    assert np.isnan(read.X).tolist() == [[True, True], [False, False], [True, False]]
    save_letor(read, tmp_path / "again.txt")
    assert load_letor(tmp_path / "again.txt", null="missing") == read
    with pytest.raises(ValueError, match="line 1: a feature's value is not finite"):
        load_letor(path)
    path.write_text("1 qid:1 1:inf\n")
    with pytest.raises(ValueError, match="line 1: a feature's value is not finite"):
        load_letor(path, null="missing")


# ---- the contract of all learners ----------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_every_learner_refuses_or_fills(kind, tmp_path):
    queries = with_holes()
    with pytest.raises(ValueError, match=r"X contains NaN: \d+ missing values.*missing='mean'"):
        kind().fit(queries)
    with pytest.raises(ValueError, match=r"X contains NaN: \d+ missing values.*missing='mean'"):
        kind().fit(queries.X, queries.y, queries.qid)
    learner = fitted(quick(kind, missing="mean"), queries)
    assert learner.filling_ == Filling("mean", (1, 3))
    # As a fit of the table that a user would make by hand.
    filled = np.array(naive_comparison.fill(queries.X.tolist(), queries.qid.tolist(), "mean"))
    table = np.hstack([filled, np.isnan(queries.X[:, [1, 3]])])
    by_hand = fitted(quick(kind), Queries(table, queries.y, queries.qid))
    scores = learner.predict(queries)
    assert np.isfinite(scores).all()
    # Fits that are cut off after a few iterations amplify the rounding of the means.
    assert scores == pytest.approx(by_hand.predict(table, queries.qid), rel=1e-3, abs=1e-4)
    assert scores == pytest.approx(learner.predict(queries.X, queries.qid), abs=0)
    assert learner.n_features_in_ == 5
    learner.save(tmp_path / "learner.json")
    again = models.load(tmp_path / "learner.json")
    assert again.filling_ == learner.filling_
    assert (again.predict(queries) == scores).all()
    assert clone(learner).get_params() == learner.get_params()


# ---- details -------------------------------------------------------------------------------------


def test_zero_needs_no_query_ids_and_mean_needs_them_where_values_are_missing():
    queries = with_holes()
    zero = models.ListNet(missing="zero").fit(queries)
    table = np.hstack([np.nan_to_num(queries.X), np.isnan(queries.X[:, [1, 3]])])
    assert zero.predict(queries.X) == pytest.approx(table @ zero.coef_)
    assert len(zero.coef_) == 7
    mean = models.ListNet(missing="mean").fit(queries)
    with pytest.raises(TypeError, match="qid: missing='mean' needs the query of each document"):
        mean.predict(queries.X)
    whole = np.nan_to_num(queries.X)
    expected = whole @ mean.coef_[:5]
    assert mean.predict(whole) == pytest.approx(expected)


def test_without_indicators_there_are_as_many_coefficients_as_features():
    queries = with_holes()
    learner = models.ListNet(missing="mean", missing_indicator=False).fit(queries)
    by_hand = models.ListNet().fit(queries.fill_missing("mean"))
    assert learner.filling_ == Filling("mean", ())
    assert learner.coef_ == pytest.approx(by_hand.coef_)
    full = queries.fill_missing("mean")
    nothing = models.ListNet(missing="mean").fit(full)
    assert nothing.coef_ == pytest.approx(by_hand.coef_)
    # A feature that was never missing in training has no indicator later on.
    assert nothing.predict(queries) == pytest.approx(by_hand.predict(full))
    assert not hasattr(by_hand, "filling_")
    assert not hasattr(clone(learner), "filling_")


def test_indicators_come_after_all_views_of_the_features():
    queries = with_holes()
    learner = models.ListNet(missing="mean", normalize=("raw", "rank")).fit(queries)
    assert len(learner.coef_) == 2 * 5 + 2
    views = queries.fill_missing("mean").normalize(["raw", "rank"]).X
    table = np.hstack([views, np.isnan(queries.X[:, [1, 3]])])
    assert learner.predict(queries) == pytest.approx(table @ learner.coef_)


def test_what_is_missing_may_tell():
    """A feature that is missing from relevant documents alone is learned from by its indicator."""
    rng = np.random.default_rng(0)
    y = np.tile([1, 0, 0, 0, 0, 0], 40)
    X = rng.random((len(y), 2))
    X[y == 1, 0] = np.nan
    qid = np.repeat(np.arange(40), 6)
    assert models.ListNet(missing="mean").fit(X, y, qid).score(X, y, qid) == 1.0
    blind = models.ListNet(missing="mean", missing_indicator=False).fit(X, y, qid)
    assert blind.score(X, y, qid) < 0.9


def test_validation_data_and_comparisons_may_have_missing_values():
    from permdist.comparison import compare, tune

    folds = data.make_folds(with_holes(n_queries=30), 3, rng=0)
    train, validation, test = folds[0]
    learner = models.ListNet(missing="mean", early_stopping=5).fit(train, eval_set=validation)
    assert np.isfinite(learner.history_["measure"]).all()
    raw = (validation.X, validation.y, validation.qid)
    same = models.ListNet(missing="mean", early_stopping=5).fit(train, eval_set=raw)
    assert same.history_["measure"] == learner.history_["measure"]
    whole = train.fill_missing()
    with pytest.raises(ValueError, match="eval_set contains NaN"):
        models.ListNet().fit(whole, eval_set=validation)
    found = compare(folds, {"a": (models.ListNet(), {"missing": ["zero", "mean"]})})
    assert np.isfinite(found.values()).all()
    tuned = tune("ListNet[missing=mean,C=1]", train, validation, "map")
    assert np.isfinite(tuned.learner.predict(test)).all()
    left = compare(folds, {"a": models.ListNet(), "b": models.ListNet(missing="zero")})
    assert "missing='mean'" in left.failures["a"]


def test_going_on_needs_the_same_indicators():
    queries = with_holes()
    learner = models.ListNet(missing="zero", warm_start=True).fit(queries)
    with pytest.raises(
        ValueError, match=r"missing: expected missing values of the features \[1, 3"
    ):
        learner.fit(queries.fill_missing())
    plain = models.ListNet().fit(queries.fill_missing())
    with pytest.raises(ValueError, match="warm_start_from: expected 7 coefficients"):
        models.ListNet(missing="zero").fit(queries, warm_start_from=plain)
    ahead = models.ListNet(missing="zero").fit(queries, warm_start_from=learner)
    assert ahead.coef_ == pytest.approx(learner.coef_, rel=0.05, abs=0.01)


def test_names_and_tables_of_other_libraries():
    pd = pytest.importorskip("pandas")
    queries = with_holes()
    frame = pd.DataFrame(queries.X, columns=list("abcde"))
    learner = models.ListNet(missing="mean").fit(frame, queries.y, queries.qid)
    assert learner.feature_names_in_.tolist() == list("abcde")
    assert learner.predict(frame, queries.qid) == pytest.approx(
        models.ListNet(missing="mean").fit(queries).predict(queries)
    )
    named = Queries(frame, queries.y, queries.qid, missing="allow")
    assert learner.filling_.apply(named, ("raw",)).feature_names[5:] == ("missing:b", "missing:d")
