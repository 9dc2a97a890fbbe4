"""What follows from estimated scores and their covariance, against slow references."""

import itertools
import json

import naive
import numpy as np
import pandas as pd
import pytest
from naive import refuses
from scipy import stats

from permdist.comparison import adjust
from permdist.inference import comparisons, leaderboard, ranks
from permdist.inference.normal import draw_blocks
from permdist.inference.quasi import quasi_variances


def covariance_of(n, rng, *, size=0.1):
    """Return the covariance of n scores that add up to 0, some better known than others."""
    factor = np.random.default_rng(rng).normal(size=(n, 2 * n)) * np.linspace(0.4, 1.0, n)[:, None]
    matrix = size * factor @ factor.T / n
    centering = np.eye(n) - 1.0 / n
    return centering @ matrix @ centering


# ---- the normal distribution --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[1.0, 0.5]], "square"),
        ([[1.0, np.nan], [np.nan, 1.0]], "covariance: expected finite numbers"),
        ([[-1.0, 0.0], [0.0, 1.0]], "non-negative variances, got -1 for item 0"),
        (np.eye(3), "as there are 2 scores"),
        ([[1.0, 2.0], [2.0, 1.0]], "negative eigenvalues"),
    ],
)
def test_bad_covariances(matrix, message):
    refuses(lambda: ranks.prob_best([0.0, 1.0], matrix), ValueError, message)
    refuses(lambda: ranks.rank_sets([0.0], [[0.0]], 95), ValueError, "level: expected a number")


# ---- quasi-variances ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 7])
@pytest.mark.parametrize("rng", range(3))
def test_quasi_variances_against_a_general_optimizer(n, rng):
    matrix = covariance_of(n, rng)
    found = quasi_variances(matrix)
    assert np.allclose(found.values, naive.quasi_variances(matrix), rtol=1e-6)
    pairs = itertools.combinations(range(n), 2)
    errors = [
        np.sqrt(found.values[i] + found.values[j]) / naive.difference_error(matrix, i, j) - 1.0
        for i, j in pairs
    ]
    assert np.isclose(found.worst_error, np.abs(errors).max(), rtol=1e-9, atol=1e-12)
    assert n > 3 or found.worst_error < 1e-10


def test_quasi_variances_do_not_depend_on_the_reference_item():
    matrix = covariance_of(6, 4)
    change = np.eye(6) - np.eye(6)[2]
    against_third = change @ matrix @ change.T
    expected = quasi_variances(matrix).values
    assert np.allclose(quasi_variances(against_third).values, expected, rtol=1e-9)
    assert np.allclose(quasi_variances(1e-6 * matrix).values, 1e-6 * expected, rtol=1e-9)


def test_quasi_variances_can_be_negative():
    # With three items they solve three equations: q_0 = (v_01 + v_02 - v_12) / 2.
    matrix = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, -0.4], [0.0, -0.4, 1.0]])
    found = quasi_variances(matrix)
    assert np.allclose(found.values, [-0.4, 1.4, 1.4])
    assert np.isnan(found.standard_errors[0])


def test_quasi_variances_of_one_and_two_items():
    assert quasi_variances([[0.0]]).values.tolist() == [0.0]
    assert np.allclose(quasi_variances([[0.1, -0.1], [-0.1, 0.1]]).values, [0.2, 0.2])


def test_quasi_variances_need_errors():
    equal = np.ones((3, 3))
    refuses(lambda: quasi_variances(equal), ValueError, "items 0 and 1 has variance 0")
    found = quasi_variances(np.eye(3))
    refuses(lambda: found.intervals([0.0]), ValueError, "scores: expected 3 numbers, got 1")


# ---- comparisons --------------------------------------------------------------------------------


def test_critical_values_are_those_of_tables():
    found = comparisons.critical_value(np.eye(5))
    tukey = stats.studentized_range.ppf(0.95, 5, np.inf) / np.sqrt(2.0)
    assert abs(found.value - tukey) < 4.0 * found.standard_error < 0.08
    # Dunnett's table: three treatments against a control, many degrees of freedom.
    found = comparisons.critical_value(np.eye(4), pairs=[(0, 1), (2, 0), (0, 3)])
    assert abs(found.value - 2.349) < 4.0 * found.standard_error


