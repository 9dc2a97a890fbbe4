"""Derivatives of all objectives: gradients, curvatures, padded and ragged batches, threads."""

import naive
import numpy as np
import pytest
from extension.objective import SquaredError

from permdist import _parallel, objectives
from permdist.models.objectives import OBJECTIVES

SIZES = (6, 1, 7, 5, 2)  # the last query but one teaches nothing
EXACT = (
    "listnet",
    "listnet[k=2,target=gain]",
    "listmle",
    "listmle[ties=index]",
    "likelihood",
    "likelihood[scale=False]",
    "convex-loss[measure=auc,space=pairs,scale=False]",
    "luce",
    "luce[k=2]",
    "luce[ties=davidson]",
    "luce[k=1,ties=davidson,deltas=0.7:0.2]",
    "pair-hinge",
    "lambda-loss",
    "lambda-loss[measure=err,sigma=0.7]",
    "lambda-loss[scheme=ndcg-loss1]",
    "lambda-loss[scheme=ndcg-loss2++]",
)
BOUNDS = (
    "convex-loss[measure=ndcg,space=interleavings,scale=False]",
    "convex-loss[measure=ndcg,space=interleavings]",
    "convex-loss[measure=ndcg,space=restart]",
    "likelihood[space=orders]",
    "likelihood-and-loss[measure=auc,space=pairs,kappa=0.0]",
)
OTHERS = (
    "boltzmann[exact=2]",
    "convex-loss[measure=ndcg,space=rows]",
    "cosine",
    "expected-gain[measure=ndcg]",
    "expected-loss[measure=ndcg@3,distribution=plackett-luce]",
    "lambda-loss[measure=ndcg@3,draws=4]",
    "likelihood-and-loss[measure=ndcg,space=rows,scale=False,kappa_units=pairs]",
    "noisy",
    "noisy[method=softrank]",
    "pair-hinge[squared=False]",
    "smooth[measure=ndcg@3,alpha=2.0]",
    "smooth[measure=ap,sigmoid=erf,alpha=1.0]",
    "smooth[measure=rr,alpha=2.0,beta=2.0]",
    "smooth[measure=tau,alpha=2.0]",
)
ALL = (*EXACT, *BOUNDS, *OTHERS)


def instance(seed, binary=False):
    """Return scores, labels and query ids; scores are apart, so that rankings do not change."""
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    scores = np.concatenate([rng.permutation(size) for size in SIZES]) * rng.uniform(0.2, 0.9)
    labels = rng.integers(0, 3, n)
    labels[:6], labels[7:14] = rng.permutation([0, 1, 2, 0, 1, 0]), [1, 0, 2, 2, 0, 1, 0]
    labels[14:19], labels[19:] = 0, (0, 1)
    labels[6] = 0
    return scores + rng.uniform(-0.05, 0.05, n), np.minimum(labels, 1 if binary else 2)


QID = np.repeat(np.arange(len(SIZES)), SIZES)
TEACH = np.isin(QID, (0, 2, 4))


def labels_of(name, labels):
    """Return binary labels where the objective wants them."""
    return np.minimum(labels, 1) if "measure=ap" in name or "measure=rr" in name else labels


def quotient(function, point, step=4e-3):
    """Differentiate by differences of the sixth order."""
    result = np.empty(len(point))
    for i in range(len(point)):
        values = []
        for k in (1, 2, 3):
            ahead, behind = point.copy(), point.copy()
            ahead[i] += k * step
            behind[i] -= k * step
            values.append(function(ahead, i) - function(behind, i))
        result[i] = (45.0 * values[0] - 9.0 * values[1] + values[2]) / (60.0 * step)
    return result


def test_all_objectives_are_listed():
    tried = {objectives.parse_objective(name).alias for name in ALL}
    assert tried == set(OBJECTIVES) - {"ranking-hinge", "squared-error"}


