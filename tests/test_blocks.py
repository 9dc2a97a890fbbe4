"""Blocks of queries: the same sums as from one matrix, on any number of threads, without copies."""

import subprocess
import sys
import textwrap
import warnings

import naive
import numpy as np
import pytest

from permdist import objectives
from permdist._parallel import pointers
from permdist.data import Queries
from permdist.models import MLE, ConvexLoss, ListNet, RankBoost, RankSVM, SVMMap, blocks, solvers
from permdist.models.blocks import Table, columns_of
from permdist.models.scaling import Scaling, spread_within
from permdist.models.totals import BlockTotal

FORMS = ("float64", "float32", "fortran", "read-only", "memory map")


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(3)
    ptr = pointers(rng.integers(5, 15, size=40))
    X = rng.normal(size=(ptr[-1], 5)).round(1) * [1.0, 4096.0, 0.5, 2.0, 1.0]
    X = X.astype(np.float32).astype(np.float64)  # the same numbers in both types
    labels = rng.integers(0, 3, size=len(X)) * (X[:, 0] + 2.0 * rng.normal(size=len(X)) > 0.0)
    labels[ptr[:-1]], labels[ptr[:-1] + 1] = 0, 1
    for q in (0, 7, 8, 39):  # these teach nothing
        labels[ptr[q] : ptr[q + 1]] = 1
    return Queries(X, labels, np.repeat(np.arange(40), np.diff(ptr)))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_DOCUMENTS", 32)
    monkeypatch.setattr(blocks, "SMALL", 0)


def in_form(X, form, folder):
    """The same features in another type or place."""
    if form == "memory map":
        np.save(folder / "X.npy", X.astype(np.float32))
        return np.load(folder / "X.npy", mmap_mode="r")
    X = X.astype(np.float32) if form in ("float32", "read-only") else X.copy()
    X = np.asfortranarray(X) if form == "fortran" else X
    X.flags.writeable = form != "read-only"
    return X


def kept(queries):
    """Features, labels and pointers of the queries that teach something."""
    teaches = [len(np.unique(query.y)) > 1 for query in queries]
    rows = np.repeat(teaches, queries.sizes)
    return queries.X[rows], queries.y[rows], pointers(queries.sizes[teaches]), np.array(teaches)


@pytest.mark.parametrize("views", [("raw",), ("minmax",), ("zscore",), ("rank",), ("raw", "rank")])
def test_blocks_of_a_table(views, queries, small_blocks):
    X, labels, ptr, teaches = kept(queries)
    table = Table(queries, views=views, keep=teaches, n_jobs=1)
    assert len(table) > 4
    assert table.n_documents == len(labels)
    assert table.n_queries == len(ptr) - 1
    np.testing.assert_array_equal(table.labels, labels)
    expected = np.hstack([naive.normalized(X, ptr, view) for view in views])
    found = np.vstack([table.block(k).copy() for k in range(len(table))])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(table.whole(), found)
    np.testing.assert_array_equal(table.query(3), found[ptr[3] : ptr[4]])
    np.testing.assert_allclose(table.spread, spread_within(expected, ptr), rtol=1e-12)
    np.testing.assert_array_equal(queries.where(teaches).normalize(list(views)).X, found)
    w = np.random.default_rng(0).normal(size=table.width)
    np.testing.assert_allclose(table.scores(w), expected @ w, rtol=1e-9, atol=1e-9)


OBJECTIVES = [
    objectives.ListNet(),
    objectives.ListMLE(ties="random"),
    objectives.PairHinge(),
    objectives.Likelihood(),
    objectives.ConvexLoss("ap", space="interleavings"),
    objectives.ExpectedGain("ndcg@5", space="restart[sample_size=10]"),
    objectives.RankingHinge("ap", grades="auto"),
    objectives.Boltzmann(sample_size=10),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.alias)
def test_sums_over_blocks(objective, queries, small_blocks):
    """The same as from one matrix, and the same bits on one thread and on two."""
    X, labels, ptr, teaches = kept(queries)
    w = np.random.default_rng(1).normal(size=5) / X.std(axis=0)
    table = Table(queries, keep=teaches, n_jobs=1)
    serial = BlockTotal(objective, table, 1)
    parts = serial.parts(w)
    assert parts.shape == (len(table), 3 + 5)
    np.testing.assert_array_equal(parts, BlockTotal(objective, table, 2).parts(w))
    value, gradient, steepest, silent = naive.whole_total(objective, X, labels, ptr, w)
    found = serial(w)
    assert found.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-9 * abs(gradient).max())
    assert found.steepest == pytest.approx(steepest, rel=1e-9)
    assert found.silent == silent
    # Some of the blocks, as a worker has them: the same rows.
    some = BlockTotal(objective, table, 1, blocks=range(2, 5))
    np.testing.assert_array_equal(some.parts(w), parts[2:5])
    restricted = serial.some([1, 3])
    np.testing.assert_array_equal(restricted.parts(w), parts[[1, 3]])
    assert restricted.n_documents == sum(len(serial.blocks[k].batch.labels) for k in (1, 3))


