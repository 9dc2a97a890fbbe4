"""Distributions of one's own: from functions, from draws alone, and how they are explained."""

import copy
import pickle

import naive
import numpy as np
import pytest
from scipy.special import logsumexp

from permdist import (
    Distribution,
    GoodBad,
    Mallows,
    Mixture,
    PlackettLuce,
    WeightedOrders,
    identities,
    plots,
    rankings,
)
from permdist.distributions import Estimate, EstimatedOrder, Estimates, NotExactError
from permdist.distributions.drawn import ask
from permdist.samplers import run_chains

THETA = 0.7


def one_weight(order):
    """Return the log-weight of one order: THETA for every pair upside down."""
    return -THETA * sum(a > b for k, a in enumerate(order) for b in order[k + 1 :])


def weights(orders):
    """Return the same of orders (batch, n); fails for a single one."""
    return -THETA * rankings.kendall(orders[:, :], np.arange(orders.shape[1]))


def sample(size, rng, n=12):
    return Mallows(range(n), THETA).sample(size, rng)


def truth(n):
    return Mallows(range(n), THETA)


def close(estimate, exact):
    """Check an estimate against the truth, by its own standard errors."""
    chances = np.asarray(exact)
    least = np.sqrt(chances * (1.0 - chances) / estimate.draws)
    error = np.fmax(estimate.standard_error, least) + 1e-12
    return bool((np.abs(np.asarray(estimate) - chances) < 5.0 * error).all())


# ---- log-weights or log-probabilities ----------------------------------------------------------


@pytest.mark.parametrize("function", [one_weight, weights])
def test_weights_are_normalized_and_listed(function):
    model = Distribution.from_functions(5, function, normalized=False, names="abcde")
    orders, exact = rankings.enumerate_orders(5), truth(5)
    logs = np.array([one_weight(order) for order in orders])
    assert model.log_prob(orders) == pytest.approx(logs - logsumexp(logs))
    assert model.log_prob(orders.reshape(2, 60, 5)).shape == (2, 60)
    assert model.log_partition() == pytest.approx(logsumexp(logs))
    assert model.names == tuple("abcde")
    for name in ("rank_marginals", "pairwise", "mode"):
        answer = getattr(model, name)()
        assert answer == pytest.approx(np.asarray(getattr(exact, name)()))
        assert answer.draws == 0
    assert model.entropy() == pytest.approx(exact.entropy())
    assert identities.check_distribution(model, draws=2000).passed


def test_probabilities_must_add_up_to_one():
    exact = truth(4)
    model = Distribution.from_functions(4, exact.log_prob)
    assert model.log_partition() == 0.0
    assert model.rank_marginals() == pytest.approx(np.asarray(exact.rank_marginals()))
    wrong = Distribution.from_functions(4, one_weight)
    assert wrong.log_prob([3, 2, 1, 0]) == pytest.approx(one_weight([3, 2, 1, 0]))
    for call in (wrong.rank_marginals, wrong.pairwise, wrong.mode, wrong.sample, wrong.entropy):
        naive.refuses(call, ValueError, "orders; pass normalized=False if these are weights")
    failed = [r for r in identities.check_distribution(wrong, draws=200) if not r.passed]
    assert failed[0].identity.name == "probabilities sum to one"


def test_probabilities_instead_of_logarithms():
    exact = truth(4)

    def chance(order):
        return np.exp(exact.log_prob(order))

    model = Distribution.from_functions(4, chance)
    for call in (model.rank_marginals, model.sample, model.entropy):
        naive.refuses(call, ValueError, "these look like probabilities: return their logarithms")
    weighted = Distribution.from_functions(4, chance, normalized=False)
    with pytest.warns(UserWarning, match="add up to 1; these look like probabilities"):
        weighted.rank_marginals()
    # A log-weight may be an indicator, or a constant.
    for weight in (lambda order: float(order[0] == 0), lambda order: 0.5):
        Distribution.from_functions(2, weight, normalized=False).rank_marginals()


def test_functions_that_return_nothing():
    with pytest.raises(ValueError, match=r"log_prob: expected a number .* it returned None"):
        Distribution.from_functions(4, lambda order: None)
    for given in (None, "x"):
        some = Distribution.from_functions(
            4, lambda order, given=given: given if order[0] == 3 else 0.0, batched=False
        )
        with pytest.raises(TypeError, match=r"log_prob: expected a number for the order \[3, 0, 1"):
            some.log_prob([3, 0, 1, 2])