def test_one_difference():
    matrix, scores = covariance_of(4, 5), np.array([0.3, -0.2, 0.4, -0.5])
    found = comparisons.compare(scores, matrix, 2, 1, level=0.9)
    error = naive.difference_error(matrix, 2, 1)
    assert np.allclose(found[:3], [0.6, error, 0.6 / error])
    assert np.isclose(found.p_value, 2 * stats.norm.sf(0.6 / error))
    assert np.allclose([found.low, found.high], 0.6 + 1.6448536 * error * np.array([-1, 1]))
    assert comparisons.compare(scores, matrix, 1, 1) == (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    known = comparisons.compare(scores, np.zeros((4, 4)), 0, 1)
    assert known.z == np.inf
    assert known.p_value == 0.0
    refuses(lambda: comparisons.compare(scores, matrix, 0, 4), ValueError, "j: expected an item")
    refuses(
        lambda: comparisons.compare(scores, matrix, 0.5, 1), TypeError, "i: expected the number"
    )


@pytest.mark.parametrize("adjustment", comparisons.ADJUSTMENTS)
def test_all_differences(adjustment):
    matrix, scores = covariance_of(4, 6), np.array([0.3, -0.2, 0.6, -0.7])
    found = comparisons.all_pairs(scores, matrix, list("abcd"), adjust=adjustment)
    assert list(found.columns) == ["first", "second", *comparisons.Difference._fields]
    order = "cabd"
    assert list(zip(found["first"], found["second"], strict=True)) == list(
        itertools.combinations(order, 2)
    )
    single = [
        comparisons.compare(scores, matrix, "abcd".index(i), "abcd".index(j))
        for i, j in itertools.combinations(order, 2)
    ]
    plain = pd.DataFrame(single)
    columns = ["estimate", "standard_error", "z"]
    assert np.allclose(found[columns], plain[columns])
    multiple = ((found["high"] - found["estimate"]) / found["standard_error"]).to_numpy()
    expected = {
        "none": 1.959964,
        "bonferroni": stats.norm.isf(0.025 / 6),
        "holm": stats.norm.isf(0.025 / 6),
        "max-t": comparisons.critical_value(matrix).value,
    }
    assert np.allclose(multiple, expected[adjustment])
    if adjustment == "max-t":
        # Rejected exactly where the simultaneous interval excludes 0.
        assert ((found["p_value"] < 0.05) == (found["low"] > 0.0)).all()
        assert (found["p_value"] >= plain["p_value"]).all()
        assert (found["p_value"] <= 6 * plain["p_value"] + 0.01).all()
    else:
        assert np.allclose(found["p_value"], adjust(plain["p_value"].to_numpy(), adjustment))


def test_bad_comparisons():
    pairs = comparisons.all_pairs
    refuses(lambda: pairs([0.0, 1.0], np.eye(2), ["a"]), ValueError, "names: expected 2")
    refuses(lambda: pairs([0.0, 1.0], np.eye(2), adjust="tukey"), ValueError, "adjust: expected")
    value = comparisons.critical_value
    refuses(lambda: value(np.eye(3), pairs="some"), ValueError, "pairs: expected one of all")
    refuses(lambda: value(np.eye(3), pairs=[(0, 3)]), ValueError, "two different items from 0 to 2")
    refuses(lambda: value(np.eye(3), pairs=[0, 1]), ValueError, "(pairs, 2)")
    refuses(lambda: value(np.eye(3), draws=0), ValueError, "draws: expected at least 1")


# ---- true places --------------------------------------------------------------------------------


@pytest.mark.parametrize("step_down", [False, True])
def test_rank_sets_against_all_pairs(step_down):
    for rng in range(5):
        matrix = covariance_of(5, rng)
        scores = np.random.default_rng(rng).normal(size=5)
        draws = np.concatenate(list(draw_blocks(matrix, 200, 7)))
        found = ranks.rank_sets(scores, matrix, 0.9, step_down=step_down, draws=200, rng=7)
        expected = naive.rank_sets(scores, matrix, 0.9, draws, step_down)
        assert found.tolist() == expected


def test_steps_make_rank_sets_smaller():
    matrix, scores = covariance_of(12, 0), np.linspace(-1.5, 1.5, 12)
    plain = ranks.rank_sets(scores, matrix, step_down=False)
    steps = ranks.rank_sets(scores, matrix)
    assert (steps[:, 0] >= plain[:, 0]).all()
    assert (steps[:, 1] <= plain[:, 1]).all()
    assert (steps != plain).any()
    places = np.argsort(np.argsort(-scores)) + 1
    assert (steps[:, 0] <= places).all()
    assert (places <= steps[:, 1]).all()


def test_rank_sets_hold_for_all_items_at_once():
    # Equal scores are the hardest case; at least 95% of 400 within four standard errors.
    matrix, truth = covariance_of(5, 3), np.array([0.4, 0.4, 0.0, 0.0, -2.0])
    above = (truth[:, None] < truth).sum(axis=1)
    below = (truth[:, None] > truth).sum(axis=1)
    estimates = truth + np.concatenate(list(draw_blocks(matrix, 400, 11)))
    covered = 0
    for scores in estimates:
        found = ranks.rank_sets(scores, matrix, draws=999)
        # An item that is equal to others has all of their places.
        covered += bool((found[:, 0] <= 1 + above).all() and (found[:, 1] >= 5 - below).all())
    assert covered / 400 > 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / 400)


def test_known_scores_have_known_places():
    found = ranks.rank_sets([0.0, 2.0, 2.0, 1.0], np.zeros((4, 4)))
    assert found.tolist() == [[4, 4], [1, 2], [1, 2], [3, 3]]
    assert ranks.rank_sets([0.0], [[0.0]]).tolist() == [[1, 1]]
    assert ranks.prob_above([0.0, 2.0, 2.0], np.zeros((3, 3))).tolist() == [
        [0.5, 0.0, 0.0],
        [1.0, 0.5, 0.5],
        [1.0, 0.5, 0.5],
    ]


