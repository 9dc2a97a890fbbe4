"""Learners made of trees and layers: the contract of learners, engines, files, comparisons."""

import json
import pickle

import numpy as np
import pytest
from marks import UNFINISHED_FITS
from sklearn.base import clone
from test_cli import permdist

from permdist import data, models, objectives
from permdist.comparison import compare, read_entries
from permdist.data import Queries
from permdist.measures import evaluate
from permdist.models import MLE, Boosted, Network, load, nonlinear_learners

pytestmark = UNFINISHED_FITS

QUICK = {"max_iter": 10, "n_jobs": 1}
LEARNERS = {
    "lightgbm": Boosted(engine="lightgbm", leaves=5, min_documents=5, **QUICK),
    "xgboost": Boosted(engine="xgboost", leaves=5, min_documents=5, **QUICK),
    "sklearn": Boosted(engine="sklearn", leaves=5, min_documents=5, **QUICK),
    "sklearn, expected AP": Boosted(
        objectives.ExpectedLoss("ap", space="rows", scale=False),
        engine="sklearn",
        leaves=5,
        **QUICK,
    ),
    "numpy": Network(hidden=(16, 8), batch_size=8, **QUICK),
    "torch": Network(hidden=(16, 8), batch_size=8, engine="torch", **QUICK),
}


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(40, n_features=8, rng=3)


@pytest.fixture(params=LEARNERS)
def learner(request):
    found = LEARNERS[request.param]
    if found.engine not in ("sklearn", "numpy"):
        pytest.importorskip(found.engine)
    return clone(found)


def test_contract(learner, queries, tmp_path):
    assert learner.fit(queries.X, queries.y, queries.qid) is learner
    assert not hasattr(learner, "coef_")
    assert learner.n_features_in_ == 8
    objective = learner.history_["objective"]
    assert learner.n_iter_ == len(objective) == len(learner.history_["seconds"]) == 10
    assert objective[-1] < objective[0]
    scores = learner.predict(queries.X)
    order = learner.rank(queries.X, queries.qid)
    assert sorted(order.tolist()) == list(range(len(scores)))
    value = learner.score(queries.X, queries.y, queries.qid)
    assert value == pytest.approx(learner.score(queries), abs=1e-12)
    nothing = evaluate(np.zeros(len(scores)), queries.y, queries.qid, "ap[ties=average]")
    assert nothing.mean("ap[ties=average]") < value <= 1.0
    assert not learner.null_
    again = clone(learner).fit(queries)
    np.testing.assert_array_equal(again.predict(queries), scores)
    learner.save(tmp_path / "learner.json")
    loaded = load(tmp_path / "learner.json")
    assert type(loaded) is type(learner)
    np.testing.assert_array_equal(loaded.predict(queries), scores)
    assert loaded.history_.keys() == learner.history_.keys()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(learner)).predict(queries), scores)
    watched = clone(learner).fit(queries, eval_set=queries)
    assert watched.history_["measure"][-1] == pytest.approx(watched.score(queries), abs=1e-6)
    np.testing.assert_array_equal(watched.predict(queries), scores)  # nothing else has changed


def test_the_same_model_on_any_number_of_threads(learner, queries):
    if learner.engine == "xgboost":
        pytest.skip("its sums of histograms may depend on it")
    one, two = (clone(learner).set_params(n_jobs=n).fit(queries) for n in (1, 3))
    np.testing.assert_array_equal(one.predict(queries), two.predict(queries))


def test_units_and_order_of_documents_make_no_difference(learner, queries):
    X, y, qid = queries.X, queries.y, queries.qid
    units = np.array([1e6, 1e-3, 3e4, 12.0, 1.0, 0.1, 7.0, 1e2])
    mixed = np.concatenate(
        [
            a + np.random.default_rng(a).permutation(b - a)
            for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True)
        ]
    )
    learner.set_params(max_iter=5)
    usual = clone(learner).fit(queries).predict(X)
    scaled = clone(learner).fit(X * units, y, qid).predict(X * units)
    turned = clone(learner).fit(X[mixed], y[mixed], qid).predict(X[mixed])
    spread = usual.std()
    np.testing.assert_allclose(scaled, usual, atol=1e-3 * spread)
    np.testing.assert_allclose(turned, usual[mixed], atol=1e-3 * spread)


