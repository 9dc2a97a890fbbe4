"""Rankings with ties: against listing all of them, draws, limits, wide scores, bad input."""

import copy
import pickle

import naive
import naive_davidson
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from permdist import Ballots, DavidsonLuce, PlackettLuce, measures, strategies
from permdist.distributions import Distribution, Estimates, NotExactError, TiedRankings
from permdist.rankings import BucketOrder, TopK, enumerate_orders

CASES = {
    "ties of two": ([0.7, -0.3, 1.4, 0.1], [-0.4]),
    "ties of all": ([0.7, -0.3, 1.4, 0.1], [0.3, -0.5, 0.8]),
    "no pairs": ([0.7, -0.3, 1.4, 0.1], [-np.inf, 1.0]),
    "equal, many ties": ([0.0, 0.0, 0.0], [2.0, 2.5]),
    "no ties": ([0.7, -0.3, 1.4, 0.1], []),
    "none of these ties": ([0.7, -0.3, 1.4], [-np.inf, -np.inf]),
    "far apart": ([30.0, 0.0, 31.0, -40.0], [1.0, 20.0]),
    "two items": ([0.4, -0.2], [0.5, 7.0]),
    "one item": ([2.0], [1.0]),
}
EVERY = pytest.mark.parametrize("name", CASES)
MEASURES = ["ap", "ndcg", "ndcg@2", "p@2", "rr", "err", "auc", "tau", "wta", "0.5*ap+0.5*ndcg"]


@pytest.fixture(scope="module")
def models():
    return {
        name: (DavidsonLuce(*case), naive_davidson.Listing(*case)) for name, case in CASES.items()
    }


def buckets_of(truth):
    return [BucketOrder(one) for one in truth.rankings]


@EVERY
def test_everything_equals_listing_all_rankings(name, models):
    model, truth = models[name]
    close = {"rel": 1e-10, "abs": 1e-14}
    logs = model.log_prob(buckets_of(truth))
    assert np.exp(logs) == pytest.approx(truth.chances, **close)
    above, tied = truth.pairwise()
    assert np.asarray(model.pairwise()) == pytest.approx(above, **close)
    assert np.asarray(model.pairwise_ties()) == pytest.approx(tied, **close)
    for rule in ("share", "min", "max", "dense"):
        found = model.rank_marginals(ties=rule)
        assert np.asarray(found) == pytest.approx(truth.rank_marginals(rule), **close), rule
        assert (found.standard_error == 0.0).all()
    share = truth.rank_marginals("share")
    assert np.asarray(model.top_k(2)) == pytest.approx(share[:, :2].sum(axis=1), **close)
    assert model.entropy(method="exact") == pytest.approx(truth.entropy(), **close)
    assert np.exp(model.log_prob(model.mode())) == pytest.approx(truth.mode_chance(), **close)


@EVERY
def test_expectations_are_means_over_extensions(name, models):
    model, truth = models[name]
    for labels in (np.array([2, 0, 1, 0]), np.array([0, 1, 0, 1])):
        label = labels[: model.n_items]
        for measure in map(measures.parse, MEASURES):
            exact = model.expect(measure, label, method="exact")
            expected = truth.expect(measure, label)
            assert exact == pytest.approx(expected, rel=1e-10, abs=1e-14), measure
            assert exact.standard_error == 0.0


@EVERY
def test_draws_follow_the_probabilities(name, models):
    model, truth = models[name]
    number = 20_000
    ranks = model.sample_ranks(number, rng=5)
    seen, counts = np.unique(ranks, axis=0, return_counts=True)
    observed = dict(zip(map(tuple, seen.tolist()), counts.tolist(), strict=True))
    keys = [tuple(naive_davidson.bucket_numbers(one)) for one in truth.rankings]
    assert set(observed) <= set(keys)
    expected = truth.chances * number
    common = expected >= 10
    found = np.array([observed.get(key, 0) for key in keys])
    o = np.append(found[common], found[~common].sum())
    e = np.append(expected[common], expected[~common].sum())
    if e[-1] < 5:
        o, e = np.append(o[:-2], o[-2:].sum()), np.append(e[:-2], e[-2:].sum())
    if len(e) > 1:
        assert ((o - e) ** 2 / e).sum() < stats.chi2.isf(1e-5, len(e) - 1)
    # The draws bring their log-probabilities along.
    drawn, logs = model._draw(50, np.random.default_rng(5))
    assert (drawn == ranks[:50]).all()
    rankings = [BucketOrder.from_scores(-row) for row in drawn]
    assert logs == pytest.approx(model.log_prob(rankings), rel=1e-12, abs=1e-12)


