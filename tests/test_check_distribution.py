"""`check_distribution`: ours pass, mistakes are found where they are, chance is no mistake."""

import math
import random

import broken
import numpy as np
import pytest
from broken import BROKEN, NAMES, PASSING, SCORES, Sorted, Uniform
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from permdist import (
    GaussianScores,
    GoodBad,
    PairSigns,
    PlackettLuce,
    WeightedOrders,
    identities,
    rankings,
    strategies,
)
from permdist.identities import chance
from permdist.identities.claims import CLAIMS
from permdist.identities.draws import Draws
from permdist.samplers import run_chains, sample_exact


def failed(results):
    return [result.identity.name for result in results if not result.passed]


def by_name(results):
    return {result.identity.name: result for result in results}


OURS = [
    PlackettLuce([1.0, 0.0, -1.0, 0.5]),
    PlackettLuce([40.0, 0.0, -40.0, 0.5]),
    GaussianScores([1.0, 0.0, -1.0]),
    GoodBad([0.5, 0.1, -0.3, 0.2], [2, 0, 1, 0], tilt="ap"),
    GoodBad([0.5, 0.1, -0.3, 0.2], [1, 0, 1, 0], space="interleavings"),
    WeightedOrders(4, lambda orders: -rankings.kendall(orders, np.arange(4)) * 0.5),
    WeightedOrders.from_pairs(-0.5 * np.tri(12, k=-1)),
    PlackettLuce(np.linspace(-1, 1, 30)),
    GoodBad(np.linspace(-1, 1, 30), np.arange(30) % 2, space="interleavings"),
    PlackettLuce([0.0]),
]


@pytest.mark.parametrize("dist", OURS, ids=repr)
def test_ours_pass(dist):
    results = identities.check_distribution(dist, draws=3000)
    assert results.passed, str(results)
    names = by_name(results)
    assert len(names) == len(results)
    offered = [name for name, result in names.items() if result.offered]
    assert len(offered) >= (29 if dist.n_items <= 8 else 25) - 3
    assert all(names[name].tried >= 1 for name in offered)
    if dist.n_items <= 8:
        assert len(offered) == len(results)


@pytest.mark.parametrize("dist", PASSING, ids=lambda dist: f"{type(dist).__name__}-{dist.n_items}")
def test_correct_ones_of_users_pass(dist):
    results = identities.check_distribution(dist)
    assert results.passed, str(results)
    assert by_name(results)["draws: exchanges"].tried == 10_000


@pytest.mark.parametrize(("dist", "entry"), BROKEN, ids=NAMES)
def test_each_mistake_is_found_where_it_is(dist, entry):
    results = identities.check_distribution(dist)
    assert entry in failed(results)
    assert not results.passed
    assert "FAIL" in str(results)


HARD = {"BlocksAgain", "SharperWhenAlone", "ThreeWhenAlone"}
HARD |= {"EntropyOff", "DivergenceTooLarge", "EstimatedDivergenceTooLarge"}


@pytest.mark.parametrize(
    ("dist", "entry"),
    [(dist, entry) for dist, entry in BROKEN if type(dist).__name__ in HARD],
    ids=[name for name in NAMES if name.partition("-")[0] in HARD],
)
def test_a_mistake_is_found_whatever_the_seed(dist, entry):
    (claim,) = (claim for claim in CLAIMS if claim.name == entry)
    for seed in range(5):
        answer = claim.check(Draws(dist, 10_000, np.random.default_rng(seed), 1e-8))
        # As sure as with 20 entries of the same kind.
        assert answer[0] < 1e-5 / 20 if claim.chance else answer > 1e-8


def test_a_mistake_in_one_half_leaves_the_other_alone():
    # Right formulas and a wrong sampler, right draws and a wrong formula.
    results = identities.check_distribution(broken.CyclicShifts(3))
    assert all(name.startswith("draws: ") for name in failed(results))
    assert failed(identities.check_distribution(broken.ModeWrong(SCORES))) == [
        "mode is most probable"
    ]
    assert failed(identities.check_distribution(broken.Twice(20))) == [
        "draws: repeats",
        "draws: independence",
    ]
    assert failed(identities.check_distribution(broken.FixedSeed(4))) == [
        "other seeds",
        "draws: one at a time",
    ]