def test_early_stopping_keeps_the_best(learner, queries):
    held_out = data.make_letor(20, n_features=8, rng=9)
    learner.set_params(early_stopping=2, max_iter=30, learning_rate=0.2, measure="ndcg@5")
    learner.fit(queries, eval_set=held_out)
    measured = learner.history_["measure"]
    assert learner.score(held_out) == pytest.approx(max(measured), abs=1e-6)
    assert len(measured) == min(30, int(np.argmax(measured)) + 3)
    split = clone(learner).fit(queries)  # holds out queries of its own
    assert len(split.history_["measure"]) == split.n_iter_
    again = clone(learner).fit(queries.X, queries.y, queries.qid)
    np.testing.assert_array_equal(split.predict(queries), again.predict(queries))
    other = clone(learner).set_params(random_state=5).fit(queries)
    assert other.history_["measure"] != split.history_["measure"]


def test_queries_that_are_held_out_are_not_learned_from(queries):
    from permdist.models.held_out import split_queries

    train, held_out = split_queries(queries, 0.3, 0)
    assert not set(train.qids) & set(held_out.qids)
    assert set(train.qids) | set(held_out.qids) == set(queries.qids)
    assert len(held_out) == pytest.approx(0.3 * len(queries), abs=1.5)
    with pytest.raises(ValueError, match="expected at least two queries with documents of diff"):
        split_queries(Queries([[0.0], [1.0]], [0, 1]), 0.3, 0)


def test_missing_values_go_to_the_engine(learner, queries):
    X = np.where(np.random.default_rng(0).random(queries.X.shape) < 0.1, np.nan, queries.X)
    if isinstance(learner, Network):
        with pytest.raises(ValueError, match="X contains NaN"):
            learner.fit(X, queries.y, queries.qid)
        learner.set_params(missing="mean")
    learner.fit(X, queries.y, queries.qid)
    assert np.isfinite(learner.predict(X, queries.qid)).all()
    if isinstance(learner, Boosted):
        np.testing.assert_array_equal(learner.predict(X[:3]), learner.predict(X)[:3])
        with pytest.raises(ValueError, match="cannot be scaled where these are left to the engine"):
            clone(learner).set_params(normalize=True).fit(X, queries.y, queries.qid)


def test_null_models_are_named(learner, queries):
    from sklearn.exceptions import ConvergenceWarning

    constant = np.repeat(queries.X[queries.ptr[:-1]], queries.sizes, axis=0)
    with pytest.warns(ConvergenceWarning, match="nothing was learned|by chance"):
        assert learner.fit(constant, queries.y, queries.qid).null_


def test_both_engines_of_a_network_take_the_same_steps(queries):
    pytest.importorskip("torch")
    ours = Network(hidden=(6, 5), max_iter=5, batch_size=7, C=100.0, n_jobs=1).fit(queries)
    theirs = clone(ours).set_params(engine="torch").fit(queries)
    for one, other in zip(ours.layers_, theirs.layers_, strict=True):
        np.testing.assert_allclose(one["weights"], other["weights"], rtol=1e-6, atol=1e-9)
        # No ranking depends on the last one: it moves by rounding only.
        np.testing.assert_allclose(one["biases"], other["biases"], rtol=1e-6, atol=1e-6)


def test_the_gradient_of_a_network():
    from permdist.models.layers import Adam, first_layers, outputs, steps_of
    from permdist.objectives import ListNet

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 4)), rng.integers(0, 2, 9)
    layers = first_layers([4, 5, 3, 1], rng)
    small = 1e-7  # a step of Adam's is the sign of the slope in the beginning, hence one of size 1
    take = steps_of("numpy", layers, Adam(small, 0.0, 0.0, 1e6), 0.01)
    take(X, ListNet().prepare(y), 1)
    after = take.layers()

    def value(changed):
        penalty = sum(float((layer["weights"] ** 2).sum()) for layer in changed)
        return float(ListNet()(outputs(changed, X), y)[0]) + 0.01 * penalty

    for number, layer in enumerate(layers):
        for name, array in layer.items():
            for place in np.ndindex(array.shape):
                ends = []
                for sign in (1.0, -1.0):
                    other = [{k: v.copy() for k, v in one.items()} for one in layers]
                    other[number][name][place] += sign * 1e-5
                    ends.append(value(other))
                slope = (ends[0] - ends[1]) / 2e-5
                step = after[number][name][place] - array[place]
                assert -step * 1e6 / small == pytest.approx(slope, rel=2e-2, abs=1e-3)