@EVERY
def test_estimates_carry_their_error(name, models):
    model, truth = models[name]
    options = {"method": "sample", "draws": 4000, "rng": 3}
    above, tied = truth.pairwise()
    pairs = [(model.pairwise(**options), above), (model.pairwise_ties(**options), tied)]
    share = truth.rank_marginals("share")
    pairs.append((model.top_k(2, **options), share[:, :2].sum(axis=1)))
    for rule in ("share", "min", "max", "dense"):
        estimate = model.rank_marginals(ties=rule, **options)
        pairs.append((estimate, truth.rank_marginals(rule)))
    for estimate, exact in pairs:
        assert isinstance(estimate, Estimates)
        assert estimate.draws == 4000
        error = np.maximum(estimate.standard_error, 3e-4)
        assert (np.abs(np.asarray(estimate) - exact) < 5 * error).all()
    labels = np.array([2, 0, 1, 0])[: model.n_items]
    for measure in ("ndcg", "ap"):
        value = model.expect(measure, labels, **options)
        expected = truth.expect(measures.parse(measure), labels)
        assert abs(value - expected) < 5 * max(value.standard_error, 1e-4)
    entropy = model.entropy(**options)
    assert abs(entropy - truth.entropy()) < 5 * max(entropy.standard_error, 1e-3)


def test_the_standard_error_of_a_share_is_that_of_its_values():
    model = DavidsonLuce([0.5, 0.0, 0.0], ties=[1.0, 1.5])
    estimate = model.rank_marginals(method="sample", draws=500, rng=1)
    values = np.zeros((500, 3, 3))
    for draw, ranking in enumerate(model.sample(500, rng=1)):
        for bucket in ranking.buckets:
            start = int(ranking.ranks("min")[bucket[0]])
            values[draw, bucket, start : start + len(bucket)] = 1 / len(bucket)
    assert np.asarray(estimate) == pytest.approx(values.mean(axis=0))
    assert estimate.standard_error == pytest.approx(values.std(axis=0, ddof=1) / np.sqrt(500))
    first = model.top_k(2, method="sample", draws=500, rng=1)
    shares = values[:, :, :2].sum(axis=2)
    assert np.asarray(first) == pytest.approx(shares.mean(axis=0))
    assert first.standard_error == pytest.approx(shares.std(axis=0, ddof=1) / np.sqrt(500))


@EVERY
def test_shapes_seeds_and_names(name, models):
    model, n = models[name][0], len(CASES[name][0])
    assert isinstance(model, TiedRankings)
    assert not isinstance(model, Distribution)
    assert model.n_items == n
    assert model.names == tuple("0123"[:n])
    assert isinstance(model.sample(rng=0), BucketOrder)
    assert model.sample_ranks(rng=0).shape == (n,)
    assert model.sample_ranks((2, 3), rng=0).shape == (2, 3, n)
    assert model.sample(0, rng=0) == []
    assert (model.sample_ranks(9, rng=4) == model.sample_ranks(9, np.random.default_rng(4))).all()
    drawn = model.sample(9, rng=4)
    assert [one.ranks("dense").tolist() for one in drawn] == model.sample_ranks(9, 4).tolist()
    assert model.log_prob(drawn).shape == (9,)
    assert np.ndim(model.log_prob(drawn[0])) == 0
    assert model.log_prob([]).shape == (0,)
    assert repr(model).startswith("DavidsonLuce([")
    assert model.fit_result is None


def test_two_items_are_davidsons_model():
    worths, nu = np.array([2.0, 0.5]), 0.8
    model = DavidsonLuce(np.log(worths), ties=[np.log(nu)], names=["tea", "milk"])
    total = worths.sum() + nu * np.sqrt(worths.prod())
    expected = [worths[0] / total, nu * np.sqrt(worths.prod()) / total, worths[1] / total]
    assert model.pair_chances("tea", "milk") == pytest.approx(expected)
    assert model.pair_chances(1, 0) == pytest.approx(expected[::-1])
    assert model.pairwise()[0, 1] == pytest.approx(expected[0])
    assert model.pairwise_ties()[0, 1] == pytest.approx(expected[1])
    # In a ranking of more items a pair is no contest of its own.
    three = DavidsonLuce([*np.log(worths), 0.0], ties=[np.log(nu)])
    assert three.pair_chances(0, 1) == pytest.approx(expected)
    assert abs(three.pairwise_ties()[0, 1] - expected[1]) > 0.01


