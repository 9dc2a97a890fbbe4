"""One contract for every distribution: against listing, sampling, shapes, errors, immutability."""

import copy
import pickle

import naive
import naive_mallows
import numpy as np
import pytest
from scipy import stats

from permdist import measures, rankings
from permdist.distributions import (
    Distribution,
    Estimate,
    GaussianScores,
    GeneralizedMallows,
    GoodBad,
    Mallows,
    Mixture,
    NotExactError,
    PairSigns,
    PlackettLuce,
    WeightedOrders,
)

SCORES = np.array([0.7, -0.3, 1.4, 0.1, -1.1])
LABELS = np.array([2, 0, 1, 0, 1])
BINARY = (LABELS > 0).astype(int)


def mallows_step(item, above):
    return -0.7 * (item - above[:, :item].sum(axis=1))


def mallows(order):
    return -0.7 * naive.kendall(order, list(range(len(order))))


def good_bad(labels, **options):
    tilt = options.get("tilt")
    options = {**options, **({"tilt": measures.parse(tilt)} if tilt else {})}
    return lambda order: naive.good_bad(SCORES, labels, order, **options)


TILTS = ["auc", "ap", "ndcg", "ndcg@2", "p@2", "rr", "err", "tau"]
CASES = {
    "Plackett-Luce": (
        PlackettLuce(SCORES),
        lambda order: naive.plackett_luce(SCORES, order),
    ),
    "Plackett-Luce, wide": (
        PlackettLuce(30 * SCORES),
        lambda order: naive.plackett_luce(30 * SCORES, order),
    ),
    "own, steps": (WeightedOrders(5, step=mallows_step), mallows),
    "own, listed": (
        WeightedOrders(5, lambda orders: -0.7 * rankings.kendall(orders, np.arange(5))),
        mallows,
    ),
}
for space in ("orders", "interleavings"):
    for name, labels in (("binary", BINARY), ("graded", LABELS)):
        CASES[f"good-bad, {space}, {name}"] = (
            GoodBad(SCORES, labels, space=space, scale=0.4),
            good_bad(labels, space=space, scale=0.4),
        )
    for tilt in TILTS:
        CASES[f"good-bad, {space}, tilt {tilt}"] = (
            GoodBad(SCORES, LABELS, space=space, scale=0.3, tilt=tilt, kappa=2.5),
            good_bad(LABELS, space=space, scale=0.3, tilt=tilt, kappa=2.5),
        )
CENTER, THETAS = [3, 0, 4, 1, 2], [1.2, 0.1, 0.6, 0.3]


def distance_from_center(distance):
    return lambda order: -0.4 * naive_mallows.distance(distance, order, CENTER)


def stages_from_center(stages):
    return lambda order: -sum(np.multiply(THETAS, stages(order, CENTER)))


for distance in rankings.DISTANCES:
    CASES[f"Mallows, {distance}"] = (
        Mallows(CENTER, 0.4, distance),
        distance_from_center(distance),
    )
CASES["Mallows, stages"] = (
    GeneralizedMallows(CENTER, THETAS),
    stages_from_center(naive_mallows.kendall_stages),
)
CASES["Mallows, cycles"] = (
    GeneralizedMallows(CENTER, THETAS, "cayley"),
    stages_from_center(naive_mallows.cayley_stages),
)
MIXED = {"Plackett-Luce": 0.5, "Mallows, kendall": 0.3, "good-bad, orders, binary": 0.2}


def mixed_truth():
    parts = [naive.Listing(5, CASES[name][1]) for name in MIXED]
    codes = [tuple(order) for order in parts[0].orders.tolist()]
    chances = [dict(zip(codes, part.log_prob.tolist(), strict=True)) for part in parts]
    log_probs = [lambda order, known=known: known[tuple(order)] for known in chances]
    return lambda order: naive.mixture(MIXED.values(), log_probs, order)


CASES["mixture"] = (
    Mixture([CASES[name][0] for name in MIXED], list(MIXED.values())),
    mixed_truth(),
)
EVERY = pytest.mark.parametrize("name", CASES)
MEASURES = ["ap", "ndcg", "ndcg@2", "p@2", "rr", "wta", "err", "auc", "tau", "persistence@2"]


@pytest.fixture(scope="module")
def listings():
    return {name: naive.Listing(5, weight) for name, (_, weight) in CASES.items()}