def test_leaves_are_newton_steps(queries):
    objective = objectives.ListNet()
    learner = Boosted(
        objective, engine="sklearn", max_iter=1, leaves=4, l2=0.0, floor=0.0, learning_rate=1.0
    ).fit(queries)
    found = learner.predict(queries)
    exact = objective.derivatives(np.zeros(len(found)), queries.y, queries.qid)
    useful = exact.curvature > 0.0
    leaf = np.unique(found, return_inverse=True)[1]
    sums = [np.bincount(leaf[useful], one[useful]) for one in (exact.gradient, exact.curvature)]
    np.testing.assert_allclose(found, (-sums[0] / sums[1])[leaf], rtol=1e-9)


def test_what_is_no_model_of_an_engine(queries, tmp_path):
    learner = Boosted(engine="sklearn", max_iter=2, leaves=3).fit(queries)
    learner.save(tmp_path / "x.json")
    stored = json.loads((tmp_path / "x.json").read_text())
    trees = json.loads(stored["state"]["model_"])
    bad = [
        "",
        "nonsense",
        "[]",
        json.dumps([{**trees[0], "left": [0] * len(trees[0]["left"])}]),  # round and round
        json.dumps([{**trees[0], "feature": [99] * len(trees[0]["feature"])}]),
        json.dumps([{**trees[0], "value": trees[0]["value"][1:]}]),
    ]
    for text in bad:
        stored["state"]["model_"] = text
        (tmp_path / "x.json").write_text(json.dumps(stored))
        with pytest.raises(ValueError, match=r"x.json: model_: expected"):
            load(tmp_path / "x.json")
    lightgbm = pytest.importorskip("lightgbm")
    assert lightgbm
    learner = Boosted(max_iter=2, leaves=3).fit(queries)
    learner.model_ = "tree\nnonsense"
    with pytest.raises(ValueError, match="model_: expected trees as lightgbm writes them"):
        learner.predict(queries)
    network = Network(hidden=(3,), max_iter=1).fit(queries)
    network.layers_[1]["weights"] = network.layers_[1]["weights"][1:]
    with pytest.raises(ValueError, match=r"layers_\[1\]\['weights'\]: expected shape 3 x any"):
        network.save(tmp_path / "y.json")


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (Boosted, {"objective": "nonsense"}),
        (Boosted, {"engine": "pandas"}),
        (Boosted, {"leaves": 1}),
        (Boosted, {"columns": 0.0}),
        (Boosted, {"l2": -1.0}),
        (Boosted, {"depth": 0}),
        (Network, {"hidden": ()}),
        (Network, {"hidden": (0,)}),
        (Network, {"hidden": 64}),
        (Network, {"learning_rate": 0.0}),
        (Network, {"validation_share": 1.0}),
    ],
)
def test_parameters_are_checked(kind, params, queries):
    with pytest.raises((TypeError, ValueError), match=f"^{next(iter(params))}: "):
        kind(**params).fit(queries)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "torch"])
def test_a_missing_engine_is_one_line(name, queries, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, name, None)
    learner = Network(engine=name) if name == "torch" else Boosted(engine=name)
    with pytest.raises(ImportError, match=rf"^{type(learner).__name__}\(engine='{name}'\): requir"):
        learner.fit(queries)


def test_a_missing_engine_is_one_line_on_the_command_line(queries, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "lightgbm", None)
    data.save_letor(queries, tmp_path / "all.txt")
    told = permdist("fit", "all.txt", "Boosted", code=2, cwd=tmp_path)
    wanted = "Boosted(engine='lightgbm'): requires lightgbm; pip install lightgbm"
    assert told == f"permdist: {wanted}\n"


def test_they_take_part_by_name():
    assert [kind.__name__ for kind in nonlinear_learners()] == ["Boosted", "Network"]
    assert not set(nonlinear_learners()) & set(models.all_learners())
    whole = data.make_letor(45, n_features=12, features="bent", empty=0.0, rng=0)
    parts = [whole.where(np.arange(45) % 3 == part) for part in range(3)]
    text = (
        "MLE[C=1,normalize=false], "
        "Boosted[engine=sklearn,objective=smooth[measure=ap,alpha=2],leaves=4|8,max_iter=20], "
        "Network[hidden=(8,),max_iter=10,learning_rate=0.01]"
    )
    found = compare([tuple(parts)], text, measures=["ap"], progress=False, n_jobs=1)
    assert found.failures == {} or not found.failures
    assert {name.partition("[")[0] for name in found.names} == {"MLE", "Boosted", "Network"}
    assert len(read_entries("Boosted")[0].combinations()) > 1