def test_what_is_raised_is_a_result():
    results = by_name(identities.check_distribution(broken.DrawsRaise(SCORES)))
    assert results["draws are orders"].note == "ZeroDivisionError: no luck"
    assert results["entropy from probabilities"].passed
    text = str(identities.check_distribution(broken.Raises(SCORES)))
    assert "IndexError: list index out of range" in " ".join(text.split())
    assert by_name(identities.check_distribution(broken.NoOrders(3)))["draws are orders"].note == (
        "sample(10000): expected each item once, got item 0 again at index (0, 1)"
    )


def test_what_is_not_offered_is_no_mistake():
    results = identities.check_distribution(Uniform(12), draws=500)
    assert results.passed
    names = by_name(results)
    assert not names["draws: positions"].offered
    assert names["draws: positions"].passed
    assert "exact up to 8 items" in names["draws: positions"].note
    assert "not offered" in str(results)
    assert "draws: every order" not in names
    # A distribution that offers nothing at its size cannot be said to pass.
    large = WeightedOrders(12, lambda orders: np.zeros(len(orders)))
    with pytest.raises(ValueError, match="dist: expected log-probabilities or draws, got neither"):
        identities.check_distribution(large)


def test_refusals():
    with pytest.raises(TypeError, match="dist: expected a Distribution, got str"):
        identities.check_distribution("uniform")
    with pytest.raises(TypeError, match="dist: expected a Distribution, got PairSigns"):
        identities.check_distribution(PairSigns([0.0, 1.0], [1, 0]))
    with pytest.raises(ValueError, match="draws: expected at least 100, got 10"):
        identities.check_distribution(Uniform(3), draws=10)
    with pytest.raises(ValueError, match="false_alarms: expected a chance between 0 and 1, got 0"):
        identities.check_distribution(Uniform(3), false_alarms=0)
    with pytest.raises(ValueError, match="tolerance: expected a number of at least 0, got nan"):
        identities.check_distribution(Uniform(3), tolerance=math.nan)


def test_the_same_seed_gives_the_same_results():
    def numbers(rng):
        return [r.worst for r in identities.check_distribution(Sorted(SCORES), draws=500, rng=rng)]

    assert numbers(3) == numbers(3) == numbers(np.random.default_rng(3))
    assert numbers(3) != numbers(4)


def test_the_check_leaves_no_trace():
    dist = broken.SharedMarginals(4)
    identities.check_distribution(dist, draws=100)
    assert (dist.rank_marginals() == 0.25).all()
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    identities.check_distribution(broken.NumpyGlobal(4), draws=100)
    identities.check_distribution(broken.PythonGlobal(4), draws=100)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert random.getstate() == before[1]


@pytest.mark.parametrize("shift", [0.15, -0.15])
def test_more_draws_find_smaller_mistakes(shift):
    off = Sorted(SCORES, np.add(SCORES, [shift, 0, 0, 0]))
    assert identities.check_distribution(off, draws=300).passed
    assert not identities.check_distribution(off, draws=60_000).passed


@pytest.mark.parametrize("dist", [*OURS, *PASSING], ids=lambda dist: f"{dist!r:.40}")
def test_no_false_alarms(dist):
    for seed in (1, 2):
        results = identities.check_distribution(dist, draws=1500, rng=seed)
        assert results.passed, f"seed {seed}: {results}"


EVERY_MAGNITUDE = st.one_of(
    strategies.plackett_luces(max_items=5, wide=True),
    strategies.gaussian_scores(max_items=3, wide=True),
    strategies.good_bads(max_items=5, wide=True),
)


@settings(max_examples=20)
@given(dist=EVERY_MAGNITUDE)
def test_ours_pass_with_scores_of_every_magnitude(dist):
    results = identities.check_distribution(dist, draws=200)
    assert results.passed, str(results)


# ---- the tests of chance -------------------------------------------------------------------------


def uniform_enough(values, floor=0.0):
    """Check that p-values are at most as often below a level as they may be."""
    values = np.sort(values)
    for level in (0.5, 0.1, 0.02):
        seen = int((values < level).sum())
        assert stats.binom.sf(seen - 1, len(values), level) > 1e-5
    assert values.min() >= floor


