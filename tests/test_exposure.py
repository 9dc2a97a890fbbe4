"""Objectives of expected exposure against enumeration and difference quotients."""

import itertools

import naive
import numpy as np
import pytest

from permdist import GaussianScores, PlackettLuce, objectives
from permdist.distributions import position_weights
from permdist.models import solvers
from permdist.objectives import ExpectedExposure, GroupExposure, grouped_labels

SCORES = np.array([0.3, -0.2, 0.9, 0.1, 0.4, -0.7, 0.25, 0.5])
LABELS = np.array([1, 0, 0, 2, 1, 0, 1, 1])
GROUPS = np.array([0, 0, 1, 1, 0, 1, 0, 2])
QID = np.array([1, 1, 1, 1, 2, 2, 3, 3])
CHOICES = [
    ExpectedExposure(),
    ExpectedExposure("reciprocal", k=2, target="merit", weight=0.5),
    ExpectedExposure(0.7, measure="ndcg", distribution="gaussian", noise=0.8),
    GroupExposure(),
    GroupExposure("jk", k=3, form="merit", distribution="gaussian"),
    GroupExposure(0.5, form="merit", measure="ndcg@2", weight=3.0),
]


def with_groups(objective):
    return {"groups": GROUPS} if isinstance(objective, GroupExposure) else {}


def listed_exposure(scores, weights):
    """The mean weight of each item's position, over all orders."""
    seen = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        chance = np.exp(naive.plackett_luce(scores, order))
        for item, weight in zip(order, weights, strict=False):
            seen[item] += chance * weight
    return seen


def listed_targets(labels, weights):
    """The mean weight of each item's position, over all orders with higher labels first."""
    seen, number = np.zeros(len(labels)), 0
    for order in itertools.permutations(range(len(labels))):
        sorted_labels = [labels[item] for item in order]
        if sorted_labels == sorted(labels, reverse=True):
            number += 1
            for item, weight in zip(order, weights, strict=False):
                seen[item] += weight
    return seen / number


def listed_disparity(seen, labels, groups, form):
    merit = np.exp2(labels) - 1.0
    levels = []
    for group in np.unique(groups):
        here = groups == group
        level = seen[here].mean() / seen.mean()
        if form == "merit":
            if merit[here].sum() == 0.0:
                continue
            level /= merit[here].mean() / merit.mean()
        levels.append(level)
    gaps = [(a - b) ** 2 for a, b in itertools.combinations(levels, 2)]
    return np.mean(gaps) if gaps else 0.0


@pytest.mark.parametrize("objective", CHOICES, ids=lambda one: one.name)
def test_gradients_are_those_of_the_values(objective):
    extra = with_groups(objective)
    _, gradient = objective(SCORES, LABELS, QID, **extra)
    quotient = naive.gradient(lambda s: objective(s, LABELS, QID, **extra)[0], SCORES)
    np.testing.assert_allclose(gradient, quotient, atol=1e-8)
    found = objective.derivatives(SCORES, LABELS, QID, **extra)
    np.testing.assert_array_equal(found.gradient, gradient)
    assert (found.curvature[:6] > 0.0).all()


def test_values_are_those_of_all_orders():
    weights = position_weights("log2", n_items=4)
    seen, label = listed_exposure(SCORES[:4], weights), LABELS[:4]
    wanted = listed_targets(label, weights)
    value, _ = ExpectedExposure()(SCORES[:4], label)
    assert value == pytest.approx(((seen - wanted) ** 2).sum() / (wanted**2).sum(), abs=1e-12)
    np.testing.assert_allclose(ExpectedExposure().targets(label, weights), wanted, atol=1e-15)
    short = position_weights(0.4, k=2, n_items=4)
    few = ExpectedExposure(0.4, k=2)
    np.testing.assert_allclose(few.targets(label, short), listed_targets(label, short))
    for form, groups in itertools.product(("parity", "merit"), ([0, 0, 1, 1], [0, 1, 2, 1])):
        value, _ = GroupExposure(form=form)(SCORES[:4], label, groups=groups)
        expected = listed_disparity(seen, label, np.array(groups), form)
        assert value == pytest.approx(expected, abs=1e-12)
    utility = ExpectedExposure(measure="ndcg", weight=2.0)(SCORES[:4], label)[0]
    lost = 1.0 - PlackettLuce(SCORES[:4]).expect("ndcg", label)
    assert utility == pytest.approx(2.0 * ExpectedExposure()(SCORES[:4], label)[0] + lost)


