import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats
from scipy.special import gammaln

from permdist import measures, strategies
from permdist.distributions import GaussianScores, PlackettLuce
from permdist.rankings import enumerate_orders

SCORES = np.array([0.7, -0.3, 1.4, 0.1, -1.1])
LABELS = np.array([2, 0, 1, 0, 1])


def listing(model):
    truth = naive.Listing(model.n_items, lambda order: float(model.log_prob(order)))
    assert truth.log_partition == pytest.approx(0.0, abs=1e-12)
    return truth


@pytest.mark.parametrize("scale", [1.0, 0.3, 5.0])
def test_everything_equals_listing_all_orders(scale):
    model = GaussianScores(SCORES, scale)
    truth = listing(model)
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), rel=1e-10)
    assert model.pairwise() == pytest.approx(truth.pairwise(), rel=1e-10)
    assert model.top_k(2) == pytest.approx(truth.rank_marginals()[:, :2].sum(axis=1), rel=1e-10)
    assert model.entropy() == pytest.approx(truth.entropy(), rel=1e-10)
    assert truth.prob.max() == pytest.approx(np.exp(model.log_prob(model.mode())))
    for measure in map(measures.parse, ["ap", "ndcg", "p@2", "rr", "err", "auc", "tau"]):
        for labels in (LABELS, (LABELS > 0).astype(int)):
            assert model.expect(measure, labels) == pytest.approx(
                truth.expect(measure, labels), rel=1e-10
            )


def test_two_and_three_items_against_known_integrals():
    assert np.exp(GaussianScores([1.0, 0.0]).log_prob([0, 1])) == pytest.approx(
        stats.norm.cdf(1 / np.sqrt(2)), rel=1e-14
    )
    # X0 > X1 > X2 as an orthant of the differences, whose correlation is -1/2.
    means = np.array([0.3, -0.2, 0.5])
    expected = stats.multivariate_normal.cdf(
        [0.0, 0.0], [means[1] - means[0], means[2] - means[1]], [[2.0, -1.0], [-1.0, 2.0]]
    )
    assert np.exp(GaussianScores(means).log_prob([0, 1, 2])) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 31, 100, 200])
def test_equal_means_have_equal_orders(n):
    order = np.random.default_rng(n).permutation(n)
    value = GaussianScores(np.full(n, 3.0), scale=0.5).log_prob(order)
    assert value == pytest.approx(-gammaln(n + 1), abs=1e-8)


@pytest.mark.parametrize("scores", [np.zeros(7), [0, 5, -5, 10, 3, 3, -20], [1, 1, 2, 3, 5, 8, 13]])
def test_probabilities_add_up(scores):
    total = np.exp(GaussianScores(scores).log_prob(enumerate_orders(7))).sum()
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n", [2, 50, 150])
def test_marginals_are_doubly_stochastic(n):
    for scores in (np.zeros(n), np.random.default_rng(n).normal(0, 2, n)):
        marginals = GaussianScores(scores).rank_marginals()
        assert marginals.sum(axis=0) == pytest.approx(1.0, abs=1e-12)
        assert marginals.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=10)
@given(
    query=strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5), data=st.data()
)
def test_gradients(query, data):
    scores = query.scores / 5
    model = GaussianScores(scores, scale=0.8)
    for measure in ("ndcg", "p@2", "auc"):
        quotient = naive.gradient(
            lambda s, m=measure: float(GaussianScores(s, 0.8).expect(m, query.labels)), scores
        )
        assert model.expect_gradient(measure, query.labels) == pytest.approx(quotient, abs=1e-8)
    order = data.draw(strategies.orders(n_items=len(scores)))
    quotient = naive.gradient(lambda s: float(GaussianScores(s, 0.8).log_prob(order)), scores)
    assert model.log_prob_gradient(order) == pytest.approx(quotient, abs=1e-6)


@settings(max_examples=20)
@given(
    model=strategies.gaussian_scores(min_items=2, max_items=4, wide=True),
    data=st.data(),
)
def test_gradients_for_scores_of_every_magnitude(model, data):
    # Moving all scores by the same changes nothing; slopes are in units of 1 / scale.
    labels = data.draw(strategies.labels(n_items=model.n_items, min_relevant=1, min_irrelevant=1))
    for measure in ("ndcg", "p@2", "auc"):
        slopes = model.scale * model.expect_gradient(measure, labels)
        assert np.abs(slopes).max() <= 1.0
        assert slopes.sum() == pytest.approx(0.0, abs=1e-7)
    order = data.draw(strategies.orders(n_items=model.n_items))
    pull = model.scale * model.log_prob_gradient(order)
    assert pull.sum() == pytest.approx(0.0, abs=1e-6 * max(1.0, np.abs(pull).max()))


