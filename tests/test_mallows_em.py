"""Fits of Mallows' models to ballots that say less than full rankings, and stage by stage."""

import naive
import numpy as np
import pytest

from permdist import Ballots, GeneralizedMallows, Mallows, rankings
from permdist.ballots import levels_of
from permdist.distances import Kendall, distance_named
from permdist.distances.completions import Chains, start_at
from permdist.distributions import NotExactError
from permdist.distributions.mallows_fit import Draws, Evidence

EVERY = pytest.mark.parametrize("distance", sorted(rankings.DISTANCES))
THETAS = {"kendall": 0.8, "footrule": 0.6, "spearman": 0.1, "hamming": 1.2, "cayley": 1.3,
          "ulam": 1.5}  # fmt: skip


def _some(orders):
    """Leave one item out of each ranking, and tie two."""
    n = orders.shape[1]
    lists = [[int(i) for i in order if i != row % n] for row, order in enumerate(orders)]
    return Ballots.from_orders([[a, [b, c]] for a, b, c, *_ in lists], n_items=n, subset=True)


def _numeric(model, ballots, h=1e-3):
    """Return slope and standard error of theta by differences of the log-likelihood."""
    step = h * model.theta
    low, middle, high = (
        ballots.weights @ Mallows(model.center, model.theta + x, model.distance).log_prob(ballots)
        for x in (-step, 0.0, step)
    )
    return (high - low) / (2 * step), ((2 * middle - low - high) / step**2) ** -0.5


@pytest.mark.parametrize(
    ("distance", "kind"),
    [(distance, "first places") for distance in sorted(THETAS)]
    + [(distance, "some items") for distance in ("kendall", "spearman", "ulam")],
)
def test_estimates_are_maxima_of_the_likelihood_of_what_is_observed(distance, kind):
    truth = Mallows([3, 0, 1, 2], THETAS[distance], distance)
    orders = truth.sample(200, rng=4)
    top = Ballots.from_orders(orders[:, :2], n_items=4, subset=False)
    ballots = top if kind == "first places" else _some(orders)
    model = Mallows.fit(ballots, distance=distance)
    result = model.fit_result
    assert model.log_prob(ballots) @ ballots.weights == pytest.approx(result.log_likelihood)
    slope, error = _numeric(model, ballots)
    assert abs(slope) < 1e-3 * abs(result.log_likelihood)
    assert result.standard_error == pytest.approx(error, rel=1e-3)
    assert abs(model.theta - truth.theta) < 4 * result.standard_error
    best = max(
        Mallows(center, model.theta, distance).log_prob(ballots) @ ballots.weights
        for center in rankings.enumerate_orders(4)
    )
    assert result.log_likelihood == pytest.approx(best, rel=1e-12)
    assert (result.converged, result.draws, result.monte_carlo_error) == (True, 0, 0.0)
    assert result.proved == (distance == "kendall" and kind == "first places")


@EVERY
def test_full_rankings_among_others_count_as_they_are(distance):
    orders = Mallows([2, 0, 3, 1], THETAS[distance], distance).sample(100, rng=0)
    full = Mallows.fit(orders, distance=distance)
    silent = Ballots.from_orders([[[0, 1, 2, 3]]], n_items=4)
    both = Mallows.fit(Ballots.from_orders(orders) + silent, distance=distance)
    assert both.center.tolist() == full.center.tolist()
    assert both.theta == pytest.approx(full.theta, rel=1e-7)
    assert both.fit_result.standard_error == pytest.approx(full.fit_result.standard_error, rel=1e-6)
    assert both.fit_result.log_likelihood == pytest.approx(full.fit_result.log_likelihood)


def test_first_places_of_many_items():
    truth = Mallows(np.random.default_rng(1).permutation(60), 0.3)
    ballots = truth.sample(400, rng=0)[:, :8]
    model = Mallows.fit(ballots, subset=False, n_items=60, center=truth.center)
    assert abs(model.theta - 0.3) < 4 * model.fit_result.standard_error
    slope, error = _numeric(model, Ballots.from_orders(ballots, n_items=60, subset=False))
    assert model.fit_result.standard_error == pytest.approx(error, rel=1e-3)
    assert abs(slope) < 1.0


@EVERY
def test_draws_agree_with_the_sums(distance):
    ballots = _some(Mallows([3, 0, 4, 1, 2], THETAS[distance], distance).sample(60, rng=1))
    center = None if distance in ("kendall", "footrule") else [3, 0, 4, 1, 2]
    exact = Mallows.fit(ballots, distance=distance, center=center)
    drawn = Mallows.fit(ballots, distance=distance, center=center, method="sample", rng=0)
    found, truth = drawn.fit_result, exact.fit_result
    assert drawn.center.tolist() == exact.center.tolist()
    assert found.draws == 400
    assert 0.0 < found.monte_carlo_error < found.standard_error
    # The last step is from draws of their own, whose error is about as large.
    assert abs(drawn.theta - exact.theta) < 5 * found.monte_carlo_error
    assert found.standard_error == pytest.approx(truth.standard_error, rel=0.1)
    at = Mallows(exact.center, drawn.theta, distance).log_prob(ballots) @ ballots.weights
    assert abs(found.log_likelihood - at) < 5 * found.log_likelihood_error


