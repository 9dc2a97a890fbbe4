"""Goodness of fit: every number against sums over battles, and p-values against simulation."""

import itertools

import naive
import numpy as np
import pytest
from scipy import stats

from permdist.inference.cycles import expected_cycles, transitivity
from permdist.inference.goodness import (
    calibration,
    deviance,
    log_loss,
    pair_chances,
    pair_residuals,
)


def simulated(n=5, battles=200, log_tie=-0.3, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=battles)
    second = (first + 1 + rng.integers(n - 1, size=battles)) % n
    scores = rng.normal(size=n)
    chances = pair_chances(scores, log_tie, first, second)
    outcome = (rng.random((battles, 1)) > chances.cumsum(axis=1)[:, :2]).sum(axis=1)
    return first, second, outcome, chances, rng.integers(1, 4, size=battles).astype(float)


def test_chances_are_those_of_davidson():
    scores = [0.3, -1.0, 2.0]
    for log_tie, (i, j) in itertools.product((None, 0.7), itertools.permutations(range(3), 2)):
        found = pair_chances(scores, log_tie, [i], [j])[0]
        np.testing.assert_allclose(found, naive.davidson(scores, log_tie, i, j), rtol=1e-12)
    shifted = pair_chances(scores, 0.7, [0], [1], shift=[0.4])[0]
    np.testing.assert_allclose(shifted, naive.davidson([0.7, -1.0], 0.7, 0, 1), rtol=1e-12)
    assert pair_chances([2000.0, 0.0], 0.0, [0], [1])[0].tolist() == [1.0, 0.0, 0.0]


def test_residuals_are_sums_over_battles():
    first, second, outcome, chances, weights = simulated()
    found = pair_residuals(first, second, outcome, chances, weights=weights, names=list("abcde"))
    table = naive.pair_table(first, second, outcome, chances.tolist(), weights)
    assert len(found) == len(table)
    for _, row in found.iterrows():
        pair = table[tuple("abcde".index(row[side]) for side in ("first", "second"))]
        seen, expected = np.array(pair["seen"]), np.array(pair["expected"])
        assert row[["wins", "losses", "ties"]].tolist() == pytest.approx(seen)
        wanted = ["expected_wins", "expected_losses", "expected_ties"]
        assert row[wanted].tolist() == pytest.approx(expected)
        points = (seen - expected) @ [1.0, 0.0, 0.5]
        assert row["z"] == pytest.approx(points / np.sqrt(pair["variance"]))
        assert row["p_value"] == pytest.approx(2 * stats.norm.sf(abs(row["z"])))
    assert (np.diff(np.abs(found["z"])) <= 0).all()
    assert found["adjusted"][0] == pytest.approx(min(1, len(found) * found["p_value"][0]))
    assert (np.diff(found["adjusted"]) >= 0).all()


def test_residuals_are_standard_if_the_model_is_true():
    z, tie_z = [], []
    for seed in range(40):
        first, second, outcome, chances, _ = simulated(4, 600, seed=seed)
        found = pair_residuals(first, second, outcome, chances)
        z += found["z"].tolist()
        tie_z += found["tie_z"].tolist()
    assert stats.kstest(z, "norm").pvalue > 1e-5
    assert stats.kstest(tie_z, "norm").pvalue > 1e-5


def test_a_battle_counts_as_often_as_its_weight():
    first, second, outcome, chances, weights = simulated()
    number = weights.astype(int)
    repeated = [np.repeat(part, number, axis=0) for part in (first, second, outcome, chances)]
    weighted = pair_residuals(first, second, outcome, chances, weights=weights)
    np.testing.assert_allclose(
        weighted.iloc[:, 2:].to_numpy(), pair_residuals(*repeated).iloc[:, 2:].to_numpy()
    )
    assert deviance(first, second, outcome, chances, 5, weights=weights) == pytest.approx(
        deviance(*repeated, 5)
    )
    weights[first == 0] = 0.0
    weights[second == 0] = 0.0
    assert len(pair_residuals(first, second, outcome, chances, weights=weights)) == 6


@pytest.mark.parametrize("log_tie", [None, -0.3])
def test_deviance_is_the_difference_of_log_likelihoods(log_tie):
    first, second, outcome, chances, weights = simulated(battles=100, log_tie=log_tie)
    found = deviance(first, second, outcome, chances, 4, weights=weights)
    table = naive.pair_table(first, second, outcome, chances.tolist(), weights)
    value = pearson = 0.0
    for row in table.values():
        for seen, expected in zip(row["seen"], row["expected"], strict=True):
            value += 2 * seen * np.log(seen / expected) if seen else 0.0
            pearson += (seen - expected) ** 2 / expected if expected else 0.0
    assert found.value == pytest.approx(value)
    assert found.pearson == pytest.approx(pearson)
    assert found.degrees == len(table) * (1 if log_tie is None else 2) - 4
    assert found.p_value == pytest.approx(stats.chi2.sf(value, found.degrees))
    small = [e < 5 for row in table.values() for e in row["expected"] if e]
    assert found.sparse == np.mean(small)
    assert np.isnan(deviance([0], [1], [0], [[0.5, 0.5, 0.0]], 1).p_value)


