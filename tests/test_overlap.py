"""Rank-biased overlap of rankings and of runs."""

import itertools

import naive_trec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist.data import Run
from permdist.measures import compare_runs
from permdist.rankings import BucketOrder, TopK, rbo


@st.composite
def tied_rankings(draw, items=9):
    order = draw(st.permutations(range(items)))[: draw(st.integers(1, items))]
    cuts = draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
    groups = []
    for item, new in zip(order, cuts, strict=True):
        if new or not groups:
            groups.append([item])
        else:
            groups[-1].append(item)
    return groups


persistences = st.sampled_from([0.1, 0.5, 0.9, 0.95])


@given(tied_rankings(), tied_rankings(), persistences, st.sampled_from("wab"))
def test_it_equals_the_formulas_summed_depth_by_depth(a, b, p, ties):
    found = rbo(a, b, p=p, ties=ties)
    assert found == pytest.approx(naive_trec.rbo(a, b, p, ties), abs=1e-12)
    assert rbo(b, a, p=p, ties=ties) == pytest.approx(found, abs=1e-14)
    assert -1e-12 <= found.lower <= found.value + 1e-12
    assert found.residual == pytest.approx(found.upper - found.lower)
    if ties != "b":  # a correction for ties may exceed what a continuation without them has
        assert found.value <= found.upper + 1e-12


@given(tied_rankings(items=5), tied_rankings(items=5), persistences)
def test_variant_a_is_the_mean_over_all_ways_to_break_ties(a, b, p):
    def ways(ranking):
        parts = itertools.product(*map(itertools.permutations, ranking))
        return [list(itertools.chain.from_iterable(part)) for part in parts]

    pairs = [rbo(x, y, p=p) for x in ways(a) for y in ways(b)]
    found = rbo(a, b, p=p, ties="a")
    assert found.lower == pytest.approx(np.mean([pair.lower for pair in pairs]), abs=1e-12)
    if sum(map(len, a)) == sum(map(len, b)):
        assert found.value == pytest.approx(np.mean([pair.value for pair in pairs]), abs=1e-12)


@given(tied_rankings(), persistences)
def test_a_ranking_agrees_with_itself(a, p):
    order = list(itertools.chain.from_iterable(a))
    assert rbo(order, order, p=p).value == pytest.approx(1.0, abs=1e-12)
    assert rbo(a, a, p=p, ties="w").value == pytest.approx(1.0, abs=1e-12)
    assert rbo(a, a, p=p, ties="b").value == pytest.approx(1.0, abs=1e-12)


def test_by_hand():
    # Agreement 0, 1/2, 1 and then all: 0.1 (0.9 / 2 + 0.81) + 0.729
    expected = 0.1 * (0 + 0.9 * 0.5 + 0.81 * 1) + 0.9**3
    assert rbo([0, 1, 2], [1, 2, 0], p=0.9).value == pytest.approx(expected, abs=1e-15)
    nothing = rbo(["a", "b"], ["c", "d"], p=0.5)
    assert nothing.value == 0.0
    assert nothing.lower == 0.0
    # Depth 3 shares at most 2 of 3, depth 4 all: 1/8 * 2/3 + 1/8
    assert nothing.upper == pytest.approx(1 / 8 * 2 / 3 + 1 / 8, abs=1e-15)


def test_every_kind_of_ranking_is_taken():
    whole = rbo([2, 0, 1], [0, 1, 2])
    assert rbo(np.array([2, 0, 1]), (0, 1, 2)) == whole
    assert rbo(BucketOrder([[2], [0], [1]]), BucketOrder([[0], [1], [2]])) == whole
    assert rbo(TopK([2, 0], n_items=9), [2, 0]).value == pytest.approx(1.0)
    assert rbo(BucketOrder([[2], [0, 1]]), [2, [1, 0]], ties="w").value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rbo([0], [0], p=1.0), ValueError, "p: expected a number between 0 and 1"),
        (lambda: rbo([0], [0], ties="c"), ValueError, "ties: expected one of w, a, b"),
        (lambda: rbo([], [0]), ValueError, "a: expected at least one item, got none"),
        (lambda: rbo([0], [1, 1]), ValueError, "b: expected every item once, got 1 twice"),
        (lambda: rbo([0, []], [1]), ValueError, "a: expected no empty tie"),
        (lambda: rbo("abc", [1]), TypeError, "a: expected a list of items, got a string"),
        (lambda: rbo([[{}]], [1]), TypeError, "a: expected items, or lists of tied items"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from("wab"),
)
def test_runs_are_compared_query_by_query(tables, ties):
    half = len(tables) // 2
    a = {f"q{q}": table for q, table in enumerate(tables[:half])}
    b = {f"q{q}": table for q, table in enumerate(tables[half:])}
    found = compare_runs(Run.from_dict(a), Run.from_dict(b), p=0.8, ties=ties)
    assert found.qids.tolist() == [qid for qid in a if qid in b]

    def groups(scores):
        levels = sorted(set(scores.values()), reverse=True)
        return [[doc for doc in scores if scores[doc] == level] for level in levels]

    for q, qid in enumerate(found.qids.tolist()):
        alone = rbo(groups(a[qid]), groups(b[qid]), p=0.8, ties=ties)
        row = (found.values[q], found.lower[q], found.upper[q])
        assert row == pytest.approx(alone, abs=1e-14)
    assert found.mean().value == pytest.approx(found.values.mean())


def test_runs_need_a_query_in_common():
    with pytest.raises(ValueError, match="none in common"):
        compare_runs(Run.from_dict({"p": {"a": 1}}), Run.from_dict({"q": {"a": 1}}))
