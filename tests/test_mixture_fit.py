"""Mixtures that are fitted: EM that never falls, groups that are found, errors, refusals."""

import pickle

import naive
import numpy as np
import pytest

from permdist import GaussianScores, Mallows, Mixture, PlackettLuce
from permdist.distributions import Distribution
from permdist.rankings import TopK

ONE, OTHER = np.array([1.5, 0.5, -0.5, -1.5]), np.array([-2.0, 0.2, 0.3, 1.5])


@pytest.fixture(scope="module")
def truth():
    return Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [0.65, 0.35])


@pytest.fixture(scope="module")
def ballots(truth):
    return truth.sample(3000, rng=5)


@pytest.fixture(scope="module")
def fitted(ballots):
    return Mixture.fit(ballots, k=2, n_init=3, rng=1)


def test_two_groups_are_found_within_errors(truth, fitted):
    result = fitted.fit_result
    assert result.converged
    assert result.n_parameters == 7
    assert np.abs(fitted.weights - truth.weights).max() < 4 * result.weight_errors[0]
    for found, true, errors in zip(
        fitted.components, truth.components, result.component_errors, strict=True
    ):
        off = found.scores - (true.scores - true.scores.mean())
        assert (np.abs(off) < 4 * errors).all()
    assert result.bic == pytest.approx(7 * np.log(3000) - 2 * result.log_likelihood)
    assert result.icl > result.bic


def test_the_objective_is_what_it_says_and_never_falls(fitted, ballots):
    result = fitted.fit_result
    assert (np.diff(result.history) >= 0.0).all()
    assert len(result.history) == result.n_iter + 1
    assert result.log_likelihood == pytest.approx(fitted.log_prob(ballots).sum(), rel=1e-12)
    ridge = sum(0.005 * (part.scores**2).sum() for part in fitted.components)
    assert result.objective == pytest.approx(result.log_likelihood - ridge, rel=1e-12)
    assert result.starts.max() == result.objective


def test_errors_equal_those_by_difference_quotients(truth):
    orders = Mixture([PlackettLuce([1, 0, -1]), PlackettLuce([-1.5, 0, 1.5])], [0.6, 0.4]).sample(
        60, rng=0
    )
    model = Mixture.fit(orders, k=2, n_init=2, prior=1.0, rng=0)
    result, scores = model.fit_result, [part.scores for part in model.components]
    expected = naive.mixture_errors(orders.tolist(), model.weights, scores)
    found = np.concatenate([result.weight_errors, *result.component_errors])
    assert found == pytest.approx(expected, rel=1e-3)


def test_the_result_does_not_depend_on_threads(ballots):
    one = Mixture.fit(ballots[:400], k=2, n_init=4, rng=7)
    two = Mixture.fit(ballots[:400], k=2, n_init=4, rng=7, n_jobs=2)
    assert (one.weights == two.weights).all()
    assert (one.fit_result.starts == two.fit_result.starts).all()
    for a, b in zip(one.components, two.components, strict=True):
        assert (a.scores == b.scores).all()


def test_components_are_in_order_of_weight_whatever_the_start(ballots):
    for seed in range(3):
        model = Mixture.fit(ballots, k=2, n_init=2, rng=seed)
        assert model.weights[0] > model.weights[1]
        assert model.components[0].mode().tolist() == [0, 1, 2, 3]


def test_the_number_of_groups_is_chosen(ballots):
    for criterion in ("bic", "icl", "cv"):
        model = Mixture.fit(
            ballots[:1500], k=[1, 2, 3], criterion=criterion, n_init=1, folds=2, tol=1e-5, rng=0
        )
        assert set(model.fit_result.criteria) == {1, 2, 3}
        assert model.fit_result.criterion == criterion
        if criterion != "cv":
            assert model.n_components == 2
            assert model.fit_result.criteria[2] == pytest.approx(
                getattr(model.fit_result, criterion)
            )
        assert model.fit_result.criteria[1] * (-1) ** (criterion == "cv") > (
            model.fit_result.criteria[2] * (-1) ** (criterion == "cv")
        )


def test_one_component_is_the_plain_fit(ballots):
    for prior in (0.0, 2.0):
        model = Mixture.fit(ballots, k=1, prior=prior)
        plain = PlackettLuce.fit(ballots, prior=prior)
        assert model.components[0].scores == pytest.approx(plain.scores, abs=1e-9)
        assert model.fit_result.component_errors[0] == pytest.approx(
            plain.fit_result.standard_errors(), rel=1e-6
        )
        assert model.fit_result.weight_errors == pytest.approx([0.0])
    model, plain = Mixture.fit(ballots, "mallows", k=1, prior=0.0), Mallows.fit(ballots)
    assert model.components[0].theta == pytest.approx(plain.theta, rel=1e-9)
    assert model.components[0].center.tolist() == plain.center.tolist()
    assert model.fit_result.component_errors[0] == pytest.approx([plain.fit_result.standard_error])
    assert model.fit_result.log_likelihood == pytest.approx(plain.fit_result.log_likelihood)