@pytest.mark.parametrize("name", ALL)
def test_gradients_are_those_of_the_values(name):
    scores, labels = instance(1)
    prepared = objectives.parse_objective(name).prepare(labels_of(name, labels), QID, n_jobs=1)
    found = prepared(scores)
    slopes = quotient(lambda s, _: prepared(s).values.sum(), scores)
    np.testing.assert_allclose(found.gradient, slopes, atol=1e-8 * max(1.0, abs(slopes).max()))
    same = objectives.parse_objective(name).values(scores, labels_of(name, labels), QID)
    np.testing.assert_allclose(found.values, same[0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.gradient, same[1], rtol=1e-9, atol=1e-12)
    assert (found.curvature[TEACH] > 0.0).all()
    assert (found.curvature[~TEACH] == 0.0).all()
    assert (found.gradient[~TEACH] == 0.0).all()


@pytest.mark.parametrize("name", [*EXACT, *BOUNDS])
def test_curvatures_are_exact_or_bounds_where_they_are_said_to_be(name):
    for seed in (2, 3):
        scores, labels = instance(seed, binary=name in BOUNDS)
        prepared = objectives.parse_objective(name).prepare(labels, QID, n_jobs=1)
        curvature = prepared(scores).curvature
        second = quotient(lambda s, i, p=prepared: p(s).gradient[i], scores)
        close = 1e-8 * max(1.0, abs(second).max())
        assert (curvature > second - close).all()
        if name in EXACT:
            np.testing.assert_allclose(curvature, second, atol=close)


@pytest.mark.parametrize("name", [*ALL, "ranking-hinge"])
def test_padded_ragged_and_threaded_batches_agree_to_the_bit(name, monkeypatch):
    scores, labels = instance(4)
    labels = labels_of(name, labels)
    mask = np.arange(9) < np.array(SIZES)[:, None]
    mask = mask[:, ::-1].copy() if name == "listnet" else mask  # documents may be anywhere
    padded, marks = np.full(mask.shape, np.nan), np.full(mask.shape, -1)
    padded[mask], marks[mask] = scores, labels
    weights = np.array([0.5, 1.0, 2.0, 1.0, 0.0])
    objective = objectives.parse_objective(name)
    monkeypatch.setattr(_parallel, "SMALL", 1.0)  # threads even for so little
    for kind in (np.float64, np.float32):
        wide = objective.derivatives(padded.astype(kind), marks, mask=mask, n_jobs=1)
        flat = objective.derivatives(scores.astype(kind), labels, QID, n_jobs=3)
        np.testing.assert_array_equal(wide.values, flat.values)
        for one, other in zip(wide[1:], flat[1:], strict=True):
            assert one.dtype == other.dtype == kind
            assert one.shape == mask.shape
            np.testing.assert_array_equal(one[mask], other)
            assert (one[~mask] == 0.0).all()
    twice = objective.derivatives(padded, marks, mask=mask, weights=weights)
    plain = objective.derivatives(scores, labels, QID)
    each = np.repeat(weights, SIZES)
    np.testing.assert_allclose(twice.values, weights * plain.values, rtol=1e-14)
    np.testing.assert_allclose(twice.gradient[mask], each * plain.gradient, rtol=1e-14)
    np.testing.assert_allclose(twice.curvature[mask], each * plain.curvature, rtol=1e-14)


def test_a_batch_of_one_size_is_used_as_it_is():
    scores = np.random.default_rng(0).normal(size=(40, 8))
    labels = np.tile([0, 1, 2, 0, 1, 3, 0, 0], (40, 1))
    prepared = objectives.ListNet().prepare(labels)
    assert prepared.shape == (40, 8)
    assert prepared.n_queries == 40
    before = scores.copy()
    found = prepared(scores)
    np.testing.assert_array_equal(scores, before)
    alone = [objectives.ListNet().derivatives(scores[q], labels[q]) for q in range(40)]
    np.testing.assert_array_equal(found.gradient, [one.gradient for one in alone])
    np.testing.assert_array_equal(found.values, [one.values[0] for one in alone])
    np.testing.assert_array_equal(prepared(scores.tolist()).gradient, found.gradient)


def test_rows_without_documents_and_other_memory():
    scores, labels = np.array([[0.3, 0.1], [9.9, 9.9], [0.2, 0.7]]), [[1, 0], [1, 0], [0, 2]]
    mask = np.array([[True, True], [False, False], [True, True]])
    found = objectives.ListMLE().derivatives(scores, labels, mask=mask)
    assert found.values[1] == 0.0
    assert (found.gradient[1] == 0.0).all()
    nothing = objectives.ListMLE().derivatives(scores, labels, mask=np.zeros((3, 2), bool))
    assert (nothing.values == 0.0).all()
    assert (
        objectives.ListMLE().derivatives(np.zeros((0, 4)), np.zeros((0, 4), int)).values.size == 0
    )
    prepared = objectives.ListMLE().prepare(labels, mask=mask)
    turned = np.asfortranarray(scores)
    turned.flags.writeable = False
    np.testing.assert_array_equal(prepared(turned).gradient, found.gradient)
    whole = objectives.ListMLE().prepare(labels)
    fixed = scores.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(whole(fixed).gradient, whole(scores).gradient)


def test_long_and_short_queries_of_smooth_measures_agree():
    from permdist.models import smooth_derivatives

    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=350), rng.integers(0, 2, 350)
    for text in ("smooth[measure=ndcg]", "smooth[measure=ap]", "smooth[sigmoid=tanh]"):
        objective = objectives.parse_objective(text)
        assert len(scores) > smooth_derivatives.DENSE
        found = objective.derivatives(scores, labels)
        value, gradient = objective(scores, labels)
        assert found.values[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found.gradient, gradient, atol=1e-13)
        few = objective.derivatives(scores[:250], labels[:250])
        np.testing.assert_allclose(
            few.gradient, objective(scores[:250], labels[:250])[1], atol=1e-13
        )


