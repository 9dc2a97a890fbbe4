"""What follows from a fit: the functions of scores and covariances, reached from `fit_result`."""

import numpy as np
import pytest

from permdist import PlackettLuce
from permdist.ballots import Ballots
from permdist.inference import ranks
from permdist.inference.quasi import quasi_variances

NAMES = ["ann", "bo", "cy", "di"]


@pytest.fixture
def fit():
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=120)
    second = (first + rng.integers(1, 4, size=120)) % 4
    ballots = Ballots.from_pairs(np.minimum(first, second), np.maximum(first, second), names=NAMES)
    upsets = Ballots.from_pairs([1, 2, 3, 3], [0, 1, 2, 0], weights=[9, 9, 9, 5], names=NAMES)
    return PlackettLuce.fit(ballots + upsets).fit_result


def test_the_last_bootstrap_counts(fit):
    drawn = fit.bootstrap(40, rng=3, n_jobs=1)
    low, high = np.percentile(drawn.scores, [2.5, 97.5], axis=0)
    assert np.allclose(fit.intervals(kind="bootstrap"), np.column_stack([low, high]))
    assert np.allclose(fit.covariance("bootstrap"), np.cov(drawn.scores.T))
    assert fit.bootstrap(40, rng=3) is drawn


def test_kinds_reach_what_follows(fit):
    fit.bootstrap(40, rng=3, n_jobs=1)
    for kind in ("observed", "sandwich", "bootstrap"):
        covariance = fit.covariance(kind)
        assert (fit.rank_sets(kind=kind) == ranks.rank_sets(fit.scores, covariance)).all()
        assert np.isclose(
            fit.prob_above("bo", 3, kind), ranks.prob_above(fit.scores, covariance)[1, 3]
        )
        assert np.allclose(fit.quasi_variances(kind).values, quasi_variances(covariance).values)
        assert np.isclose(
            fit.compare("ann", "di", kind=kind).estimate, fit.scores[0] - fit.scores[3]
        )
        board = fit.leaderboard(kind=kind)
        assert kind in board.caption
        order = [NAMES.index(name) for name in board.to_frame()["name"]]
        bounds = board.to_frame()[["low", "high"]].to_numpy()
        assert np.allclose(bounds, fit.intervals(kind=kind)[order])
        assert (fit.comparisons(kind=kind)["first"] == ["ann"] * 3 + ["bo"] * 2 + ["cy"]).all()
