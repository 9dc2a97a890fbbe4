"""Bounds of the loss: exact values against enumeration, and which lies below which."""

import time

import naive
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from permdist import strategies
from permdist.measures import parse
from permdist.models.bounds import TERMS, BasicLoss, QueryInterleavings, TypeOne, TypeTwo
from permdist.models.objectives import RankingHinge
from permdist.models.perfect import most_violated

MEASURES = ["ap", "ndcg", "auc", "ndcg@2", "precision@2", "rr"]


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("pairs", ["all", "good-bad"])
def test_type_two_equals_enumeration(name, pairs):
    rng, measure = np.random.default_rng(1), parse(name)
    for trial in range(6):
        n = int(rng.integers(3, 6))
        labels = rng.integers(0, 2 + trial % 2 * (not measure.binary), n)
        labels[:2] = 0, 1
        scores = 3.0 * rng.normal(size=n)
        for kind in TERMS:
            for over in ("max", "sum"):
                bound = TypeTwo(name, kind=kind, over=over, pairs=pairs)
                expected = naive.type_two(scores, labels, measure, kind, over, pairs)
                assert bound.value(scores, labels) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        perfect, rest = naive.permutations_of(scores, labels, measure, pairs)
        if rest:
            margin = min(p[1] for p in perfect) - max(y[1] for y in rest)
            found = TypeTwo(name, pairs=pairs).margin(scores, labels)
            assert found == pytest.approx(margin, abs=1e-12)


def test_the_longest_path_equals_the_walk_at_size():
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [5, 9])
    for pairs in ("all", "good-bad"):
        for name in ("ap", "ndcg", "auc"):
            scores = rng.normal(size=14)
            query = QueryInterleavings(scores, labels, parse(name), pairs)
            walked = query.largest("margin", query.lowest_perfect())[0]
            assert query.largest_margin() == pytest.approx(walked, abs=1e-12)


@given(strategies.labelled_queries(max_items=5), st.sampled_from(["ap", "ndcg", "auc", "ndcg@2"]))
@example(([0.0, 5.0, 5.0, 1.0], [0, 0, 1, 0]), "ap")  # a tie, whose two sums differ in a digit
def test_the_order_of_the_bounds(query, name):
    scores, labels = query
    basic = BasicLoss(name).value(scores, labels)
    exponential, logistic = (
        TypeOne(name, kind=k).value(scores, labels) for k in ("exponential", "logistic")
    )
    assert basic <= exponential + 1e-12 <= logistic + 1e-9
    for pairs in ("all", "good-bad"):
        lowest = TypeTwo(name, kind="indicator", pairs=pairs).value(scores, labels)
        assert basic <= lowest + 1e-9
        for kind in TERMS[1:]:
            largest = TypeTwo(name, kind=kind, pairs=pairs).value(scores, labels)
            total = TypeTwo(name, kind=kind, over="sum", pairs=pairs).value(scores, labels)
            assert lowest <= largest + 1e-9
            assert largest <= total + 1e-9 * (1.0 + total)


@pytest.mark.parametrize("name", ["ap", "rr", "precision@2", "recall@2", "rbp"])
@pytest.mark.parametrize("pairs", ["all", "good-bad"])
def test_bounds_of_binary_measures_see_good_and_bad(name, pairs):
    scores, graded = [0.3, -0.2, 0.1, 0.5, -0.4], np.array([2, 0, 1, 0, 3])
    binary = (graded > 0).astype(int)
    bounds = [BasicLoss(name), TypeOne(name), TypeTwo(name, kind="exponential", over="sum")]
    bounds += [TypeTwo(name, kind=kind, pairs=pairs) for kind in TERMS]
    for bound in bounds:
        assert bound.value(scores, graded) == bound.value(scores, binary)
        assert bound(scores, graded) == bound(scores, binary)
    two = TypeTwo(name, pairs=pairs)
    assert two.margin(scores, graded) == two.margin(scores, binary)
    assert two.value(scores, [2, 1, 1, 3, 2]) == 0.0  # all are relevant: nothing to lose