def test_p_values_are_no_smaller_than_they_say():
    rng = np.random.default_rng(8)
    chances = np.array([0.9, 0.05, 0.03, 0.0199, *[1e-6] * 100])
    size, times = 200, 1500
    counts = rng.multinomial(size, chances / chances.sum(), size=times)
    exact = [chance.multinomial(row, chances, rng) for row in counts]
    uniform_enough(exact)
    assert np.mean(exact) < 0.8  # and not much larger
    uniform_enough([chance.binomial(row, size, chances / chances.sum()) for row in counts])
    share = rng.random((times, 60))
    coins = (rng.random((times, 60)) < share) - share
    uniform_enough(
        [
            chance.centered([row.sum()], [(s * (1 - s)).sum()])
            for row, s in zip(coins, share, strict=True)
        ]
    )
    uniform_enough([chance.symmetric(row[:, None]) for row in rng.normal(size=(times, 30))])
    uniform_enough([chance.bonferroni(row) for row in rng.random((times, 5))])
    skewed = np.minimum(rng.exponential(size=(times, 100)), 5.0)
    uniform_enough([chance.mean(row, 1.0 - np.exp(-5.0), 0.0, 5.0) for row in skewed])
    rare = rng.random((times, 80)) < 0.02
    uniform_enough([chance.mean(row.astype(float), 0.02, 0.0, 1.0) for row in rare])


def test_p_values_are_small_where_something_is_wrong():
    rng = np.random.default_rng(9)
    assert chance.multinomial(np.array([50, 50, 0]), np.array([0.5, 0.3, 0.2]), rng) < 1e-5
    assert chance.multinomial(np.array([95, 3, 2]), np.array([1.0, 0.0, 0.0]), rng) == 0.0
    assert chance.binomial([3], 1000, [0.0]) == 0.0
    assert chance.binomial([3], 1000, [0.0], slack=0.01) == 1.0
    assert chance.centered([200.0], [1000.0]) < 1e-7
    assert chance.symmetric(np.ones((60, 1))) < 1e-10
    assert chance.mean(np.full(1000, 0.5), 0.7, 0.0, 1.0) < 1e-10
    assert chance.mean(np.full(30, 0.5), 0.5, 0.0, 1.0) == 1.0
    assert chance.mean(np.full(30, 0.5), 0.5 + 1e-9, 0.0, 1.0, 1e-8) == 1.0
    assert chance.mean(np.full(30, 0.5), -0.1, 0.0, 1.0) == 0.0  # outside of the interval
    assert chance.mean(np.full(30, 0.5), 1.1, 0.0, 1.0) == 0.0
    assert np.isnan(chance.binomial([3], 10, [np.nan]))
    assert np.isnan(chance.mean(np.ones(10), np.nan, 0.0, 1.0))
    assert np.isnan(chance.multinomial(np.array([1, 1]), np.zeros(2), rng))
    assert chance.multinomial(np.array([7]), np.ones(1), rng) == 1.0
    assert chance.binomial([], 10, []) == 1.0


# ---- draws that are no orders are refused where they are used ------------------------------------


@pytest.mark.parametrize(
    ("dist", "message"),
    [
        (broken.NoOrders(3), r"NoOrders.sample: expected each item once, got item 0 again"),
        (broken.Floats(3), "Floats.sample: expected item numbers, got dtype float64"),
        (broken.Ranks((0.0, 1.0)), None),
    ],
    ids=["no orders", "floats", "orders"],
)
@pytest.mark.parametrize("keep", ["draws", "moments"])
def test_samplers_refuse_what_is_no_order(dist, message, keep):
    if message is None:
        assert run_chains(dist, draws=50, kernel="exact", keep=keep, rng=0).kernel == "exact"
        assert sample_exact(dist, 3, rng=0).shape == (3, 2)
        return
    for kernel in ("exact", "auto"):
        with pytest.raises((ValueError, TypeError), match=message):
            run_chains(dist, draws=50, kernel=kernel, keep=keep, rng=0)
    for size in (None, 4, (2, 2)):
        with pytest.raises((ValueError, TypeError), match=message):
            sample_exact(dist, size, rng=0)


def test_samplers_refuse_draws_of_another_shape():
    with pytest.raises(ValueError, match=r"expected draws of shape \(2, 2, 4\), got \(4, 4\)"):
        sample_exact(broken.WrongShape(4), (2, 2), rng=0)
    with pytest.raises(ValueError, match="check_distribution looks for mistakes"):
        sample_exact(broken.NoOrders(3), 2, rng=0)
