"""Objectives without a learner: values, gradients, text forms; solvers on known problems."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import GaussianScores, PlackettLuce, objectives
from permdist.models import ConvexLoss, LinearRanker, ListNet, solvers
from permdist.models.objectives import OBJECTIVES
from permdist.models.objectives.base import ELSEWHERE
from permdist.models.spaces import SPACES, Orders, Restart, parse_space
from permdist.samplers import RestartSampler

SCORES = np.array([0.3, -0.2, 0.9, 0.1, 0.4, -0.7, 0.25, 0.5])
LABELS = np.array([1, 0, 0, 2, 1, 0, 1, 1])
QID = np.array([1, 1, 1, 1, 2, 2, 3, 3])  # the last query teaches nothing


def test_expected_losses_under_utilities_are_those_of_the_distributions():
    label = LABELS[:6]
    for kind, make in (("plackett-luce", PlackettLuce), ("gaussian", GaussianScores)):
        for measure, scale in itertools.product(("ndcg@3", "auc", "p@1"), (False, True)):
            loss = objectives.ExpectedLoss(measure, scale=scale, distribution=kind)
            values, gradient = loss.values(SCORES[:6], label, QID[:6])
            for q, rows in enumerate((slice(0, 4), slice(4, 6))):
                pairs = (label[rows][:, None] > label[rows]).sum() if scale else 1
                model = make(SCORES[rows] / pairs)
                wanted = 1.0 - model.expect(measure, label[rows])
                assert values[q] == pytest.approx(wanted, abs=1e-11)
                slopes = -model.expect_gradient(measure, label[rows]) / pairs
                np.testing.assert_allclose(gradient[rows], slopes, atol=1e-11)


def test_a_query_alone_is_worth_the_same():
    for name in OBJECTIVES:
        objective = objectives.parse_objective(name)
        values, _ = objective.values(SCORES[:6], LABELS[:6], QID[:6])
        if getattr(objective, "random_state", None) is None:
            alone, _ = objective(SCORES[4:6], LABELS[4:6])
            assert values[1] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("n", [3, 6, 9])
def test_everything_is_finite_at_gaps_up_to_1e8(name, n):
    labels = np.arange(n) % 3
    for gap in (4e6, 1e7, 1e8):
        for scores in (gap * np.linspace(1.0, 0.0, n), gap * np.linspace(-1.0, 1.0, n) ** 3):
            found = objectives.parse_objective(name).prepare(labels)(scores)
            assert all(np.isfinite(part).all() for part in found)


def test_boltzmann_keeps_its_digits_where_other_documents_are_far():
    loss = objectives.Boltzmann("ap", mix=1.0)
    # Documents 0 and 1 are half a unit apart, two thirds of it in F; the third is below them.
    better = 1.0 / (1.0 + np.exp(2.0 / 3.0 * 0.5))
    for scores in ([0.0, 0.5, -1e8], [0.0, 0.5, -1e3]):
        value, gradient = loss(scores, [1, 0, 0])
        assert value == pytest.approx(0.5 * (1.0 - better), rel=1e-12)
        slope = 0.5 * better * (1.0 - better) * 2.0 / 3.0
        np.testing.assert_allclose(gradient, [-slope, slope, 0.0], rtol=1e-12, atol=1e-15)


def test_an_objective_is_what_its_learner_minimizes():
    from permdist import data

    queries = data.make_letor(12, n_features=4, rng=0)
    learner = ConvexLoss("ap", space="interleavings", scale=True, C=2.0, tol=1e-4)
    learner.set_params(standardize=False).fit(queries)
    objective = objectives.ConvexLoss("ap", "interleavings")
    value, _ = objective(learner.predict(queries), queries.y > 0, queries.qid)
    whole = value + learner.coef_ @ learner.coef_ / 2.0
    assert whole == pytest.approx(learner.history_["objective"][-1], rel=1e-9)
    own, same = (
        ListNet(C=3.0).fit(queries),
        LinearRanker("listnet[target=gain]", C=3.0).fit(queries),
    )
    np.testing.assert_allclose(own.coef_, same.coef_, rtol=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"labels: expected shape \(8,\) as scores"):
        objectives.ListNet()(SCORES, LABELS[:-1])
    with pytest.raises(ValueError, match="scores: expected finite numbers"):
        objectives.ListNet()([np.nan, 1.0], [0, 1])
    with pytest.raises(ValueError, match=r"objective: unknown name 'listnett'.*'listnet'"):
        objectives.parse_objective("listnett")
    with pytest.raises(ValueError, match="objective: cannot read"):
        objectives.parse_objective("listnet[k")
    with pytest.raises(TypeError, match="objective: expected a name or an object"):
        objectives.parse_objective(3)
    with pytest.raises(ValueError, match="'tau' can be negative"):
        objectives.ExpectedGain("tau")(SCORES, LABELS)


WRONG = {
    "lambda-loss[mesure=ndcg@10]": r"unknown option 'mesure', .*did you mean 'measure'",
    "lambdarank": "there is no 'lambdarank' here; did you mean 'lambda-loss'",
    "mle": "did you mean 'likelihood'",
    "listnet[k=x]": "k: expected a whole number, got 'x'",
    "listnet[k=0]": "k: expected at least 1, got 0",
    "listnet[target=soft]": "target: expected one of softmax, label, gain",
    "listmle[ties=none]": "ties: expected one of together, random, index",
    "likelihood[scale=1]": "scale: expected True or False",
    "likelihood[measure=ndgc]": "ndgc",
    "likelihood[space=pears]": "space: unknown name 'pears'.*did you mean 'pairs'",
    "convex-loss[kappa=-1]": "kappa: expected a number from 0",
    "expected-gain[distribution=gausian]": "did you mean 'gaussian'",
    "boltzmann[mix=2]": "mix: expected a number from 0 to 1",
    "smooth[sigmoid=step]": "sigmoid: expected one of",
    "noisy[method=exakt]": "did you mean 'exact'",
    "lambda-loss[draws=-1]": "draws: expected at least 0",
}


@pytest.mark.parametrize("text", WRONG)
def test_options_are_checked_when_an_objective_is_made(text):
    with pytest.raises(ValueError, match=WRONG[text]):
        objectives.parse_objective(text)


def test_names_from_elsewhere_are_of_objectives_here():
    for name, text in ELSEWHERE.items():
        assert name not in OBJECTIVES
        assert objectives.parse_objective(text).alias in OBJECTIVES


def test_the_guide_has_a_row_for_every_objective():
    guide = Path(__file__).resolve().parent.parent / "docs" / "objectives.md"
    for kind in map(OBJECTIVES.find, OBJECTIVES):
        if kind.__module__.startswith("permdist."):
            row = f"| `{kind.__name__}` | `{kind.alias}` |"
            assert row in guide.read_text("utf-8")


# ---- text forms ---------------------------------------------------------------------------------


@given(st.integers(2, 10**6), st.one_of(st.none(), st.integers(0, 2**40)))
def test_spaces_are_read_back_from_their_names(orders, seed):
    space = Orders(orders=orders, random_state=seed)
    assert parse_space(space.name) == space


@given(st.floats(1e-3, 1e3), st.sampled_from(["logistic", "erf"]), st.sampled_from(["ap", "rr"]))
def test_objectives_are_read_back_from_their_names(alpha, sigmoid, measure):
    objective = objectives.SmoothMeasure(measure, alpha=alpha, sigmoid=sigmoid)
    assert objectives.parse_objective(objective.name) == objective
    nested = objectives.RankingHinge("ndcg@10[gain=linear,discount=jk]")
    assert objectives.parse_objective(nested.name) == nested


def test_options_of_spaces_are_checked():
    assert set(SPACES) >= {"pairs", "interleavings", "orders", "restart"}
    with pytest.raises(TypeError, match="sampler: expected a RestartSampler"):
        Restart(sampler=3)
    assert not Restart(sampler=RestartSampler("ap")).has_text


def test_a_sampler_of_ones_own_is_used_and_cannot_be_saved(tmp_path):
    from permdist import data

    queries = data.make_letor(8, n_features=3, rng=1)
    space = Restart(sample_size=20, sampler=RestartSampler("ap", rungs=2, walk=3))
    learner = ConvexLoss("ap", space=space).fit(queries)
    same = ConvexLoss("ap", space="restart[sample_size=20,rungs=2,walk=3]").fit(queries)
    np.testing.assert_array_equal(learner.coef_, same.coef_)
    assert not np.array_equal(learner.coef_, ConvexLoss("ap", space="restart").fit(queries).coef_)
    with pytest.raises(TypeError, match="save: a parameter cannot be written as text"):
        learner.save(tmp_path / "x.json")


# ---- solvers ------------------------------------------------------------------------------------


def squares(scores):
    return 0.5 * (scores - 1.0) ** 2, scores - 1.0


def test_solvers_agree_on_a_smooth_problem():
    X = np.random.default_rng(0).normal(size=(30, 4))
    exact = np.linalg.solve(X.T @ X + 0.5 * np.eye(4), X.T @ np.ones(30))
    notes = []
    for solve, options in ((solvers.lbfgs, {"tol": 1e-9}), (solvers.cutting_planes, {"tol": 1e-7})):
        found = solve(squares, X, None, 4.0, note=lambda w, **v: bool(notes.append(v)), **options)
        assert found.converged
        np.testing.assert_allclose(found.w, exact, atol=1e-3)
        assert found.lower <= found.value + 1e-12
        assert notes[-1]["objective"] == pytest.approx(found.value)
    again = solvers.lbfgs(squares, X, exact, 4.0)
    np.testing.assert_allclose(again.w, exact, atol=1e-9)


def test_stochastic_steps_come_close():
    X = np.random.default_rng(0).normal(size=(20, 2))

    def work(first, last, scores, values, gradient):
        values[first:last], gradient[first:last] = squares(scores[first:last])

    rng, ptr = np.random.default_rng(0), np.arange(21)
    found = solvers.stochastic(work, X, None, 4.0, ptr=ptr, rng=rng, learning_rate=0.02)
    best = solvers.lbfgs(squares, X, None, 4.0)
    assert found.value < best.value * 1.01
    assert not found.converged


def test_several_starts_return_the_best():
    def waves(scores):
        return np.cos(3.0 * scores) + 0.1 * scores**2, -3.0 * np.sin(3.0 * scores) + 0.2 * scores

    def solve(start):
        return solvers.lbfgs(waves, np.ones((1, 1)), start)

    rng = np.random.default_rng(0)
    best = solvers.multistart(solve, np.array([9.0]), 12, rng)
    assert best.value == min(best.starts)
    assert len(best.starts) == 12
    assert best.value < solve(np.array([9.0])).value


def test_a_flat_objective_is_named():
    def flat(scores):
        return np.ones(1), np.zeros(len(scores))

    assert solvers.lbfgs(flat, np.ones((2, 1)), None).message == solvers.UNCHANGED