def test_deviances_are_chi_squared_if_the_model_is_true():
    # Nothing is estimated here, so that every free chance is a degree of freedom.
    values = []
    for seed in range(60):
        first, second, outcome, chances, _ = simulated(4, 3000, seed=seed)
        values.append(deviance(first, second, outcome, chances, 0).p_value)
    assert stats.kstest(values, "uniform").pvalue > 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_circles_are_counted(seed):
    wins = np.random.default_rng(seed).integers(0, 4, size=(7, 7)) * (1 - np.eye(7))
    decided, cyclic = naive.circles(wins.tolist())
    found = transitivity(wins)
    assert (found.triads, found.cyclic) == (len(decided), len(cyclic))
    assert found.share == pytest.approx(len(cyclic) / len(decided))
    assert found.significant == 0 == len(found.examples)
    clear = transitivity(40 * wins)
    assert clear.significant == len(cyclic)
    listed = {tuple(sorted(row)) for row in clear.examples.tolist()}
    assert listed == set(cyclic[:20]) or len(cyclic) > 20
    for i, j, k in clear.examples:
        assert wins[i, j] > wins[j, i]
        assert wins[j, k] > wins[k, j]
        assert wins[k, i] > wins[i, k]


def test_majorities_are_tested_exactly():
    for won, lost in ((8, 1), (7, 1), (9, 2), (6, 0), (5, 0)):
        wins = np.array([[0, won, lost], [lost, 0, won], [won, lost, 0]])
        passed = stats.binomtest(won, won + lost).pvalue <= 0.05
        assert transitivity(wins).significant == passed
    assert transitivity(wins, level=0.1).significant == 1  # 5 of 5: p = 1/16
    many = np.zeros((40, 40))
    for i, j in itertools.combinations(range(40), 2):
        many[(i, j) if (j - i) % 2 else (j, i)] = 20
    assert len(transitivity(many).examples) == 20
    assert np.isnan(transitivity(np.zeros((3, 3))).share)
    with pytest.raises(ValueError, match="wins: expected a square matrix"):
        transitivity([[0.0, 1.0]])


def test_cycles_to_be_expected():
    pairs = np.array(list(itertools.combinations(range(3), 2)))
    chances = pair_chances([1.0, 0.0, -0.5], None, *pairs.T)
    table = pair_residuals(*pairs.T, [0, 0, 0], chances)
    p, q, r = chances[:, 0]  # 0 beats 1, 0 beats 2, 1 beats 2
    truth = p * r * (1 - q) + (1 - p) * (1 - r) * q
    mean, spread = expected_cycles(table, draws=4000)
    assert abs(mean - truth) < 4.5 * np.sqrt(truth * (1 - truth) / 4000)
    assert spread == pytest.approx(np.sqrt(mean * (1 - mean)))
    assert expected_cycles(table, draws=50) == expected_cycles(table, draws=50)
    assert np.isnan(expected_cycles(table.iloc[:1], draws=2)[0])


def test_calibration_by_hand():
    chances = [[0.72, 0.18, 0.10], [0.78, 0.12, 0.10], [0.30, 0.40, 0.30], [1.0, 0.0, 0.0]]
    found = calibration([0, 1, 2, 0], chances, weights=[1, 3, 1, 1])
    assert found["low"].tolist() == pytest.approx([0.0, 0.1, 0.3, 0.4, 0.7, 0.9])
    assert found["n"].tolist() == [1, 4, 1, 1, 4, 1]
    assert found["predicted"][4] == pytest.approx((0.72 + 3 * 0.78) / 4)
    assert found["observed"].tolist() == [0, 3 / 4, 0, 0, 1 / 4, 1]
    low, high = stats.binomtest(3, 4).proportion_ci(method="wilson")
    row = found.iloc[1]
    assert (row["interval_low"], row["interval_high"]) == pytest.approx((low, high))
    ties = calibration([0, 1, 2, 0], chances, ties=True, bins=5)
    assert ties["observed"].tolist() == [0, 1]
    assert ties["n"].tolist() == [3, 1]


def test_log_loss_is_the_mean_of_minus_log_chances():
    _, _, outcome, chances, weights = simulated()
    logs = [np.log(chance[won]) for chance, won in zip(chances, outcome, strict=True)]
    wanted = -np.average(logs, weights=weights)
    assert log_loss(outcome, chances, weights=weights) == pytest.approx(wanted)
    both_bad = np.where(outcome == 2, 3, outcome)
    assert log_loss(both_bad, chances, weights=weights) == pytest.approx(wanted)
    assert log_loss([1], [[1.0, 0.0, 0.0]]) == np.inf


def test_bad_input_is_refused():
    for outcome, chances, message in (
        ([-1], [[1.0, 0.0, 0.0]], "outcome: expected 0, 1 or 2"),
        ([], np.zeros((0, 3)), "outcome: expected 0, 1 or 2"),
        ([0], [[1.0, 0.0]], "expected 1 battles with three chances each"),
        ([0], [[1.0, 1.0, 0.0]], "expected three chances that add up to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            calibration(np.array(outcome, dtype=int), chances)
    with pytest.raises(ValueError, match="first, second: expected 1 entries"):
        pair_residuals([0, 1], [1, 0], [0], [[1.0, 0.0, 0.0]])