def test_an_objective_of_ones_own_has_a_curvature():
    scores, labels = instance(5)
    found = SquaredError().derivatives(scores, labels, QID)
    sizes = np.abs(found.gradient)
    mean = np.bincount(QID, sizes) / np.array(SIZES)
    np.testing.assert_allclose(found.curvature[TEACH], (sizes + mean[QID])[TEACH])
    newton = found.gradient[TEACH] / found.curvature[TEACH]
    assert (abs(newton) <= 1.0).all()


def test_bad_input_is_refused():
    listnet = objectives.ListNet()
    with pytest.raises(ValueError, match=r"scores: expected shape \(3,\) as labels, got \(2,\)"):
        listnet.prepare([1, 0, 0])([0.0, 1.0])
    with pytest.raises(ValueError, match=r"expected finite numbers, got nan at index \(0, 1\)"):
        listnet.derivatives([[0.0, np.nan]], [[1, 0]])
    with pytest.raises(ValueError, match="mask: expected labels of shape"):
        listnet.prepare([1, 0], mask=[True, False])
    with pytest.raises(ValueError, match=r"mask: expected shape \(1, 2\)"):
        listnet.prepare([[1, 0]], mask=[[True]])
    with pytest.raises(TypeError, match="mask: expected booleans"):
        listnet.prepare([[1, 0]], mask=[[1, 0]])
    with pytest.raises(ValueError, match="qid: expected none beside padded labels"):
        listnet.prepare([[1, 0]], qid=[1])
    with pytest.raises(ValueError, match="weights: expected one per query, 1 in all, got 2"):
        listnet.prepare([1, 0], weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="weights: expected non-negative numbers, got -1"):
        listnet.prepare([1, 0], weights=[-1.0])
    with pytest.raises(ValueError, match=r"labels: expected shape \(documents,\) with qid"):
        listnet.prepare([[[1, 0]]])
    with pytest.raises(TypeError, match="scores: expected numbers, got booleans"):
        listnet.derivatives([True, False], [1, 0])


# ---- Plackett-Luce and Davidson-Luce ------------------------------------------------------------


def test_tied_orders_add_up_all_orders():
    rng = np.random.default_rng(0)
    orders = np.array(list(naive.itertools.permutations(range(6))))
    for k in (None, 1, 3):
        scores, labels = 2.0 * rng.normal(size=6), np.array([0, 2, 1, 2, 1, 0])
        falls = labels[orders]
        depth = {None: 4, 1: 2, 3: 4}[k]  # places of the labels that are gone through
        best = -np.sort(-labels)[:depth]
        agree = (falls[:, :depth] == best).all(axis=1)
        chances = [naive.plackett_luce(scores, list(order)) for order in orders]
        chance = np.exp(np.array(chances))[agree].sum()
        value, _ = objectives.LuceLikelihood(k=k)(scores, labels)
        assert value == pytest.approx(-np.log(chance), rel=1e-12)


