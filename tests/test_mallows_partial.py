"""Probabilities of what is known of a ranking under Mallows' models, against listing all orders."""

import itertools

import naive
import naive_mallows
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from permdist import Ballots, GeneralizedMallows, Mallows, rankings
from permdist.ballots import levels_of
from permdist.distances import distance_named
from permdist.distributions import NotExactError

EVERY = pytest.mark.parametrize("distance", sorted(rankings.DISTANCES))
CENTER = [4, 1, 0, 5, 3, 2]
# Buckets, and whether all other items are below.
TOPS = [([[3]], True), ([[1], [5], [0]], True), ([[4], [1], [0], [5], [3]], True)]
TIES = [([[5, 0], [2], [1, 3, 4]], True), ([[0, 1, 2], [3, 4, 5]], True), ([[2], [0, 3]], True)]
SOME = [([[2], [4]], False), ([[0], [3], [5]], False), ([[1, 3], [2, 4]], False), ([[5, 2]], False)]


def _ballot(buckets, rest, n=6):
    return Ballots.from_orders([buckets], n_items=n, subset=not rest)


@EVERY
@pytest.mark.parametrize("theta", [0.0, 1e-6, 0.4, 3.0])
def test_ballots_have_the_probability_of_the_orders_that_agree(distance, theta):
    model = Mallows(CENTER, theta, distance)
    for buckets, rest in TOPS + TIES + SOME:
        ballot = _ballot(buckets, rest)
        truth = naive_mallows.chance_to_agree(model, buckets, rest)
        assert model.log_prob(ballot) == pytest.approx([truth], abs=1e-12)


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
def test_stages_have_the_probability_of_the_orders_that_agree(distance):
    model = GeneralizedMallows(CENTER, [2.0, 0.0, 0.7, 0.1, 1.3], distance)
    for buckets, rest in TOPS + TIES + SOME:
        truth = naive_mallows.chance_to_agree(model, buckets, rest)
        assert model.log_prob(_ballot(buckets, rest)) == pytest.approx([truth], abs=1e-12)


@EVERY
def test_first_places_of_all_kinds_add_up_to_one(distance):
    model = Mallows([2, 0, 4, 1, 3], 0.6, distance)
    lists = np.array(list(itertools.permutations(range(5), 2)))
    for subset, total in ((False, 1.0), (True, 10.0)):
        chances = np.exp(model.log_prob(lists, subset=subset))
        assert chances.sum() == pytest.approx(total, rel=1e-12)
    above = np.exp(model.log_prob(lists, subset=True))
    assert above == pytest.approx(model.pairwise()[lists[:, 0], lists[:, 1]], rel=1e-10)
    first = np.exp(model.log_prob(np.arange(5)[:, None], subset=False))
    assert first == pytest.approx(model.rank_marginals()[:, 0], rel=1e-10)


@given(st.data())
@settings(max_examples=60)
def test_programs_agree_with_each_other(data):
    n = data.draw(st.integers(2, 9))
    levels = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)))
    there = levels >= 0
    if not there.any():
        return
    levels[there] = np.unique(levels[there], return_inverse=True)[1]
    theta = data.draw(st.sampled_from([0.0, 0.05, 0.8]))
    kendall = distance_named("kendall")(n, theta)
    whole = kendall.agreeing(levels)
    if there.all():
        assert whole == pytest.approx(kendall._by_classes(levels), rel=1e-9, abs=1e-9)
    # Buckets of all items by a program over subsets, where cuts or closed forms are the default.
    for distance in ("footrule", "hamming"):
        sums = distance_named(distance)(n, theta)
        slow = sums._sums_of_lattice(sums.lattice_given(levels), np.arange(n))
        assert sums.agreeing(levels) == pytest.approx(slow, rel=1e-8, abs=1e-8)


@EVERY
@pytest.mark.parametrize("theta", [200.0, 1e9])
def test_a_theta_that_is_huge(distance, theta):
    model = Mallows(CENTER, theta, distance)
    orders = rankings.enumerate_orders(6).tolist()
    values = np.array([naive_mallows.distance(distance, order, range(6)) for order in orders])
    for buckets, rest in TOPS + TIES + SOME:
        places = [[CENTER.index(item) for item in bucket] for bucket in buckets]
        _, kept = naive_mallows.agreeing_orders(6, places, rest)
        least = values[kept].min()
        truth = np.log((values[kept] == least).sum()) - theta * least
        found = model.log_prob(_ballot(buckets, rest))
        assert found == pytest.approx([truth], rel=1e-12, abs=1e-12)


def test_many_items():
    model = Mallows(range(2000), 0.01)
    pair = np.exp(model.log_prob([300, 700], subset=True))
    assert pair == pytest.approx(Mallows(range(401), 0.01).pairwise()[0, 400], rel=1e-10)
    order = model.sample(rng=0)
    steps = [model.log_prob(order[:k], subset=False) for k in (1, 100, 1000, 1999)]
    assert (np.diff(steps) < 0.0).all()
    assert steps[-1] == pytest.approx(model.log_prob(order), rel=1e-12)
    for distance in ("footrule", "hamming", "cayley"):
        model = Mallows(range(150), 0.3, distance)
        order = model.sample(rng=0)
        assert model.log_prob(order[:149], subset=False) == pytest.approx(model.log_prob(order))
        everything_tied = rankings.BucketOrder([range(150)])
        if distance != "cayley":
            assert model.log_prob(everything_tied) == pytest.approx(0.0, abs=1e-9)


def test_what_ballots_may_be():
    model = Mallows([2, 0, 3, 1], 0.7, names=["ale", "beer", "cider", "wine"])
    top = model.log_prob(rankings.TopK([3, 0], n_items=4))
    assert np.ndim(top) == 0
    assert model.log_prob(Ballots.from_orders([["wine", "ale"]], names=model.names,
                          subset=False)) == pytest.approx([top])  # fmt: skip
    assert model.log_prob([["ale", ["beer", "wine"], "cider"]]).shape == (1,)
    assert model.log_prob(np.zeros((0, 2), int), subset=True).shape == (0,)
    best = Ballots.from_best_worst([0], [3], [[0, 1, 3]], names=model.names)
    assert model.log_prob(best) == pytest.approx(model.log_prob([[0, 1, 3]], subset=True))
    battles = Ballots.from_pairs([0, 1], [1, 2], ties=[False, True], n_items=4)
    assert levels_of(battles).tolist() == [[0, 1, -1, -1], [-1, 0, 0, -1]]
    assert Mallows([2, 0, 3, 1], 0.7).log_prob(battles)[1] == 0.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mallows(range(4), 1.0).log_prob([1, 0]), ValueError, "rankings of 4 items, got 2"),
        (
            lambda: Mallows(range(40), 1.0, "ulam").log_prob([1, 2], subset=False),
            NotExactError,
            "for ulam not exact on this ballot of 40 items",
        ),
        (
            lambda: Mallows(range(40), 1.0, "cayley").log_prob([1, 2], subset=True),
            NotExactError,
            "few orders agree with, and first places",
        ),
        (
            lambda: Mallows(range(90), 1.0).log_prob([*range(0, 90, 3)], subset=True),
            NotExactError,
            "those with few gaps in the center",
        ),
        (
            lambda: Mallows(range(40), 1.0, "footrule").log_prob([1, 2], subset=True),
            NotExactError,
            "for footrule not exact on this ballot of 40 items",
        ),
    ],
)
def test_what_is_refused(make, error, message):
    naive.refuses(make, error, message)