@EVERY
def test_everything_equals_listing_all_orders(name, listings):
    dist, truth = CASES[name][0], listings[name]
    assert dist.log_prob(truth.orders) == pytest.approx(truth.log_prob, rel=1e-10, abs=1e-12)
    assert dist.rank_marginals() == pytest.approx(truth.rank_marginals(), rel=1e-10, abs=1e-15)
    assert dist.pairwise() == pytest.approx(truth.pairwise(), rel=1e-10, abs=1e-15)
    assert dist.top_k(2) == pytest.approx(truth.rank_marginals()[:, :2].sum(axis=1), rel=1e-10)
    assert dist.entropy() == pytest.approx(truth.entropy(), rel=1e-10)
    assert truth.log_prob.max() == pytest.approx(dist.log_prob(dist.mode()))
    if "Plackett" not in name:
        assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-10)
    for measure in map(measures.parse, MEASURES):
        for labels in (LABELS, BINARY):
            exact = dist.expect(measure, labels, method="exact")
            assert exact == pytest.approx(truth.expect(measure, labels), rel=1e-10), measure
            assert exact.standard_error == 0.0


@EVERY
def test_draws_follow_the_probabilities(name, listings):
    dist, truth = CASES[name][0], listings[name]
    draws = dist.sample(20_000, rng=11)
    code = 5 ** np.arange(5)
    expected = dict(zip((truth.orders @ code).tolist(), truth.prob * 20_000, strict=True))
    seen, counts = np.unique(draws @ code, return_counts=True)
    observed = dict(zip(seen.tolist(), counts.tolist(), strict=True))
    assert all(expected[key] > 0 for key in observed)
    # Pool the rare orders, then chi-square with a failure rate of one in 100,000.
    common = [key for key, value in expected.items() if value >= 10]
    o = np.array([observed.get(key, 0) for key in common])
    e = np.array([expected[key] for key in common])
    o, e = np.append(o, 20_000 - o.sum()), np.append(e, 20_000 - e.sum())
    if e[-1] < 5:
        o, e = np.append(o[:-2], o[-2:].sum()), np.append(e[:-2], e[-2:].sum())
    if len(e) > 1:
        statistic = ((o - e) ** 2 / e).sum()
        assert statistic < stats.chi2.isf(1e-5, len(e) - 1)


@EVERY
def test_shapes_seeds_and_names(name):
    dist = CASES[name][0]
    assert isinstance(dist, Distribution)
    assert dist.n_items == 5
    assert dist.names == ("0", "1", "2", "3", "4")
    assert dist.sample(rng=0).shape == (5,)
    assert dist.sample((2, 3), rng=0).shape == (2, 3, 5)
    assert dist.sample(0, rng=0).shape == (0, 5)
    assert (dist.sample(50, rng=4) == dist.sample(50, rng=np.random.default_rng(4))).all()
    orders = dist.sample((2, 3), rng=0)
    assert dist.log_prob(orders).shape == (2, 3)
    assert np.ndim(dist.log_prob(orders[0, 0])) == 0
    assert type(dist).__name__ in repr(dist)


@EVERY
def test_estimates_carry_their_error(name, listings):
    dist, truth = CASES[name][0], listings[name]
    value = dist.expect("ndcg", LABELS, method="sample", draws=4000, rng=3)
    # All draws agree where one order has nearly all the probability.
    error = max(value.standard_error, 1e-4)
    assert abs(value - truth.expect(measures.NDCG(), LABELS)) < 5 * error
    assert value.draws == 4000
    entropy = dist.entropy(method="sample", draws=4000, rng=3)
    assert abs(entropy - truth.entropy()) < 5 * max(entropy.standard_error, 1e-4)


@EVERY
def test_divergences(name, listings):
    dist, truth = CASES[name][0], listings[name]
    uniform = PlackettLuce(np.zeros(5))
    expected = np.log(120) - truth.entropy()
    assert dist.kl(uniform) == pytest.approx(expected, rel=1e-9)
    assert dist.kl(dist) == pytest.approx(0.0, abs=1e-12)
    drawn = dist.kl(uniform, method="sample", draws=4000, rng=0)
    assert abs(drawn - expected) < 5 * max(drawn.standard_error, 1e-4)


@EVERY
def test_distributions_are_immutable(name):
    dist = CASES[name][0]
    with pytest.raises(AttributeError, match="is immutable"):
        dist.scores = [1.0]
    with pytest.raises(AttributeError):
        dist._n_items = 3
    if hasattr(dist, "scores"):
        with pytest.raises(ValueError, match="read-only"):
            dist.scores[0] = 1.0