def test_groups_of_mallows_models():
    parts = [Mallows([0, 1, 2, 3, 4], 1.0), Mallows([4, 2, 3, 1, 0], 1.5)]
    ballots = Mixture(parts, [0.6, 0.4]).sample(1500, rng=0)
    model = Mixture.fit(ballots, Mallows, k=2, n_init=3, rng=0)
    result = model.fit_result
    assert result.n_parameters == 3
    assert abs(model.weights[0] - 0.6) < 4 * result.weight_errors[0]
    for found, true, errors in zip(model.components, parts, result.component_errors, strict=True):
        assert found.center.tolist() == true.center.tolist()
        assert abs(found.theta - true.theta) < 4 * errors[0]


def test_noise_is_a_uniform_component_at_the_end():
    parts = [Mallows([0, 1, 2, 3, 4], 2.0), Mallows([0, 1, 2, 3, 4], 0.0)]
    ballots = Mixture(parts, [0.4, 0.6]).sample(2000, rng=0)
    model = Mixture.fit(ballots, "mallows", k=1, noise=True, n_init=2, rng=0)
    assert model.n_components == 2
    assert model.fit_result.n_parameters == 2
    assert model.weights[1] > model.weights[0]  # last, though it is the larger one
    assert (model.components[1].scores == 0.0).all()
    assert abs(model.weights[1] - 0.6) < 4 * model.fit_result.weight_errors[1]
    assert abs(model.components[0].theta - 2.0) < 4 * model.fit_result.component_errors[0][0]


def test_short_lists_weights_and_names():
    group = Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [0.5, 0.5])
    full = group.sample(120, rng=0)
    lists = [TopK(order[: 2 + i % 2], 4) for i, order in enumerate(full)]
    model = Mixture.fit(lists, k=2, n_init=1, rng=0, names=["a", "b", "c", "d"], tol=1e-6)
    assert model.names == ("a", "b", "c", "d")
    assert model.responsibilities(lists).shape == (120, 2)
    # Counting a ballot twice is casting it twice.
    twice = Mixture.fit(np.repeat(full[:50], 2, axis=0), k=2, n_init=2, rng=0)
    weighted = Mixture.fit(full[:50], weights=np.full(50, 2.0), k=2, n_init=2, rng=0)
    assert twice.fit_result.objective == pytest.approx(weighted.fit_result.objective, rel=1e-9)


class Mute(Distribution):
    """Two items, the first one ahead with a chance of which nobody is told."""

    def __init__(self, logit):
        super().__init__(2)
        self._logit = logit

    def log_prob(self, orders):
        sign = np.where(np.asarray(orders)[..., 0] == 0, 1.0, -1.0)
        return -np.logaddexp(0.0, -sign * self._logit)

    def _sample(self, size, rng):
        raise NotImplementedError


class Lean(Mute):
    """The same with a parameter that can be changed."""

    @property
    def parameters(self):
        return np.array([self._logit])

    def with_parameters(self, values):
        return Lean(*values)


def test_families_of_your_own_have_errors_by_difference_quotients(ballots):
    def fit(orders, weights):
        return PlackettLuce.fit(orders, weights=weights)

    options = {"k": 2, "n_init": 1, "rng": 0, "tol": 1e-9}
    named = Mixture.fit(ballots[:300], prior=0.0, **options)
    own = Mixture.fit(ballots[:300], fit, n_parameters=3, **options)
    assert own.fit_result.n_parameters == 7
    assert own.fit_result.bic == pytest.approx(named.fit_result.bic, rel=1e-6)
    assert own.fit_result.error_note == ""
    assert own.fit_result.weight_errors == pytest.approx(named.fit_result.weight_errors, rel=0.01)
    for mine, theirs in zip(
        own.fit_result.component_errors, named.fit_result.component_errors, strict=True
    ):
        assert mine == pytest.approx(theirs, rel=0.01)


def test_gaussian_components(ballots):
    model = Mixture.fit(ballots[:40], GaussianScores, k=1)
    assert isinstance(model.components[0], GaussianScores)
    assert np.isnan(model.fit_result.bic)
    assert model.fit_result.component_errors[0].shape == (4,)
    assert (model.fit_result.component_errors[0] > 0.05).all()
    with pytest.raises(ValueError, match="pass n_parameters, or criterion='cv'"):
        Mixture.fit(ballots[:40], GaussianScores, k=[1, 2])