@pytest.mark.parametrize("form", FORMS)
def test_fits_do_not_depend_on_type_place_or_threads(form, queries, small_blocks, tmp_path):
    X = in_form(queries.X, form, tmp_path)
    usual = MLE(C=10.0, n_jobs=1).fit(queries)
    other = MLE(C=10.0, n_jobs=2).fit(X, queries.y, queries.qid)
    np.testing.assert_array_equal(other.coef_, usual.coef_)
    kept_as_it_is = Queries(X, queries.y, queries.qid)
    assert np.shares_memory(kept_as_it_is.X, X)
    assert kept_as_it_is.X.dtype == X.dtype
    scores = other.predict(X, queries.qid)
    np.testing.assert_allclose(scores, usual.predict(queries), rtol=1e-12, atol=1e-12)
    standard = ListNet(normalize="zscore", n_jobs=2).fit(X, queries.y, queries.qid)
    again = ListNet(normalize="zscore", n_jobs=1).fit(queries)
    np.testing.assert_array_equal(standard.coef_, again.coef_)
    assert standard.score(X, queries.y, queries.qid) == again.score(queries)


@pytest.mark.parametrize(
    "learner",
    [ConvexLoss("ap"), ConvexLoss("ndcg@5", reweight=1), SVMMap(), RankSVM(loss="hinge")],
    ids=lambda one: type(one).__name__,
)
def test_blocks_change_nothing_but_rounding(learner, queries, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual = learner.fit(queries).coef_
        monkeypatch.setattr(blocks, "BLOCK_DOCUMENTS", 64)
        np.testing.assert_allclose(learner.fit(queries).coef_ / usual, 1.0, rtol=0.02)


def test_boosting_of_singles_is_that_of_doubles(queries):
    X = queries.X.astype(np.float32)
    usual = RankBoost(max_iter=10).fit(queries)
    other = RankBoost(max_iter=10).fit(X, queries.y, queries.qid, eval_set=queries)
    assert other.stumps_ == usual.stumps_
    np.testing.assert_array_equal(other.predict(X), usual.predict(queries))
    for form in (X, np.asfortranarray(X)):
        for k, column in columns_of(form):
            assert column.dtype == np.float64
            np.testing.assert_array_equal(column, X[:, k])


def test_a_growing_solver_takes_fewer_passes(small_blocks):
    """Correlated features, in units that hide it: the same certificate, several times as fast."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1800, 12)) * np.geomspace(1.0, 3e-3, 12) @ rng.normal(size=(12, 12))
    y = (X @ rng.normal(size=12) * 30.0 + rng.normal(size=1800) > 0.7).astype(int)
    queries = Queries(X, y, np.repeat(np.arange(60), 30))
    learner = ListNet(C=1e3)
    table = learner.training_table(queries)
    scaling, passes, found = learner._units(table), {}, {}
    for name in ("lbfgs", "growing"):
        seen = []

        class Counted(BlockTotal):
            def parts(self, w, seen=seen):
                seen.append(self.n_documents)
                return super().parts(w)

        total = Counted(learner.build_objective(), table, 1)
        assert len(total) >= 32
        options = {"rng": np.random.default_rng(0)} if name == "growing" else {}
        found[name] = getattr(solvers, name)(total, None, 1e3, scaling=scaling, **options)
        passes[name] = sum(seen) / table.n_documents
    assert found["lbfgs"].converged
    assert found["growing"].converged
    assert found["growing"].value == pytest.approx(found["lbfgs"].value, rel=1e-5)
    assert passes["growing"] < 0.6 * passes["lbfgs"]
    few = solvers.growing(
        total.some(range(5)), None, 1e3, rng=np.random.default_rng(0), scaling=scaling
    )
    plain = solvers.lbfgs(total.some(range(5)), None, 1e3, scaling=scaling)
    np.testing.assert_array_equal(few.w, plain.w)
    by_name = ListNet(C=1e3, solver="growing", n_jobs=1).fit(queries)
    assert by_name.converged_
    assert Scaling.plain(2).factors.tolist() == [1.0, 1.0]


MEMORY = """
    import resource, warnings
    import numpy as np
    from permdist import data
    from permdist.models import ListNet, RankBoost, RankSVM

    warnings.simplefilter("ignore")
    small = data.make_letor(20, n_features=4, rng=0)
    learners = [
        (ListNet(max_iter=3, normalize="zscore"), 0.2),
        (RankSVM(loss="hinge", max_iter=3), 0.2),
        (RankBoost(weak="feature", max_iter=3), 1.2),
    ]
    singles = data.Queries(small.X.astype(np.float32), small.y, small.qid)
    for learner, _ in learners:  # compiles
        learner.fit(small).fit(singles).predict(singles)
    rng = np.random.default_rng(0)
    X = np.empty((80_000, 300), dtype=np.float32)
    for start in range(0, len(X), 1000):
        X[start : start + 1000] = rng.random((1000, 300), dtype=np.float32)
    qid = np.repeat(np.arange(800), 100)
    y = (X[:, 0] > 0.8).astype(np.int64) * (qid % 10 > 0)  # a tenth teaches nothing
    for learner, most in learners:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        learner.fit(X, y, qid)
        learner.score(X, y, qid)
        above = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / X.nbytes
        assert above < most + 0.1, (learner, above)
    print("small")
"""


def test_fits_make_no_copy_of_the_features():
    """The highest memory of a process never falls, so the learners that need least come first."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "small", done.stderr


def test_a_subclass_with_its_own_way_to_learn_is_not_passed_by(queries):
    class Noted(MLE):
        def _learn(self, features, batch, watch, start):
            self.seen = features.shape
            super()._learn(features, batch, watch, start)

    learner = Noted(max_iter=20).fit(queries)
    assert learner.seen[1] == queries.n_features
    np.testing.assert_array_equal(learner.coef_, MLE(max_iter=20).fit(queries).coef_)