def test_perfect_exposure_costs_nothing():
    # Documents of one grade with the same score, grades far apart: the target policy itself.
    scores, labels = np.array([0.0, 60.0, 0.0, 30.0, 60.0]), np.array([0, 2, 0, 1, 2])
    value, gradient = ExpectedExposure()(scores, labels)
    assert value == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    even, _ = GroupExposure()(np.zeros(4), [1, 0, 1, 0], groups=[0, 0, 1, 1])
    assert even == pytest.approx(0.0, abs=1e-15)
    alone, _ = GroupExposure()(SCORES[:3], [1, 0, 1], groups=[5, 5, 5])
    assert alone == 0.0


def test_order_groups_padding_and_threads_do_not_matter():
    rng = np.random.default_rng(0)
    for objective in CHOICES:
        extra = with_groups(objective)
        values, gradient = objective.values(SCORES, LABELS, QID, **extra)
        turn = rng.permutation(4)
        rows = np.r_[turn, 4:8]
        moved = {name: group[rows] for name, group in extra.items()}
        same, slopes = objective.values(SCORES[rows], LABELS[rows], QID, **moved)
        np.testing.assert_allclose(same, values, rtol=1e-12)
        np.testing.assert_allclose(slopes, gradient[rows], atol=1e-12)
        padded, labels = np.full((2, 5), 9.0), np.full((2, 5), 3)
        groups, mask = np.zeros((2, 5), dtype=int), np.zeros((2, 5), dtype=bool)
        mask[0, 1:], mask[1, [0, 3]] = True, True
        padded[mask], labels[mask], groups[mask] = SCORES[:6], LABELS[:6], GROUPS[:6]
        wide = {"groups": groups} if extra else {}
        found = objective.derivatives(padded, labels, mask=mask, **wide)
        np.testing.assert_array_equal(found.values, values[:2])
        np.testing.assert_array_equal(found.gradient[mask], gradient[:6])
        assert not found.gradient[~mask].any()
    many, label = rng.normal(size=4000), rng.integers(0, 3, size=4000)
    qid, group = np.repeat(np.arange(200), 20), rng.integers(0, 2, size=4000)
    both = [
        GroupExposure(k=5).derivatives(many, label, qid, groups=group, n_jobs=jobs)
        for jobs in (1, 3)
    ]
    np.testing.assert_array_equal(both[0].gradient, both[1].gradient)
    # Names of groups do not matter, and labels that say the group are the same.
    renamed = GroupExposure(k=5)(many, label, qid, groups=7 - group)[0]
    assert renamed == pytest.approx(both[0].values.sum(), rel=1e-12)
    coded = GroupExposure(k=5).derivatives(many, grouped_labels(label, group), qid)
    np.testing.assert_array_equal(coded.gradient, both[0].gradient)


def test_a_solver_trades_utility_for_parity():
    rng = np.random.default_rng(4)
    X, qid = rng.normal(size=(120, 2)), np.repeat(np.arange(12), 10)
    groups = (X[:, 1] > 0.0).astype(int)
    labels = (X.sum(axis=1) + rng.normal(size=120) > 0.5).astype(int)
    parity, gain = [], []
    for weight in (0.1, 100.0):
        objective = GroupExposure(measure="ndcg@10", weight=weight)
        prepared = objective.prepare(labels, qid, groups=groups)
        found = solvers.lbfgs(lambda scores, ready=prepared: ready(scores)[:2], X, None, 1e4)
        scores = X @ found.w
        parity.append(GroupExposure()(scores, labels, qid, groups=groups)[0])
        gain.append(objectives.ExpectedLoss("ndcg@10", scale=False, distribution="plackett-luce"))
        gain[-1] = 12.0 - gain[-1](scores, labels, qid)[0]
    assert parity[1] < 0.2 * parity[0]
    assert gain[1] < gain[0]


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


def test_texts_and_bad_input():
    for objective in CHOICES:
        assert objectives.parse_objective(objective.name) == objective
    with pytest.raises(ValueError, match="groups: expected the group of each document"):
        GroupExposure()(SCORES, LABELS, QID)
    with pytest.raises(ValueError, match=r"groups: expected shape \(8,\) as labels, got \(2,\)"):
        GroupExposure()(SCORES, LABELS, QID, groups=[0, 1])
    with pytest.raises(ValueError, match=r"labels: expected grades below 1,024, got 5000"):
        grouped_labels([5000], [0])
    with pytest.raises(ValueError, match="target: expected one of"):
        ExpectedExposure(target="gain")
    with pytest.raises(ValueError, match="form: expected one of"):
        GroupExposure(form="equal")
    with pytest.raises(ValueError, match="distribution: expected one of"):
        ExpectedExposure(distribution="mallows")
    with pytest.raises(ValueError, match="discount: expected a name or a number"):
        ExpectedExposure([1.0, 0.5])
    with pytest.raises(ValueError, match="k: expected at least 1"):
        ExpectedExposure(k=0)
    with pytest.raises(ValueError, match="measure: 'ap' is no sum over positions"):
        ExpectedExposure(measure="ap")(SCORES, LABELS, QID)