def test_probabilities_of_true_places_against_integrals():
    matrix, scores = covariance_of(3, 8, size=0.5), np.array([0.2, 0.0, -0.2])
    exact = np.zeros((3, 3))
    for order in itertools.permutations(range(3)):
        chance = naive.order_probability(scores, matrix, order)
        exact[list(order), range(3)] += chance
    assert np.isclose(exact.sum(), 3.0)
    found = ranks.rank_probabilities(scores, matrix)
    assert np.abs(found - exact).max() < 4.5 * 0.5 / np.sqrt(20_000)
    assert np.allclose(found.sum(axis=0), 1.0)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert np.allclose(ranks.prob_best(scores, matrix), found[:, 0])
    pairs = [
        [
            naive.order_probability(scores[[i, j]], matrix[np.ix_([i, j], [i, j])], (0, 1))
            if i != j
            else 0.5
            for j in range(3)
        ]
        for i in range(3)
    ]
    assert np.allclose(ranks.prob_above(scores, matrix), pairs, atol=1e-9)


# ---- leaderboards -------------------------------------------------------------------------------


@pytest.fixture
def board():
    matrix, scores = covariance_of(4, 9), np.array([0.3, -0.2, 0.6, -0.7])
    return leaderboard.make(
        ["a", "b<i>", "c_1", "d"], scores, matrix, counts=[10, 2000, 30, 40], elo=True, anchor="a"
    )


def test_the_columns_of_a_leaderboard(board):
    matrix, scores = covariance_of(4, 9), np.array([0.3, -0.2, 0.6, -0.7])
    frame = board.to_frame()
    order = [2, 0, 1, 3]
    assert frame["name"].tolist() == ["c_1", "a", "b<i>", "d"]
    assert frame["place"].tolist() == [1, 2, 3, 4]
    assert frame["n"].tolist() == [30, 10, 2000, 40]
    assert np.allclose(frame["score"], scores[order])
    errors = np.sqrt(np.diagonal(matrix))[order]
    assert np.allclose(frame["standard_error"], errors)
    assert np.allclose(frame["high"] - frame["score"], 1.959964 * errors)
    assert np.allclose(frame["score"] - frame["low"], 1.959964 * errors)
    sets = frame[["rank_low", "rank_high"]].to_numpy()
    assert (sets == ranks.rank_sets(scores, matrix)[order]).all()
    assert np.allclose(frame["prob_best"], ranks.prob_best(scores, matrix)[order])
    assert np.allclose(frame["elo"], 1000 + 400 / np.log(10) * (scores[order] - 0.3))
    assert np.allclose(
        (frame["elo_high"] - frame["elo_low"]) * np.log(10) / 400, frame["high"] - frame["low"]
    )
    frame.loc[0, "name"] = "changed"
    assert board.to_frame()["name"][0] == "c_1"


def test_the_texts_of_a_leaderboard(board, tmp_path):
    lines = str(board).splitlines()
    assert lines[0] == board.caption
    head = "place name score low high s.e. best worst P(best) n Elo Elo low Elo high"
    assert " ".join(lines[1].split()) == head
    assert len(lines) == 6
    assert "2,000" in lines[4]
    assert "b&lt;i&gt;" in board._repr_html_()
    assert board._repr_html_().count("<tr>") == 5
    path = tmp_path / "board"
    assert board.to_csv(path) == path.read_text()
    read = pd.read_csv(path)
    assert np.allclose(read["score"], board.to_frame()["score"], rtol=1e-15)
    found = json.loads(board.to_json(path))
    assert found == json.loads(path.read_text())
    assert found["errors"] == "observed"
    assert found["items"][2]["n"] == 2000
    assert board.to_latex(path) == path.read_text()
    assert r"c\_1" in path.read_text()


def test_other_intervals():
    bounds = [[-np.inf, 0.4], [-0.1, 0.2]]
    board = leaderboard.make(None, [0.1, 0.0], np.eye(2), intervals=bounds, kind="profile")
    assert "profile" in board.caption
    assert board.to_frame()["low"].tolist() == [-np.inf, -0.1]
    assert json.loads(board.to_json())["items"][0]["low"] is None


def test_bad_leaderboards():
    make, scores, matrix = leaderboard.make, [0.1, 0.0], np.eye(2)
    refuses(lambda: make(["a"], scores, matrix), ValueError, "names: expected 2")
    refuses(lambda: make(["a", "b"], scores, matrix, anchor="c"), ValueError, "anchor: expected")
    refuses(lambda: make(None, scores, matrix, counts=[1]), ValueError, "counts: expected 2")
    refuses(
        lambda: make(None, scores, matrix, intervals=[[1, 0], [0, 1]]),
        ValueError,
        "low before high",
    )
