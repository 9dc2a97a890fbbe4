"""Files of learners: every value is checked by what the learner declares."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from marks import UNFINISHED_FITS
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from permdist import data
from permdist.models import MLE, Ranker, all_learners, load
from permdist.models.files import from_dict, to_dict

pytestmark = UNFINISHED_FITS

KINDS = {kind.__name__: kind for kind in all_learners()}
VARIANTS = {name: {} for name in KINDS} | {
    "RankBoost, raw": {"weak": "feature"},
    "MLE, two views": {"normalize": ("raw", "rank")},
    "MLE, no penalty": {"C": math.inf},
}
FREE = {"null_", "converged_", "restarts_", "weights_", "alphas_", "features_", "noise_"}
WRONG = (None, True, "rm -rf", -1, 2**70, 1.5, [], [1.0], [["x"]], {}, {"a": 1}, "nan", "inf")


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(6, n_features=3, rng=0)


@pytest.fixture(scope="module")
def files(queries):
    """Return every learner, fitted."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, params in VARIANTS.items():
            learner = KINDS[name.partition(",")[0]](**params)
            if "max_iter" in learner.get_params():
                learner.set_params(max_iter=3)
            found[name] = learner.fit(queries, eval_set=queries)
    return found


def write(path, stored):
    path.write_text(json.dumps(stored))
    return path


@pytest.mark.parametrize("name", VARIANTS)
def test_the_round_trip_is_exact(name, files, queries, tmp_path):
    learner = files[name]
    learner.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    assert to_dict(again) == to_dict(learner)
    assert again.get_params() == learner.get_params()
    assert again.predict(queries).tobytes() == learner.predict(queries).tobytes()
    for attribute in (*learner.fitted, "n_features_in_", "views_"):
        one, other = (getattr(each, attribute, None) for each in (learner, again))
        assert type(one) is type(other)
        np.testing.assert_equal(other, one)
    unfitted = type(learner)(**learner.get_params())
    with pytest.raises(NotFittedError, match=f"save: this {type(learner).__name__} is not fitted"):
        unfitted.save(tmp_path / "y.json")
    assert not (tmp_path / "y.json").exists()
    older = load(write(tmp_path / "y.json", to_dict(unfitted)))
    assert not hasattr(older, "history_")


@pytest.mark.parametrize("name", KINDS)
def test_every_value_is_checked(name, files):
    stored, refused = json.loads(json.dumps(to_dict(files[name]))), 0
    for part in ("params", "state"):
        for key, value in stored[part].items():
            for wrong in WRONG:
                if json.dumps(wrong) == json.dumps(value):
                    continue
                edited = copy.deepcopy(stored)
                edited[part][key] = wrong
                try:
                    found = from_dict(edited, "x.json")
                except ValueError as error:
                    text = str(error)  # the file, the key, what was expected, what came
                    assert text.startswith("x.json: ")
                    assert key in text
                    assert "expected" in text or "unknown name" in text or "cannot read" in text
                    refused += 1
                else:  # a parameter may have other values, and so may these
                    assert part == "params" or key in FREE
                    found.check_parameters()
    assert refused > 100
    for key in stored["state"]:
        if key in ("feature_names_in_", "null_"):
            continue
        edited = copy.deepcopy(stored)
        del edited["state"][key]
        with pytest.raises(ValueError, match=r"^x.json: .*expected"):
            from_dict(edited, "x.json")


