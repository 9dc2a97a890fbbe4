"""Objectives and measures inside LightGBM and XGBoost, checked against the libraries."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from permdist import data, objectives
from permdist.adapters import (
    LightGBMMeasure,
    LightGBMObjective,
    XGBoostMeasure,
    XGBoostObjective,
)
from permdist.adapters.groups import query_weights, sizes_of
from permdist.adapters.losses import GroupedLoss
from permdist.adapters.measuring import GroupedMeasures
from permdist.measures import evaluate
from permdist.objectives import ListMLE, ListNet

# Exact in single precision, in which boosters keep weights.
WEIGHTS = np.random.default_rng(5).integers(1, 9, size=20) / 4.0


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(20, n_documents=(4, 15), n_features=5, empty=0.0, rng=1)


@pytest.fixture(scope="module")
def scores(queries):
    return np.random.default_rng(0).normal(size=queries.n_documents)


def quotient(function, point, step=1e-5):
    """Return difference quotients of fourth order."""
    found = np.empty(len(point))
    for i in range(len(point)):
        unit = np.zeros(len(point))
        unit[i] = step
        near = function(point + unit) - function(point - unit)
        far = function(point + 2.0 * unit) - function(point - 2.0 * unit)
        found[i] = (8.0 * near - far) / (12.0 * step)
    return found


def weighted(queries, objective):
    return lambda s: float(objective.values(s, queries.y, queries.qid)[0] @ WEIGHTS)


def test_gradients_as_lightgbm_gets_them(queries, scores):
    lightgbm = pytest.importorskip("lightgbm")
    loss = LightGBMObjective(ListNet(), unit=False, floor=0.0)
    rows = np.repeat(WEIGHTS, queries.sizes)
    wanted = quotient(weighted(queries, ListNet()), scores)
    found = loss(queries.y, scores, rows, queries.sizes)
    np.testing.assert_allclose(found[0], wanted, atol=1e-8)
    assert (found[1] > 0.0).all()
    table = lightgbm.Dataset(queries.X, queries.y, group=queries.sizes, weight=rows).construct()
    again = loss(scores, table)
    np.testing.assert_array_equal(again[0], found[0])
    np.testing.assert_array_equal(again[1], found[1])


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_lightgbm_trains_with_both_interfaces(queries):
    lightgbm = pytest.importorskip("lightgbm")
    loss, measure = ListNet().lightgbm(n_jobs=1), LightGBMMeasure("ndcg@5", "ap")
    params = {"num_leaves": 4, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1}
    table = lightgbm.Dataset(queries.X, queries.y, group=queries.sizes, params={"verbosity": -1})
    told = {}
    model = lightgbm.train(
        {**params, "objective": loss, "metric": "none"},
        table,
        5,
        valid_sets=[table],
        valid_names=["here"],
        feval=measure,
        callbacks=[lightgbm.record_evaluation(told)],
    )
    ranker = lightgbm.LGBMRanker(
        objective=loss, n_estimators=5, num_leaves=4, min_child_samples=3, verbose=-1, n_jobs=1
    )
    ranker.fit(
        queries.X,
        queries.y,
        group=queries.sizes,
        eval_set=[(queries.X, queries.y)],
        eval_group=[queries.sizes],
        eval_metric=measure,
    )
    found = model.predict(queries.X)
    np.testing.assert_allclose(ranker.predict(queries.X), found)
    expected = evaluate(found, queries.y, queries.qid, ["ndcg@5", "ap"])
    assert told["here"]["permdist_ndcg@5"][-1] == pytest.approx(expected.mean("ndcg@5"), abs=1e-6)
    assert told["here"]["permdist_ap"][-1] == pytest.approx(expected.mean("ap"), abs=1e-6)
    assert told["here"]["permdist_ap"][-1] > told["here"]["permdist_ap"][0] - 0.05
    (again,) = (one["permdist_ap"] for one in ranker.evals_result_.values())
    np.testing.assert_allclose(again, told["here"]["permdist_ap"])


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("own", [{}, {"metric": "none"}], ids=["beside", "alone"])
def test_measures_stop_lightgbm_under_names_of_their_own(own, queries):
    lightgbm = pytest.importorskip("lightgbm")
    others = data.make_letor(20, n_documents=(4, 15), n_features=5, empty=0.0, rng=2)
    small = {"num_leaves": 4, "min_child_samples": 3, "verbose": -1, "n_jobs": 1}
    ranker = lightgbm.LGBMRanker(n_estimators=40, **small, **own)
    ranker.fit(
        queries.X,
        queries.y,
        group=queries.sizes,
        eval_set=[(others.X, others.y)],
        eval_group=[others.sizes],
        eval_at=[5],
        eval_metric=LightGBMMeasure("ndcg@5"),
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    (told,) = ranker.evals_result_.values()
    assert set(told) == {"permdist_ndcg@5"} | (set() if own else {"ndcg@5"})
    assert len(set(map(len, told.values()))) == 1
    if own:
        best = int(np.argmax(told["permdist_ndcg@5"])) + 1
        assert ranker.best_iteration_ == best


def test_measures_stop_xgboost_under_names_of_their_own(queries):
    xgboost = pytest.importorskip("xgboost")
    table, told = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid), {}
    xgboost.train(
        {"objective": "rank:ndcg", "eval_metric": "ndcg@5", "max_depth": 3, "nthread": 1},
        table,
        5,
        custom_metric=XGBoostMeasure("ndcg@5"),
        maximize=True,
        evals=[(table, "here")],
        evals_result=told,
        early_stopping_rounds=3,
        verbose_eval=False,
    )
    assert set(told["here"]) == {"ndcg@5", "permdist_ndcg@5"}
    assert {len(values) for values in told["here"].values()} <= {4, 5}


def test_one_round_of_lightgbm_is_a_newton_step(queries):
    """The scores of each leaf, from the objective at `init_score` and with weights."""
    lightgbm = pytest.importorskip("lightgbm")
    start = np.random.default_rng(2).normal(size=queries.n_documents)
    rows = np.repeat(WEIGHTS, queries.sizes)
    table = lightgbm.Dataset(
        queries.X,
        queries.y,
        group=queries.sizes,
        weight=rows,
        init_score=start,
        params={"verbosity": -1},
    )
    params = {"num_leaves": 4, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1}
    loss = LightGBMObjective(ListMLE(), unit=False, floor=0.0)
    model = lightgbm.train(
        {**params, "objective": loss, "learning_rate": 1.0, "min_sum_hessian_in_leaf": 0.0},
        table,
        1,
    )
    leaf = model.predict(queries.X, pred_leaf=True).ravel()
    exact = ListMLE().derivatives(start, queries.y, queries.qid, weights=WEIGHTS)
    sums = [np.bincount(leaf, one) for one in (exact.gradient, exact.curvature)]
    np.testing.assert_allclose(model.predict(queries.X), (-sums[0] / sums[1])[leaf], rtol=1e-5)


def test_gradients_as_xgboost_gets_them(queries, scores):
    xgboost = pytest.importorskip("xgboost")
    table = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid, weight=WEIGHTS)
    loss = XGBoostObjective(ListNet(), unit=False, floor=0.0)
    single = WEIGHTS.astype(np.float32).astype(float)
    wanted = quotient(
        lambda s: float(ListNet().values(s, queries.y, queries.qid)[0] @ single), scores
    )
    np.testing.assert_allclose(loss(scores, table)[0], wanted, atol=1e-8)


def test_one_round_of_xgboost_is_a_newton_step(queries):
    xgboost = pytest.importorskip("xgboost")
    start = np.random.default_rng(2).normal(size=queries.n_documents).astype(np.float32)
    table = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid, weight=WEIGHTS)
    table.set_base_margin(start)
    loss = XGBoostObjective(ListMLE(), unit=False, floor=0.0)
    params = {"max_depth": 2, "eta": 1.0, "lambda": 0.0, "min_child_weight": 0.1, "nthread": 1}
    model = xgboost.train({**params, "base_score": 0.0}, table, 1, obj=loss)
    bare = xgboost.DMatrix(queries.X)
    leaf = model.predict(bare, pred_leaf=True).astype(int).ravel()
    exact = ListMLE().derivatives(
        start.astype(float), queries.y, queries.qid, weights=WEIGHTS.astype(np.float32)
    )
    sums = [np.bincount(leaf, one) for one in (exact.gradient, exact.curvature)]
    with np.errstate(invalid="ignore"):
        wanted = (-sums[0] / sums[1])[leaf]
    np.testing.assert_allclose(model.predict(bare, output_margin=True), wanted, rtol=2e-3)


def test_xgboost_trains_with_both_interfaces(queries):
    xgboost = pytest.importorskip("xgboost")
    table = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid)
    loss, measure = ListNet().xgboost(n_jobs=1), XGBoostMeasure("ndcg@5")
    params = {"max_depth": 3, "eta": 0.3, "nthread": 1, "base_score": 0.0}
    told = {}
    model = xgboost.train(
        {**params, "disable_default_eval_metric": True},
        table,
        5,
        obj=loss,
        custom_metric=measure,
        evals=[(table, "here")],
        evals_result=told,
        verbose_eval=False,
    )
    expected = evaluate(model.predict(table), queries.y, queries.qid, "ndcg@5").mean("ndcg@5")
    assert told["here"]["permdist_ndcg@5"][-1] == pytest.approx(expected, abs=1e-6)
    ranker = loss.ranker(
        n_estimators=5,
        max_depth=3,
        learning_rate=0.3,
        n_jobs=1,
        base_score=0.0,
        eval_metric=measure,
        early_stopping_rounds=5,
    )
    ranker.fit(
        queries.X,
        queries.y,
        qid=queries.qid,
        eval_set=[(queries.X, queries.y)],
        eval_group=[queries.sizes],
    )
    (again,) = (one["permdist_ndcg@5"] for one in ranker.evals_result_.values())
    assert again == told["here"]["permdist_ndcg@5"]
    with pytest.raises(ValueError, match="group, qid: pass exactly one"):
        ranker.fit(queries.X, queries.y)


# ---- what is the same for all of them ------------------------------------------------------------


@pytest.mark.parametrize("objective", [ListNet(), ListMLE()])
def test_an_objective_in_place_of_its_adapter_is_recognized(objective, queries):
    lightgbm = pytest.importorskip("lightgbm")
    wanted = rf"cannot call {type(objective).__name__} itself; pass .*\.lightgbm\(\)"
    with pytest.raises(TypeError, match=wanted):
        lightgbm.LGBMRanker(objective=objective, n_estimators=2, verbose=-1, n_jobs=1).fit(
            queries.X, queries.y, group=queries.sizes
        )
    table = lightgbm.Dataset(queries.X, queries.y, group=queries.sizes)
    with pytest.raises(TypeError, match=wanted):
        lightgbm.train({"objective": objective, "verbosity": -1, "num_threads": 1}, table, 2)
    xgboost = pytest.importorskip("xgboost")
    table = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid)
    with pytest.raises(TypeError, match=r"xgboost cannot call .* itself; pass .*\.xgboost\(\)"):
        xgboost.train({"nthread": 1}, table, 2, obj=objective)


def test_units_and_floors(queries, scores):
    plain = GroupedLoss(objectives.ExpectedGain("ap"), unit=False, floor=0.0)
    unit = GroupedLoss(objectives.ExpectedGain("ap"), unit=True, floor=0.0)
    args = queries.y, queries.sizes
    (g, h), (g1, h1) = plain.derivatives(scores, *args), unit.derivatives(scores, *args)
    start = unit.derivatives(np.zeros(len(scores)), *args)[1]
    assert start[start > 0.0].mean() == pytest.approx(1.0)
    np.testing.assert_allclose(g1 * h, g * h1, atol=1e-18)
    later = unit.derivatives(2.0 * scores, *args)  # the factor is that of the data
    np.testing.assert_allclose(later[0] / plain.derivatives(2.0 * scores, *args)[0], g1[0] / g[0])
    floored = GroupedLoss(objectives.ExpectedGain("ap"), unit=False, floor=0.5)
    np.testing.assert_allclose(
        floored.derivatives(scores, *args)[1], np.maximum(h, 0.5 * h[h > 0.0].mean())
    )


@pytest.mark.parametrize("kind", [LightGBMObjective, XGBoostObjective])
def test_the_unit_is_that_of_objective_and_data(kind, queries, scores):
    pytest.importorskip(kind.__name__.removesuffix("Objective").lower())
    loss = kind(objectives.ExpectedLoss("ap"))
    args = queries.y, queries.sizes
    loss.derivatives(3.0 * scores, *args)
    wanted = loss.derivatives(scores, *args)
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), kind(loss.objective)):
        np.testing.assert_array_equal(other.derivatives(scores, *args), wanted)
    for other in range(40):  # more data sets than are kept ready
        loss.derivatives(np.zeros(2), [other + 1, 0], [2])
    np.testing.assert_array_equal(loss.derivatives(scores, *args), wanted)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_twenty_trees_and_twenty_more_are_forty(name, queries):
    library = pytest.importorskip(name)
    loss = getattr(objectives.ExpectedLoss("ap"), name)(n_jobs=1)
    if name == "lightgbm":
        params = {"verbosity": -1, "num_threads": 1, "num_leaves": 7, "seed": 0}
        params |= {"min_sum_hessian_in_leaf": 3.0, "lambda_l2": 1.0, "min_data_in_leaf": 2}

        def train(trees, before=None):
            table = library.Dataset(queries.X, queries.y, group=queries.sizes, free_raw_data=False)
            return library.train({**params, "objective": loss}, table, trees, init_model=before)

        data = queries.X
    else:
        params = {"nthread": 1, "max_depth": 3, "min_child_weight": 3.0, "lambda": 1.0, "seed": 0}
        data = library.DMatrix(queries.X, queries.y, qid=queries.qid)

        def train(trees, before=None):
            own = copy.deepcopy(loss)
            return library.train(params, data, trees, obj=own, xgb_model=before)

    whole, more = train(40).predict(data), train(20, train(20)).predict(data)
    np.testing.assert_allclose(more, whole, atol=1e-5 * np.ptp(whole))


def test_data_sets_are_told_apart(queries, scores):
    loss = GroupedLoss(ListNet(), unit=False)
    args = [(queries.y, queries.sizes, None), (queries.y, queries.sizes, WEIGHTS)]
    args += [((queries.y > k).astype(int), queries.sizes, None) for k in range(4)]
    first = [loss.derivatives(scores, *one)[0] for one in args]
    second = [loss.derivatives(scores, *one)[0] for one in args[::-1]][::-1]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], first[1])


def test_weights_of_measures(queries, scores):
    found = GroupedMeasures("ap").means(scores, queries.y, queries.sizes, WEIGHTS)
    each = evaluate(scores, queries.y, queries.qid, "ap")["ap"]
    assert found == [("ap", pytest.approx(each @ WEIGHTS / WEIGHTS.sum()))]


BAD_GROUPS = {
    "none": (None, "group: expected the number of documents of each query, got none"),
    "short": ([2, 2], "group: expected sizes of queries that add up to 5 documents, got 2 sizes"),
    "zero": ([5, 0], "group: expected at least one document per query, got 0 at index 1"),
    "half": ([2.5, 2.5], "group: expected whole numbers"),
}


@pytest.mark.parametrize("case", BAD_GROUPS)
def test_groups_that_do_not_add_up(case):
    group, message = BAD_GROUPS[case]
    with pytest.raises((TypeError, ValueError), match=message):
        sizes_of("group", group, 5)
    with pytest.raises((TypeError, ValueError), match=message):
        GroupedLoss(ListNet()).derivatives(np.zeros(5), [1, 0, 0, 1, 0], group)


def test_weights_are_those_of_queries():
    sizes = np.array([2, 1])
    assert query_weights("weight", None, sizes) is None
    assert query_weights("weight", [1.0, 2.0], sizes).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="one weight for all documents of a query, got 1 and 2 in"):
        query_weights("weight", [1.0, 2.0, 1.0], sizes)
    with pytest.raises(ValueError, match=r"one weight per query .2. or per document .3., got 4"):
        query_weights("weight", np.ones(4), sizes)
    with pytest.raises(ValueError, match="weights of at least 0, got -1 at 0"):
        query_weights("weight", [-1.0, 1.0], sizes)


@pytest.mark.parametrize("kind", [LightGBMObjective, XGBoostObjective])
def test_objectives_can_be_copied_and_sent_elsewhere(kind, queries, scores):
    pytest.importorskip(kind.__name__.removesuffix("Objective").lower())
    loss = kind("listnet", floor=0.2)
    wanted = loss.derivatives(scores, queries.y, queries.sizes)
    for other in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert repr(other) == repr(loss) == f"{kind.__name__}('listnet')"
        found = other.derivatives(scores, queries.y, queries.sizes)
        np.testing.assert_array_equal(found, wanted)


def test_a_ranker_of_xgboost_can_be_cloned(queries):
    pytest.importorskip("xgboost")
    ranker = ListNet().xgboost(n_jobs=1).ranker(n_estimators=2, max_depth=2, n_jobs=1)
    ranker.fit(queries.X, queries.y, qid=queries.qid)
    again = clone(ranker).fit(queries.X, queries.y, group=queries.sizes)
    np.testing.assert_array_equal(again.predict(queries.X), ranker.predict(queries.X))


def test_data_without_groups_are_refused_by_name(queries):
    lightgbm = pytest.importorskip("lightgbm")
    table = lightgbm.Dataset(queries.X, queries.y).construct()
    with pytest.raises(ValueError, match="group: expected the number of documents of each query"):
        ListNet().lightgbm()(np.zeros(queries.n_documents), table)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "torch", "jax"])
def test_a_missing_library_is_one_line(name, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as told:
        getattr(ListNet(), name)()
    assert str(told.value) == f"{name}(): requires {name}; pip install {name}"