def test_ties_as_events_are_those_of_the_distribution():
    from permdist import DavidsonLuce

    scores, labels = np.array([0.3, -0.2, 1.0, 0.4, -0.5]), np.array([0, 1, 2, 1, 0])
    deltas = (0.8, 0.3)
    value, _ = objectives.LuceLikelihood(ties="davidson", deltas=deltas, largest=3)(scores, labels)
    model = DavidsonLuce(scores, np.log(deltas))
    # The lowest label is no stage: all that its documents may do adds up.
    endings = [[[0, 4]], [[0], [4]], [[4], [0]]]
    chance = np.exp(model.log_prob([[[2], [1, 3], *end] for end in endings])).sum()
    assert value == pytest.approx(-np.log(chance), rel=1e-12)
    with pytest.raises(ValueError, match="largest: expected at least 2, the number of documents"):
        objectives.LuceLikelihood(ties="davidson", largest=1)(scores, labels)
    with pytest.raises(ValueError, match="deltas: expected positive numbers"):
        objectives.LuceLikelihood(deltas="1:x")


def test_many_ties_keep_their_digits():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=80), np.repeat([2, 1, 0], (30, 30, 20))
    prepared = objectives.LuceLikelihood().prepare(labels)
    found = prepared(scores)
    slopes = quotient(lambda s, _: prepared(s).values[0], scores, 2e-2)
    np.testing.assert_allclose(found.gradient, slopes, atol=1e-8)
    assert abs(found.gradient.sum()) < 1e-10


# ---- LambdaLoss ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ranknet", "lambdarank", "ndcg-loss1", "ndcg-loss2"])
def test_weights_of_pairs_are_those_of_the_papers(scheme):
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=7), np.array([0, 2, 1, 2, 1, 0, 3])
    ranks = 1 + np.argsort(np.argsort(-scores))
    gains = 2.0**labels - 1.0
    gains /= np.sort(gains)[::-1] @ (1.0 / np.log2(2.0 + np.arange(7)))
    total = 0.0
    for i in range(7):
        for j in range(7):
            if labels[i] > labels[j]:
                near, far = 1.0 / np.log2(1.0 + ranks[i]), 1.0 / np.log2(1.0 + ranks[j])
                gap = abs(ranks[i] - ranks[j])
                step = 1.0 / np.log2(1.0 + gap) - 1.0 / np.log2(2.0 + gap)
                weight = {
                    "ranknet": 1.0,
                    "lambdarank": (gains[i] - gains[j]) * abs(near - far),
                    "ndcg-loss1": gains[i] * near,
                    "ndcg-loss2": (gains[i] - gains[j]) * step,
                }[scheme]
                total += weight * np.log1p(np.exp(-1.5 * (scores[i] - scores[j])))
    value, _ = objectives.LambdaLoss(scheme=scheme, sigma=1.5)(scores, labels)
    assert value == pytest.approx(total, rel=1e-12)
    if scheme == "lambdarank":  # any measure gives the same as the fast way of NDCG
        sum_of_one = objectives.LambdaLoss("1.0*ndcg", sigma=1.5)(scores, labels)[0]
        assert sum_of_one == pytest.approx(total, rel=1e-12)


def test_sampled_weights_are_means_over_noisy_rankings():
    scores, labels = np.array([0.4, 0.0]), np.array([0, 1])
    # Exchanging two documents changes NDCG by the same in either ranking.
    exact = objectives.LambdaLoss()(scores, labels)[0]
    assert objectives.LambdaLoss(draws=7)(scores, labels)[0] == pytest.approx(exact)
    # The weight of the first scheme depends on the place of the better one, first or second.
    drawn = objectives.LambdaLoss(scheme="ndcg-loss1", draws=4000, random_state=3)
    first = 1.0 / (1.0 + np.exp(0.4))
    weight = first + (1.0 - first) / np.log2(3.0)
    loss = np.log1p(np.exp(0.4))
    error = 4.5 * (1.0 - 1.0 / np.log2(3.0)) * np.sqrt(first * (1.0 - first) / 4000)
    assert abs(drawn(scores, labels)[0] / loss - weight) < error
    with pytest.raises(ValueError, match="measure: expected ndcg for scheme='ndcg-loss1'"):
        objectives.LambdaLoss("ap", scheme="ndcg-loss1")
    with pytest.raises(ValueError, match="measure: expected ndcg without a cut-off"):
        objectives.LambdaLoss("ndcg@5", scheme="ndcg-loss2")
