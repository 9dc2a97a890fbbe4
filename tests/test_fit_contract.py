"""The contract of a fit, for every learner: units, order of documents, certificates, null models.

What is asked of all learners stands here; what a learner computes is tested elsewhere.
"""

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist import models
from permdist.data import Queries
from permdist.measures import evaluate
from permdist.models import Descent, LinearRanker, Standardized, all_learners
from permdist.models.scaling import Scaling, spread_within
from permdist.models.solvers import cutting_planes, lbfgs

KINDS = {kind.__name__: kind for kind in all_learners()}
CONVEX = ("MLE", "ConvexLoss", "ListNet", "ListMLE", "RankSVM")
# Fewer rounds where a fit is slow and their number is not the point.
QUICK = {"RankBoost": {"max_iter": 30}, "PermuRank": {"max_iter": 5}}


def make(n_queries, n, *, grades=2, relevant=0.25, noise=0.7, seed=0):
    """Queries of n documents; two features carry the signal, one is skewed, one is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries, n, 4))
    signal = X[:, :, 0] - 0.7 * X[:, :, 1] + noise * rng.normal(size=(n_queries, n))
    X[:, :, 2] = np.exp(X[:, :, 2] + 0.3 * signal)
    place = np.argsort(np.argsort(-signal, axis=1), axis=1)
    cuts = relevant * n * np.arange(1, grades) / (grades - 1)
    y = (place[:, :, None] < np.maximum(1, cuts)).sum(axis=2)
    return Queries(X.reshape(-1, 4), y.ravel(), np.repeat(np.arange(n_queries), n))


def quiet_fit(name, *data, **params):
    """Fit a learner; what it warns of is tested apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KINDS[name](**{**QUICK.get(name, {}), **params}).fit(*data)


def same_ranking(one, other, qid):
    """Whether two scorings rank the documents of every query alike, but for near ties."""
    for query in np.unique(qid):
        a, b = one[qid == query], other[qid == query]
        a, b = (a - a.mean()) / (a.std() or 1.0), (b - b.mean()) / (b.std() or 1.0)
        if np.abs(a - b).max() > 1e-3:
            return False
    return True


@pytest.mark.parametrize("name", KINDS)
def test_units_make_no_difference(name):
    queries = make(10, 20, grades=3)
    units = np.array([1e7, 1e-3, 3e4, 12.0])
    usual = quiet_fit(name, queries)
    other = quiet_fit(name, queries.X * units, queries.y, queries.qid)
    found = [usual.predict(queries.X, queries.qid), other.predict(queries.X * units, queries.qid)]
    assert same_ranking(*found, queries.qid)
    assert usual.null_ == other.null_


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_documents_makes_no_difference(name):
    queries = make(10, 20, grades=3)
    # A feature with ties, which nothing but the labels' order in the file could break.
    X = np.column_stack([queries.X, np.round(queries.X[:, 0])])
    best_first = np.lexsort((-queries.y, queries.qid))
    rng = np.random.default_rng(1)
    mixed = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(queries.ptr)])
    fits = [quiet_fit(name, X[r], queries.y[r], queries.qid[r]) for r in (best_first, mixed)]
    found = [fit.predict(X, queries.qid) for fit in fits]
    assert same_ranking(*found, queries.qid)
    # Nor does it at prediction.
    np.testing.assert_allclose(fits[0].predict(X[mixed], queries.qid[mixed]), found[0][mixed])


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("standardize", [True, False])
def test_minima_are_reached_whatever_the_units(name, standardize):
    queries = make(12, 15)
    X = queries.X * np.array([1e7, 1e-3, 3e4, 12.0])
    for C in (1.0, 1000.0):
        data, params = (X, queries.y, queries.qid), {"standardize": standardize, "C": C}
        found = KINDS[name](**params).fit(*data)
        assert found.converged_
        long = quiet_fit(name, *data, **params, tol=1e-13, max_iter=20_000)
        lowest = min(long.history_["objective"])
        assert found.history_["objective"][-1] <= lowest * (1.0 + 1e-6)


@pytest.mark.parametrize("name", ["SVMMap", "SVMNDCG"])
def test_duality_gaps_hold(name):
    queries = make(12, 15)
    found, long = KINDS[name]().fit(queries), quiet_fit(name, queries, tol=1e-6, max_iter=5000)
    lower, value = found.history_["lower"][-1], found.history_["objective"][-1]
    minimum = min(long.history_["objective"])
    assert found.converged_
    assert lower <= minimum * (1.0 + 1e-9)
    assert value <= 1.0011 * minimum


