import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import measures, rankings, strategies
from permdist.measures import AP, NDCG, evaluate, evaluate_orders, evaluate_random


@given(strategies.queries(max_items=7), st.integers(0, 99))
def test_equals_query_by_query(queries, seed):
    scores = np.random.default_rng(seed).integers(0, 4, queries.n_documents).astype(float)
    names = ["map", "ndcg@3", "ndcg@3[ties=average]", "p@2", "auc[empty=skip]"]
    result = evaluate(scores, queries.y, queries.qid, names)
    assert result.table.shape == (len(queries), len(names))
    for q, query in enumerate(queries):
        own = scores[queries.ptr[q] : queries.ptr[q + 1]]
        expected = [naive.measure_from_scores(measure, own, query.y) for measure in result.measures]
        assert result.table[q] == pytest.approx(expected, abs=1e-13, nan_ok=True)


@given(strategies.queries(max_items=7), st.integers(0, 99))
def test_orders_and_scores_agree(queries, seed):
    scores = np.random.default_rng(seed).normal(size=queries.n_documents)
    spans = zip(queries.ptr[:-1], queries.ptr[1:], strict=True)
    orders = np.concatenate([rankings.order_by_scores(scores[a:b]) for a, b in spans])
    by_scores = evaluate(scores, queries.y, queries.qid)
    by_orders = evaluate_orders(orders, queries.y, queries.qid)
    assert (by_scores.table == by_orders.table).all()
    assert (by_scores.qids == queries.qids).all()


def example():
    qid = np.array([5, 5, 5, 2, 2, 9])
    return evaluate([3, 2, 1, 1, 2, 0], [0, 1, 0, 1, 0, 0], qid, ["map", "ap[empty=skip]"])


def test_means_leave_out_what_is_skipped():
    result = example()
    assert result.qids.tolist() == [5, 2, 9]
    assert result["ap"].tolist() == [0.5, 0.5, 0.0]
    assert result.mean("map") == pytest.approx(1 / 3)
    assert result.mean(AP(empty="skip")) == 0.5
    assert result.n_queries("ap[empty=skip]") == 2
    assert result.standard_error("ap") == pytest.approx(np.std([0.5, 0.5, 0], ddof=1) / 3**0.5)
    assert result.mean() == {"ap": pytest.approx(1 / 3), "ap[empty=skip]": 0.5}
    assert set(result.standard_error()) == set(result) == {"ap", "ap[empty=skip]"}
    assert len(result) == 2


def test_it_prints_and_becomes_a_frame():
    result = example()
    assert str(result).splitlines() == [
        "measure           mean  std.err.  queries",
        "ap              0.3333    0.1667        3",
        "ap[empty=skip]  0.5000    0.0000        2",
    ]
    assert repr(result) == "Evaluation(3 queries: ap=0.3333, ap[empty=skip]=0.5000)"
    frame = result.to_frame()
    assert frame.index.tolist() == [5, 2, 9]
    assert frame["ap"].tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(KeyError, match="'ndcg' was not evaluated; there are ap"):
        result["ndcg"]


def test_one_query_and_one_measure():
    result = evaluate([2.0, 1.0], [1, 0], measures="ndcg")
    assert result.mean("ndcg") == 1.0
    assert np.isnan(result.standard_error("ndcg"))
    assert (
        evaluate([2.0, 1.0], [0, 0], measures=NDCG(empty="skip")).n_queries("ndcg[empty=skip]") == 0
    )
    assert np.isnan(
        evaluate([2.0, 1.0], [0, 0], measures=NDCG(empty="skip")).mean()["ndcg[empty=skip]"]
    )


def test_repeated_measures_are_taken_once():
    assert list(evaluate([1.0, 0.0], [1, 0], None, ["map", AP(), "AP"])) == ["ap"]


