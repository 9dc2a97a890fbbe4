"""Weighted sums of measures."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import permdist

from permdist import GaussianScores, GoodBad, PlackettLuce, data
from permdist.comparison import compare
from permdist.measures import (
    AP,
    AUC,
    NDCG,
    Composite,
    evaluate,
    letor4,
    parse,
)
from permdist.models import L2, MLE, ConvexLoss, ExpectedGain, SVMMap, load

BOTH = "0.5 * ap + 0.5 * ndcg@3"
LABELS = {2: [0, 1, 0, 1, 1, 0], 3: [0, 2, 0, 1, 1, 0]}
SCORES = np.array([0.3, 0.1, -0.4, 0.8, 0.0, 0.5])
NAMES = ["ap", "auc", "ndcg@3", "ndcg[gain=linear]", "p@2", "rr", "err", "tau"]


def by_parts(measure, orders, labels):
    return sum(
        w * part(orders, labels) for w, part in zip(measure.weights, measure.parts, strict=True)
    )


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("one", NAMES)
def test_values_steps_and_positions(one, levels):
    measure = parse(f"0.25 * {one} + 2 * ap@4")
    labels = np.array(LABELS[levels])
    orders = np.array(list(permutations(range(6))))[::7]
    np.testing.assert_allclose(measure(orders, labels), by_parts(measure, orders, labels))
    values, totals = np.unique(labels, return_counts=True)
    for order in orders[:5]:
        above, total = np.zeros(levels, dtype=int), measure.offset(values, totals)
        for item in order:
            level = int(np.searchsorted(values, labels[item]))
            total += measure.step(values, totals, level, above)
            above[level] += 1
        assert total == pytest.approx(measure(order, labels))
    assert measure.range[0] <= measure(orders, labels).min()
    assert measure(orders, labels).max() <= measure.range[1]


def test_sums_over_positions():
    labels = np.array(LABELS[3])
    same = parse("0.5 * ndcg@1 + 0.5 * ndcg@3").positional(labels)
    order = np.argsort(-SCORES)
    value = same.offset + same.gains[order] @ same.weights
    assert value == pytest.approx(parse("0.5 * ndcg@1 + 0.5 * ndcg@3")(order, labels))
    assert parse("ndcg@3 + p@2").positional(labels) is None  # other gains
    assert parse("ndcg@3 + p@2").positional(labels > 0) is not None
    assert parse("ndcg@3 + ap").positional(labels) is None


@given(
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.sampled_from(NAMES)), min_size=1, max_size=4),
    st.sampled_from(["index", "average"]),
)
def test_names_are_read_back(terms, ties):
    measure = sum(weight * replace(parse(name), ties=ties) for weight, name in terms)
    again = parse(measure.name)
    assert again == measure
    assert hash(again) == hash(measure)
    assert pickle.loads(pickle.dumps(measure)) == measure


def test_arithmetic():
    assert 0.5 * AP() + 0.5 * NDCG(10) == (AP() + NDCG(10)) / 2 == parse("ap/2 + ndcg@10 * .5")
    assert 0.5 * AP() + 0.5 * AP() == AP() == 1 * AP()
    assert (2 * AP()).name == "2 * ap"
    assert (np.float64(0.1) * AP() + NDCG(10)).name == "0.1 * ap + ndcg@10"
    nested = 0.5 * (AP() + AUC()) + 0.5 * AP()
    assert nested.weights == (1.0, 0.5)
    assert nested.parts == (AP(), AUC())
    assert sum([AP(), AUC()]) == AP() + AUC()
    assert parse("1e+1 * ap + 1e-1 * rr").weights == (10.0, 0.1)
    assert letor4("0.5 * ap + 0.5 * ndcg@10").parts[1] == letor4("ndcg@10")
    assert parse("ap + ndcg@5[gain=linear]").parts[1].gain == "linear"
    both = parse(BOTH)
    assert not both.binary
    assert both.additive
    assert parse("ap + rr").binary
    assert both.cut_off == AP().cut_off
    for wrong in (lambda: AP() + 1, lambda: AP() * "x", lambda: AP() / 0, lambda: True * AP()):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="weight: expected a positive finite number, got -1"):
        -1 * AP()
    with pytest.raises(ValueError, match="ties: expected the same in all measures of a sum"):
        AP() + AUC(ties="average")
    with pytest.raises(ValueError, match="weights: expected as many as parts, got 1 for 2"):
        Composite((AP(), AUC()), (1.0,))
    with pytest.raises(TypeError, match="parts: expected measures, got str"):
        Composite(("ap",), (1.0,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ap +", r"cannot read '' of 'ap \+'; expected a sum such as '0.5 \* ap"),
        ("0.5 * ap * 2", "cannot read '0.5 . ap . 2'"),
        ("0.5 ap + rr", "cannot read '0.5 ap'"),
        ("(ap + rr) / 2", r"cannot read '\(ap'"),
        ("ap / 0", "expected a positive finite number, got inf in"),
        ("ap + nothing@3", "expected one of"),
        ("gmap + ap", "'gmap' has no mean over queries that adds up"),
        ("bpref + ap", "expected measures of labelled rankings, got 'bpref'"),
    ],
)
def test_malformed_texts(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_undefined_queries_and_ties():
    empty = parse("ap[empty=skip] + auc[empty=skip]")
    found = evaluate([1.0, 2.0, 3.0, 1.0], [1, 0, 0, 0], [1, 1, 2, 2], [empty])
    assert np.isnan(found.table[1, 0])
    assert found.mean(empty) == found.table[0, 0] == 0.5
    tied = evaluate([1.0, 1.0], [0, 1], measures="0.5 * ap + 0.5 * ndcg", ties="average")
    assert tied.table[0, 0] == pytest.approx(0.375 + 0.25 * (1 + 1 / np.log2(3)))


# ---- exact sums ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [PlackettLuce, GaussianScores, GoodBad])
@pytest.mark.parametrize("levels", [2, 3])
def test_expectations_add_up(make, levels):
    labels = LABELS[levels]
    dist = make(SCORES, labels) if make is GoodBad else make(SCORES)
    for name in (BOTH, "0.3 * auc + rr", "ndcg@2 + p@3"):
        measure = parse(name)
        parts = [float(dist.expect(part, labels, method="exact")) for part in measure.parts]
        value = float(dist.expect(measure, labels, method="exact"))
        assert value == pytest.approx(np.dot(measure.weights, parts), abs=1e-12)
    if make is not GoodBad:
        found = dist.expect_gradient("0.3 * auc + ndcg@2", labels)
        parts = [dist.expect_gradient(name, labels) for name in ("auc", "ndcg@2")]
        np.testing.assert_allclose(found, 0.3 * parts[0] + parts[1], atol=1e-12)


@pytest.mark.parametrize("space", ["rows", "interleavings"])
@pytest.mark.parametrize("name", [BOTH, "ap + auc", "rr + 0.5 * p@2"])
def test_expected_gains_add_up(space, name):
    from permdist.objectives import ExpectedLoss

    labels, measure = LABELS[2], parse(name)

    def gain(one):
        value, gradient = ExpectedLoss(one, space=space)(SCORES, labels)
        return np.append(1.0 - value, -gradient)

    total = sum(w * gain(part) for w, part in zip(measure.weights, measure.parts, strict=True))
    np.testing.assert_allclose(gain(measure), total, atol=1e-12)


def test_the_tilt_over_rows_is_joint():
    """ConvexLoss of one measure is the same whether it is written as a sum or not."""
    from permdist.objectives import ConvexLoss as Objective

    for one, split in (("ap", "0.4 * ap + 0.6 * ap@6"), ("ndcg@3", "0.5 * ndcg@3 + ndcg@3 / 2")):
        values = [
            Objective(name, space="rows", kappa=5.0)(SCORES, LABELS[2]) for name in (one, split)
        ]
        assert values[0][0] == pytest.approx(values[1][0], abs=1e-12)
        np.testing.assert_allclose(values[0][1], values[1][1], atol=1e-12)


# ---- learners and comparisons -------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        ConvexLoss(BOTH, reweight=1),
        ConvexLoss(BOTH, graded=True, max_iter=5),
        L2(parse(BOTH), max_iter=5),
        ExpectedGain(BOTH, max_iter=5),
        SVMMap(BOTH),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners(learner, tmp_path):
    queries = data.make_letor(15, n_features=4, rng=0)
    learner.fit(queries)
    parts = [learner.score(queries, measure=part) for part in parse(BOTH).parts]
    assert learner.score(queries) == pytest.approx(np.mean(parts))
    learner.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    assert parse(again.measure) == parse(BOTH)


def test_comparisons_choose_by_a_sum():
    folds = data.make_folds(data.make_letor(30, n_features=4, rng=0), 3, rng=0)
    entries = {"mle": (MLE(), {"C": [1e-4, 1e-2]})}
    found = compare(folds, entries, measures=[BOTH, "ap", NDCG(3)], select=BOTH)
    assert BOTH in str(found)
    value = np.mean([e.mean(BOTH) for e in found.evaluations["mle"]])
    parts = [np.mean([e.mean(name) for e in found.evaluations["mle"]]) for name in ("ap", "ndcg@3")]
    assert value == pytest.approx(np.mean(parts))
    texts = compare(folds, f"L2[measure={BOTH},C=0.1,max_iter=3]", measures="ap")
    assert "L2" in str(texts)


def test_the_command_line(tmp_path):
    from permdist.cli._shared import read_measures

    (found,) = read_measures(["0.5 * ap + 0.5 * ndcg@10"], "letor4", ())
    assert found == letor4("0.5 * ap + 0.5 * ndcg@10")
    assert found.parts[1].discount == "jk"
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.0 me\n")
    text = permdist("evaluate", "run", "qrels", "-m", "0.5 * ap + 0.5 * rr", cwd=tmp_path)
    assert text.splitlines()[1].split()[:6] == ["0.5", "*", "ap", "+", "0.5", "*"]
    assert "0.7500" in text