def test_bent_collections_need_no_lines():
    whole = data.make_letor(
        120, n_features=8, n_documents=(10, 40), features="bent", empty=0.0, noise=0.3, rng=0
    )
    train, test = (whole.where(np.arange(120) % 2 == part) for part in range(2))
    line = models.LinearRanker("listnet", C=10.0).fit(train).score(test)
    assert Boosted(engine="sklearn", max_iter=60, leaves=8).fit(train).score(test) > line + 0.1
    assert Network(max_iter=60, learning_rate=0.01).fit(train).score(test) > line + 0.05


def test_they_are_fitted_on_the_command_line(queries, tmp_path):
    data.save_letor(queries, tmp_path / "all.txt")
    text = "Boosted[engine=sklearn,objective=smooth[measure=ap,alpha=2],max_iter=5,leaves=4]"
    told = permdist("fit", "all.txt", text, "-o", "trees.json", cwd=tmp_path)
    assert told.startswith("Boosted with")
    found = load(tmp_path / "trees.json")
    assert found.objective == "smooth[measure=ap,alpha=2]"
    rows = permdist("predict", "trees.json", "all.txt", cwd=tmp_path).split()
    np.testing.assert_allclose(np.array(rows, dtype=float), found.predict(queries), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("num_leaves", "leaves"),
        ("n_estimators", "max_iter"),
        ("lambda_l2", "l2"),
        ("depht", "depth"),
    ],
)
def test_parameters_of_other_libraries_are_named_in_ours(name, near):
    with pytest.raises(TypeError, match=f"^Boosted: .*{name!r}.*; did you mean {near!r}"):
        Boosted(**{name: 3})
    assert set(Boosted.elsewhere.values()) <= set(Boosted.parameter_names())
    assert not set(Boosted.elsewhere) & set(Boosted.parameter_names())


@pytest.mark.parametrize("learner", [Boosted(engine="sklearn"), MLE()])
def test_sizes_of_queries_are_refused_with_the_remedy(learner, queries):
    sizes = queries.sizes
    with pytest.raises(TypeError, match=r"^group: .*numpy.repeat\(numpy.arange\(len\(group\)\)"):
        learner.fit(queries.X, queries.y, group=sizes)
    with pytest.raises(TypeError, match=r"^eval_group: .*eval_set=\(X, y, qid\)"):
        learner.fit(queries.X, queries.y, queries.qid, eval_group=[sizes])
    with pytest.raises(TypeError, match=r"no argument 'eval_sets'.*; did you mean 'eval_set'"):
        learner.fit(queries, eval_sets=queries)
    same = np.repeat(np.arange(len(sizes)), sizes)
    assert np.unique(same).size == np.unique(queries.qid).size


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("views", [False, ("raw", "rank")])
def test_trees_keep_the_names_of_the_columns(engine, views, queries, tmp_path):
    library = pytest.importorskip(engine)
    pandas = pytest.importorskip("pandas")
    names = ["tf idf", "bm25[title]", "tf_idf", "a<b", '"k": {1}', "länge", "x,y", "last"]
    frame = pandas.DataFrame(queries.X, columns=names)
    learner = Boosted(engine=engine, leaves=4, min_documents=5, normalize=views, **QUICK)
    learner.fit(frame, queries.y, queries.qid, eval_set=(frame, queries.y, queries.qid))
    if engine == "lightgbm":
        found = library.Booster(model_str=learner.model_).feature_name()
    else:
        booster = library.Booster()
        booster.load_model(bytearray(learner.model_.encode()))
        found = booster.feature_names
    plain = ["tf_idf", "bm25_title_", "tf_idf_2", "a_b", "_k____1_", "länge", "x_y", "last"]
    if views:
        assert len(found) == 2 * len(plain)
        assert (found[0], found[-1]) == ("raw_tf_idf", "rank_last")
    else:
        assert found == plain
    learner.save(tmp_path / "x.json")
    scores = learner.predict(frame, queries.qid)
    np.testing.assert_array_equal(load(tmp_path / "x.json").predict(frame, queries.qid), scores)
    unnamed = clone(learner).fit(queries.X, queries.y, queries.qid)
    np.testing.assert_array_equal(unnamed.predict(queries.X, queries.qid), scores)


def test_widths_of_layers_come_back_as_they_were(queries, tmp_path):
    Network(hidden=(16,), **QUICK).fit(queries).save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").hidden == (16,)
    assert load(tmp_path / "x.json").get_params() == Network(hidden=(16,), **QUICK).get_params()