def test_scattered_queries_are_refused_or_gathered():
    scores, y, qid = [3.0, 1.0, 2.0, 5.0], [0, 1, 1, 0], ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match=r"qid: query a starts again at index 2.*regroup=True"):
        evaluate(scores, y, qid)
    gathered = evaluate(scores, y, qid, regroup=True)
    together = evaluate([3.0, 2.0, 1.0, 5.0], [0, 1, 1, 0], ["a", "a", "b", "b"])
    assert gathered.qids.tolist() == ["a", "b"]
    assert (gathered.table == together.table).all()


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_gathering_keeps_first_appearance_and_order(qid, random):
    scores = [random.random() for _ in qid]
    labels = [random.randint(0, 2) for _ in qid]
    result = evaluate(scores, labels, qid, "map", regroup=True)
    for q, value in zip(dict.fromkeys(qid), result["ap"], strict=True):
        own = [i for i, entry in enumerate(qid) if entry == q]
        alone = AP().from_scores([scores[i] for i in own], [labels[i] for i in own])
        assert value == alone
    assert result.qids.tolist() == list(dict.fromkeys(qid))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate([1.0], [1, 0]), ValueError, "scores: expected 2 entries as in y, got 1"),
        (lambda: evaluate([[1.0]], [1]), ValueError, "scores: expected 1 dimension"),
        (lambda: evaluate([1.0], [[1]]), ValueError, "y: expected 1 dimension"),
        (lambda: evaluate([1.0], [-1]), ValueError, "y: expected non-negative integers, got -1"),
        (lambda: evaluate([np.inf], [1]), ValueError, "scores: expected finite numbers, got inf"),
        (lambda: evaluate([1.0], [1], [1, 2]), ValueError, "qid: expected 1 entries as in y"),
        (lambda: evaluate([1.0], [1], [0.5]), ValueError, "qid: expected whole numbers or names"),
        (lambda: evaluate([1.0], [1], [np.nan]), ValueError, "got nan at index 0"),
        (lambda: evaluate([1.0], [1], [True]), TypeError, "qid: expected whole numbers or names"),
        (lambda: evaluate([], []), ValueError, "y: expected at least one document, got none"),
        (lambda: evaluate([1.0], [1e300]), ValueError, "y: expected non-negative integers"),
        (lambda: evaluate([2**53 + 1], [1]), ValueError, "scores: whole numbers beyond 2"),
        (lambda: evaluate_orders([[0, 1]], [1, 0]), ValueError, "orders: expected 1 dimension"),
        (lambda: evaluate([1.0], [1], None, []), ValueError, "measures: expected at least one"),
        (lambda: evaluate([1.0], [1], None, [3]), TypeError, "expected a Measure or a name"),
        (
            lambda: evaluate_orders([1, 0, 1], [1, 0, 0], [7, 8, 8]),
            ValueError,
            "orders of query 7: expected items 0 to 0, got 1 at index 0",
        ),
    ],
)
def test_bad_input(call, error, message):
    naive.refuses(call, error, message)


def test_float_query_ids_that_are_whole_numbers_are_welcome():
    assert evaluate([1.0, 2.0], [1, 0], [3.0, 4.0]).qids.tolist() == [3, 4]


def test_many_queries_of_unequal_length():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, 500)
    qid, n = np.repeat(np.arange(500), sizes), sizes.sum()
    scores, y = rng.normal(size=n), rng.integers(0, 3, n)
    result = evaluate(scores, y, qid, ["map", "ndcg@10", "err@5"])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for q in range(0, 500, 50):
        own = slice(starts[q], starts[q + 1])
        for measure in result.measures:
            expected = measures.parse(measure).from_scores(scores[own], y[own])
            assert result[measure.name][q] == expected


def test_large_ties_do_not_overflow():
    measure = measures.TopKPersistence(800, ties="average")
    labels = np.repeat([1, 0], 1200)
    assert measure.from_scores(np.zeros(2400), labels) == pytest.approx(0.5, abs=1e-3)


# ---- ties --------------------------------------------------------------------------------------

AVERAGED = ["map", "ndcg@3", "p@2", "rr", "err@3", "auc[empty=skip]", "wta", "recall@2", "rbp"]


@given(strategies.queries(max_items=5), st.integers(0, 99))
def test_one_rule_for_ties_in_all_measures(queries, seed):
    scores = np.random.default_rng(seed).integers(0, 3, queries.n_documents).astype(float)
    result = evaluate(scores, queries.y, queries.qid, AVERAGED, ties="average")
    assert {measure.ties for measure in result.measures} == {"average"}
    for q, query in enumerate(queries):
        own = scores[queries.ptr[q] : queries.ptr[q + 1]]
        expected = [naive.measure_from_scores(measure, own, query.y) for measure in result.measures]
        assert result.table[q] == pytest.approx(expected, abs=1e-13, nan_ok=True)
    assert np.array_equal(result["ndcg@3"], result["ndcg@3[ties=average]"])


@given(strategies.queries(max_items=5))
def test_the_expectation_of_a_random_order_is_the_mean_over_all(queries):
    result = evaluate_random(queries.y, queries.qid, [*AVERAGED, "ap[ties=average]"])
    for q, query in enumerate(queries):
        orders = np.array(list(itertools.permutations(range(len(query.y)))))
        expected = [measure(orders, query.y).mean() for measure in result.measures]
        assert result.table[q] == pytest.approx(expected, abs=1e-13, nan_ok=True)


def test_measures_without_an_average_are_drawn():
    y, qid = [1, 0, 0, 2, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 2, 2, 2, 2]
    result = evaluate_random(y, qid, ["11pt", "map"])
    orders = np.array(list(itertools.permutations(range(5))))
    values = result.measures[0](orders, y[:5])
    error = values.std() / np.sqrt(200)
    assert 0 < abs(result.table[0, 0] - values.mean()) < 5 * error
    assert np.array_equal(result.table, evaluate_random(y, qid, ["11pt", "map"]).table)
    assert not np.array_equal(result.table, evaluate_random(y, qid, ["11pt", "map"], rng=1).table)


def test_rules_for_ties_that_do_not_exist():
    with pytest.raises(ValueError, match="ties: expected"):
        evaluate([1, 1], [0, 1], ties="first")
    with pytest.raises(ValueError, match="ties: 11pt has no average"):
        evaluate([1, 1], [0, 1], measures="11pt", ties="average")
    with pytest.raises(KeyError, match="was not evaluated"):
        evaluate([1, 1], [0, 1], measures="map")["ap[ties=average]"]