def test_weights_beyond_eight_items():
    model = Distribution.from_functions(12, one_weight, normalized=False)
    order = rankings.random_orders(12, rng=0)
    assert model.log_weight(order) == pytest.approx(one_weight(order))
    for call, what in (
        (lambda: model.log_prob(order), "log_partition"),
        (model.sample, "sample"),
        (model.rank_marginals, "rank_marginals"),
        (model.pairwise, "pairwise"),
        (model.mode, "mode"),
        (lambda: model.top_k(3), "rank_marginals"),
    ):
        naive.refuses(call, NotExactError, f"{what}: exact up to 8 items, this distribution has 12")
    naive.refuses(model.rank_marginals, NotExactError, "pass sample= to Distribution.from_func")
    naive.refuses(lambda: model.log_prob(order), NotExactError, "log_weight has log-weights")
    naive.refuses(lambda: identities.check_distribution(model), ValueError, "or give it draws")
    # With draws there are estimates of everything but log-probabilities.
    drawn = Distribution.from_functions(12, one_weight, sample, normalized=False)
    assert close(drawn.rank_marginals(draws=2000, rng=0), truth(12).rank_marginals())
    assert (drawn.mode(draws=200, rng=0) == np.arange(12)).all()
    naive.refuses(lambda: drawn.log_prob(order), NotExactError, "log_partition")


def test_chains_of_functions():
    exact = truth(6)
    for given in (one_weight, weights):
        model = Distribution.from_functions(6, given, normalized=False)
        chains = run_chains(model, draws=300, kernel="adjacent", thin=4, rng=0)
        assert close(chains.rank_marginals(), exact.rank_marginals())
        assert chains.normalizer == pytest.approx(model.log_partition())
    many = Distribution.from_functions(10, truth(10).log_prob)
    chains = run_chains(many, draws=20, chains=1, tune=5, kernel="adjacent", thin=1, rng=0)
    assert chains.normalizer == 0.0
    alone = Distribution.from_functions(6, sample=lambda rng: rng.permutation(6))
    with pytest.raises(NotExactError, match="made from draws alone; call its sample"):
        run_chains(alone, draws=10, kernel="adjacent")


# ---- draws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [True, False])
def test_draws_alone(one):
    def draw_one(rng):
        return sample(1, rng)[0]

    model = Distribution.from_functions(12, sample=draw_one if one else sample)
    exact, options = truth(12), {"draws": 1000, "rng": 3}
    assert close(model.rank_marginals(**options), exact.rank_marginals())
    assert close(model.pairwise(**options), exact.pairwise())
    assert close(model.top_k(4, **options), exact.top_k(4))
    labels = np.arange(12) % 3
    expected = model.expect("ndcg@5", labels, **options)
    assert abs(expected - exact.expect("ndcg@5", labels)) < 5.0 * expected.standard_error
    for call in (lambda: model.log_prob(range(12)), model.entropy, lambda: model.kl(exact)):
        naive.refuses(call, NotExactError, "made from draws alone")
    with pytest.raises(NotExactError):
        model.rank_marginals(method="exact")
    checked = identities.check_distribution(model, draws=500)
    assert checked.passed
    assert {"draws are orders", "same seed"} <= {r.identity.name for r in checked if r.offered}


def test_no_mode_where_no_order_is_drawn_twice():
    model = Distribution.from_functions(30, sample=lambda rng: rng.permutation(30))
    naive.refuses(lambda: model.mode(draws=50), NotExactError, "no order was drawn twice in 50")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Distribution.from_functions(3), TypeError, "pass log_prob, sample, or both"),
        (lambda: Distribution.from_functions(3, 5), TypeError, "log_prob: expected a function"),
        (
            lambda: Distribution.from_functions(4, lambda orders: orders),
            ValueError,
            "a number for an order of shape (4,), or 3 of them for orders of shape (3, 4); "
            "got shape (4,), and shape (3, 4)",
        ),
        (
            lambda: Distribution.from_functions(4, lambda o: (o.ndim > 1) * np.ones(o.shape[:-1])),
            ValueError,
            "gives other values for several orders at once",
        ),
        (
            lambda: Distribution.from_functions(4, lambda order: np.nan).log_prob([0, 1, 2, 3]),
            ValueError,
            "finite or -inf",
        ),
        (
            lambda: Distribution.from_functions(4, sample=lambda size, rng: [[0, 1, 2, 3]]).sample(
                9
            ),
            ValueError,
            "sample: expected orders of shape (9, 4), got (1, 4); it takes the number of draws",
        ),
    ],
)
def test_bad_functions(make, error, message):
    naive.refuses(make, error, message)


