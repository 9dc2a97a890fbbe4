"""Batches of Plackett-Luce and Gaussian scores against one distribution per list."""

import itertools

import naive
import numpy as np
import pytest

from permdist import GaussianScores, GaussianScoresBatch, PlackettLuce, PlackettLuceBatch
from permdist.distributions import position_weights
from permdist.measures import parse
from permdist.rankings import enumerate_orders

KINDS = {
    "plackett-luce": (PlackettLuceBatch, PlackettLuce),
    "gaussian": (
        lambda scores, **options: GaussianScoresBatch(scores, 0.7, **options),
        lambda scores: GaussianScores(scores, 0.7),
    ),
}
ERRORS = {"plackett-luce": 2e-12, "gaussian": 1e-11}
both = pytest.mark.parametrize("kind", KINDS)


def ragged(seed=0, lists=7, n=8, spread=1.5, kind="plackett-luce", **options):
    """A batch with gaps in its mask, single distributions of its lists, and labels."""
    rng = np.random.default_rng(seed)
    scores = spread * rng.normal(size=(lists, n))
    mask = rng.random((lists, n)) < 0.7
    mask[:, 1] = True
    mask[0] = True
    labels = rng.integers(0, 4, size=(lists, n))
    labels[1] = 0
    batch = KINDS[kind][0](np.where(mask, scores, np.nan), mask=mask, **options)
    return batch, [KINDS[kind][1](scores[q, mask[q]]) for q in range(lists)], labels


def unpadded(table, batch):
    return [row[mask] for row, mask in zip(table, batch.mask, strict=True)]


@both
@pytest.mark.parametrize("spread", [1.5, 400.0])
def test_marginals_and_draws_have_the_bits_of_single_distributions(kind, spread):
    batch, singles, _ = ragged(kind=kind, spread=spread)
    marginals, pairs, first = batch.rank_marginals(), batch.pairwise(), batch.top_k(3)
    for q, one in enumerate(singles):
        here, n = batch.mask[q], one.n_items
        np.testing.assert_array_equal(marginals[q][here][:, :n], one.rank_marginals())
        np.testing.assert_array_equal(pairs[q][np.ix_(here, here)], one.pairwise())
        np.testing.assert_allclose(first[q][here], one.top_k(3), atol=1e-12)
        assert marginals[q].sum() == pytest.approx(n)
        assert not first[q][~here].any()
        np.testing.assert_array_equal(batch[q].scores, one.scores)
    orders = batch.sample((2, 3), rng=5)
    assert orders.shape == (2, 3, 7, 8)
    rng = np.random.default_rng(5)
    for draw, q in itertools.product(range(6), range(7)):
        drawn = np.flatnonzero(batch.mask[q])[singles[q].sample(rng=rng)]
        order = orders.reshape(6, 7, 8)[draw, q]
        np.testing.assert_array_equal(order[: len(drawn)], drawn)
        np.testing.assert_array_equal(order[len(drawn) :], np.flatnonzero(~batch.mask[q]))
    for q, one in enumerate(singles):
        best = np.flatnonzero(batch.mask[q])[one.mode()]
        np.testing.assert_array_equal(batch.mode()[q, : one.n_items], best)


@both
def test_log_probabilities_have_the_bits_of_single_distributions(kind):
    for spread in (1.5, 200.0) if kind == "plackett-luce" else (1.5,):
        batch, singles, _ = ragged(kind=kind, spread=spread)
        orders = batch.sample(4, rng=1)
        values, slopes = batch.log_prob(orders), batch.log_prob_gradient(orders)
        assert values.shape == (4, 7)
        for q, one in enumerate(singles):
            within = (np.cumsum(batch.mask[q]) - 1)[orders[:, q, : one.n_items]]
            np.testing.assert_array_equal(values[:, q], one.log_prob(within))
            np.testing.assert_array_equal(
                slopes[:, q][:, batch.mask[q]], one.log_prob_gradient(within)
            )
        assert not slopes[:, ~batch.mask].any()
        np.testing.assert_array_equal(batch.log_prob(orders[2]), values[2])


@both
def test_probabilities_of_all_orders_add_up(kind):
    batch = KINDS[kind][0](np.random.default_rng(0).normal(size=(3, 4)))
    orders = np.repeat(enumerate_orders(4)[:, None], 3, axis=1)
    np.testing.assert_allclose(np.exp(batch.log_prob(orders)).sum(axis=0), 1.0, rtol=1e-10)