@pytest.mark.parametrize("name", ["Plackett-Luce", "own, listed", "Mallows, kendall", "mixture"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: d.log_prob([0, 0, 1, 2, 3]), ValueError, "expected each item once"),
        (lambda d: d.log_prob([0, 1, 2, 3, -4]), ValueError, "expected items 0 to 4, got -4"),
        (lambda d: d.log_prob([0.0, 1, 2, 3, 4]), TypeError, "orders: expected item numbers"),
        (lambda d: d.expect("ndcg", [1, 0]), ValueError, "labels: expected 5 labels"),
        (lambda d: d.expect("ap", LABELS, method="guess"), ValueError, "method: expected one of"),
        (lambda d: d.expect("ap", LABELS, method="sample", draws=1), ValueError, "draws: expected"),
        (lambda d: d.top_k(0), ValueError, "k: expected at least 1"),
        (lambda d: d.sample(-1), ValueError, "size: expected at least 0"),
        (lambda d: d.kl("uniform"), TypeError, "other: expected a Distribution"),
        (lambda d: d.kl(PlackettLuce([0.0])), ValueError, "other: expected 5 items, got 1"),
    ],
)
def test_mistakes_are_named(name, call, error, message):
    with pytest.raises(error) as caught:
        call(CASES[name][0])
    assert message in str(caught.value)


def test_undefined_measures_follow_their_rule():
    dist = PlackettLuce(SCORES)
    assert dist.expect("ap", np.zeros(5, dtype=int)) == 0.0
    assert dist.expect("ap[empty=one]", np.zeros(5, dtype=int)) == 1.0
    with pytest.raises(TypeError, match="labels: expected the items' relevance labels"):
        dist.expect("ap")


def test_names_are_kept():
    dist = PlackettLuce([1.0, 0.0], names=["tea", "coffee"])
    assert dist.names == ("tea", "coffee")
    with pytest.raises(ValueError, match="names: expected 2 names, got 1"):
        PlackettLuce([1.0, 0.0], names=["tea"])


def test_estimates_are_floats():
    assert Estimate(0.5, 0.1, 10) + 1 == 1.5
    assert repr(Estimate(0.25)) == "0.25"
    assert repr(Estimate(1 / 3, 0.012345, 10)) == "0.333333 ± 0.012"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PlackettLuce([]), ValueError, "scores: expected at least one item"),
        (lambda: PlackettLuce([0.0, np.nan]), ValueError, "scores: expected finite numbers"),
        (lambda: PlackettLuce([[0.0]]), ValueError, "scores: expected 1 dimension"),
        (lambda: GaussianScores([0.0], scale=0.0), ValueError, "scale: expected a positive"),
        (lambda: GoodBad([0.0, 1.0], [1, 1]), ValueError, "two different labels, got one class"),
        (lambda: GoodBad([0.0, 1.0], [1]), ValueError, "labels: expected 2 labels"),
        (lambda: GoodBad([0.0, 1.0], [1, -1]), ValueError, "labels: expected non-negative"),
        (lambda: GoodBad([0.0, 1.0], [1, 0], space="order"), ValueError, "did you mean 'orders'?"),
        (lambda: GoodBad([0.0, 1.0], [1, 0], tilt="x"), ValueError, "measure: unknown name"),
        (
            lambda: PairSigns([0.0, 1.0], [1, 0], tilt="ap"),
            ValueError,
            "over sign vectors only AUC factorizes",
        ),
        (lambda: WeightedOrders(3), TypeError, "pass exactly one of log_weight and step"),
        (
            lambda: WeightedOrders(3, lambda o: o).log_prob([0, 1, 2]),
            ValueError,
            "log_weight: expected shape (1,) for orders",
        ),
        (
            lambda: WeightedOrders(2, lambda o: np.full(len(o), np.nan)).log_prob([0, 1]),
            ValueError,
            "finite or -inf",
        ),
        (
            lambda: GoodBad(np.zeros(30), np.arange(30) % 2).log_partition(),
            NotExactError,
            "this distribution has 30; estimate it with permdist.samplers.estimate_log_partition",
        ),
        (
            lambda: WeightedOrders(9, lambda o: np.zeros(len(o))).sample(),
            NotExactError,
            "exact up to 8 items, this distribution has 9",
        ),
        (
            lambda: GoodBad(np.zeros(60), np.arange(60) // 5, space="interleavings").pairwise(),
            ValueError,
            "merge grades",
        ),
    ],
)
def test_bad_models(make, error, message):
    naive.refuses(make, error, message)


