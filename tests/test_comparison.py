"""Comparisons: choosing, testing, keeping; the same numbers however they are computed."""

import itertools
import json
import re
import subprocess
import sys
import time
import warnings

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from permdist import data, models
from permdist.comparison import (
    Comparison,
    Entry,
    adjust,
    compare,
    randomization_test,
    read_entries,
    tune,
)
from permdist.comparison.entries import tuned_entry
from permdist.comparison.fits import fingerprint
from permdist.comparison.statistics import interval, mean_ranks, paired_tests
from permdist.measures import evaluate, parse
from permdist.report import register_section, unregister_section

QUICK = "MLE[C=0.1|1|10], ListNet[C=1|10,target=label], AdaRank[accept=better,weak=features]"
MEASURES = ("letor4:map", "letor4:ndcg@10")


@pytest.fixture(scope="module")
def folds():
    return data.make_folds(data.make_letor(60, rng=0), 3, rng=0)


@pytest.fixture(scope="module")
def found(folds):
    return compare(folds, QUICK, measures=MEASURES)


# ---- entries -----------------------------------------------------------------------------------


def test_all_learners_take_part_with_settings_they_have():
    entries = read_entries()
    assert {type(entry.learner) for entry in entries} == set(models.all_learners())
    for entry in entries:
        for setting, learner in entry.learners(judge="ap", random_state=7):
            params = learner.get_params()
            assert setting.items() <= params.items()
            assert params.get("random_state", 7) == 7


def test_entries_are_read_from_text_learners_and_mappings():
    mine = models.MLE(C=3.0)
    entries = read_entries({"mine": mine, "tried": (mine, {"C": [1, 2]}), "text": "svmmap[C=1]"})
    assert [entry.name for entry in entries] == ["mine", "tried", "text"]
    assert [len(entry.combinations()) for entry in entries] == [1, 2, 1]
    assert read_entries([mine])[0].name == "MLE(C=3.0)"
    texts = read_entries("L3[measure=ndcg@10[gain=linear],C=1,scale=False,normalize=None,kappa=2]")
    assert texts[0].combinations() == [
        {"C": 1, "kappa": 2, "scale": False, "measure": "ndcg@10[gain=linear]", "normalize": None}
    ]
    assert texts[0].given == ("measure", "C", "scale", "normalize", "kappa")


def test_a_measure_that_only_judges_follows_the_selection():
    (_, learner), *_ = read_entries("MLE")[0].learners(judge="ndcg@5", random_state=0)
    assert learner.measure == "ndcg@5"
    (_, learner), *_ = read_entries("MLE[measure=rr]")[0].learners(judge="ndcg@5", random_state=0)
    assert learner.measure == "rr"
    (_, learner), *_ = read_entries("AdaRank")[0].learners(judge="ndcg@5", random_state=0)
    assert learner.measure == "ap"


def test_values_of_a_setting_are_read_and_counted_once():
    assert read_entries("MLE[C=1|1|2]")[0].combinations() == [{"C": 1}, {"C": 2}]
    tuples = read_entries('MLE[normalize=("raw","rank"),C=1]')[0].combinations()
    assert tuples == [{"C": 1, "normalize": ("raw", "rank")}]