@EVERY
def test_chains_have_the_exact_conditional_means(distance):
    ballots = _some(Mallows([3, 0, 4, 1, 2], 0.3, distance).sample(4, rng=3))
    kind, weights = distance_named(distance), np.array([1.0, 2.0, 0.0, 3.0])
    center, theta = np.array([1, 3, 0, 2, 4]), THETAS[distance]
    sums = Evidence.counted(kind, levels_of(ballots), weights)
    chains = Draws.from_chains(sums, 4000, np.random.default_rng(0))
    exact, drawn = sums.given(center, theta), chains.given(center, theta)
    assert abs(drawn.distance - exact.distance) < 5 * drawn.error
    assert drawn.variance == pytest.approx(exact.variance, rel=0.1)
    if distance not in ("cayley", "ulam"):
        truth, found = sums.expected_counts(center, theta), chains.expected_counts(center, theta)
        assert found == pytest.approx(truth, abs=0.3)
        assert found.sum() == pytest.approx(truth.sum())


def test_chains_start_and_stay_where_ballots_agree():
    levels = levels_of(_some(rankings.random_orders(7, 20, rng=0)))
    assert all(
        (np.diff([row[i] for i in order if row[i] >= 0]) >= 0).all()
        for row, order in zip(levels, start_at(levels), strict=True)
    )
    chains = Chains(levels, np.ones(20), Kendall)
    chains(np.arange(7), 0.1, 30, np.random.default_rng(0))
    assert all(
        (np.diff([row[i] for i in order if row[i] >= 0]) >= 0).all()
        for row, order in zip(levels, chains.orders, strict=True)
    )


def test_what_is_known_and_what_is_degenerate():
    tops = [rankings.TopK([0, 2], n_items=4), rankings.TopK([2, 0], n_items=4)]
    known = Mallows.fit(tops, theta=0.5)
    assert (known.theta, known.fit_result.standard_error) == (0.5, 0.0)
    weighted = Mallows.fit(tops, center=[0, 2, 1, 3], weights=[3.0, 1.0])
    repeated = Mallows.fit([tops[0]] * 3 + tops[1:], center=[0, 2, 1, 3])
    assert weighted.theta == pytest.approx(repeated.theta, rel=1e-9)
    away = Mallows.fit(tops, center=[3, 1, 2, 0])
    assert away.theta == 0.0
    for distance in rankings.DISTANCES:
        naive.refuses(
            lambda kind=distance: Mallows.fit(tops[:1] * 3, distance=kind),
            ValueError,
            "all agree with the center",
        )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mallows.fit([[[0, 1, 2]]]), ValueError, "none of them says which of two items"),
        (
            lambda: Mallows.fit([[0, 1], [1, 0]], n_items=9, subset=True, distance="ulam"),
            NotExactError,
            "center: for ulam found up to 6 items",
        ),
        (
            lambda: Mallows.fit([[0, 1], [1, 0]], n_items=30, subset=True, distance="footrule",
                                method="exact"),
            NotExactError,
            "exact sums for footrule are not possible",
        ),
        (lambda: Mallows.fit([[0, 1], [1, 0]], draws=1), ValueError, "draws: expected"),
        (lambda: Mallows.fit([[0, 1]], method="other"), ValueError, "method: expected"),
        (
            lambda: GeneralizedMallows.fit([[0, 1, 2], [0, [1, 2]], [[0, 1], 2]]),
            ValueError,
            "expected full rankings or first places out of all items without ties",
        ),
        (
            lambda: GeneralizedMallows.fit([[0, 1, 2], [0, 2, 1]]),
            ValueError,
            "all agree with the center at position 0",
        ),
        (lambda: GeneralizedMallows.fit([[0]]), ValueError, "expected at least two items"),
        (lambda: GeneralizedMallows.fit([[0, 1]], prior=-1), ValueError, "prior: expected"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make, error, message):
    naive.refuses(make, error, message)


# ---- stages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
def test_stages_are_estimated_one_by_one(distance):
    truth = GeneralizedMallows([4, 1, 0, 3, 2], [2.0, 1.2, 0.4, 0.9], distance)
    ballots = truth.sample(1500, rng=0)
    model = GeneralizedMallows.fit(ballots, distance=distance)
    result = model.fit_result
    assert model.center.tolist() == [4, 1, 0, 3, 2]
    assert (np.abs(model.thetas - truth.thetas) < 4 * result.standard_errors).all()
    assert result.log_likelihood == pytest.approx(model.log_prob(ballots).sum(), rel=1e-12)
    assert model._weights.by_stage.mean == pytest.approx(result.stage_means, rel=1e-9)
    for stage in range(4):
        step = 1e-3 * np.eye(4)[stage]
        low, high = (
            GeneralizedMallows(model.center, model.thetas + sign * step, distance)
            .log_prob(ballots).sum() for sign in (-1, 1)
        )  # fmt: skip
        curvature = (2 * result.log_likelihood - low - high) / 1e-6
        assert result.standard_errors[stage] == pytest.approx(curvature**-0.5, rel=1e-3)
    first = GeneralizedMallows.fit(ballots[:, :2], distance=distance, subset=False,
                                   center=model.center)  # fmt: skip
    assert first.thetas == pytest.approx([*model.thetas[:2], 0.0, 0.0], rel=1e-9)
    assert np.isinf(first.fit_result.standard_errors).tolist() == [False, False, True, True]


def test_stages_with_a_prior_and_names():
    same = [["b", "a", "c"]] * 5
    weak, strong = (GeneralizedMallows.fit(same, prior=p) for p in (0.1, 10.0))
    assert (weak.thetas > strong.thetas).all()
    assert [weak.names[i] for i in weak.center] == ["b", "a", "c"]
    assert GeneralizedMallows([0, 1], [1.0]).fit_result is None
