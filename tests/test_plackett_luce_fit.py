"""Plackett-Luce fits against a slow reference, at ordinary and at extreme inputs."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from permdist import PlackettLuce
from permdist.distributions import plackett_luce_fit
from permdist.rankings import TopK

GAMES = [[0, 1], [1, 0], [1, 2], [2, 1]]


@st.composite
def ballots(draw):
    """Lists with weights of very different size, and whether the rest is below them."""
    n = draw(st.integers(2, 4))
    rest = draw(st.booleans())
    length = st.integers(1 if rest else 2, n)
    lists = draw(
        st.lists(
            st.tuples(st.permutations(range(n)), length).map(lambda pair: pair[0][: pair[1]]),
            min_size=1,
            max_size=6,
        )
    )
    power = draw(st.sampled_from([0, 3, 12]))
    exponents = draw(st.lists(st.floats(-power, power), min_size=len(lists), max_size=len(lists)))
    penalty = draw(st.sampled_from([0.0, 1e-3, 1.0, 1e6]))
    return n, rest, lists, 10.0 ** np.array(exponents), penalty


def fitted(lists, options):
    """Return the fitted model, or why there is none."""
    try:
        return PlackettLuce.fit(lists, **options)
    except (ValueError, RuntimeError) as error:
        return error


@pytest.mark.parametrize("matrix", [1000, 0])  # by elimination, and by conjugate gradients
@settings(max_examples=60)
@given(ballots())
def test_an_estimate_is_right_or_refused(matrix, case):
    n, rest, lists, weights, penalty = case
    options = {"n_items": n, "subset": not rest, "weights": weights, "regularization": penalty}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plackett_luce_fit, "MAX_MATRIX", matrix)
        outcome = fitted(lists, options)
    if isinstance(outcome, ValueError):
        assert penalty == 0.0
        assert "no maximum likelihood estimate exists" in str(outcome)
        return
    if isinstance(outcome, RuntimeError):
        assert np.ptp(np.log(weights)) > 5 or penalty > 0.0
        assert str(outcome).startswith("fit: ")
        return
    expected = naive.plackett_luce_fit(lists, weights, n, rest, penalty)
    assert np.abs(outcome.scores - expected).max() <= outcome.fit_result.accuracy <= 2.1e-9


def test_weights_of_very_different_size():
    model = PlackettLuce.fit(GAMES, subset=True, weights=[1e10, 1e10, 3, 1])
    assert model.scores[1] - model.scores[2] == pytest.approx(np.log(3.0), abs=1e-12)
    assert model.scores[0] == pytest.approx(model.scores[1], abs=1e-12)
    # The estimate's variance is that of the four games which tell item 2 from the others.
    covariance = model.fit_result.covariance()
    difference = covariance[1, 1] + covariance[2, 2] - 2 * covariance[1, 2]
    assert difference == pytest.approx(1 / (4 * 0.75 * 0.25), rel=1e-9)


def test_what_floats_cannot_tell_is_refused_with_the_error():
    # Each heavy pair's own rounding is more than what its few games with the other pair say.
    lists = [[0, 1], [1, 0], [2, 3], [3, 2], [1, 2], [2, 1]]
    weights = [1e12, 1e12, 1e12, 1e12, 3, 1]
    with pytest.raises(
        RuntimeError, match=r"rounding errors alone may move a score by .*raise tol"
    ):
        PlackettLuce.fit(lists, subset=True, weights=weights)
    model = PlackettLuce.fit(lists, subset=True, weights=weights, tol=0.01)
    assert model.scores[1] - model.scores[2] == pytest.approx(np.log(3.0), abs=0.01)


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1e20, 1e150])
def test_the_unit_of_the_weights_does_not_matter(unit):
    orders = PlackettLuce([0.5, 0.0, -0.5]).sample(40, rng=0)
    plain = PlackettLuce.fit(orders, weights=np.ones(40)).fit_result
    scaled = PlackettLuce.fit(orders, weights=np.full(40, unit)).fit_result
    assert scaled.scores == pytest.approx(plain.scores, abs=1e-13)
    assert scaled.covariance() * unit == pytest.approx(plain.covariance(), rel=1e-9)
    assert scaled.log_likelihood / unit == pytest.approx(plain.log_likelihood, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 1e9}, "tol: expected a number above 0 and up to 0.01, got 1e+09"),
        ({"max_iter": 0}, "max_iter: expected at least 1"),
        ({"regularization": np.nan}, "regularization: expected a non-negative number, got nan"),
        ({"weights": [1e308] * 4}, "weights: expected a sum between 1e-200 and 1e+200, got inf"),
        ({"weights": [0, 0, 0, 0]}, "weights: expected no negative weight and one above 0"),
        ({"weights": [0, 1, 1, 1]}, "no maximum likelihood estimate exists, always below"),
        ({"subset": "yes"}, "subset: expected True, False or None, got 'yes'"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        PlackettLuce.fit(GAMES, **{"subset": True, **options})
    assert message in str(caught.value)


def test_an_unconverged_fit_is_refused():
    orders = PlackettLuce([2.0, 0.0, -2.0]).sample(100, rng=0)
    with pytest.raises(RuntimeError, match="not converged after 1 steps"):
        PlackettLuce.fit(orders, max_iter=1)
    with pytest.raises(RuntimeError, match="rounding errors alone may move a score"):
        PlackettLuce.fit(orders, tol=1e-300)
    # Without an estimate, next to no penalty puts the scores hundreds apart.
    with pytest.raises(RuntimeError, match="not converged after 100 steps"):
        PlackettLuce.fit([[0, 1, 2]], regularization=1e-300)
    with pytest.raises(RuntimeError, match="apart cannot be told from infinity"):
        PlackettLuce.fit([[0, 1, 2]], regularization=1e-300, max_iter=10_000)


def test_penalties_of_any_size():
    heavy = PlackettLuce.fit([[0, 1]], regularization=1e300).scores
    assert heavy == pytest.approx([5e-301, -5e-301], rel=1e-12)
    orders = PlackettLuce([1.0, 0.0, -1.0]).sample(100, rng=0)
    light = PlackettLuce.fit(orders, regularization=1e-300).scores
    assert light == pytest.approx(PlackettLuce.fit(orders).scores, abs=1e-12)
    assert PlackettLuce.fit([[0], [0]]).scores.tolist() == [0.0]


def test_lists_that_are_short_of_the_items_say_what_they_mean():
    truth = PlackettLuce(np.linspace(2, -2, 25))
    games = np.sort(np.argsort(np.random.default_rng(0).random((3000, 25)), axis=1)[:, :2])
    for short in (games, games.tolist(), [[*range(25)], *games.tolist()]):
        with pytest.raises(ValueError, match=r"all 25 items.*got 2 item\(s\) in ranking [01];"):
            PlackettLuce.fit(short)
    drawn = truth.sample(100, rng=0)[:, :2]
    tops = [TopK(game, 25) for game in drawn.tolist()]
    options = {"n_items": 25, "regularization": 0.1}
    first = PlackettLuce.fit(drawn, subset=False, **options)
    assert (PlackettLuce.fit(tops, **options).scores == first.scores).all()
    assert (PlackettLuce.fit(drawn, subset=True, **options).scores != first.scores).any()
    with pytest.raises(ValueError, match="subset: expected False or None with TopK lists"):
        PlackettLuce.fit(tops, subset=True)
    # Top-k lists and full rankings mix; a plain short list among them is unclear.
    mixed = [*tops, np.arange(25), np.arange(25)[::-1]]
    assert PlackettLuce.fit(mixed).n_items == 25
    with pytest.raises(ValueError, match="in ranking 102"):
        PlackettLuce.fit([*mixed, [0, 1]])


def test_log_probabilities_of_short_lists_say_what_they_mean():
    model = PlackettLuce([1.0, 0.0, -1.0])
    for method in (model.log_prob, model.log_prob_gradient):
        with pytest.raises(ValueError, match="subset=True if lists rank only the items they hold"):
            method([[0, 1]])
        with pytest.raises(ValueError, match="subset: expected False or None with TopK"):
            method(TopK([0, 1], 3), subset=True)
        with pytest.raises(TypeError, match="subset: expected True, False or None, got 1"):
            method([0, 1], subset=1)
    assert model.log_prob([0, 1, 2], subset=True) == model.log_prob([0, 1, 2], subset=False)
    assert model.log_prob([0, 1, 2]) == pytest.approx(model.log_prob(TopK([0, 1], 3)))


def test_more_items_than_places_are_refused_before_anything_is_made():
    with pytest.raises(ValueError, match="999,999,999 of 1,000,000,001 items are nowhere listed"):
        PlackettLuce.fit([[0, 10**9], [10**9, 0]], subset=True)
    with pytest.raises(ValueError, match="nowhere listed: 2, 3, 4, 5, 6 and 999,999,993 more"):
        PlackettLuce.fit([[0, 1], [1, 0]], n_items=10**9, subset=False)


def test_bits_do_not_depend_on_threads():
    orders = PlackettLuce(np.linspace(1, -1, 300)).sample(30, rng=0)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(PlackettLuce.fit(orders).fit_result)
    one, two = fits
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.covariance().tobytes() == two.covariance().tobytes()
    assert one.log_likelihood == two.log_likelihood


def test_without_a_matrix_the_maximum_is_the_same():
    orders = PlackettLuce(np.linspace(2, -2, 150)).sample(40, rng=0)
    tops, penalty = orders[:, :60], {"regularization": 0.1}
    cases = [(orders, {}), (tops, {"subset": True} | penalty), (tops, {"subset": False} | penalty)]
    for lists, options in cases:
        exact = PlackettLuce.fit(lists, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plackett_luce_fit, "MAX_MATRIX", 100)
            model = PlackettLuce.fit(lists, **options)
        kind = "penalized" if options else "observed"
        assert np.isfinite(exact.fit_result.covariance(kind)).all()
        with pytest.raises(ValueError, match="a matrix of items by items"):
            model.fit_result.covariance()
        np.testing.assert_allclose(
            model.fit_result.errors_of([0, 149], kind), exact.fit_result.errors_of([0, 149], kind)
        )
        assert model.scores == pytest.approx(exact.scores, abs=2e-9)