@pytest.mark.parametrize("pairs", ["all", "good-bad"])
def test_type_two_is_what_permurank_and_svmmap_minimize_of_graded_labels(pairs):
    rng = np.random.default_rng(2)
    for _ in range(5):
        scores, labels = rng.normal(size=6), np.array([2, 0, 1, 0, 2, 1])
        lowest, highest = most_violated(scores, labels, "ap", pairs)
        query = QueryInterleavings(scores, (labels > 0).astype(int), parse("ap"), pairs)
        found = query.exponents(np.stack([lowest, highest]))
        assert TypeTwo("ap", pairs=pairs).margin(scores, labels) == pytest.approx(
            found[0] - found[1], abs=1e-12
        )
        hinge = RankingHinge("ap")(scores, (labels > 0).astype(int))[0]
        assert TypeTwo("ap", kind="margin", pairs="good-bad").value(
            scores, labels
        ) == pytest.approx(hinge, abs=1e-12)


def test_one_class_and_bad_input():
    for bound in (TypeTwo("ap"), TypeTwo("ap", over="sum"), BasicLoss("ap")):
        assert bound.value([1.0, 2.0], [1, 1]) == 0.0
        assert bound.value([1.0], [0]) == 0.0
    assert TypeTwo("ap").margin([1.0, 2.0], [1, 1]) == np.inf
    assert TypeTwo("ap")([1.0, 2.0, 0.0, 5.0], [0, 1, 0, 1], [1, 1, 2, 2]) == pytest.approx(
        TypeTwo("ap").value([1.0, 2.0], [0, 1]) + TypeTwo("ap").value([0.0, 5.0], [0, 1])
    )
    with pytest.raises(ValueError, match="measure: expected values from 0 to 1, got 'tau'"):
        BasicLoss("tau")
    with pytest.raises(ValueError, match="y: expected shape"):
        BasicLoss("ap")([1.0, 2.0, 3.0], [0, 1])
    with pytest.raises(ValueError, match="labels: expected shape"):
        TypeTwo("ap").margin([1.0, 2.0, 3.0], [0, 1])
    assert TypeTwo("ap", over="sum").value([-100.0, 100.0, 0.0], [0, 1, 0]) == pytest.approx(0.5)
    assert BasicLoss("precision@2").value([0.0, 1.0], [0, 1]) == 0.0
    with pytest.raises(ValueError, match="kind: expected one of"):
        TypeTwo("ap", kind="cubic")
    with pytest.raises(ValueError, match="labels: expected shape"):
        TypeTwo("ap").value([1.0, 2.0], [1])
    many = np.arange(40) % 2
    with pytest.raises(ValueError, match=r"at most 20,000,000 interleavings to walk, got 1\.4e"):
        TypeTwo("ap").value(np.arange(40.0), many)
    with pytest.raises(ValueError, match="over='max'"):
        TypeTwo("ap", kind="hinge", over="sum").value(np.arange(40.0), many)
    assert TypeTwo("ap", kind="margin").value(np.arange(40.0), many) > 0.0


@pytest.mark.parametrize(
    ("name", "kind", "sizes"),
    [
        ("ndcg@9", "margin", (10, 10, 20)),
        ("ndcg@10", "hinge", (15, 25)),
        ("rr", "margin", (15, 25)),
    ],
)
def test_interleavings_are_counted_before_any_is_walked(name, kind, sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.random.default_rng(0).normal(size=len(labels))
    begin = time.process_time()
    for ask in (TypeTwo(name, kind=kind).value, TypeTwo(name, kind=kind).margin):
        with pytest.raises(ValueError, match="labels: expected at most 20,000,000 interleavings"):
            ask(scores, labels)
    assert time.process_time() - begin < 1.0