def test_divergences_between_different_lattices():
    scores = [0.3, -1.0, 0.5]
    several = (
        GoodBad(scores, [2, 0, 1], space="interleavings"),
        GoodBad([0.1, 0.7, -0.2], [0, 1, 2], space="interleavings"),
        PlackettLuce([0.4, 0.0, -1.0]),
        GoodBad(scores, [2, 0, 1]),
    )
    orders = rankings.enumerate_orders(3)
    for one in several:
        for other in several:
            p, q = one.log_prob(orders), other.log_prob(orders)
            assert one.kl(other) == pytest.approx(np.exp(p) @ (p - q), abs=1e-12)


def test_an_excluded_order_is_infinitely_far_however_rare():
    forbidden = WeightedOrders(2, lambda o: np.where(o[:, 0] == 0, -np.inf, 0.0))
    by_steps = WeightedOrders(
        2, step=lambda item, above: np.where((item == 0) & ~above.any(axis=1), -np.inf, 0.0)
    )
    for dist in (PlackettLuce([-800.0, 0.0]), GaussianScores([0.0, 60.0])):
        assert dist.kl(forbidden) == dist.kl(by_steps) == np.inf
    with pytest.raises(TypeError, match="other: expected a Distribution, got PairSigns"):
        PlackettLuce([0.0, 1.0]).kl(PairSigns([0.0, 1.0], [0, 1]))


@pytest.mark.parametrize("call", ["sample", "mode", "rank_marginals", "entropy", "log_partition"])
def test_nothing_is_made_of_weights_that_forbid_everything(call):
    nothing = WeightedOrders(3, step=lambda item, above: np.full(len(above), -np.inf))
    listed = WeightedOrders(3, lambda orders: np.full(len(orders), -np.inf))
    for dist in (nothing, listed):
        with pytest.raises(ValueError, match="no order has a positive"):
            getattr(dist, call)()


def test_partly_forbidden_orders():
    def step(item, above):  # item 0 may not be first
        return np.where((item == 0) & ~above.any(axis=1), -np.inf, 0.3 * item)

    dist = WeightedOrders(4, step=step)
    truth = naive.Listing(4, lambda order: -np.inf if order[0] == 0 else 0.3 * 6)
    assert dist.rank_marginals() == pytest.approx(truth.rank_marginals(), abs=1e-14)
    assert dist.entropy() == pytest.approx(np.log(18))
    assert (dist.sample(500, rng=0)[:, 0] != 0).all()


def test_a_users_function_cannot_change_our_arrays():
    def careless(orders):
        orders.sort(axis=1)
        return np.zeros(len(orders))

    mine = np.array([[2, 1, 0]])
    WeightedOrders(3, careless).log_prob(mine)
    assert mine.tolist() == [[2, 1, 0]]
    with pytest.raises(TypeError, match="pass exactly one of log_weight and step"):
        WeightedOrders(3, careless, step=mallows_step)


def through_pickle(dist):
    return pickle.loads(pickle.dumps(dist))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, through_pickle])
@pytest.mark.parametrize("name", ["Plackett-Luce", "good-bad, orders, tilt ap", "Mallows, ulam"])
def test_copies_are_as_immutable(name, again):
    dist = CASES[name][0]
    twin = again(dist)
    assert (twin.sample(5, rng=0) == dist.sample(5, rng=0)).all()
    assert not getattr(twin, "center" if "Mallows" in name else "scores").flags.writeable
    with pytest.raises(AttributeError, match="immutable"):
        twin.scores = [1.0]


def test_scores_far_from_zero():
    for offset in (0.0, 1e5, 1e7):
        model = GoodBad(offset + np.arange(4.0), [1, 0, 0, 1])
        assert np.exp(model.log_prob(rankings.enumerate_orders(4))).sum() == pytest.approx(1.0)
        assert model.expect("ap") == pytest.approx(0.7361681308, abs=1e-9)
    for offset in (1e5, 1e8):
        assert PlackettLuce([offset, offset]).rank_marginals() == pytest.approx(0.5)
    for offset in (0.0, 1e8):
        assert GoodBad([offset, offset], [1, 0]).expect("auc") == 0.5