@pytest.mark.parametrize(
    ("name", "part", "key", "value", "message"),
    [
        ("MLE", "params", "cost", 1, "'cost' is no attribute of MLE"),
        ("MLE", "state", "n_features_in_", 4, r"coef_: expected shape 4, got \(3,\)"),
        ("MLE", "state", "n_iter_", 77, "n_iter_: expected . as in history_, got 77"),
        ("MLE", "state", "coef_", [1.0, 2.0], r"coef_: expected shape 3, got \(2,\)"),
        ("MLE", "state", "feature_names_in_", ["a"], "feature_names_in_: expected 3 names, got 1"),
        ("AdaRank", "state", "features_", [99], "features_: expected column numbers from -3 to 2"),
        ("AdaRank", "state", "alphas_", [1.0] * 99, "alphas_: expected . of them, as features_"),
        (
            "RankBoost",
            "state",
            "stumps_",
            {"feature": [3], "threshold": [0.5], "alpha": [1.0]},
            r"stumps_\['feature'\]: expected column numbers from 0 to 2, got 3",
        ),
        (
            "RankBoost",
            "state",
            "stumps_",
            {"feature": [0], "threshold": [0.5, 1.0], "alpha": [1.0]},
            "stumps_: expected lists of the same length",
        ),
    ],
)
def test_what_is_wrong_is_said(name, part, key, value, message, files, tmp_path):
    stored = json.loads(json.dumps(to_dict(files[name])))
    stored[part][key] = value
    with pytest.raises(ValueError, match=f"x.json: {message}"):
        load(write(tmp_path / "x.json", stored))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"C": 1.0', '"C": Infinity'), "got Infinity"),
        (lambda text: text.replace('"C": 1.0', '"C": 1e999'), "fit into a double, got 1e999"),
        (lambda text: text.replace('"C": 1.0', '"C": ' + "9" * 5000), "x.json: "),
        (lambda text: text.replace('"C": 1.0', '"C": ' + "[" * 99999 + "]" * 99999), "too deeply"),
        (lambda text: text.replace('"C": 1.0', '"C": 1.0, "C": 2.0'), "'C': expected it once"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "in format 1, got 2"),
        (lambda text: text.replace('"format": 1', '"format": 1, "more": 1'), "damaged"),
        (
            lambda text: text.replace('"learner": "MLE"', '"learner": "__doc__"'),
            "no learner is",
        ),
        (lambda text: text.replace('"params": {', '"params": 3, "x": {'), "damaged"),
        (lambda text: text[: len(text) // 2], "not a learner's file, or a damaged one"),
        (lambda text: text + "}", "not a learner's file, or a damaged one"),
    ],
)
def test_files_that_are_not_as_they_should_be(change, message, files, tmp_path):
    text = json.dumps(to_dict(files["MLE"])).replace('"C": 0.001', '"C": 1.0')
    path = tmp_path / "x.json"
    with pytest.raises(FileNotFoundError, match="no such file"):
        load(path)
    path.write_text(text)
    load(path)
    changed = change(text)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(ValueError, match="damaged"):
        load(path)


def test_what_could_not_be_read_again_is_not_written(queries, tmp_path):
    learner = MLE(max_iter=3).fit(queries)
    learner.coef_[1] = np.nan
    with pytest.raises(ValueError, match="coef_: expected finite numbers, got nan"):
        learner.save(tmp_path / "x.json")
    with pytest.raises(ValueError, match="C: expected a positive number"):
        MLE(C=-1.0).save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


class Own(Ranker):
    """A learner from outside, which declares nothing."""

    fitted = (*Ranker.fitted, "extra_")

    def __init__(self, C=1.0, power="any", scale=2.5):
        self.C, self.power, self.scale = C, power, scale

    def _learn(self, features, batch, watch, start):
        self.coef_ = features.T @ batch.labels
        self.extra_ = {"table": [[1.0, 2.0]], "name": "x"}


def test_a_learner_from_outside(queries, tmp_path):
    learner = Own(power=[1, "two"]).fit(queries)
    learner.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json", Own)
    np.testing.assert_array_equal(again.coef_, learner.coef_)
    assert again.extra_ == learner.extra_
    assert again.power == [1, "two"]
    stored = json.loads((tmp_path / "x.json").read_text())
    stored["state"]["extra_"] = {"table": [math.inf]}
    with pytest.raises(ValueError, match=r"extra_\['table'\]: expected finite numbers"):
        from_dict(stored, kind=Own)
    with pytest.raises(TypeError, match="kind: expected a class of learners, got"):
        load(tmp_path / "x.json", int)


def test_measures_that_are_undefined_come_back_as_nan(queries, tmp_path):
    learner = MLE(max_iter=3).fit(queries)
    learner.history_["measure"] = [math.nan] * learner.n_iter_
    learner.save(tmp_path / "x.json")
    assert all(map(math.isnan, load(tmp_path / "x.json").history_["measure"]))


def test_what_is_declared_is_what_is_there(files):
    for name, learner in files.items():
        declared = {field.name for field in dataclasses.fields(learner) if not field.init}
        assert set(learner.fitted) <= declared, name