def test_what_takes_one_order_and_what_takes_many():
    forced = Distribution.from_functions(4, lambda order: one_weight(order), batched=False)
    assert forced.log_prob([[0, 1, 2, 3], [3, 2, 1, 0]]) == pytest.approx([0.0, -6 * THETA])
    # Three items: three orders could be mistaken for one order of something else.
    first = Distribution.from_functions(3, lambda order: -1.0 * order[0], normalized=False)
    assert first.log_weight([[2, 1, 0], [0, 1, 2]]).tolist() == [-2.0, 0.0]
    assert repr(first) == "Distribution.from_functions(3, log_prob=<lambda>, normalized=False)"


# ---- classes whose log_prob takes one order ----------------------------------------------------


class OneAtATime(Distribution):
    """A class of a user who thought of one order."""

    def __init__(self, n_items):
        super().__init__(n_items)

    def log_prob(self, orders):
        return one_weight(orders) - truth(self.n_items).log_partition()

    def _sample(self, size, rng):
        return sample(size, rng, self.n_items)


class ScalarForMany(OneAtATime):
    """The same, but a batch gives a number without complaint."""

    def log_prob(self, orders):
        return -float(np.sum(np.asarray(orders)[..., 0]))


@pytest.mark.parametrize("kind", [OneAtATime, ScalarForMany])
def test_a_class_whose_log_prob_is_not_batched_is_explained(kind):
    model = kind(4)
    for call in (model.rank_marginals, model.mode, model.entropy, lambda: model.kl(truth(4))):
        naive.refuses(call, ValueError, "one order at a time: let log_prob return np.vectorize(one")
    naive.refuses(lambda: truth(4).kl(model, method="sample"), ValueError, "one order at a time")
    notes = [r.note for r in identities.check_distribution(model, draws=200) if not r.passed]
    assert any("one order at a time" in note for note in notes)


def test_the_explained_remedy_works():
    class Remedied(OneAtATime):
        def log_prob(self, orders):
            one = super().log_prob
            return np.vectorize(one, signature="(n)->()", otypes=[float])(orders)

    assert identities.check_distribution(Remedied(4), draws=1000).passed
    naive.refuses(lambda: WeightedOrders(4, one_weight).mode(), ValueError, "one order at a time")


def test_other_errors_of_log_prob_stay_what_they_are():
    class Broken(OneAtATime):
        def log_prob(self, orders):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Broken(4).rank_marginals()


# ---- estimates beyond eight items --------------------------------------------------------------


class Plain(OneAtATime):
    def log_prob(self, orders):
        return truth(self.n_items).log_prob(orders)


def test_answers_fall_back_to_draws():
    model, exact = Plain(12), truth(12)
    for name in ("rank_marginals", "pairwise"):
        found = getattr(model, name)(draws=2000, rng=1)
        assert isinstance(found, Estimates)
        assert found.draws == 2000
        assert close(found, getattr(exact, name)())
        assert (found == getattr(model, name)(draws=2000, rng=1)).all()
        naive.refuses(
            lambda name=name: getattr(model, name)(method="exact"), NotExactError, f"{name}: exact"
        )
        listed = getattr(Plain(4), name)(method="sample", draws=500, rng=1)
        assert listed.draws == 500
        assert getattr(Plain(4), name)().draws == 0
    with pytest.raises(ValueError, match="method: expected one of"):
        model.rank_marginals(method="draws")
    with pytest.raises(ValueError, match="draws: expected"):
        model.rank_marginals(draws=1)


def test_standard_errors_are_right():
    # Of 200 estimates of one chance, the spread is what each says of itself.
    model, found = Plain(9), []
    for seed in range(200):
        found.append(model.pairwise(draws=50, rng=seed))
    values = np.array([one[0, 1] for one in found])
    said = np.mean([one.standard_error[0, 1] for one in found])
    assert abs(values.std() / said - 1.0) < 0.2
    top = model.top_k(3, draws=400, rng=0)
    assert top.standard_error == pytest.approx(np.sqrt(np.asarray(top * (1 - top)) / 399))


def test_the_mode_climbs_from_the_best_draw():
    model = Plain(14)
    mode = model.mode(draws=100, rng=0)
    assert isinstance(mode, EstimatedOrder)
    assert mode.tolist() == list(range(14))
    assert mode.draws == 100
    assert mode.share.draws == 100
    exact = truth(14).mode()
    assert exact.draws == 0
    assert exact.share is None
    turned = Mixture([Mallows(range(10), 0.5), Mallows(range(10)[::-1], 0.5)], [0.6, 0.4])
    assert turned.mode(draws=100, rng=0).tolist() == list(range(10))
    assert PlackettLuce([0.0]).mode(method="sample", draws=2).tolist() == [0]