def test_softrank_is_offered_and_is_not_exact():
    model = GaussianScores(np.r_[1.0, np.zeros(9)])
    exact, soft = model.rank_marginals(), model.rank_marginals(method="softrank")
    assert soft.sum(axis=1) == pytest.approx(1.0)
    assert np.abs(soft.sum(axis=0) - 1.0).max() > 0.1  # its columns do not add up
    assert exact[0, 0] > 3 * soft[0, 0]
    labels = np.r_[1, np.zeros(9, dtype=int)]
    form = measures.NDCG().positional(labels)
    assert model.expect("ndcg", labels, method="softrank") == pytest.approx(
        form.gains @ soft @ form.weights
    )
    # For two items the events are independent: there it is exact.
    pair = GaussianScores([0.4, -0.4])
    assert pair.rank_marginals(method="softrank") == pytest.approx(pair.rank_marginals())
    with pytest.raises(ValueError, match="SoftRank has no expectation of 'ap'"):
        model.expect("ap", np.r_[1, 1, np.zeros(8, dtype=int)], method="softrank")


def test_draws_follow_the_probabilities():
    model = GaussianScores(SCORES[:4], scale=0.7)
    orders = enumerate_orders(4)
    expected = np.exp(model.log_prob(orders)) * 50_000
    code = 4 ** np.arange(4)
    seen, counts = np.unique(model.sample(50_000, rng=3) @ code, return_counts=True)
    observed = dict(zip(seen.tolist(), counts.tolist(), strict=True))
    got = np.array([observed.get(key, 0) for key in (orders @ code).tolist()])
    assert ((got - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-5, 23)


def test_fitting():
    truth = GaussianScores([1.0, 0.4, -0.2, -1.2], scale=2.0)
    orders = truth.sample(1500, rng=0)
    model = GaussianScores.fit(orders, scale=2.0)
    assert model.scores == pytest.approx(truth.scores, abs=0.2)
    assert model.scores.sum() == pytest.approx(0.0, abs=1e-9)

    def likelihood(scores):
        return float(GaussianScores(scores, 2.0).log_prob(orders).mean())

    assert naive.gradient(likelihood, model.scores) == pytest.approx(0.0, abs=1e-6)
    assert GaussianScores.fit([[0, 1]], regularization=1.0).scores[0] > 0
    with pytest.raises(ValueError, match="no maximum likelihood estimate exists"):
        GaussianScores.fit([[0, 1, 2], [0, 2, 1]])


@pytest.mark.parametrize("gap", [0.0, 3.0, 30.0, 300.0, 3000.0])
def test_orders_that_are_next_to_impossible(gap):
    # One item above two that are far better: the integral of phi(t) Phi(t - gap)^2 / 2, by scipy,
    # around the peak of its logarithm.
    def log_integrand(t):
        return stats.norm.logpdf(t) + 2 * special.log_ndtr(t - gap) - np.log(2.0)

    bounds = {"bounds": (-5, gap + 5), "method": "bounded", "options": {"xatol": 1e-9}}
    peak = optimize.minimize_scalar(lambda t: -log_integrand(t), **bounds).x
    value, _ = integrate.quad(
        lambda t: np.exp(log_integrand(t) - log_integrand(peak)),
        peak - 9,
        peak + 9,
        epsabs=0,
        epsrel=1e-12,
        limit=500,
        points=[peak],
    )
    expected = log_integrand(peak) + np.log(value)
    ours = GaussianScores([0.0, gap, gap]).log_prob([0, 1, 2])
    assert ours == pytest.approx(expected, abs=1e-9, rel=1e-12)


def test_a_common_offset_and_a_tiny_scale_change_nothing():
    for offset in (1e5, 1e8):
        model = GaussianScores([offset, offset])
        assert model.rank_marginals() == pytest.approx(0.5)
        assert model.log_prob([0, 1]) == pytest.approx(-np.log(2))
        assert model.log_prob_gradient([0, 1]) == pytest.approx([0.5641895835, -0.5641895835])
        assert 0.4 < model.sample(2000, rng=0)[:, 0].mean() < 0.6
    far = GaussianScores([0.0, 1e8, 1e8]).rank_marginals()
    assert far == pytest.approx(np.array([[0, 0, 1], [0.5, 0.5, 0], [0.5, 0.5, 0]]))
    with pytest.raises(ValueError, match="within 20,000 standard deviations"):
        GaussianScores([0.0, 1.0], scale=1e-8).log_prob([0, 1])


def test_two_kinds_of_labels_without_a_zero():
    labels = np.array([1, 2] * 5)
    for model in (GaussianScores(np.zeros(10)), PlackettLuce(np.zeros(25))):
        own = np.resize(labels, model.n_items)
        exact = model.expect("err", own, rng=1)
        drawn = model.expect("err", own, method="sample", rng=0)
        assert abs(exact - drawn) < 6 * max(drawn.standard_error, exact.standard_error)
