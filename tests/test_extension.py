"""A measure, a space, an objective, a learner and a report section, added from outside.

Each is one file in ``tests/extension``; none needs an edit of the library. The distribution and the
kernel of the same folder are tested in `test_extension_samplers`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import naive
import numpy as np
import pytest
from extension import learner, objective, section, space
from extension.measure import Discounted
from marks import UNFINISHED_FITS

from permdist import GoodBad, PlackettLuce, data
from permdist.comparison import compare
from permdist.measures import evaluate, parse
from permdist.models import LEARNERS, ConvexLoss, LinearRanker, all_learners, load
from permdist.models.spaces import SPACES, parse_space
from permdist.objectives import OBJECTIVES, parse_objective
from permdist.rankings import enumerate_orders
from permdist.report import unregister_section
from permdist.report.comparison import comparison_report

pytestmark = UNFINISHED_FITS


@pytest.fixture(autouse=True, scope="module")
def registered():
    for module in (learner, objective, section, space):
        module.register()
    yield
    LEARNERS.discard("Means")
    OBJECTIVES.discard("squared-error")
    SPACES.discard("exchanges")
    unregister_section("who")


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(45, n_features=4, n_documents=(5, 12), rng=0)


def test_a_measure_with_a_float_option(queries, tmp_path):
    measure = parse("discounted[power=0.25]")
    assert measure == Discounted(power=0.25)
    assert parse(measure.name) == measure
    assert measure([0, 1, 2], labels=[1, 0, 1]) == pytest.approx(0.5 + 0.5 * 3.0**-0.25)
    orders = enumerate_orders(4)
    model, labels = PlackettLuce([0.3, 0.1, -0.4, 0.2]), [1, 0, 0, 1]
    listed = np.exp(model.log_prob(orders)) @ measure(orders, labels)
    assert model.expect(measure, labels) == pytest.approx(listed)
    tilted = GoodBad([0.3, 0.1, -0.4], [1, 0, 0], space="interleavings", tilt=measure)
    assert np.isfinite(tilted.log_partition())
    fitted = ConvexLoss(measure, C=10.0).fit(queries)
    fitted.save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").judge == measure
    assert evaluate(fitted.predict(queries), queries.y, queries.qid, measure).mean(measure) > 0.5


def test_a_space(queries, tmp_path):
    chosen = parse_space("exchanges[weight=0.5]")
    assert chosen.name == "exchanges[weight=0.5]"
    fitted = ConvexLoss("ap", space="exchanges[weight=0.5]", C=10.0).fit(queries)
    fitted.save(tmp_path / "x.json")
    np.testing.assert_array_equal(load(tmp_path / "x.json").coef_, fitted.coef_)
    with pytest.raises(ValueError, match=r"unknown name 'exchange'.*mean 'exchanges'"):
        ConvexLoss("ap", space="exchange").fit(queries)
    features, batch = fitted.training_data(queries)
    sums = chosen.sums(batch, parse("ap"))
    scores = features @ fitted.coef_
    slope = naive.gradient(lambda s: sums.log_sums(s, 2.0)[0].sum(), scores)
    np.testing.assert_allclose(sums.log_sums(scores, 2.0)[1], slope, atol=1e-6)


def test_an_objective(queries, tmp_path):
    value, gradient = parse_objective("squared-error")([1.0, 0.0], [1, 0])
    assert value == 0.0
    assert (gradient == 0.0).all()
    fitted = LinearRanker("squared-error[shift=0.1]", C=np.inf, tol=1e-10).fit(queries)
    features, batch = fitted.training_data(queries)
    weights = np.sqrt(1.0 / batch.sizes[batch.query_of])
    rows, wanted = weights[:, None] * features, weights * (batch.labels + 0.1)
    np.testing.assert_allclose(fitted.coef_, np.linalg.lstsq(rows, wanted)[0], atol=1e-5)
    fitted.save(tmp_path / "x.json")
    np.testing.assert_array_equal(load(tmp_path / "x.json").coef_, fitted.coef_)


def test_a_learner_is_found_by_its_name(queries, tmp_path):
    assert learner.Means in all_learners()
    fitted = LEARNERS["Means"](shrink=0.5).fit(queries)
    fitted.save(tmp_path / "x.json")
    assert isinstance(load(tmp_path / "x.json"), learner.Means)
    assert "How much weights are shrunk." in learner.Means.__doc__


def test_all_of_them_in_a_comparison_and_its_report(queries):
    folds = data.make_folds(queries, 3, rng=0)
    learners = [
        "Means[shrink=0|0.5]",
        "ConvexLoss[space=exchanges,C=1]",
        "LinearRanker[objective=squared-error,C=1|10]",
    ]
    found = compare(folds, learners, measures=["discounted[power=0.25]", "map"])
    assert found.values("map").shape[0] == 3
    text = comparison_report(found).html()
    assert "Who took part" in text
    assert "discounted[power=0.25]" in text


def test_the_command_line_finds_them(queries, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from extension import learner, measure, objective, section, space\n"
        "for module in (learner, objective, section, space):\n"
        "    module.register()\n"
    )
    data.save_letor(queries, tmp_path / "train.txt")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "PERMDIST_PLUGINS": "mine"}

    def run(*arguments):
        command = [sys.executable, "-m", "permdist", *arguments]
        options = {"cwd": tmp_path, "env": environment, "check": False}
        return subprocess.run(command, capture_output=True, text=True, **options)

    done = run("fit", "train.txt", "Means[shrink=0.5]", "-m", "discounted", "-o", "x.json")
    assert done.returncode == 0, done.stderr
    done = run("predict", "x.json", "train.txt", "-o", "scores.txt")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == queries.n_documents
    done = run("fit", "train.txt", "LinearRanker[objective=squared-error]", "-o", "y.json")
    assert done.returncode == 0, done.stderr