@both
def test_expected_measures_and_gradients_are_those_of_single_distributions(kind):
    batch, singles, labels = ragged(kind=kind)
    for name in ("ndcg", "ndcg@3", "p@2", "auc", "tau", "0.5 * ndcg + 0.5 * auc"):
        measure = parse(name)
        values, gradient = batch.expect_with_gradient(measure, labels)
        np.testing.assert_array_equal(gradient, batch.expect_gradient(measure, labels))
        assert not gradient[~batch.mask].any()
        for q, one in enumerate(singles):
            here = labels[q, batch.mask[q]]
            assert values[q] == pytest.approx(one.expect(measure, here), abs=ERRORS[kind])
            np.testing.assert_allclose(
                gradient[q, batch.mask[q]], one.expect_gradient(measure, here), atol=ERRORS[kind]
            )
    binary = labels > 1
    for name in ("ap", "rr"):
        wanted = [
            one.expect(name, label)
            for one, label in zip(singles, unpadded(binary, batch), strict=True)
        ]
        np.testing.assert_allclose(batch.expect(name, binary), wanted, atol=1e-12)


@both
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 1000.0])
def test_sums_over_positions_are_exact_for_scores_of_every_spread(kind, spread):
    rng = np.random.default_rng(int(spread))
    for n, k in ((1, 1), (2, 1), (5, 5), (30, 10), (60, 60)):
        scores = spread * rng.standard_cauchy(size=(3, n))
        labels = rng.integers(0, 5, size=(3, n)) * (rng.random((3, n)) < 0.6)
        labels[:, 0] = 1
        batch, measure = KINDS[kind][0](scores), parse(f"ndcg@{k}")
        values, gradient = batch.expect_with_gradient(measure, labels)
        seen, weights = batch.exposure(k=k), position_weights(k=k, n_items=n)
        for q in range(3):
            one = KINDS[kind][1](scores[q])
            form = measure.positional(labels[q])
            wanted, slopes = one.expected_sum(form)
            assert values[q] == pytest.approx(wanted, abs=ERRORS[kind])
            np.testing.assert_allclose(gradient[q], slopes, atol=ERRORS[kind])
            marginals = one.rank_marginals()[:, : len(weights)]
            np.testing.assert_allclose(seen[q], marginals @ weights, atol=1e-12)
            np.testing.assert_array_equal(seen[q], one.exposure(k=k))