@pytest.mark.parametrize("ties", [[], [-np.inf], [-np.inf, -np.inf]])
def test_without_ties_it_is_plackett_luce(ties):
    scores = np.array([0.7, -0.3, 1.4, 0.1, -1.1])
    model, luce = DavidsonLuce(scores, ties), PlackettLuce(scores)
    orders = enumerate_orders(5)
    assert model.log_prob(orders) == pytest.approx(luce.log_prob(orders), rel=1e-12)
    assert model.log_prob_gradient(orders[:9]).scores == pytest.approx(
        luce.log_prob_gradient(orders[:9]), abs=1e-14
    )
    for rule in ("share", "min", "max", "dense"):
        assert np.asarray(model.rank_marginals(ties=rule)) == pytest.approx(luce.rank_marginals())
    assert np.asarray(model.pairwise()) == pytest.approx(luce.pairwise())
    assert model.pair_chances(0, 1)[::2] == pytest.approx(luce.pairwise()[[0, 1], [1, 0]])
    assert model.entropy() == pytest.approx(luce.entropy())
    assert model.mode().order().tolist() == luce.mode().tolist()
    labels = [2, 0, 1, 0, 1]
    assert model.expect("ap", labels) == pytest.approx(luce.expect("ap", labels))
    assert DavidsonLuce(np.zeros(100), ties).mode().is_total


def test_ballots_of_every_kind():
    scores, ties = [0.7, -0.3, 1.4, 0.1], [-0.4, 0.2]
    model = DavidsonLuce(scores, ties, names=["a", "b", "c", "d"])

    def chance(buckets, rest=()):
        return naive_davidson.chance(buckets, scores, ties, rest)

    cases = [
        (model.log_prob(TopK([2, 0], 4)), chance([(2,), (0,)], (1, 3))),
        (model.log_prob([[2], [0, 1]], subset=False)[1], chance([(0,), (1,)], (2, 3))),
        (model.log_prob([2, [0, 1]], subset=True), chance([(2,), (0, 1)])),
        (model.log_prob(["c", ["a", "b"]], subset=False), chance([(2,), (0, 1)], (3,))),
        (model.log_prob(np.array([2, 0, 1, 3])), chance([(2,), (0,), (1,), (3,)])),
        (model.log_prob(Ballots.from_choices(["b"], [["d", "b"]], names="abcd"))[0], None),
        (model.log_prob(Ballots.from_pairs(["d"], ["b"], ties=[True]))[0], chance([(1, 3)])),
    ]
    cases[5] = (cases[5][0], chance([(1,)], (3,)))
    for log, expected in cases:
        assert np.exp(log) == pytest.approx(expected, rel=1e-12)
    worst = Ballots.from_best_worst(["a"], ["c"], [["a", "b", "c"]], names="abcd")
    turned = [-score for score in scores]
    both = chance([(0,)], (1, 2)) * naive_davidson.chance([(2,)], turned, ties, (1,))
    assert np.exp(model.log_prob(worst)) == pytest.approx([both])
    grid = enumerate_orders(4).reshape(4, 6, 4)
    assert model.log_prob(grid).shape == (4, 6)
    assert model.log_prob_gradient(grid).ties.shape == (4, 6, 2)
    # A tie of a size that the model does not have is impossible.
    assert DavidsonLuce(scores, [-0.4]).log_prob(BucketOrder([[0, 1, 2], [3]])) == -np.inf


@pytest.mark.parametrize("name", ["ties of two", "ties of all", "far apart"])
def test_gradients(name, models):
    model, truth = models[name]
    scores, ties = model.scores, model.ties
    rankings = buckets_of(truth)[::7]
    point = np.concatenate([scores, ties])
    found = model.log_prob_gradient(rankings)
    for row, ranking in enumerate(rankings):

        def log_prob(x, ranking=ranking):
            return DavidsonLuce(x[: len(scores)], x[len(scores) :]).log_prob(ranking)

        expected = naive.gradient(log_prob, point)
        together = np.concatenate([found.scores[row], found.ties[row]])
        assert together == pytest.approx(expected, abs=1e-6)
    every = model.log_prob_gradient(buckets_of(truth))
    assert truth.chances @ every.scores == pytest.approx(0.0, abs=1e-12)
    assert truth.chances @ every.ties == pytest.approx(0.0, abs=1e-12)
    ballots = Ballots.from_best_worst([0, 2], [1, 3], [[0, 1, 2], [2, 3]], n_items=4)
    by_score = model.log_prob_gradient(ballots).scores

    def total(x):
        return float(DavidsonLuce(x, ties).log_prob(ballots).sum())

    assert by_score.sum(axis=0) == pytest.approx(naive.gradient(total, scores), abs=1e-6)