@pytest.mark.parametrize(
    ("learners", "options", "error", "message"),
    [
        ("Convexloss2", {}, ValueError, "did you mean 'ConvexLoss'"),
        ("MLE[c=1]", {}, ValueError, "MLE has no parameter 'c'"),
        ("MLE[C]", {}, ValueError, "cannot read option"),
        ("MLE[C=1", {}, ValueError, "unbalanced brackets in"),
        ("MLE[C=1]x", {}, ValueError, "cannot read"),
        ("MLE,MLE", {}, ValueError, "'MLE' appears twice"),
        ({"a b": models.MLE(), "a  b": models.ListNet()}, {}, ValueError, "'a b' appears twice"),
        (" , ", {}, ValueError, "expected at least one"),
        ([3], {}, TypeError, "objects with predict, got int"),
        ([Entry("x", models.MLE(), {"C": []})], {}, ValueError, "expected values of 'C'"),
        ({"x": (models.MLE(), {"C": 1.0})}, {}, ValueError, "values of 'C' in a list"),
        ("MLE, SVMMap[C=1|-1]", {}, ValueError, "C: expected a positive number"),
        ("MLE[max_iter=3.5]", {}, ValueError, "max_iter: expected a whole number"),
        ("MLE[scale=yes]", {}, ValueError, "scale: expected True or False"),
        ("MLE[max_iter=1180591620717411303424]", {}, ValueError, "max_iter: expected at most"),
        ("ConvexLoss[measure=nonsense]", {}, ValueError, "measure: unknown name"),
        ("MLE", {"measures": []}, ValueError, "measures: expected"),
        ("MLE", {"measures": "ndgc"}, ValueError, "did you mean 'ndcg'"),
        ("MLE", {"select": "mapp"}, ValueError, "did you mean 'map'"),
        ("MLE", {"baseline": "MLF"}, ValueError, "baseline: expected"),
        ("MLE", {"correction": "bonferoni"}, ValueError, "did you mean 'bonferroni'"),
        ("MLE", {"level": 1.0}, ValueError, "level: expected"),
        ("MLE", {"random_state": -1}, ValueError, "random_state: expected"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_fit(folds, learners, options, error, message):
    with pytest.raises(error) as caught:
        compare(folds, learners, progress=lambda *_: pytest.fail("a fit was begun"), **options)
    assert message in str(caught.value)


def test_folds_that_make_no_sense(folds):
    train, vali, test = folds[0]
    empty = data.Queries(test.X, np.zeros(test.n_documents, int), test.qid)
    full = data.Queries(test.X, np.ones(test.n_documents, int), test.qid)
    narrow = data.Queries(test.X[:, :3], test.y, test.qid)
    for parts, message in (
        ([folds[0], (empty, vali, test)], "fold 2: its training part has no relevant document"),
        ([folds[0], (train, empty, test)], "fold 2: its validation part has no relevant document"),
        ([folds[0], (train, vali, empty)], "fold 2: its test part has no relevant document"),
        ([(full, vali, test)], "there is nothing to learn from"),
        ([(train, vali, narrow)], "its parts have"),
        ([], "folds: expected at least one"),
        ([folds[0], (train, vali, test)], "is tested on fold 1 and on fold 2"),
        ([(train, test, test)], "fold 1: query .* is in its validation and its test part"),
        ([(train, train, test)], "fold 1: query .* is in its training and its validation part"),
        ([(train, vali, train)], "fold 1: query .* is in its training and its test part"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(parts, "MLE[C=1]")
    with pytest.raises(TypeError, match="expected \\(train, validation, test\\)"):
        compare([(train, vali)], "MLE[C=1]")
    # The same ids for other queries are fine.
    others = [data.make_letor(12, rng=seed) for seed in range(6)]
    compare([others[:3], others[3:]], "MLE[C=1]", measures="map")


# ---- statistics --------------------------------------------------------------------------------

differences = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9)


@given(differences)
def test_all_signs_are_tried_where_there_are_few(row):
    assert randomization_test(row)[0] == pytest.approx(naive.randomisation_p(row))


def test_sums_that_only_rounding_tells_from_zero_are_zero():
    assert randomization_test([0.1, -0.4, 0.4, -0.1]) == 1.0
    assert randomization_test(np.tile([0.1, 0.2, -0.3], 10)) == 1.0


def test_many_signs_are_drawn_alike_for_all_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(0.3, 1.0, size=(3, 40))
    rows[2] = rows[0]
    p = randomization_test(rows, resamples=20_000)
    assert p[0] == p[2]
    reference = stats.permutation_test(
        (rows[1],), np.mean, permutation_type="samples", n_resamples=20_000, rng=rng
    ).pvalue
    assert p[1] == pytest.approx(reference, abs=5 * np.sqrt(reference / 20_000) + 1e-4)
    assert (randomization_test(rows) == randomization_test(rows)).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_corrections_by_their_definitions(p):
    assert adjust(p, "holm") == pytest.approx(naive.holm(p))
    assert adjust(p, "bh") == pytest.approx(stats.false_discovery_control(p))
    assert adjust(p, "bonferroni") == pytest.approx(np.minimum(1, len(p) * np.array(p)))
    assert adjust(p, "none") == pytest.approx(p)
    for correction in ("holm", "bh"):
        corrected = adjust(p, correction)
        assert (corrected >= np.array(p) - 1e-15).all()
        assert (corrected <= adjust(p, "bonferroni") + 1e-15).all()


def test_paired_tests_equal_scipys():
    rng = np.random.default_rng(1)
    rows = rng.normal(0.2, 1.0, size=(2, 30))
    p = paired_tests(rows)
    for number, row in enumerate(rows):
        assert p["t"][number] == pytest.approx(stats.ttest_1samp(row, 0).pvalue)
        assert p["wilcoxon"][number] == pytest.approx(stats.wilcoxon(row).pvalue)


@pytest.mark.parametrize("row", [[0.0, 0.0], [1.0], [1e-15, -1e-15], [0.5, 0.5, 0.5]])
def test_rows_with_little_to_test(row):
    for values in paired_tests([row]).values():
        assert 0.0 <= values[0] <= 1.0


def test_the_interval_of_one_fold_is_students():
    values = np.random.default_rng(0).random(20)
    found = interval(values, np.zeros(20, int))
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.standard_error == pytest.approx(stats.sem(values))


def test_intervals_cover_what_they_should():
    rng = np.random.default_rng(0)
    fold = np.repeat([0, 1, 2], [5, 20, 60])
    truth = np.array([0.2, 0.5, 0.6])
    covered = 0
    for _ in range(2000):
        found = interval(rng.normal(truth[fold], [0.1, 0.3, 0.2][0] + 0.1 * fold), fold)
        covered += found.low <= truth.mean() <= found.high
    assert 0.935 < covered / 2000 < 0.965


def test_a_fold_of_one_query_borrows_its_variance():
    found = interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0, 1, 1, 1, 1]))
    variance = np.var([2, 3, 4, 5], ddof=1)
    assert found.standard_error == pytest.approx(np.sqrt(variance * (1 + 1 / 4) / 4))
    alone = interval(np.array([1.0, 2.0, 4.0]), np.arange(3))
    assert alone.standard_error == pytest.approx(stats.sem([1, 2, 4]))


def test_intervals_of_very_few_queries():
    assert np.isnan(interval(np.array([0.5]), np.array([0])).standard_error)
    assert interval(np.array([0.5, 0.7, 0.6]), np.array([0, 1, 1])).standard_error > 0
    assert interval(np.array([0.5, 0.5]), np.array([0, 0]))[1:] == (0.0, 0.5, 0.5)


def test_mean_ranks_share_ties():
    assert mean_ranks(np.array([[1.0, 0.2], [1.0, 0.3], [0.0, 0.1]])).tolist() == [1.75, 1.25, 3.0]


# ---- the comparison ----------------------------------------------------------------------------


def test_it_chooses_and_measures_as_by_hand(folds, found):
    for name, learner, values in (
        ("MLE[C=0.1|1|10]", models.MLE(measure="letor4:map"), [0.1, 1, 10]),
        ("ListNet[C=1|10,target=label]", models.ListNet(target="label"), [1, 10]),
    ):
        tests = []
        for number, (train, validation, test) in enumerate(folds):
            fits = {C: clone(learner).set_params(C=C).fit(train) for C in values}
            best = max(values, key=lambda C: fits[C].score(validation, measure=MEASURES[0]))
            assert found.chosen[name][number]["C"] == best
            assert (found.learners(name)[number].predict(test) == fits[best].predict(test)).all()
            tests.append(evaluate(fits[best].predict(test), test.y, test.qid, MEASURES))
        for measure in map(parse, MEASURES):
            means = [one.mean(measure) for one in tests]
            mean = found.to_frame(measure).loc[name, "mean"]
            assert mean == pytest.approx(np.mean(means), abs=1e-12)
            row = found.values(measure)[found.names.index(name)]
            by_query = np.concatenate([one[measure.name] for one in tests])
            assert row == pytest.approx(by_query, abs=1e-12)


def test_the_table_says_what_the_values_say(found):
    frame = found.to_frame("letor4:ndcg@10")
    values = dict(zip(found.names, found.values("letor4:ndcg@10"), strict=True))
    best = frame.index[0]
    assert frame["rank"].tolist() == [1, 2, 3]
    assert frame["mark"].tolist() == ["first", "second", "third"]
    assert frame["mean"].is_monotonic_decreasing
    assert np.isnan(frame.loc[best, "p_t"])
    others = [name for name in frame.index if name != best]
    raw = [stats.ttest_rel(values[name], values[best]).pvalue for name in others]
    assert frame.loc[others, "p_t"].tolist() == pytest.approx(adjust(raw).tolist())
    pairs = found.p_values("letor4:ndcg@10")
    raw = [
        stats.ttest_rel(values[a], values[b]).pvalue
        for a, b in itertools.combinations(found.names, 2)
    ]
    corrected = adjust(raw)
    for (a, b), p in zip(itertools.combinations(found.names, 2), corrected, strict=True):
        assert pairs.loc[a, b] == pairs.loc[b, a] == pytest.approx(p)
    assert 0 <= found.friedman() <= 1


def test_a_baseline_can_be_named(folds):
    name = "ListNet[C=1]"
    found = compare(folds, f"MLE[C=1], {name}", measures="map", baseline=name, correction="none")
    frame = found.to_frame()
    assert frame.loc[name, "difference"] == 0.0
    assert np.isnan(frame.loc[name, "p_t"])
    assert "ListNet" in found.explain()


def test_a_narrow_terminal_has_fewer_columns(found):
    whole, narrow = found.to_text(), found.to_text(90)
    assert str(found) == whole
    assert max(map(len, narrow.splitlines())) <= 90
    assert "p (rand.)" in whole.splitlines()[1]
    assert "(omitted, too wide: p (rand.), p (Wilcoxon)" in " ".join(narrow.split())
    for name in found.names:
        assert name in narrow


def test_a_caller_may_follow_the_fits(folds):
    told = []
    compare(folds, "MLE[C=1]", measures="map", progress=lambda *numbers: told.append(numbers))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_equal_fits_of_two_entries_are_made_once(folds):
    assert compare(folds, "MLE[C=1|2], MLE[C=2|3]", measures="map").n_fits == 9


def test_texts_of_a_comparison(found):
    assert "ap: 60 test queries, 3 folds" in str(found)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    best = "MLE[C=0.1|1|10]"
    assert facts["tables"]["ap"][best]["mean"] == found.to_frame().loc[best, "mean"]
    rows = [row for row in found.to_markdown().splitlines() if row.startswith("|")]
    assert len(rows) == 2 + 3 + 2
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    latex = found.to_latex()
    assert latex.count(r"\textbf") == 2
    assert "letor4:ndcg@10 & s.e." in latex


def test_fitted_learners_can_be_taken_out(folds, found):
    name = found.names[0]
    for fold, learner, evaluation in zip(
        folds, found.learners(name), found.evaluations[name], strict=True
    ):
        assert learner.score(fold.test, measure="map") == pytest.approx(evaluation.mean("map"))


def test_skipped_queries_are_left_out_of_the_tests(folds):
    found = compare(folds, "MLE[C=1], ListNet[C=1]", measures="ap[empty=skip]")
    relevant = np.concatenate([fold.test.n_relevant for fold in folds]) > 0
    values = found.values()
    assert (np.isnan(values[0]) == ~relevant).all()
    weights = 1 / np.bincount(found.folds[relevant])[found.folds[relevant]]
    p = stats.ttest_1samp(weights * (values[0] - values[1])[relevant], 0).pvalue
    assert found.to_frame()["p_t"].dropna().tolist() == pytest.approx([p])


def test_a_learner_that_cannot_be_fitted_is_left_out(folds):
    # Infinity is a value of C, but not one that cutting planes can work with.
    some = "RankSVM[loss=hinge,C=inf|1]"
    found = compare(folds, f"MLE[C=1], SVMMap[C=inf], {some}", measures="map")
    assert found.names == ["MLE[C=1]", some]
    assert "expected a finite number" in found.failures["SVMMap[C=inf]"]
    assert any("3 of 6 fits failed" in note for note in found.notes)
    assert "left out: SVMMap[C=inf]" in str(found)
    with pytest.raises(ValueError, match="no learner could be fitted; SVMMap"):
        compare(folds, "SVMMap[C=inf]", measures="map")


def test_the_names_of_features_survive(folds):
    names = [f"f{k}" for k in range(folds[0].train.n_features)]

    def named(queries, names):
        return data.Queries(queries.X, queries.y, queries.qid, feature_names=names)

    known = [tuple(named(part, names) for part in fold) for fold in folds]
    found = compare(known, "MLE[C=1]", measures="map")
    for learner in found.learners("MLE[C=1]"):
        assert learner.feature_names_in_.tolist() == names
    assert tune("MLE[C=1]", *known[0][:2], "map").learner.feature_names_in_.tolist() == names
    train, validation, _ = known[0]
    with pytest.raises(ValueError, match="validation part: column 1 is 'f1', expected 'f0'"):
        tune("MLE[C=1]", train, named(validation, [names[1], names[0], *names[2:]]), "map")
    with pytest.raises(ValueError, match="must both have names, or neither"):
        tune("MLE[C=1]", train, named(validation, None), "map")
    # The same numbers under other names are another fit: the learner keeps the names.
    assert fingerprint(named(train, names)) != fingerprint(named(train, names[::-1]))


def test_settings_at_the_end_of_their_range_are_marked(folds):
    learners = {
        "end": (models.MLE(), {"C": [1e-5, 1e-4, 1e-3]}),
        "flat": (models.MLE(), {"C": [1e-12, 1e-11, 1e-10]}),  # all rank alike
        "all": (models.BoltzRank(max_iter=3), {"mix": [0.0, 0.5, 1.0]}),  # there are no others
        "two": (models.MLE(), {"C": [1e-5, 1e-3]}),
    }
    found = compare(folds, learners, measures="map")
    assert list(found.edges) == ["end"]
    told = f"* A chosen setting is at an end of the values tried: end ({found.edges['end']})."
    assert told in str(found)
    frame = found.to_frame("map")
    assert frame["edge"].to_dict() == dict.fromkeys(learners, "") | found.edges
    marked = [row[0] for row in found.rows("map") if row[1].endswith("*")]
    assert marked == ["end"]
    train, vali, _ = folds[1]
    notes = tune(learners["end"], train, vali, "map").notes
    assert any("C = 1e-05 is at an end of the values tried" in note for note in notes)


def test_tests_are_of_the_mean_over_folds():
    """Better on a small fold and worse on a large one may be better on the whole."""
    rng = np.random.default_rng(0)
    folds = np.repeat([0, 1], [10, 300])
    differences = np.where(folds == 0, -0.3, 0.05) + rng.normal(0, 0.05, 310)
    p = paired_tests(differences, folds)
    weighted = differences * np.where(folds == 0, 310 / 20, 310 / 600)
    assert weighted.mean() == pytest.approx(
        np.mean([differences[:10].mean(), differences[10:].mean()])
    )
    assert p["t"][0] == pytest.approx(stats.ttest_1samp(weighted, 0).pvalue)
    assert paired_tests(differences)["t"][0] < 1e-6 < p["t"][0]
    equal = np.repeat([0, 1], 155)
    assert paired_tests(differences, equal)["t"] == pytest.approx(paired_tests(differences)["t"])


def test_differences_in_the_last_digit_are_none():
    for values in paired_tests([np.full(30, 1e-17)]).values():
        assert values[0] == 1.0


def test_a_learner_that_is_given_is_tried_as_it_is(folds):
    given = {"one": models.ListMLE(random_state=1), "two": models.RankSVM(measure="ap")}
    found = compare(folds, given, measures="ndcg@10", random_state=5)
    assert found.learners("one")[0].random_state == 1
    assert found.learners("two")[0].measure == "ap"
    named = compare(folds, "ListMLE[C=1], RankSVM[C=1]", measures="ndcg@10", random_state=5)
    assert named.learners("ListMLE[C=1]")[0].random_state == 5
    assert named.learners("RankSVM[C=1]")[0].measure == "ndcg@10"


class Backwards(models.MLE):
    """A learner of a user's own: the opposite of what was learned."""

    def _scores(self, features, ptr):
        return -super()._scores(features, ptr)


class Broken(models.MLE):
    def _learn(self, *args):
        raise KeyError("column")


def test_learners_of_a_users_own_take_part(folds, tmp_path):
    models_ = {"mine": Backwards(), "broken": Broken(), "theirs": models.MLE()}
    found = compare(folds, models_, measures="map", directory=tmp_path)
    assert found.failures == {"broken": "KeyError: 'column'"}
    assert found.names == ["mine", "theirs"]
    assert type(found.learners("mine")[0]) is Backwards
    register_section(
        "mine", lambda report, *_: report.section("A section of mine"), after="results"
    )
    try:
        found.report(tmp_path / "report.html", folds=folds)
        with pytest.raises(ValueError, match="'mine' exists already"):
            register_section("mine", print)
    finally:
        unregister_section("mine")
    page = (tmp_path / "report.html").read_text()
    sections = re.findall('<h2 id="([^"]*)"', page)
    assert sections.index("a-section-of-mine") == sections.index("results-ap") + 1
    more = compare(folds, models_, measures=["map", "rr"], directory=tmp_path)
    mine = more.learners("mine")[0].score(folds[0].test, measure="rr")
    assert more.evaluations["mine"][0].mean("rr") == mine
    assert not set(found.chosen["mine"][0])


def _pick(column):
    class Pick(models.MLE):
        def _scores(self, features, ptr):
            return features[:, column]

    return Pick


def test_classes_of_one_name_are_not_taken_for_each_other(folds, tmp_path):
    both = {"a": _pick(0)(), "b": _pick(3)()}
    found = compare(folds, both, measures="map", directory=tmp_path)
    for number, column in enumerate((0, 3)):
        alone = compare(folds, {"alone": _pick(column)()}, measures="map", directory=tmp_path)
        assert (found.values("map")[number] == alone.values("map")[0]).all()
    assert (found.values("map")[0] != found.values("map")[1]).any()


# As users write them: classes in a script, which other processes get as they are.
OWN = """
import os, signal, sys
from joblib import parallel_config
from permdist import comparison, data, models
from permdist.comparison import compare, tune

class Nested(models.MLE):
    def fit(self, X, *args, **more):
        train, vali, _ = data.make_folds(X, 3, rng=0)[0]
        self.C = float(tune("MLE[C=1|10]", train, vali, "map", n_jobs=2).setting["C"])
        return super().fit(X, *args, **more)

class Rude(models.MLE):
    def _learn(self, *args):
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    folds = data.make_folds(data.make_letor(45, n_features=6, rng=0), 3, rng=0)
    def means(**options):
        return compare(folds, measures="map", **options).to_frame()["mean"].tolist()
    {run}
"""


def _script(folder, run):
    (folder / "own.py").write_text(OWN.format(run=run))
    command = [sys.executable, "own.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


PIPELINE = """
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from permdist import data
from permdist.comparison import compare

class Weighed(TransformerMixin, BaseEstimator):
    def __init__(self, weights=None):
        self.weights = weights
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return X * self.weights[: X.shape[1]] * {factor}

if __name__ == "__main__":
    folds = data.make_folds(data.make_letor(30, n_features=4, rng=0), 3, rng=0)
    weights = np.ones(5000)
    weights[{place}:] = 0.0
    model = make_pipeline(Weighed(weights), Ridge())
    found = compare(folds, {{"line": model}}, measures="map", directory="kept")
    print(found.to_frame()["mean"].tolist())
"""


def test_an_edited_class_or_array_inside_a_model_is_fitted_again(tmp_path):
    counts = []
    for factor, place in (("1.0", 4000), ("1.0", 4000), ("np.arange(4)", 4000), ("1.0", 4001)):
        (tmp_path / "own.py").write_text(PIPELINE.format(factor=factor, place=place))
        command = [sys.executable, "own.py"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        counts.append(len(list((tmp_path / "kept" / "cells").iterdir())))
    assert counts == [3, 3, 6, 9]


def test_a_learner_may_tune_others_in_its_fit(tmp_path):
    run = """
    nested = {"nested": Nested()}
    with parallel_config("threading", n_jobs=2):
        threads = means(learners=nested)
    print(means(learners=nested) == means(learners=nested, n_jobs=2) == threads)
    """
    result = _script(tmp_path, run)
    assert (result.stdout, result.returncode) == ("True\n", 0), result.stderr


def test_a_lost_worker_is_told_in_words(tmp_path):
    run = 'means(learners={"a": models.MLE(), "rude": Rude()}, directory="kept", n_jobs=2)'
    result = _script(tmp_path, run)
    assert result.returncode == 1
    assert "a worker was lost (TerminatedWorkerError" in result.stderr
    for path in (tmp_path / "kept" / "cells").iterdir():
        assert json.loads(path.read_bytes())["entry"] == "a"


class Warns(models.MLE):
    def _learn(self, *args):
        time.sleep(0.01)
        if self.C == 2.0:
            warnings.warn("flat", ConvergenceWarning, stacklevel=1)
        super()._learn(*args)


def test_threads_leave_warnings_with_their_learner(folds):
    entries = {f"s{C}": Warns(C=float(C)) for C in range(1, 7)}
    before = list(warnings.filters)
    with parallel_config("threading", n_jobs=4):
        found = compare(folds, entries, measures="map")
    assert [note for note in found.notes if "flat" in note] == [
        "s2: 3 of 3 fits did not converge, 3 of them chosen: flat"
    ]
    assert warnings.filters == before


def test_tuning_chooses_as_a_comparison_does(folds):
    train, vali, test = folds[0]
    found = compare([folds[0]], "MLE[C=1e-6|1|100]", measures="map")
    learner, setting, notes = tune("MLE[C=1e-6|1|100]", train, vali, "map")
    assert setting == found.chosen["MLE[C=1e-6|1|100]"][0]
    assert (learner.predict(test) == found.learners("MLE[C=1e-6|1|100]")[0].predict(test)).all()
    assert [note for note in notes if "at an end" not in note] == found.notes
    with pytest.raises(ValueError, match="is in its training and its validation part"):
        tune("MLE", train, train, "map")
    nothing = data.Queries(vali.X, np.zeros_like(vali.y), vali.qid)
    with pytest.raises(ValueError, match="its validation part has no relevant document"):
        tune("MLE", train, nothing, "map")
    with pytest.raises(TypeError, match="expected training Queries, got ndarray"):
        tune("MLE", train.X, vali, "map")
    with pytest.raises(ValueError, match="learner: expected one, got 2"):
        tune("MLE, L3", train, vali, "map")


def test_tuning_an_instance_tunes_what_it_has_not_set(folds):
    train, vali, _ = folds[0]
    learner = models.SVMMap(C=0.1, max_iter=500, n_jobs=1)
    found = tune(learner, train, vali, "map")
    assert (found.setting, found.learner.C, found.learner.max_iter) == ({}, 0.1, 500)
    assert found.notes[0] == "SVMMap: nothing tuned, kept as given: C=0.1, max_iter=500"
    learner = models.ListNet(target="label").fit(train)  # whether it was fitted plays no part
    found = tune(learner, train, vali, "map")
    assert list(found.setting) == ["C"]
    assert found.learner.target == "label"
    tried = len(models.ListNet.settings["C"])
    assert found.notes[0] == f"ListNet: C ({tried} values) tuned, kept as given: target=label"
    named = tune("ListNet[target=label]", train, vali, "map")
    assert named.setting == {**found.setting, "target": "label"}
    entry, _ = tuned_entry(models.ListNet(), parse("map"))
    assert entry.combinations() == read_entries("ListNet", parse("map"))[0].combinations()
    notes = tune((models.ListNet(), {"C": [1.0]}), train, vali, "map").notes
    assert notes[0] == "ListNet(): there are no values to choose from, nothing was tuned"


def test_equal_means_share_the_first_place(folds):
    found = compare(folds, {"a": models.MLE(), "b": models.MLE(), "c": Backwards()}, measures="map")
    assert found.to_frame()["rank"].tolist() == [1, 1, 3]
    assert found.explain().startswith("a and b share the highest mean")
    three = {"a": models.MLE(), "c": Backwards(), "d": Backwards()}
    against = compare(folds, three, measures="map", baseline="c")
    assert "1 is significantly better and none is worse" in against.explain()
    assert against.tested_against() == "c"


def test_names_with_signs_of_other_languages(folds, tmp_path):
    odd = {"a|b*": models.MLE(), "$x_{$ <b>": models.MLE(C=2), "[c]^\\\n d": models.MLE(C=3)}
    found = compare(folds, odd, measures="map", progress=True)
    assert found.names[2] == "[c]^\\ d"
    found.report(tmp_path / "report.html")
    assert "<b>" not in (tmp_path / "report.html").read_text()
    assert r"{a\textbar{}b*} &" in found.to_latex()
    assert r"{[c]\textasciicircum{}\textbackslash{} d} &" in found.to_latex()
    rows = [row for row in found.to_markdown().splitlines() if row.startswith("|")]
    rows = [row.replace(r"\|", "") for row in rows]
    assert len({row.count("|") for row in rows}) == 1
    assert len(rows) == 2 + 3 + 2


# ---- kept on disk, computed anywhere -----------------------------------------------------------


def _tables(found: Comparison):
    return [found.to_frame(measure).drop(columns="seconds").to_csv() for measure in found.measures]


def test_nothing_is_computed_twice(folds, tmp_path, monkeypatch):
    first = compare(folds, QUICK, measures=MEASURES, directory=tmp_path)
    files = {path: path.read_bytes() for path in (tmp_path / "cells").iterdir()}
    assert len(files) == first.n_fits == 3 * (3 + 2 + 1)
    fits = []
    monkeypatch.setattr(models.Ranker, "fit", lambda *args, **more: fits.append(args))
    again = compare(folds, QUICK, measures=MEASURES, directory=tmp_path)
    assert _tables(again) == _tables(first)
    assert {path: path.read_bytes() for path in (tmp_path / "cells").iterdir()} == files
    # Other measures are taken from the fits that are there, another seed or fold is not.
    more = compare(folds, QUICK, measures=["map", "rr"], select="map", directory=tmp_path)
    assert not fits
    by_hand = more.learners(more.names[0])[0].score(folds[0].test, measure="rr")
    assert more.evaluations[more.names[0]][0].mean("rr") == by_hand


def test_a_damaged_cell_is_computed_again(folds, tmp_path):
    first = compare(folds, "MLE[C=1]", measures="map", directory=tmp_path)
    cells = sorted((tmp_path / "cells").iterdir())
    whole = [path.read_bytes() for path in cells]
    cells[0].write_bytes(whole[0][:100])
    cells[1].write_bytes(b"")
    again = compare(folds, "MLE[C=1]", measures="map", directory=tmp_path)
    assert _tables(again) == _tables(first)
    assert all(json.loads(path.read_bytes())["format"] == 3 for path in cells)
    for damage in (
        lambda stored: stored["test"]["ap"].pop(),
        lambda stored: stored["learner"]["state"]["coef_"].pop(),
        lambda stored: stored.update(format=1),
    ):
        stored = json.loads(cells[0].read_bytes())
        damage(stored)
        cells[0].write_text(json.dumps(stored))
        again = compare(folds, "MLE[C=1]", measures=["map", "rr"], directory=tmp_path)
        assert (
            again.to_frame("map")
            .drop(columns="seconds")
            .equals(first.to_frame("map").drop(columns="seconds"))
        )


def test_data_and_settings_have_their_own_cells(folds, tmp_path):
    compare(folds, "MLE[C=1]", measures="map", directory=tmp_path)
    compare(folds, "MLE[C=2]", measures="map", directory=tmp_path)
    compare(folds, "MLE[C=1|2]", measures="map", directory=tmp_path)
    moved = [
        (train, vali, data.Queries(test.X + 1.0, test.y, test.qid)) for train, vali, test in folds
    ]
    compare(moved, "MLE[C=1]", measures="map", directory=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 9


def test_processes_and_threads_give_the_same_bits(folds, found):
    with parallel_config("threading", n_jobs=2):
        threads = compare(folds, QUICK, measures=MEASURES)
    processes = compare(folds, QUICK, measures=MEASURES, n_jobs=2)
    assert _tables(threads) == _tables(found) == _tables(processes)
