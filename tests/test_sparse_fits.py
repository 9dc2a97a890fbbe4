"""Fits of many items, with sparse equations, against those with a matrix of items by items."""

import naive
import numpy as np
import pytest
from test_inference import mixed

from permdist import Ballots, DavidsonLuce, PlackettLuce
from permdist.distributions import plackett_luce_ballots
from permdist.inference import Normal, PseudoWins, Ridge
from permdist.inference import fit as fit_module
from permdist.inference.fit import NoEstimateError, fit_ballots
from permdist.inference.large import LargeFit

N = 15


def battles(rng, number=500, n=N):
    first = rng.integers(n, size=number)
    second = (first + rng.integers(1, n, size=number)) % n
    return Ballots.from_pairs(first, second, ties=rng.random(number) < 0.3, n_items=n)


def rankings(rng, number=80, length=5, n=N):
    orders = [rng.permutation(n)[:length] for _ in range(number)]
    return Ballots.from_orders(np.array(orders), n_items=n, subset=True)


def both(ballots, tie_sizes=(), **options):
    """Fit with and without a matrix."""
    dense = fit_ballots(ballots, tie_sizes, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "DENSE_ITEMS", 1)
        found = fit_ballots(ballots, tie_sizes, **options)
    assert isinstance(found, LargeFit)
    return dense, found