@given(model=strategies.davidson_luces(max_items=4, wide=True))
@settings(max_examples=40)
def test_scores_of_every_magnitude(model):
    rankings = [BucketOrder(one) for one in naive_davidson.bucket_orders(range(model.n_items))]
    logs = model.log_prob(rankings)
    chances = np.exp(logs)
    assert chances.sum() == pytest.approx(1.0, abs=1e-7)
    numbers = np.array([one.ranks("dense") for one in rankings])
    above = np.einsum("r,rij->ij", chances, numbers[:, :, None] < numbers[:, None, :])
    assert np.asarray(model.pairwise()) == pytest.approx(above, abs=1e-7)
    possible = chances > 0
    entropy = -(chances[possible] @ logs[possible])
    assert model.entropy() == pytest.approx(entropy, abs=1e-7)
    assert model.log_prob(model.mode()) == pytest.approx(logs.max(), abs=1e-7)
    ranks, drawn = model._draw(5, np.random.default_rng(0))
    at = [numbers.tolist().index(row) for row in ranks.tolist()]
    assert drawn == pytest.approx(logs[at], abs=1e-7)
    slopes = model.log_prob_gradient([rankings[at] for at in np.flatnonzero(logs > -np.inf)])
    assert (np.abs(slopes.scores) <= model.n_items).all()


@pytest.mark.parametrize(
    ("scores", "ties"),
    [
        ([0.0, 1e7, 1e7 + 1.0], [300.0]),
        ([0.0, -400.0, -900.0, -400.5], [300.0, -300.0]),
        ([0.0, -400.0, -900.0, -400.5], [-300.0, 300.0, 299.0]),
        ([1e-3, 3e5, 0.0], [-np.inf, 300.0]),
    ],
)
def test_deltas_of_every_magnitude(scores, ties):
    model = DavidsonLuce(scores, ties)
    listed = list(naive_davidson.bucket_orders(range(len(scores))))
    rankings = [BucketOrder(one) for one in listed]
    logs = np.array([naive_davidson.log_chance(one, scores, ties) for one in listed])
    assert model.log_prob(rankings) == pytest.approx(logs, rel=1e-12, abs=1e-12)
    chances = np.exp(logs)
    possible = chances > 0
    entropy = -(chances[possible] @ logs[possible])
    assert model.entropy() == pytest.approx(entropy, abs=1e-12)
    assert model.log_prob(model.mode()) == pytest.approx(logs.max(), abs=1e-12)
    ranks = model.sample_ranks(1000, rng=0)
    numbers = np.array([one.ranks("dense") for one in rankings])
    counts = (ranks[:, None, :] == numbers).all(axis=2).sum(axis=0)
    assert (np.abs(counts - 1000 * chances) < 5 * np.sqrt(1000 * chances) + 1e-6).all()


@given(model=strategies.davidson_luces(min_items=2), order=strategies.orders(n_items=6))
@settings(max_examples=25)
def test_numbers_of_items_do_not_matter(model, order):
    order = order[order < model.n_items]
    turned = DavidsonLuce(model.scores[order], model.ties)
    both = np.ix_(order, order)
    assert np.asarray(turned.pairwise()) == pytest.approx(model.pairwise()[both], abs=1e-13)
    marginals = model.rank_marginals()[order]
    assert np.asarray(turned.rank_marginals()) == pytest.approx(marginals, abs=1e-13)
    assert turned.entropy() == pytest.approx(model.entropy(), abs=1e-12)


