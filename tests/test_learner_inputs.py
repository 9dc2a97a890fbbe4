"""What learners take: parameters by their rules, and data however it comes."""

from __future__ import annotations

import contextlib
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from marks import UNFINISHED_FITS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.data import Queries
from permdist.measures import evaluate, evaluate_orders
from permdist.models import MLE, ExpectedGain, all_learners

pytestmark = UNFINISHED_FITS

KINDS = {kind.__name__: kind for kind in all_learners()}
NONSENSE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-1": -1,
    "text": "nonsense",
    "None": None,
    "2**70": 2**70,
    "10**5000": 10**5000,
    "list": [],
    "object": object(),
    "array": np.ones(3),
    "complex": 1j,
    "yes": "yes",
}
# What the documentation allows, of all these: no penalty, all processors, any seed, no limit.
LEGAL = {
    "C": {"inf", "2**70"},
    "n_jobs": {"-1", "None"},
    "random_state": {"None", "2**70", "10**5000"},
    "early_stopping": {"None"},
    "space": {"None"},
    "normalize": {"None"},
    "thresholds": {"None"},
    "prec": {"None"},
    "kappa": {"2**70"},
    "alpha": {"2**70"},
    "beta": {"2**70"},
    "learning_rate": {"2**70"},
    "temperature": {"2**70"},
    "sharpness": {"2**70"},
    "noise": {"2**70"},
}


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(6, n_features=3, rng=0)


def quick(kind, **params):
    learner = kind(**params)
    if "max_iter" in learner.get_params() and "max_iter" not in params:
        learner.set_params(max_iter=2)
    if isinstance(learner, ExpectedGain) and "n_starts" not in params:
        learner.set_params(n_starts=1)
    return learner


@pytest.mark.parametrize("name", KINDS)
def test_every_parameter_refuses_nonsense(name, queries):
    kind, refused = KINDS[name], 0
    for parameter in kind.parameter_names():
        legal = set(LEGAL.get(parameter, ()))
        if (name, parameter) == ("RankSVM", "tol"):  # None: what suits the loss
            legal.add("None")
        if (name, parameter) == ("AdaRank", "thresholds"):
            legal.discard("None")
        for label, value in NONSENSE.items():
            if label in legal:
                kind.check_parameter(parameter, value)
                continue
            begin = time.perf_counter()
            with pytest.raises((ValueError, TypeError), match=f"^{parameter}: "):
                kind(**{parameter: value}).fit(queries, eval_set=queries)
            assert time.perf_counter() - begin < 10.0  # before any work is done
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("name", KINDS)
def test_extreme_parameters_end_in_a_model_or_in_words(name, queries):
    kind, fitted = KINDS[name], 0
    for parameter in ("C", "alpha", "beta", "temperature", "sharpness", "kappa", "learning_rate"):
        if parameter not in kind.parameter_names():
            continue
        for value in (1e-100, 2**70, 1e100):
            learner = quick(kind, **{parameter: value})
            if parameter == "learning_rate":
                learner.set_params(optimizer="stochastic")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                with contextlib.suppress(ValueError):
                    learner.fit(queries)
            if not hasattr(learner, "history_"):  # C = 1e100 is too much for cutting planes
                continue
            fitted += 1
            assert np.isfinite(learner.predict(queries)).all()
    assert fitted or "C" not in kind.parameter_names()


# ---- data --------------------------------------------------------------------------------------


def with_entry(array, value, dtype=None):
    result = np.array(array, dtype=dtype)
    result[3 if result.ndim == 1 else (3, 1)] = value
    return result