@pytest.mark.parametrize(
    "model",
    [
        PlackettLuce([1.0, 0.0, -1.0, 0.3]),
        GoodBad([0.5, 0.1, -0.3, 0.2], [1, 0, 1, 0]),
        Mallows([2, 0, 1, 3], 0.5, "footrule"),
        Mixture([PlackettLuce([1.0, 0.0, 0.0]), Mallows([2, 1, 0], 1.0)], [0.5, 0.5]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_exact_ones_have_the_same_signature(model):
    for name, more in (("rank_marginals", ()), ("pairwise", ()), ("mode", ()), ("top_k", (2,))):
        method = getattr(model, name)
        exact = method(*more, method="exact")
        assert exact.draws == 0
        assert (method(*more) == exact).all()
        drawn = method(*more, method="sample", draws=1500, rng=2)
        assert drawn.draws == 1500
        if name != "mode":
            assert (exact.standard_error == 0.0).all()
            assert close(drawn, exact)


def test_methods_overridden_without_options_are_taken_as_exact():
    class Own(Plain):
        def rank_marginals(self):
            return np.full((self.n_items, self.n_items), 1 / self.n_items)

    assert ask(Own(12).rank_marginals, method="exact", rng=0)[0, 0] == pytest.approx(1 / 12)


def test_arrays_that_carry_something():
    drawn = Estimates([[0.2, 0.8]], [[0.1, 0.1]], draws=16)
    assert np.isnan(drawn.T.standard_error).all()  # not known any more
    assert (Estimates([[0.2, 0.8]]).T.standard_error == 0.0).all()
    mode = EstimatedOrder([1, 0], Estimate(0.5, 0.1, 9), 9)
    for one in (pickle.loads(pickle.dumps(mode)), copy.deepcopy(mode)):
        assert (one.tolist(), one.share, one.draws) == ([1, 0], 0.5, 9)
    again = pickle.loads(pickle.dumps(drawn.T))
    assert again.draws == 16
    assert np.isnan(again.standard_error).all()


# ---- plots and chains --------------------------------------------------------------------------


def label_of(axes):
    return axes.figure.axes[1].get_ylabel()


def test_plots_take_whatever_has_draws():
    model = Plain(12)
    label = label_of(plots.marginals(model, draws=400))
    assert label.startswith("probability\nestimated from 400 draws, ± 0.0")
    assert "estimated from 400 draws" in label_of(plots.pairwise(model, draws=400))
    assert label_of(plots.marginals(truth(12))) == "probability"
    orders = sample(50, np.random.default_rng(0))
    assert "estimated from 50 draws" in label_of(plots.marginals(orders))
    assert "estimated from 50 draws" in label_of(plots.pairwise(orders.reshape(5, 10, 12)))
    chains = run_chains(truth(4), draws=40, kernel="adjacent", rng=0)
    assert "estimated from 160 draws, ±" in label_of(plots.pairwise(chains))
    legend = plots.measure_values(chains, "ap", [1, 0, 0, 1]).get_legend()
    assert "of 160 draws" in legend.get_texts()[0].get_text()
    with pytest.raises(ValueError, match="dist: expected at least 2 orders"):
        plots.marginals([0, 1, 2])


def test_arviz_reads_chains():
    import arviz

    model = PlackettLuce([1.0, 0.0, -1.0])
    chains = run_chains(model, draws=200, kernel="adjacent", thin=3, rng=0)
    summary = arviz.summary(chains)
    assert list(summary.index) == ["x[0]", "x[1]", "x[2]"]
    means = chains.ranks.reshape(-1, 3).mean(axis=0) + 1
    assert summary["mean"].to_numpy() == pytest.approx(means, abs=0.002)
    # Ranks from 1 cannot be mistaken for orders.
    with pytest.raises(ValueError, match="expected"):
        rankings.check_orders(chains)
    assert np.asarray(chains, dtype=float).dtype == float


def test_errors_of_chains():
    chains = run_chains(truth(5), draws=400, kernel="adjacent", thin=2, rng=0)
    assert close(chains.rank_marginals(), truth(5).rank_marginals())
    assert close(chains.pairwise(), truth(5).pairwise())
    # Draws that stay are worth less than independent ones.
    independent = np.sqrt(np.asarray(truth(5).pairwise() * truth(5).pairwise().T) / 1600)
    assert (chains.pairwise().standard_error >= independent).mean() > 0.8
    few = run_chains(truth(5), draws=3, kernel="adjacent", rng=0)
    assert np.isnan(few.rank_marginals().standard_error).all()
    kept = run_chains(truth(5), draws=50, keep="moments", kernel="adjacent", rng=0)
    assert kept.rank_marginals().draws == 200
    assert np.isnan(kept.rank_marginals().standard_error).all()
    with pytest.raises(ValueError, match="pairwise: these chains kept moments"):
        kept.pairwise()