RNG = np.random.default_rng(0)
CASES = {
    "battles": (battles(RNG), (2,), {}),
    "rankings": (rankings(RNG), (), {}),
    "ridge": (battles(RNG), (2,), {"prior": 0.5}),
    "ghost": (battles(RNG), (2,), {"prior": PseudoWins(0.5)}),
    "everything": (mixed(RNG), (2, 3), {"prior": Ridge(1.0, 0.5)}),
    "everything, ghost": (mixed(RNG), (2, 3), {"prior": PseudoWins(1.0)}),
    "features": (battles(RNG), (2,), {"features": RNG.normal(size=(N, 3))}),
    "features, ridge": (rankings(RNG), (), {"features": RNG.normal(size=(N, 2)), "prior": 0.3}),
    "offset": (battles(RNG), (2,), {"offset": RNG.normal(size=N)}),
    "offsets of ballots": (rankings(RNG), (), {"offset": RNG.normal(size=(80, N))}),
    "clusters": (Ballots.of(rankings(RNG), clusters=np.arange(80) // 4), (), {}),
    "half-life": (Ballots.of(rankings(RNG), times=np.arange(80.0)), (), {"half_life": 40.0}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_sparse_equations_have_the_same_solution(case):
    ballots, tie_sizes, options = CASES[case]
    dense, found = both(ballots, tie_sizes, **options)
    assert found.accuracy < 1e-9
    np.testing.assert_allclose(found.scores, dense.scores, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(found.ties, dense.ties, rtol=0.0, atol=1e-11)
    assert found.log_likelihood == pytest.approx(dense.log_likelihood)
    for kind in ("observed", "penalized", "sandwich"):
        some = range(found.n_items)
        expected = dense.standard_errors(kind)
        np.testing.assert_allclose(found.errors_of(some, kind), expected, rtol=1e-8)
        np.testing.assert_allclose(dense.errors_of(some, kind), expected, rtol=1e-8)
        one, two = (fit.compare(0, 2, kind=kind, level=0.9) for fit in (found, dense))
        np.testing.assert_allclose(one, two, rtol=1e-7)
        np.testing.assert_allclose(found.tie_errors(kind), dense.tie_errors(kind), rtol=1e-8)
        tables = [fit.coefficient_table(kind).to_numpy() for fit in (found, dense)]
        np.testing.assert_allclose(*tables, rtol=1e-6, atol=1e-12)


def test_penalized_errors_invert_the_penalized_information():
    dense, found = both(battles(RNG, 60), (2,), prior=0.7)
    n, information = N, dense.likelihood(dense.parameters)[2]
    information[:n, :n] += 0.7 * (np.eye(n) - 1.0 / n)
    expected = np.linalg.pinv(information)[:n, :n]
    np.testing.assert_allclose(dense.covariance("penalized"), expected, rtol=0.0, atol=1e-12)
    errors = found.errors_of(range(n), "penalized")
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(expected)), rtol=1e-9)


def test_many_items_have_sparse_equations_by_themselves():
    n = 2500
    rng = np.random.default_rng(1)
    first = np.tile(np.arange(n), 8)
    second = (first + rng.integers(1, n, size=len(first))) % n
    model = PlackettLuce.fit(Ballots.from_pairs(first, second, n_items=n), prior=0.2)
    assert isinstance(model.fit_result, LargeFit)
    # Lists of numbers have kernels of their own.
    lists = np.column_stack([first, second])
    other = PlackettLuce.fit(lists, subset=True, n_items=n, regularization=0.2)
    np.testing.assert_allclose(model.scores, other.scores, rtol=0.0, atol=2e-9)
    pair = [5, 77]
    errors = model.fit_result.errors_of(pair, "penalized")
    np.testing.assert_allclose(errors, other.fit_result.errors_of(pair, "penalized"), rtol=1e-7)


def test_long_rankings_are_fitted_in_time_proportional_to_their_length(monkeypatch):
    ballots = rankings(np.random.default_rng(2), 30, 12)
    usual = PlackettLuce.fit(ballots, prior=0.1)
    monkeypatch.setattr(plackett_luce_ballots, "DENSE_ITEMS", 1)
    monkeypatch.setattr(plackett_luce_ballots, "LONG", 10)
    monkeypatch.setattr(fit_module, "fit_ballots", None)
    monkeypatch.setattr(plackett_luce_ballots, "fit_ballots", None)
    found = PlackettLuce.fit(ballots, prior=0.1)
    np.testing.assert_allclose(found.scores, usual.scores, rtol=0.0, atol=2e-9)
    named = Ballots.of(ballots, names=[f"item {k}" for k in range(N)])
    assert PlackettLuce.fit(named, prior=0.1).fit_result.names[3] == "item 3"
    menus = Ballots.from_choices([0, 1], [list(range(12)), list(range(12))], n_items=N)
    assert not plackett_luce_ballots.are_long_rankings(menus)


def test_the_certificate_bounds_the_error():
    ballots = battles(np.random.default_rng(3), 200)
    exact = fit_ballots(ballots, (2,), tol=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "DENSE_ITEMS", 1)
        for tol in (1e-2, 1e-5, 1e-9):
            found = fit_ballots(ballots, (2,), tol=tol)
            assert found.accuracy <= 2.0 * tol
            assert np.abs(found.scores - exact.scores).max() <= found.accuracy + 1e-13


def test_items_that_cannot_be_estimated_are_named():
    n = 3000
    ring = np.arange(n)
    first, second = np.r_[ring, ring[1:]], np.r_[(ring + 1) % n, ring[:-1]]
    champion = Ballots.from_pairs(np.r_[first, n], np.r_[second, 0], n_items=n + 1)
    with pytest.raises(NoEstimateError, match=f"always above the others: {n};"):
        PlackettLuce.fit(champion)
    islands = Ballots.from_pairs(np.r_[first, n, n + 1], np.r_[second, n + 1, n], n_items=n + 2)
    with pytest.raises(NoEstimateError, match=f"never compared with the others: {n}, {n + 1};"):
        DavidsonLuce.fit(islands)
    # With a prior there are estimates, whose errors need it, too.
    fit = PlackettLuce.fit(islands, prior=1.0).fit_result
    with pytest.raises(ValueError, match="do not determine all parameters"):
        fit.errors_of([0])
    assert np.isfinite(fit.errors_of([0, n], "penalized")).all()


def test_long_chains_of_comparisons():
    n = 40
    chain = np.arange(n - 1)
    ballots = Ballots.from_pairs(np.r_[chain, chain + 1], np.r_[chain + 1, chain], n_items=n)
    dense, found = both(ballots)
    assert np.abs(found.scores - dense.scores).max() < 1e-12
    weights = np.random.default_rng(4).integers(1, 9, len(ballots)).astype(float)
    dense, found = both(Ballots.of(ballots, weights=weights))
    assert np.abs(found.scores - dense.scores).max() < 1e-9


def test_what_needs_all_errors_is_refused_with_a_way_out():
    _, found = both(battles(np.random.default_rng(5)), (2,))
    for ask in (
        found.covariance,
        found.standard_errors,
        found.intervals,
        found.rank_sets,
        found.quasi_variances,
        found.prob_best,
        found.comparisons,
    ):
        with pytest.raises(ValueError, match=r"ask for errors_of\(items\), compare"):
            ask()
    for argument, call in (
        ("bootstrap", lambda: found.bootstrap(10)),
        ("kind", lambda: found.errors_of([0], "bootstrap")),
        ("prior", lambda: both(battles(RNG), (2,), prior=Normal(np.zeros(N), 1.0))),
        ("contrasts", lambda: found.contrast_covariance(np.eye(N)[:1])),
        ("contrasts", lambda: found.contrast_covariance([[1.0, -1.0]])),
    ):
        with pytest.raises(ValueError, match=f"{argument}: "):
            call()


def test_a_leaderboard_of_many_says_what_it_leaves_out():
    dense, found = both(battles(np.random.default_rng(6)), (2,))
    board = found.leaderboard()
    assert "not computed: errors (ask for them by items=...), rank sets, P(best)" in str(board)
    assert list(board.to_frame()) == ["place", "name", "score", "n"]
    full = dense.leaderboard(elo=True, anchor=3).to_frame()
    some = found.leaderboard(items=[4, 2], elo=True, anchor=3)
    assert "not computed: rank sets" in some.caption
    expected = full[full["name"].isin(["4", "2"])].reset_index(drop=True)
    for column in some.to_frame():
        ours, theirs = some.to_frame()[column], expected[column]
        assert (ours == theirs).all() if column == "name" else np.allclose(ours, theirs)


def test_offsets_of_single_ballots():
    rng = np.random.default_rng(7)
    menus = [rng.permutation(4)[: rng.integers(2, 5)].tolist() for _ in range(40)]
    chosen = [int(rng.choice(menu)) for menu in menus]
    offset = rng.normal(size=(40, 4))
    ballots = Ballots.from_choices(chosen, menus, n_items=4)
    model = PlackettLuce.fit(ballots, offset=offset)
    expected = naive.offset_choices(chosen, menus, offset, 4)
    np.testing.assert_allclose(model.scores, expected, atol=1e-6)
    of_items = PlackettLuce.fit(ballots, offset=offset[0])
    of_each = PlackettLuce.fit(ballots, offset=np.tile(offset[0], (40, 1)))
    # Scores of items hold their offsets; those of single ballots are beside them.
    shift = of_items.scores - offset[0] - of_each.scores
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    absent = np.where([[item in menu for item in range(4)] for menu in menus], offset, np.nan)
    assert np.array_equal(PlackettLuce.fit(ballots, offset=absent).scores, model.scores)
    absent[3, menus[3][0]] = np.nan
    with pytest.raises(ValueError, match="on ballot 3, got nan"):
        PlackettLuce.fit(ballots, offset=absent)
    with pytest.raises(ValueError, match=r"offset: expected shape \(40, 4\), got \(39, 4\)"):
        PlackettLuce.fit(ballots, offset=offset[:-1])
    fit = model.fit_result
    assert fit.bootstrap(20, rng=0).failed == 0
    assert (fit.standard_errors("sandwich") > 0.0).all()