# Cutting planes may be at w = 0 still, and say so as well.
@pytest.mark.filterwarnings("ignore:.*nothing was learned:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in KINDS if issubclass(KINDS[name], Descent)])
def test_unconverged_fits_warn_with_a_remedy(name):
    queries = make(6, 12, grades=3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        found = KINDS[name](max_iter=1).fit(queries)
    assert not found.converged_
    assert any(re.match(rf"{name}: .*(use|try) ", str(one.message)) for one in told)


@pytest.mark.parametrize("name", KINDS)
def test_null_models_are_named(name):
    queries = make(6, 8)
    constant = np.repeat(queries.X[::8], 8, axis=0)  # within each query
    with pytest.warns(ConvergenceWarning, match="nothing was learned|by chance"):
        found = KINDS[name](**QUICK.get(name, {})).fit(constant, queries.y, queries.qid)
    assert found.null_
    assert not quiet_fit(name, make(10, 20)).null_


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("n", "grades"), [(40, 3), (120, 5), (1000, 2)])
def test_long_queries_are_learned(name, n, grades):
    relevant = 0.25 if n < 1000 else 0.005
    queries = make(8, n, grades=grades, relevant=relevant, noise=0.3)
    X = queries.X * np.array([1e7, 1e-3, 3e4, 12.0])
    found = quiet_fit(name, X, queries.y, queries.qid)
    assert not found.null_
    measure = "ndcg@10[ties=average]"
    scores = found.predict(X, queries.qid)
    value = evaluate(scores, queries.y, queries.qid, measure).mean(measure)
    chance = evaluate(0.0 * scores, queries.y, queries.qid, measure).mean(measure)
    assert value > chance + 0.3 * (1.0 - chance)


# ---- the mechanism -------------------------------------------------------------------------------


def test_a_feature_without_spread_has_no_coefficient():
    queries = make(8, 10)
    X = np.column_stack([queries.X, np.repeat([3e7, 5e7], 40)])
    for standardize in (True, False):
        assert models.MLE(standardize=standardize).fit(X, queries.y, queries.qid).coef_[4] == 0.0


def test_the_penalty_is_that_of_standardized_features():
    queries = make(12, 10)
    spread = spread_within(queries.X, queries.ptr)
    plain = models.ListNet(C=2.0, standardize=False, tol=1e-10)
    plain.fit(queries.X / spread, queries.y, queries.qid)
    found = models.ListNet(C=2.0, tol=1e-10).fit(queries)
    np.testing.assert_allclose(found.coef_ * spread, plain.coef_, rtol=1e-5)


@pytest.mark.parametrize(("solve", "tol"), [(lbfgs, 1e-6), (cutting_planes, 1e-3)])
def test_solvers_reach_the_minimum_in_any_units(solve, tol):
    rng = np.random.default_rng(3)
    A, target = rng.normal(size=(40, 5)), rng.normal(size=40)
    units, C = 10.0 ** np.array([-3.0, 0.0, 2.0, 5.0, 7.0]), 3.0

    def objective(scores):
        return (scores - target) ** 2, 2.0 * (scores - target)

    X = A * units
    for scaling in (Scaling(units, units**2), Scaling(units, np.ones(5))):
        ridge = np.diag(scaling.penalty / units**2) / C
        v = np.linalg.solve(A.T @ A + ridge, A.T @ target)
        lowest = float(((A @ v - target) ** 2).sum() + v @ ridge @ v)
        found = solve(objective, X, None, C, scaling=scaling, tol=tol)
        assert found.converged
        assert lowest <= found.value * (1 + 1e-12)
        assert found.value <= lowest * (1.0 + 1.1 * tol)


def test_the_gap_is_an_honest_estimate():
    queries = make(20, 15)
    for C in (0.1, 10.0, 1e4):
        rough = quiet_fit("ListNet", queries, C=C, tol=1e-2)
        best = quiet_fit("ListNet", queries, C=C, tol=1e-13)
        value, minimum = rough.history_["objective"][-1], best.history_["objective"][-1]
        assert value - minimum <= 1e-2 * value


def test_queries_without_a_gradient_are_counted():
    queries = make(6, 30)
    steep = LinearRanker("smooth[measure=p@5,alpha=1e6]", max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = models.ListNet().fit(queries)
        found = steep.fit(queries, warm_start_from=start)
        usual = models.ListNet().fit(queries)
    assert found.history_.get("silent", [1.0])[0] > 0.5
    assert usual.history_["silent"][0] == 0.0


def test_a_learner_of_ones_own_is_free_of_units():
    class Means(Standardized, models.Ranker):
        """Weighs each feature by the difference of its means."""

        def _learn(self, features, batch, watch, start):
            good = batch.labels > 0
            self.coef_ = features[good].mean(axis=0) - features[~good].mean(axis=0)
            watch.linear(self.coef_, objective=0.0)

    queries = make(6, 10)
    units = np.array([1e7, 1e-3, 3e4, 12.0])
    usual = Means().fit(queries, eval_set=queries)
    other = Means().fit(queries.X * units, queries.y, queries.qid)
    np.testing.assert_allclose(usual.coef_, other.coef_ * units, rtol=1e-9)
    raw = Means(standardize=False).fit(queries)
    assert not np.allclose(raw.coef_, usual.coef_)
    assert usual.history_["measure"][-1] == pytest.approx(usual.score(queries))
