"""Scores and models of other tools, compared like the library's own learners."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_cli import permdist

from permdist import data, models
from permdist.comparison import Comparison, Entry, compare, compare_scores, read_entries, tune
from permdist.data import Queries, load_scores
from permdist.measures import evaluate
from permdist.models import MLE

NAMES = ("length", "tf idf", "clicks", "links")


@pytest.fixture(scope="module")
def whole():
    made = data.make_letor(45, n_features=12, rng=0)
    varied = made.X[:, made.X.std(axis=0) > 0.05][:, :4]
    return Queries(varied, made.y, [f"q{one}" for one in made.qid], feature_names=NAMES)


@pytest.fixture(scope="module")
def folds(whole):
    return data.make_folds(whole, 3, rng=0)


@pytest.fixture(scope="module")
def scores(whole):
    return {name: whole.X[:, column] for column, name in enumerate("abc")}


def test_scores_in_another_order_are_refused(whole, scores):
    index = pd.RangeIndex(whole.n_documents)
    table = pd.DataFrame(scores, index=index)
    labels, ids = pd.Series(whole.y, index), pd.Series(whole.qid, index)
    turned = table["a"].sort_values(ascending=False)
    text = r"scores: a: expected rows in the order of y, .* pass \.loc\[y\.index\]"
    with pytest.raises(ValueError, match=text):
        compare_scores({"a": turned}, labels, ids)
    with pytest.raises(ValueError, match="scores: a: expected rows in the order of qid"):
        compare_scores({"a": turned}, whole.y, ids)
    with pytest.raises(ValueError, match="scores: b: expected rows in the order of scores: a"):
        compare_scores({"a": turned, "b": table["b"]}, whole.y, whole.qid)
    with pytest.raises(ValueError, match="scores: b: expected rows in the order of scores: a"):
        compare_scores({"a": turned, "b": table["b"]}, whole)
    found = compare_scores({"a": turned.loc[labels.index]}, labels, ids, measures="map")
    assert np.array_equal(
        found.values("map"), compare_scores({"a": scores["a"]}, whole, measures="map").values("map")
    )


def test_a_frame_has_scores_in_its_columns(whole, scores, folds):
    table = pd.DataFrame({0: scores["a"], "second": scores["b"]})
    by_name = {"0": scores["a"], "second": scores["b"]}
    wanted = compare_scores(by_name, whole, measures="map")
    found = compare_scores(table, whole.y, whole.qid, measures="map")
    assert found.names == wanted.names
    assert np.array_equal(found.values("map"), wanted.values("map"))
    tested = np.concatenate([fold.test.rows for fold in folds])
    assert compare(folds, None, scores=table.iloc[tested], measures="map").names == wanted.names
    with pytest.raises(ValueError, match="columns of different names"):
        compare_scores(table.set_axis(["a", "a"], axis=1), whole)
    with pytest.raises(ValueError, match="at least one name"):
        compare_scores(table[[]], whole)


def test_sizes_in_place_of_query_ids(whole, scores):
    with pytest.raises(
        ValueError, match=r"pass qid=numpy\.repeat\(numpy\.arange\(len\(sizes\)\), s"
    ):
        compare_scores(scores, whole.y, whole.sizes)
    wanted = compare_scores(scores, whole, measures="map").values("map")
    ids = np.repeat(np.arange(len(whole.sizes)), whole.sizes)
    assert np.array_equal(
        compare_scores(scores, whole.y, ids, measures="map").values("map"), wanted
    )
    with pytest.raises(ValueError, match=r"entries as in y, got shape \(45,\)$"):
        compare_scores(scores, whole.y, whole.sizes + 1)


class Ranks:
    """A ranker in the manner of LightGBM: parameters, `fit` with groups, scores by `predict`."""

    fits = 0

    def __init__(self, power=1.0):
        self.power = power

    def get_params(self, deep=True):
        return {"power": self.power}

    def set_params(self, **params):
        for name, value in params.items():
            if name != "power":
                raise ValueError(f"no parameter {name}")
            setattr(self, name, value)
        return self

    def fit(self, X, y, *, group):
        type(self).fits += 1
        assert sum(group) == len(X) == len(y)
        self.feature_names_in_ = np.array(X.columns)
        self.weights_ = np.abs(np.asarray(X).T @ np.asarray(y)) ** self.power
        return self

    def predict(self, X):
        assert list(X.columns) == self.feature_names_in_.tolist()
        return np.asarray(X) @ self.weights_


class First:
    """A model with nothing but `predict`."""

    def predict(self, X):
        return np.asarray(X)[:, :1]


# ---- scores --------------------------------------------------------------------------------------


def test_scores_are_tested_as_scipy_would(whole, scores):
    found = compare_scores(
        scores, whole.y, whole.qid, measures=["map", "ndcg@10"], baseline="b", correction="none"
    )
    assert isinstance(found, Comparison)
    assert found.names == ["a", "b", "c"]
    assert found.qids.tolist() == whole.qids.tolist()
    for measure in ("map", "ndcg@10"):
        frame = found.to_frame(measure)
        values = {
            name: evaluate(one, whole.y, whole.qid, measure).table[:, 0]
            for name, one in scores.items()
        }
        for name, one in values.items():
            assert frame.loc[name, "mean"] == pytest.approx(one.mean())
            spread = stats.sem(one) * stats.t.ppf(0.975, len(one) - 1)
            assert frame.loc[name, "low"] == pytest.approx(one.mean() - spread)
            if name != "b":
                p = stats.ttest_rel(one, values["b"]).pvalue
                assert frame.loc[name, "p_t"] == pytest.approx(p)
        assert frame["seconds"].isna().all()
        assert found.friedman(measure) == pytest.approx(
            stats.friedmanchisquare(*values.values()).pvalue
        )
    assert compare_scores(scores, whole, measures="map").to_frame().index[0] in scores


def test_scores_of_learners_compare_as_the_learners_do(folds):
    learners = "MLE[C=1], ListNet[C=1]"
    found = compare(folds, learners, measures="map", baseline="MLE[C=1]")
    apart = {
        name: [
            one.predict(fold.test) for one, fold in zip(found.learners(name), folds, strict=True)
        ]
        for name in found.names
    }
    joined = {name: np.concatenate(parts) for name, parts in apart.items()}
    frame = found.to_frame().drop(columns=["seconds", "fitted"])
    for scores in (apart, joined):
        again = compare(folds, None, scores=scores, measures="map", baseline="MLE[C=1]")
        pd.testing.assert_frame_equal(again.to_frame().drop(columns=["seconds", "fitted"]), frame)
        assert again.n_fits == 0
    both = compare(folds, "MLE[C=1]", scores={"net": apart["ListNet[C=1]"]}, measures="map")
    assert (both.values() == found.values()).all()
    assert both.n_fits == 3
    assert both.validation["net"] == [{}] * 3
    assert (both.scores("net", 1, folds[1].test) == apart["ListNet[C=1]"][1]).all()
    assert (both.scores("MLE[C=1]", 1, folds[1].test) == apart["MLE[C=1]"][1]).all()


def test_scattered_scores_are_gathered_on_request(whole, scores):
    order = np.random.default_rng(0).permutation(whole.n_documents)
    mixed = {name: one[order] for name, one in scores.items()}
    given = pd.Series(whole.y[order]), pd.Series(whole.qid[order]).astype("category")
    with pytest.raises(ValueError, match="regroup=True gathers them"):
        compare_scores(mixed, *given)
    found = compare_scores(mixed, *given, measures="map", regroup=True, ties="average")
    expected = compare_scores(scores, whole, measures="map", ties="average")
    by_query = dict(zip(found.qids.tolist(), found.values().T.tolist(), strict=True))
    for qid, values in zip(expected.qids.tolist(), expected.values().T, strict=True):
        assert by_query[qid] == pytest.approx(values)


def test_texts_and_report_of_scores(whole, scores, tmp_path):
    found = compare_scores(scores, whole, measures="map")
    text = str(found)
    assert text.startswith("ap: 45 test queries; queries without")
    assert "fit, s" not in text + found.to_markdown()
    assert "nan" not in text + found.to_markdown() + found.to_latex()
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["tables"]["ap"]["a"]["seconds"] is None
    with pytest.raises(ValueError, match="of 'a' there are only scores, and no model"):
        found.learners("a")
    found.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "3 rankings of 45 test queries; nothing was fitted." in page
    for absent in ("Learning curves", "Chosen settings", "fit, s", "on validation"):
        assert absent not in page


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"scores": [1.0]},
            TypeError,
            "scores: expected a mapping of names to arrays, or a data frame, got list",
        ),
        ({"scores": {}}, ValueError, "scores: expected at least one"),
        ({"scores": {"a": [1.0, 2.0]}}, ValueError, "scores: a: expected 3 scores, one per docu"),
        ({"scores": {"a": [1.0, np.nan, 1.0]}}, ValueError, "scores: a: expected finite numbers"),
        ({"scores": {"a": list("xyz")}}, TypeError, "scores: a: expected numbers"),
        ({"scores": {"random order": [1.0] * 3}}, ValueError, "is the name of a reference"),
        ({"scores": {"a": [1.0] * 3, " a": [1.0] * 3}}, ValueError, "'a' appears twice"),
        ({"y": [0, 0, 0]}, ValueError, "y: expected a relevant document"),
        ({"qid": [1, 2]}, ValueError, "qid: expected 3 entries"),
        ({"y": Queries([[0.0]] * 3, [0, 1, 0])}, TypeError, "qid: a collection of queries"),
    ],
)
def test_scores_that_make_no_sense(change, error, message):
    given = {"scores": {"a": [0.1, 0.2, 0.3]}, "y": [0, 1, 0], "qid": [1, 1, 1], **change}
    with pytest.raises(error, match=message):
        compare_scores(**given)


def test_scores_beside_learners_are_checked_before_any_fit(folds):
    for scores, message in (
        ({"a": [0.1]}, "scores: a: expected [0-9,]+ scores"),
        ({"a": [[0.1], [0.2]]}, "scores: a: expected an array for each of 3 folds, got 2"),
        ({"MLE": np.ones(sum(fold.test.n_documents for fold in folds))}, "'MLE' appears twice"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(folds, "MLE", scores=scores)


def test_what_is_no_folds(folds, whole):
    with pytest.raises(TypeError, match=r"got one collection; permdist\.data\.make_folds"):
        compare(whole, "MLE")
    assert compare(tuple(folds[0]), "MLE[C=1]", measures="map").n_folds == 1
    with pytest.raises(ValueError, match="learners: expected at least one"):
        compare(folds, [])


# ---- models of other libraries -------------------------------------------------------------------


def test_a_model_that_is_fitted_is_used_as_it_is(folds):
    train, _, test = folds[0]
    model = Ranks().fit(_frame(train), train.y, group=train.sizes)
    before = Ranks.fits
    found = compare(folds[:1], {"lgbm": model, "mle": MLE(), "first": First()}, measures="map")
    assert Ranks.fits == before
    assert found.learners("lgbm") == [model]
    by_hand = evaluate(model.predict(_frame(test)), test.y, test.qid, "map")
    assert (found.values()[0] == by_hand.table[:, 0]).all()
    assert (found.values()[2] == evaluate(test.X[:, 0], test.y, test.qid, "map").table[:, 0]).all()
    assert found.to_frame()["seconds"].isna().sum() == 2
    assert found.n_fits == 1
    told = [note for note in found.notes if "fitted before the comparison" in note]
    assert [note.partition(":")[0] for note in told] == ["lgbm", "first"]
    (alone,) = read_entries(model)
    assert alone.name == "Ranks"


def _frame(queries):
    return pd.DataFrame(queries.X, columns=queries.feature_names)


def test_a_learner_that_is_fitted_is_used_as_it_is(folds, tmp_path):
    fitted = models.ListNet(C=1.0, normalize="zscore").fit(folds[0].train)
    given = {
        "before": fitted,
        "entry": Entry("entry", fitted),
        "again": (fitted, {}),
        "new": models.ListNet(C=1.0, normalize="zscore"),
    }
    found = compare(folds, given, measures="map", directory=tmp_path)
    assert [one is fitted for one in found.learners("before")] == [True] * len(folds)
    for name in ("before", "entry"):
        means = [fitted.score(fold.test, measure="map") for fold in folds]
        assert [one.mean("map") for one in found.evaluations[name]] == pytest.approx(means)
    assert (found.values("map")[2] == found.values("map")[3]).all()
    assert (found.values("map")[0] != found.values("map")[2]).any()
    assert found.to_frame("map")["fitted"].tolist().count("before") == 2
    assert "Fitted before, and used as they are: before, entry." in str(found)
    # A null model is null, whoever has fitted it.
    train = folds[0].train
    same = data.Queries(np.ones_like(train.X), train.y, train.qid, feature_names=NAMES)
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        null = clone(fitted).fit(same)
    assert compare(folds, {"null": null, "new": given["new"]}, measures="map").n_null("null") > 0


def test_a_model_that_is_not_fitted_is_fitted_on_every_fold(folds, tmp_path):
    ready = Ranks().fit(_frame(folds[0].train), folds[0].train.y, group=folds[0].train.sizes)
    learners = {"new": Ranks(2.0), "tuned": (ready, {"power": [0.5, 2.0]}), "line": Ridge()}
    before = Ranks.fits
    found = compare(folds, learners, measures="map", directory=tmp_path)
    assert Ranks.fits == before + 6  # the fits with power=2 are shared
    for number, (train, validation, test) in enumerate(folds):
        model = Ranks(2.0).fit(_frame(train), train.y, group=train.sizes)
        expected = evaluate(model.predict(_frame(test)), test.y, test.qid, "map")
        assert (found.evaluations["new"][number].table == expected.table).all()
        line = Ridge().fit(_frame(train), train.y)
        assert found.learners("line")[number].coef_ == pytest.approx(line.coef_)
        assert set(found.validation["tuned"][number]) == {"power=0.5", "power=2"}
        value = evaluate(model.predict(_frame(validation)), validation.y, validation.qid, "map")
        assert found.validation["tuned"][number]["power=2"] == pytest.approx(value.mean("map"))
    before = Ranks.fits
    again = compare(folds, learners, measures=["map", "rr"], directory=tmp_path)
    assert Ranks.fits == before  # further measures are those of the stored scores
    assert (again.values("map") == found.values("map")).all()
    with pytest.raises(ValueError, match="only scores of a stored fit, and no model"):
        again.learners("new")
    with parallel_config("threading", n_jobs=2):
        by_threads = compare(folds, learners, measures="map")
    assert (by_threads.values("map") == found.values("map")).all()


def test_tuning_a_model_of_another_library(folds):
    train, validation, _ = folds[0]
    found = tune((Ranks(), {"power": [0.0, 1.0]}), train, validation, "map")
    assert isinstance(found.learner, Ranks)
    assert found.learner.power == found.setting["power"]


def test_columns_are_found_by_their_names(folds, whole):
    train, _, test = folds[0]
    some = ["links", "length"]
    model = Ranks().fit(_frame(train)[some], train.y, group=train.sizes)
    found = compare(folds[:1], {"some": model}, measures="map")
    by_hand = evaluate(model.predict(_frame(test)[some]), test.y, test.qid, "map")
    assert (found.values() == by_hand.table.T).all()
    model.feature_names_in_ = np.array(["links", "color"])
    with pytest.raises(ValueError, match="fitted to columns that the queries do not have: - color"):
        compare(folds[:1], {"some": model}, measures="map")
    # One that was fitted without names gets an array.
    nameless = LinearRegression().fit(train.X, train.y)
    compare(folds[:1], {"line": nameless}, measures="map")
    # And collections without names make no data frame.
    bare = data.make_folds(Queries(whole.X, whole.y, whole.qid), 3, rng=0)
    assert compare(bare, {"line": Ridge()}, measures="map").learners("line")[0].n_features_in_ == 4


def test_fits_are_called_by_the_words_of_the_model(folds):
    class ByQuery(First):
        def fit(self, X, y, qid=None):
            assert len(qid) == len(X)
            self.queries = len(set(qid))

    class ById(First):
        def fit(self, X, y, group_id=None):
            self.queries = len(set(group_id))

        def is_fitted(self):
            return hasattr(self, "queries")

    pipeline = make_pipeline(StandardScaler(), Ridge())
    learners = {"query": ByQuery(), "id": ById(), "pipeline": pipeline}
    found = compare(folds[:1], learners, measures="map")
    for name in ("query", "id"):
        assert found.learners(name)[0].queries == len(folds[0].train)
    assert not hasattr(learners["query"], "queries")
    assert not hasattr(pipeline[-1], "coef_")
    for model in (found.learners("id")[0], found.learners("pipeline")[0]):
        assert compare(folds[:1], [model], measures="map").n_fits == 0
    assert compare(folds[:1], [clone(pipeline)], measures="map").n_fits == 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (type("Short", (), {"predict": lambda _, X: X[:3, 0]})(), "Short.predict: expected [0-9]+"),
        (type("Holes", (), {"predict": lambda _, X: X[:, 0] * np.nan})(), "Holes.predict: .*nan"),
        (type("Two", (), {"predict": lambda _, X: X[:, :2]})(), "one per document, got shape"),
        (type("Rude", (), {"predict": lambda _, X: 1 / 0})(), "ZeroDivisionError"),
    ],
)
def test_a_model_that_fails_is_left_out(model, message, folds):
    found = compare(folds, {"it": model, "first": First()}, measures="map")
    assert found.names == ["first"]
    with pytest.raises(ValueError, match=message):
        compare(folds, {"it": model}, measures="map")


def test_models_that_cannot_take_part(folds):
    for learners, message in (
        ({"it": (First(), {"depth": [1, 2]})}, "First has no fit, but has settings"),
        ({"it": (Ranks(), {"depth": [1, 2]})}, "learners: it: no parameter depth"),
        ({"it": (Ranks(), {"power": 2.0})}, "expected values of 'power' in a list"),
        ({"it": Ranks}, "expected names, learners or objects with predict, got type"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            compare(folds, learners)


def test_lightgbm_takes_part(folds):
    lightgbm = pytest.importorskip("lightgbm")
    train, _, test = folds[0]
    model = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1)
    fitted = clone(model).fit(_frame(train), train.y, group=train.sizes)
    learners = {
        "fitted": fitted,
        "booster": fitted.booster_,
        "new": model,
        "tuned": (model, {"n_estimators": [5]}),
        "mle": MLE(),
    }
    scores = fitted.predict(_frame(test))
    found = compare(folds[:1], learners, scores={"scores": scores}, measures="map")
    assert not found.failures
    expected = evaluate(scores, test.y, test.qid, "map").table[:, 0]
    for name, values in zip(found.names, found.values(), strict=True):
        assert (values == expected).all() == (name != "mle")


# ---- the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory, whole, scores):
    folder = tmp_path_factory.mktemp("scores")
    data.save_letor(whole, folder / "all.txt")
    data.save_scores(scores["a"], folder / "a.txt")
    np.save(folder / "b.npy", scores["b"])
    data.save_run(whole, scores["c"], folder / "c.run")
    return folder


GIVEN = ("--scores", "a=a.txt", "--scores", "b=b.npy", "-s", "c=c.run")


@pytest.mark.usefixtures("no_report")
def test_the_command_compares_files_of_scores(files, whole, scores):
    arguments = ("compare", "all.txt", *GIVEN, "-o", "out", "--identities", "0")
    facts = json.loads(permdist(*arguments, "-m", "map", "--json", cwd=files))
    expected = compare_scores(scores, whole, measures="map").to_dict()
    assert facts["tables"]["ap"] == expected["tables"]["ap"]
    assert (files / "out" / "ap.csv").is_file()


@pytest.mark.usefixtures("no_report")
def test_the_command_compares_scores_with_learners(files, whole, scores):
    arguments = ("compare", "all.txt", *GIVEN, "-M", "MLE[C=1]", "--folds", "3", "-j", "1")
    more = ("-m", "map", "-o", "both", "--identities", "0", "--baseline", "c", "--json")
    facts = json.loads(permdist(*arguments, *more, cwd=files))
    table = facts["tables"]["ap"]
    assert set(table) == {"MLE[C=1]", "a", "b", "c"}
    folds = data.make_folds(whole, 3, rng=0)
    for name, one in scores.items():
        value = evaluate(one, whole.y, whole.qid, "map")
        by_query = dict(zip(value.qids.tolist(), value.table[:, 0], strict=True))
        means = [np.mean([by_query[qid] for qid in fold.test.qids.tolist()]) for fold in folds]
        assert table[name]["mean"] == pytest.approx(np.mean(means))


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("form", ["S", "Fold"])
def test_the_command_takes_scores_of_folders(form, whole, tmp_path):
    parts = [whole.where(np.arange(45) % 5 == number) for number in range(5)]
    if form == "S":
        for number, part in enumerate(parts, 1):
            data.save_letor(part, tmp_path / f"S{number}.txt")
    else:
        for number in range(5):
            folder = tmp_path / f"Fold{number + 1}"
            folder.mkdir()
            for name, one in (("test", 0), ("vali", 1), ("train", 2)):
                data.save_letor(parts[(number + one) % 5], folder / f"{name}.txt")
    joined = Queries.concatenate(parts)
    data.save_scores(joined.X[:, 1], tmp_path / "scores.txt")
    arguments = ("compare", ".", "-s", "it=scores.txt", "-m", "map", "--json", "-o", "out")
    facts = json.loads(permdist(*arguments, "--identities", "0", cwd=tmp_path))
    means = [evaluate(one.X[:, 1], one.y, one.qid, "map").mean("map") for one in parts]
    assert facts["tables"]["ap"]["it"]["mean"] == pytest.approx(np.mean(means))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a.txt",), "--scores: expected NAME=FILE, got 'a.txt'"),
        (("a=",), "--scores: expected NAME=FILE"),
        (("a=a.txt", "a=b.npy"), "--scores: 'a' appears twice"),
        (("a=none.txt",), "none.txt: no such file"),
        (("a=short.txt",), "short.txt: expected .* scores, one for each document, got 1"),
        (("a=bad.npy",), "bad.npy: expected an array of numbers"),
    ],
)
def test_files_of_scores_that_make_no_sense(given, message, files):
    (files / "short.txt").write_text("1.0\n")
    (files / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    options = [word for one in given for word in ("--scores", one)]
    told = permdist("compare", "all.txt", *options, "-o", "bad", cwd=files, code=2)
    assert re.search(message, told), told


def test_arrays_of_numpy_are_scores(files, scores, tmp_path):
    assert (load_scores(files / "b.npy") == scores["b"]).all()
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects\.npy: expected an array of numbers"):
        load_scores(tmp_path / "objects.npy")
    told = permdist("evaluate", "b.npy", "all.txt", "-m", "map", "--json", cwd=files)
    assert 0.0 < json.loads(told)["mean"]["ap"] < 1.0