@both
def test_padding_shape_and_threads_change_no_bit(kind):
    batch, singles, labels = ragged(kind=kind, lists=6)
    rows = [one.scores for one in singles]
    make = KINDS[kind][0]
    wide = np.zeros((2, 3, 11))
    mask = np.zeros((2, 3, 11), dtype=bool)
    for q, row in enumerate(rows):
        mask[q // 3, q % 3, 11 - len(row) :] = True
        wide[q // 3, q % 3, 11 - len(row) :] = row
    other = make(wide, mask=mask, n_jobs=1)
    assert (other.shape, len(other), other.n_items) == ((2, 3), 2, 11)
    moved = np.zeros((2, 3, 11), dtype=int)
    moved[mask] = labels[batch.mask]
    for name in ("ndcg@3", "auc"):
        values, gradient = batch.expect_with_gradient(name, labels)
        same, slopes = other.expect_with_gradient(name, moved)
        np.testing.assert_array_equal(values, same.ravel())
        np.testing.assert_array_equal(gradient[batch.mask], slopes[mask])
    np.testing.assert_array_equal(batch.exposure()[batch.mask], other.exposure()[mask])
    again, few = batch.sample(3, rng=2), other.sample(3, rng=2)
    np.testing.assert_array_equal(batch.log_prob(again).ravel(), other.log_prob(few).ravel())
    np.testing.assert_array_equal(other[1, 2].scores, rows[5])
    np.testing.assert_array_equal(other[1].mask, mask[1])
    if kind == "plackett-luce":
        np.testing.assert_array_equal(
            PlackettLuceBatch.from_lists(rows).exposure()[0, : len(rows[0])],
            batch.exposure()[0, batch.mask[0]],
        )
    big = make(np.random.default_rng(0).normal(size=(200, 20)), n_jobs=1)
    threads = make(big.scores, n_jobs=3)
    grades = np.random.default_rng(1).integers(0, 3, size=(200, 20))
    for one, two in zip(
        big.expect_with_gradient("ndcg@5", grades),
        threads.expect_with_gradient("ndcg@5", grades),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(big.exposure(k=4), threads.exposure(k=4))
    np.testing.assert_array_equal(big.sample(2, rng=0), threads.sample(2, rng=0))


@both
def test_gradients_of_marginals_and_exposures(kind):
    rng = np.random.default_rng(3)
    scores, weight = rng.normal(size=(2, 4)), rng.normal(size=(2, 4, 3))
    mask = np.array([[True] * 4, [True, True, False, True]])
    make = KINDS[kind][0]

    def by_marginals(flat):
        table = make(flat.reshape(2, 4), mask=mask).rank_marginals()
        return float((weight * table[..., :3]).sum())

    def by_exposure(flat):
        return float((weight[..., 0] * make(flat.reshape(2, 4), mask=mask).exposure(0.5)).sum())

    batch = make(scores, mask=mask)
    slopes = batch.rank_marginals_gradient(weight)
    np.testing.assert_allclose(
        slopes.ravel(), naive.gradient(by_marginals, scores.ravel()), atol=1e-8
    )
    pulled = batch.exposure_gradient(weight[..., 0], 0.5)
    np.testing.assert_allclose(
        pulled.ravel(), naive.gradient(by_exposure, scores.ravel()), atol=1e-8
    )
    one = KINDS[kind][1](scores[0])
    np.testing.assert_array_equal(one.rank_marginals_gradient(weight[0]), slopes[0])
    np.testing.assert_array_equal(one.exposure_gradient(weight[0, :, 0], 0.5), pulled[0])


def test_exposures_follow_their_weights():
    model = PlackettLuce([0.4, 0.0, -1.0, 2.0])
    for discount in ("log2", "jk", "reciprocal", 0.3, [1.0, 0.2]):
        weights = position_weights(discount, n_items=4)
        seen = model.exposure(discount)
        np.testing.assert_allclose(
            seen, model.rank_marginals()[:, : len(weights)] @ weights, atol=1e-13
        )
        assert seen.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(model.exposure([1.0]), model.top_k(1), atol=1e-13)
    np.testing.assert_allclose(model.exposure("log2", k=1), model.top_k(1), atol=1e-13)


def test_faces():
    batch = PlackettLuceBatch([[1.0, 0.0]], names=["tea", "milk"])
    assert batch.names == ("tea", "milk")
    assert [one.n_items for one in batch] == [2]
    with pytest.raises(AttributeError, match="immutable"):
        batch.scores = 3
    with pytest.raises(ValueError, match="read-only"):
        batch.scores[0] = 1.0
    single = PlackettLuceBatch([1.0, 0.0, 2.0])
    assert single.shape == ()
    assert isinstance(single[()], PlackettLuce)
    assert single.log_prob([2, 0, 1]) == PlackettLuce([1.0, 0.0, 2.0]).log_prob([2, 0, 1])
    none = PlackettLuceBatch(np.zeros((0, 3)))
    empty = np.zeros((0, 3), dtype=int)
    assert none.expect("ndcg", empty).shape == none.log_prob(empty).shape == (0,)
    assert none.sample((2, 4), rng=0).shape == (2, 4, 0, 3)
    assert none.rank_marginals().shape == (0, 3, 3)
    assert none.exposure().shape == none.expect_gradient("ndcg", empty).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PlackettLuceBatch([[np.nan]]), ValueError, "scores: expected finite numbers"),
        (lambda: PlackettLuceBatch([[0.0], [1, 2]]), ValueError, "unequal length; use from_lists"),
        (lambda: PlackettLuceBatch([[0.0]], mask=[[1]]), TypeError, "mask: expected booleans"),
        (lambda: PlackettLuceBatch([[0.0]], mask=[[False]]), ValueError, r"none in list \[0\]"),
        (lambda: GaussianScoresBatch([[0.0]], scale=-1.0), ValueError, "scale: expected"),
        (lambda: two().log_prob([0, 1]), ValueError, r"orders: expected shape \(..., 2, 2\)"),
        (lambda: two().log_prob([[0, 1], [1, 0]]), ValueError, r"got entry 1 at index \(1, 0\)"),
        (lambda: two().expect("ndcg", [[1, 0, 0]]), ValueError, r"labels: expected shape \(2, 2"),
        (lambda: two().exposure("log3"), ValueError, "discount: expected one of"),
        (lambda: two().exposure_gradient([1.0]), ValueError, r"cotangent: expected shape \(2, 2"),
        (lambda: PlackettLuce([1.0]).rank_marginals_gradient([[1, 2]]), ValueError, "cotangent"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def two():
    return PlackettLuceBatch([[0.0, 1.0], [0.5, 0.0]], mask=[[True, True], [True, False]])