def test_many_items_are_drawn():
    model = DavidsonLuce(np.linspace(2.0, -2.0, 60), ties=[-0.5])
    marginals = model.rank_marginals(draws=300, rng=0)
    assert marginals.draws == 300
    assert marginals.sum(axis=0) == pytest.approx(1.0)
    assert marginals.sum(axis=1) == pytest.approx(1.0)
    above, tied = (f(draws=300, rng=0) for f in (model.pairwise, model.pairwise_ties))
    assert above + above.T + tied + np.eye(60) == pytest.approx(1.0)
    assert model.entropy(draws=300, rng=0).standard_error > 0
    assert model.expect("ndcg@10", np.arange(60) % 3, draws=300, rng=0).standard_error > 0
    for call in ("entropy", "pairwise", "pairwise_ties", "rank_marginals"):
        with pytest.raises(NotExactError, match=f"{call}: exact up to 19 items.*method='sample'"):
            getattr(model, call)(method="exact")
    with pytest.raises(NotExactError, match=r"mode: exact up to 19.*most probable"):
        model.mode()
    with pytest.raises(NotExactError, match="expect"):
        model.expect("ap", np.arange(60) % 2, method="exact")


def test_what_has_no_exact_sum_says_so():
    model = DavidsonLuce([0.0, 1.0, 2.0], ties=[0.0])
    with pytest.raises(NotExactError, match="no exact sum for this measure"):
        model.expect("11pt", [1, 0, 1], method="exact")
    assert 0 < model.expect("11pt", [1, 0, 1], draws=50, rng=0) < 1
    labels = np.zeros(3, dtype=int)
    assert model.expect("ap", labels) == 0.0


def test_the_mode_is_not_always_sorted():
    scores, ties = [0.15, 0.08, 0.03, 0.02, 0.0], [-1.04]
    truth = naive_davidson.Listing(scores, ties)
    best = truth.rankings[truth.chances.argmax()]
    assert best == ((1, 2), (0,), (3,), (4,))
    assert DavidsonLuce(scores, ties).mode().buckets == best
    # Equally probable: by item number.
    assert DavidsonLuce(np.zeros(4), [-9.0]).mode() == BucketOrder([[0], [1], [2], [3]])


@EVERY
def test_distributions_are_immutable(name, models):
    model = models[name][0]
    with pytest.raises(AttributeError, match="is immutable"):
        model.scores = [1.0]
    for array in (model.scores, model.ties):
        assert not array.flags.writeable
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (twin.sample_ranks(5, rng=0) == model.sample_ranks(5, rng=0)).all()
        assert not twin.scores.flags.writeable
    marginals = model.rank_marginals()
    marginals[:] = 7.0
    assert np.asarray(model.rank_marginals()).max() <= 1.0 + 1e-12


def test_arrays_with_errors():
    one = Estimates([[0.2, 0.8]], [[0.1, 0.1]], draws=16)
    again = pickle.loads(pickle.dumps(one))
    assert again.standard_error.tolist() == [[0.1, 0.1]]
    assert again.draws == 16
    for plain in (one[0], one + 1, one.sum(axis=0), one.copy(), one.T @ one, np.sqrt(one)):
        assert type(plain) is np.ndarray
    assert type(one.sum()) is np.float64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DavidsonLuce([]), ValueError, "scores: expected at least one item"),
        (lambda: DavidsonLuce([0.0, np.nan]), ValueError, "scores: expected finite numbers"),
        (lambda: DavidsonLuce([0.0], [np.nan]), ValueError, "ties: expected logarithms from -300"),
        (lambda: DavidsonLuce([0.0], [301.0]), ValueError, "or -inf, got 301.0 at index 0"),
        (lambda: DavidsonLuce([0.0], ["x"]), TypeError, "ties: expected numbers"),
        (lambda: DavidsonLuce([0.0, 1.0], names=["a"]), ValueError, "names: expected 2 names"),
        (lambda: MODEL.rank_marginals(ties="mean"), ValueError, "ties: expected one of share"),
        (lambda: MODEL.entropy(method="guess"), ValueError, "method: expected one of auto"),
        (lambda: MODEL.expect("ap"), TypeError, "labels: expected the items' relevance labels"),
        (lambda: MODEL.pair_chances(0, 0), ValueError, "expected two different items, got '0'"),
        (lambda: MODEL.log_prob([0, 1]), ValueError, "pass subset=True"),
        (lambda: MODEL.log_prob(BucketOrder([[0], [1]])), ValueError, "out of [2, 3] items"),
        (
            lambda: MODEL.log_prob_gradient(BucketOrder([[0, 1, 2]])),
            ValueError,
            "ballots: expected no probability of 0",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    naive.refuses(call, error, message)


MODEL = DavidsonLuce([1.0, 0.0, -1.0], [0.0])