BAD = {
    "NaN": (lambda X, y, q: (with_entry(X, np.nan), y, q), "NaN"),
    "infinity": (lambda X, y, q: (with_entry(X, np.inf), y, q), "infinity"),
    "complex": (lambda X, y, q: (X + 0j, y, q), "Complex data"),
    "texts": (lambda X, y, q: (X.astype(str), y, q), "X: expected numbers, got texts"),
    "one text": (lambda X, y, q: (with_entry(X, "1", object), y, q), "X: expected numbers, got te"),
    "None": (lambda X, y, q: (None, y, q), "X: expected an array, got NoneType"),
    "ragged": (lambda X, y, q: ([[1.0, 2.0], [3.0]], [0, 1], None), "rows of unequal length"),
    "one dimension": (lambda X, y, q: (X[:, 0], y, q), "Expected 2D array"),
    "no feature": (lambda X, y, q: (X[:, :0], y, q), "0 feature"),
    "no document": (lambda X, y, q: (X[:0], y[:0], q[:0]), "0 sample"),
    "masked": (lambda X, y, q: (np.ma.masked_greater(X, 0.9), y, q), "X: .* masked entries"),
    "huge": (lambda X, y, q: (X * 1e200, y, q), "X: expected features of a size from"),
    "tiny": (lambda X, y, q: (X * 1e-300, y, q), "X: expected features of a size from"),
    "label 0.5": (lambda X, y, q: (X, y + 0.5, q), "y: expected non-negative integers, got 0.5"),
    "label NaN": (lambda X, y, q: (X, with_entry(y, np.nan, float), q), "y: expected non-negative"),
    "label -1": (lambda X, y, q: (X, with_entry(y, -1), q), "got -1 at index 3"),
    "label text": (lambda X, y, q: (X, y.astype(str), q), "y: expected numbers"),
    "label null": (
        lambda X, y, q: (X, pd.Series([None, *y[1:]], dtype="Int64"), q),
        "y: expected non-negative integers, got nan",
    ),
    "label 2**70": (lambda X, y, q: (X, [2**70, *y[1:].tolist()], q), "y: expected numbers"),
    "one label": (lambda X, y, q: (X, np.ones_like(y), q), "nothing to learn from"),
    "documents alone": (lambda X, y, q: (X, y, np.arange(len(y))), "nothing to learn from"),
    "qid 0.5": (lambda X, y, q: (X, y, q + 0.5), "qid: expected whole numbers or names, got 1.5"),
    "qid NaN": (lambda X, y, q: (X, y, with_entry(q, np.nan, float)), "qid: .* got nan"),
    "qid None": (lambda X, y, q: (X, y, with_entry(q, None, object)), "qid: .* got NoneType, int"),
    "qid scattered": (lambda X, y, q: (X, y, np.arange(len(y)) % 7), "qid: query 0 starts again"),
    "qid short": (lambda X, y, q: (X, y, q[:-1]), "qid: expected 224 entries"),
    "qid dates": (lambda X, y, q: (X, y, pd.to_datetime(q, unit="D")), "qid: .* got dtype datetim"),
}


@pytest.mark.parametrize("case", BAD)
def test_data_that_no_learner_takes(case, queries):
    change, message = BAD[case]
    X, y, qid = change(np.array(queries.X), np.array(queries.y), np.array(queries.qid))
    for kind in KINDS.values():
        with pytest.raises((ValueError, TypeError), match=message):
            kind().fit(X, y, qid)


def names_of(queries):
    return pd.DataFrame(queries.X, columns=["a", "b", "c"])


GOOD = {
    "lists": lambda X, y, q: (X.tolist(), y.tolist(), q.tolist()),
    "float labels": lambda X, y, q: (X, y.astype(float), q.astype(float)),
    "Fortran": lambda X, y, q: (np.asfortranarray(X), y, q),
    "strided": lambda X, y, q: (np.repeat(X, 2, 0)[::2], np.repeat(y, 2)[::2], q),
    "other byte order": lambda X, y, q: (X.astype(">f8"), y.astype(">i2"), q.astype(">i4")),
    "objects": lambda X, y, q: (X.astype(object), y, q),
    "nullable": lambda X, y, q: (
        pd.DataFrame(X).astype("Float64"),
        pd.Series(y, dtype="Int64"),
        pd.Series(q, dtype="Int64"),
    ),
    "categories": lambda X, y, q: (X, y, pd.Categorical(q)),
    "named queries": lambda X, y, q: (X, y, pd.Series(q.astype(str), dtype="string")),
    "CSR": lambda X, y, q: (sp.csr_matrix(X), y, q),
    "CSC": lambda X, y, q: (sp.csc_array(X), y, q),
    "COO": lambda X, y, q: (sp.coo_array(X), y, q),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_data_in_any_form_is_the_same_fit(name, queries):
    X, y, qid = np.array(queries.X), np.array(queries.y), np.array(queries.qid)
    X.flags.writeable = False
    learner = quick(KINDS[name]).fit(X, y, qid)
    wanted, ranked = learner.predict(X, qid), learner.rank(X, qid)
    for form, change in GOOD.items():
        given = change(X, y, qid)
        again = clone(learner).fit(*given)
        np.testing.assert_array_equal(again.predict(given[0], given[2]), wanted, err_msg=form)
        np.testing.assert_array_equal(again.rank(given[0], given[2]), ranked, err_msg=form)
    assert again.score(*given) == learner.score(X, y, qid)
    coarse = X.astype(np.float32)
    again.fit(coarse, y, qid)
    same = clone(learner).fit(coarse.astype(float), y, qid)
    np.testing.assert_array_equal(again.predict(coarse, qid), same.predict(coarse, qid))


def test_sparse_matrices_are_made_dense_while_they_fit(queries):
    X, y, qid = np.array(queries.X), queries.y, queries.qid
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array):
        assert Queries(form(X), y, qid) == queries
    held_out = MLE(max_iter=3).fit(sp.csr_array(X), y, qid, eval_set=(sp.csr_array(X), y, qid))
    assert held_out.history_["measure"]
    with pytest.raises(ValueError, match="X: as a dense array, 224 x 100,000,000 numbers"):
        MLE().fit(sp.csr_array((len(y), 10**8)), y, qid)
    with pytest.raises(ValueError, match="X: expected finite numbers, got nan at index"):
        Queries(sp.csr_array(with_entry(X, np.nan)), y, qid)