def test_components_that_tell_their_parameters_and_others():
    def fit(kind):
        def found(orders, weights):
            first = weights @ (orders[:, 0] == 0) / weights.sum()
            return kind(np.log(first / (1.0 - first)))

        return found

    ballots = np.array([[0, 1]] * 30 + [[1, 0]] * 10)
    model = Mixture.fit(ballots, fit(Lean), k=1)
    assert model.fit_result.component_errors[0] == pytest.approx([(40 * 0.75 * 0.25) ** -0.5])
    model = Mixture.fit(ballots, fit(Mute), k=1)
    assert model.fit_result.component_errors[0].shape == (0,)
    assert model.fit_result.weight_errors == pytest.approx([0.0])
    assert "Mute has no attribute parameters and no method with_parameters" in (
        model.fit_result.error_note
    )


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_acceleration_gains_and_never_falls(family):
    parts = [PlackettLuce(ONE / 2), PlackettLuce(OTHER / 2)]  # groups that overlap: slow
    ballots = Mixture(parts, [0.6, 0.4]).sample(400, rng=1)
    options = {"k": 2, "n_init": 1, "max_iter": 40, "tol": 0.0, "rng": 0}
    plain = Mixture.fit(ballots, family, accelerate=False, **options).fit_result
    quick = Mixture.fit(ballots, family, **options).fit_result
    assert plain.n_iter == quick.n_iter == 40
    for result in (plain, quick):
        assert (np.diff(result.history) >= 0.0).all()
    # As much in 25 iterations as without acceleration in 40.
    assert quick.history[25] > plain.history[40]


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_equal_ballots_are_a_finite_group(family):
    ballots = np.tile([2, 0, 1, 3], (30, 1))
    model = Mixture.fit(ballots, family, k=2, n_init=2, rng=0)
    assert model.mode().tolist() == [2, 0, 1, 3]
    assert np.isfinite(model.fit_result.objective)
    assert -1.0 < model.fit_result.log_likelihood <= 0.0
    with pytest.raises(ValueError, match=r"estimate exists for a component|no finite estimate"):
        Mixture.fit(ballots, family, k=1, prior=0.0)


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_a_group_of_one_ballot_is_finite(family):
    ballots = np.array([[0, 1, 2, 3, 4]] * 80 + [[4, 3, 2, 1, 0]])
    model = Mixture.fit(ballots, family, k=2, n_init=5, rng=0)
    assert model.weights[1] == pytest.approx(1 / 81, rel=0.1)
    assert model.components[1].mode().tolist() == [4, 3, 2, 1, 0]
    largest = model.components[1].theta if family == "mallows" else model.components[1].scores.max()
    assert 1.0 < largest < 20.0


def test_one_item():
    model = Mixture([PlackettLuce([0.0]), Mallows([0], 1.0)], [0.5, 0.5])
    assert model.log_prob([0]) == pytest.approx(0.0)
    assert model.mode().tolist() == [0]
    assert model.entropy() == pytest.approx(0.0)
    for family in ("plackett-luce", "mallows"):
        fitted = Mixture.fit(np.zeros((5, 1), dtype=int), family, k=2, n_init=1, rng=0)
        assert fitted.log_prob([0]) == pytest.approx(0.0)
        assert fitted.fit_result.log_likelihood == pytest.approx(0.0)


def test_fitted_mixtures_are_pickled(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.weights == fitted.weights).all()
    assert again.fit_result.bic == fitted.fit_result.bic


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k: expected at least 1"),
        ({"k": 2, "family": "malows"}, ValueError, "did you mean 'mallows'"),
        ({"k": 2, "family": int}, TypeError, "class with a method fit, got int"),
        ({"k": 2, "family": lambda b, w: 3}, TypeError, "return a Distribution, got int"),
        ({"k": 2, "prior": -1.0}, ValueError, "prior: expected a non-negative number"),
        ({"k": 2, "criterion": "aic"}, ValueError, "criterion: expected one of"),
        ({"k": [1], "criterion": "cv", "folds": 9}, ValueError, "folds: expected at most 3"),
        ({"k": 2, "ballots": [[0, {1, 2}]]}, ValueError, "expected none with ties"),
        (
            {"k": 2, "family": "mallows", "distance": "ulam", "ballots": [TopK([0], 9)]},
            ValueError,
            "center: for ulam found up to 6 items",
        ),
        (
            {"k": 1, "family": lambda b, w: PlackettLuce([0.0])},
            ValueError,
            "a distribution over 3 items, got 1",
        ),
    ],
)
def test_bad_fits(options, error, message):
    ballots = options.pop("ballots", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    naive.refuses(lambda: Mixture.fit(ballots, **options), error, message)


def test_mallows_components_from_first_places():
    parts = [Mallows([0, 1, 2, 3, 4], 2.0), Mallows([4, 2, 3, 0, 1], 2.0)]
    ballots = Mixture(parts, [0.6, 0.4]).sample(400, rng=0)[:, :2]
    model = Mixture.fit(ballots, "mallows", k=2, n_init=2, subset=False, n_items=5, rng=0)
    found = model.fit_result
    assert [part.center[0] for part in model.components] == [0, 4]
    assert abs(model.weights[0] - 0.6) < 4 * found.weight_errors[0]
    assert (np.diff(found.history) >= -1e-9).all()
    for part, error in zip(model.components, found.component_errors, strict=True):
        assert abs(part.theta - 2.0) < 4 * error[0]