def test_scores_that_overflow_are_told(queries):
    learner = MLE(max_iter=3).fit(queries)
    assert np.isfinite(learner.predict(np.full((2, 3), 1e300))).all()
    learner.coef_ = np.array([10.0, 10.0, -10.0])
    with pytest.raises(ValueError, match="X: the score of row 1 is inf"):
        learner.predict([[1.0, 1.0, 1.0], [1e308, 1e308, 0.0]])


def test_many_documents_without_query_ids_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1001, 2)), rng.integers(0, 2, size=1001)
    one = np.zeros(1001)
    learner = MLE(max_iter=2).fit(X, y, one)  # one query, and it says so
    for call in (
        lambda: MLE().fit(X, y),
        lambda: MLE().fit(sp.csr_array(X), y),
        lambda: MLE().fit(X, y, one, eval_set=(X, y, None)),
        lambda: Queries(X, y),
        lambda: learner.rank(X),
        lambda: evaluate(y, y),
        lambda: evaluate_orders(np.arange(1001), y),
    ):
        with pytest.raises(ValueError, match=r"qid: .* none for 1,001 documents.*numpy.zeros"):
            call()
    assert learner.predict(X).shape == (1001,)  # no query is asked for
    assert len(Queries(X[:1000], y[:1000])) == 1
    assert learner.rank(X[:1000]).shape == (1000,)


# ---- names of features -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MLE", "RankBoost", "DiffRank"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("collection", [False, True])
def test_columns_in_another_order_are_refused(name, collection, queries, tmp_path):
    from permdist.models import load

    table, y, qid = names_of(queries), queries.y, queries.qid

    def given(frame):
        return (Queries(frame, y, qid),) if collection else (frame, y, qid)

    learner = quick(KINDS[name]).fit(*given(table))
    assert learner.feature_names_in_.tolist() == ["a", "b", "c"]
    learner.save(tmp_path / "x.json")
    for one in (learner, load(tmp_path / "x.json")):
        assert one.feature_names_in_.tolist() == ["a", "b", "c"]
        ids = () if collection else (qid,)
        scores = one.predict(given(table)[0], *ids)
        for frame, message in (
            (table[["a", "c", "b"]], "X: column 2 is 'c', expected 'b'"),
            (table[["a", "b"]], "X: column 3 is missing, expected 'c'"),
            (table.assign(d=1.0), "X: column 4 is 'd', expected none"),
        ):
            features, *rest = given(frame)
            for method, others in ((one.predict, ids), (one.rank, ids), (one.score, rest)):
                with pytest.raises(ValueError, match=message):
                    method(features, *others)
        unnamed = given(table.to_numpy())
        with pytest.warns(UserWarning, match="does not have valid feature names, but"):
            again = one.predict(unnamed[0], *ids)
        np.testing.assert_array_equal(again, scores)
    learner.fit(*given(table.to_numpy()))
    assert not hasattr(learner, "feature_names_in_")
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        learner.predict(*given(table)[:1], *(() if collection else (qid,)))


def test_names_of_validation_data_and_of_a_start(queries):
    table, y, qid = names_of(queries), queries.y, queries.qid
    other = table[["b", "a", "c"]]
    with pytest.raises(ValueError, match="eval_set: column 1 is 'b', expected 'a'"):
        MLE(max_iter=2).fit(table, y, qid, eval_set=(other, y, qid))
    first = MLE(max_iter=2, warm_start=True).fit(table, y, qid)
    with pytest.raises(ValueError, match="X: column 1 is 'b', expected 'a'"):
        first.fit(other, y, qid)
    with pytest.raises(ValueError, match="warm_start_from: column 1 is 'b', expected 'a'"):
        MLE(max_iter=2).fit(other, y, qid, warm_start_from=first)
    first.fit(table, y, qid)
    with pytest.raises(TypeError, match="X: expected column names that are all texts"):
        MLE().fit(table.rename(columns={"a": 1}), y, qid)


def test_sizes_of_queries_are_refused_with_the_remedy(queries):
    learner, sizes = MLE(), queries.sizes
    with pytest.raises(TypeError, match=r"^group: .*numpy.repeat\(numpy.arange\(len\(group\)\)"):
        learner.fit(queries.X, queries.y, group=sizes)
    with pytest.raises(TypeError, match=r"^eval_group: .*eval_set=\(X, y, qid\)"):
        learner.fit(queries.X, queries.y, queries.qid, eval_group=[sizes])
    with pytest.raises(TypeError, match=r"no argument 'eval_sets'.*; did you mean 'eval_set'"):
        learner.fit(queries, eval_sets=queries)
