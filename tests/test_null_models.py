"""Null models, references and averaged ties in comparisons."""

import json

import naive_comparison
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist import data, models, plots
from permdist.comparison import compare, tune
from permdist.comparison.wording import REFERENCES, title
from permdist.measures import evaluate, parse

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def folds():
    """Return folds in which the order of the file is informative."""
    queries = data.make_letor(60, n_documents=(4, 7), empty=0.0, rng=0)
    order = np.lexsort((-queries.y, queries.qid))
    leaking = data.Queries(queries.X[order], queries.y[order], queries.qid[order])
    return data.make_folds(leaking, 3, rng=0)


class Lazy(models.ListNet):
    """Learns nothing where C is at most 1, and does not converge where C is 30."""

    def fit(self, X, y=None, qid=None, **options):
        super().fit(X, y, qid, **options)
        self.null_ = self.C <= 1.0
        if self.null_:
            self.coef_ = np.zeros_like(self.coef_)
        return self

    def _learn_by_blocks(self, *args):
        if self.C == 30.0:
            import warnings

            warnings.warn("too few iterations", ConvergenceWarning, stacklevel=1)
        super()._learn_by_blocks(*args)


def lazy(*values):
    return {"lazy": (Lazy(), {"C": list(values)})}


def test_a_null_model_is_not_chosen_though_the_file_would_let_it_win(folds):
    found = compare(folds, lazy(0.5, 10.0, 1.0, 20.0), measures="map")
    for number, validation in enumerate(found.validation["lazy"]):
        values = list(validation.values())
        assert values[0] == pytest.approx(1.0)  # by the order of the file
        expected = naive_comparison.choose(values, [True, False, True, False])
        assert found.chosen["lazy"][number]["C"] == [0.5, 10.0, 1.0, 20.0][expected]
    assert found.n_null("lazy") == 0
    [note] = [note for note in found.notes if "null" in note]
    assert note.startswith("lazy: 6 of 12 fits learned nothing")
    assert note.endswith("none of them was chosen")
    tuned = tune(lazy(0.5, 10.0), *folds[0][:2], "map")
    assert tuned.setting == {"C": 10.0}
    assert any("1 of 2 fits learned nothing" in note for note in tuned.notes)


def test_a_null_row_is_named_and_is_never_the_best(folds, tmp_path):
    found = compare(folds, {**lazy(0.5), "real": models.ListNet()}, measures="map")
    frame = found.to_frame()
    assert frame.loc["lazy", "mean"] == 1.0 > frame.loc["real", "mean"]
    assert frame.index.tolist() == ["real", "lazy"]
    assert frame["mark"].tolist() == ["first", "null"]
    assert frame["null"].tolist() == [0, 3]
    assert found.tested_against() == "real"
    assert found.explain().startswith("real has the highest mean")
    assert any("every setting is null on 3 of 3 folds" in note for note in found.notes)
    assert "lazy (null)" in found.to_markdown()
    assert "{lazy (null)}" in found.to_latex()
    assert str(found).splitlines()[3].endswith("null")
    found.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert 'mark null">lazy' in text
    assert 'mark reference">random order' in text


def test_only_null_models_are_compared_as_they_are(folds):
    found = compare(folds, lazy(0.5, 1.0), measures="map", ties="average")
    assert found.tested_against() == "lazy"
    assert found.chosen["lazy"] == [{"C": 0.5}] * 3  # the first of those that are equal
    assert any("not above the" in note for note in found.notes)
    chance = found.to_frame(references=True).loc["random order", "mean"]
    assert found.to_frame()["mean"].item() == pytest.approx(chance, abs=1e-12)


def test_null_models_survive_in_files(folds, tmp_path):
    first = compare(folds, lazy(0.5, 10.0), measures="map", directory=tmp_path)
    again = compare(folds, lazy(0.5, 10.0), measures="map", directory=tmp_path)
    assert again.chosen == first.chosen == {"lazy": [{"C": 10.0}] * 3}
    assert again.notes == first.notes


def test_unconverged_fits_are_counted_not_printed(folds):
    found = compare(folds, lazy(10.0, 30.0), measures="map")
    [note] = [note for note in found.notes if "converge" in note]
    chosen = sum(one["C"] == 30.0 for one in found.chosen["lazy"])
    assert note == (
        f"lazy: 3 of 6 fits did not converge, {chosen} of them chosen: too few iterations"
    )


# ---- references ----------------------------------------------------------------------------------


def test_references_are_by_hand_what_they_say(folds):
    names = ["map", "ndcg@3", "11pt"]
    found = compare(folds, {"a": models.ListNet()}, measures=names)
    assert tuple(found.references) == REFERENCES
    for number, fold in enumerate(folds):
        by_file, by_chance = (found.references[name][number] for name in REFERENCES)
        for q, query in enumerate(fold.test):
            for measure in map(parse, names):
                own = float(measure(np.arange(len(query.y)), query.y))
                assert by_file[measure.name][q] == pytest.approx(own, abs=1e-12)
                mean = naive_comparison.expected_at_random(measure, query.y)
                error = 0.1 if measure.name == "11pt" else 1e-12
                assert by_chance[measure.name][q] == pytest.approx(mean, abs=error)


def test_references_have_rows_but_no_rank_and_no_test(folds):
    learners = {"a": models.ListNet(), "b": models.MLE(), "c": models.ListNet(C=1e-3)}
    found = compare(folds, learners, measures=["map", "ndcg@5"])
    for measure in found.measures:
        plain, whole = found.to_frame(measure), found.to_frame(measure, references=True)
        assert whole.index.tolist() == [*plain.index, *REFERENCES]
        assert whole.loc[plain.index].astype(plain.dtypes).equals(plain)
        rows = whole.loc[list(REFERENCES)]
        hidden = ["rank", "mean_rank", "p_t", "p_wilcoxon", "p_randomization", "seconds"]
        assert rows[hidden].isna().all(axis=None)
        assert (rows["mark"] == "reference").all()
        assert rows.loc["order of the file", "mean"] == pytest.approx(1.0)  # better than all
        best = plain["mean"].iloc[0]
        assert rows["difference"].tolist() == pytest.approx((rows["mean"] - best).tolist())
    assert [row[0] for row in found.rows()][-2:] == list(REFERENCES)
    assert found.tested_against() in learners
    assert len(found.p_values()) == 3
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(facts["references"]["ap"]) == set(REFERENCES)
    assert set(facts["tables"]["ap"]) == set(learners)
    labels = [text.get_text() for text in plots.intervals(found).get_yticklabels()]
    assert labels[-2:] == list(REFERENCES)
    with pytest.raises(ValueError, match="'random order' is the name of a reference"):
        compare(folds, {"random order": models.MLE()})


# ---- ties ----------------------------------------------------------------------------------------


def test_averaged_ties_hide_the_order_of_the_file(folds):
    shuffled = []
    rng = np.random.default_rng(0)
    for fold in folds:
        parts = []
        for part in fold:
            order = np.lexsort((rng.random(len(part.y)), part.qid))
            parts.append(data.Queries(part.X[order], part.y[order], part.qid[order]))
        shuffled.append(data.Fold(*parts))
    rounded = {"a": Coarse(), "b": Coarse(C=0.1)}
    for measures in ("map", ["letor4:ndcg@10", "map"]):
        one, other = (
            compare(both, rounded, measures=measures, ties="average") for both in (folds, shuffled)
        )
        assert one.values() == pytest.approx(other.values(), abs=1e-9)
        assert {measure.ties for measure in one.measures} == {one.select.ties} == {"average"}
    scores = one.learners("a")[0].predict(folds[0].test)
    test = folds[0].test
    by_hand = evaluate(scores, test.y, test.qid, "map", ties="average")
    assert (one.evaluations["a"][0]["map"] == by_hand["map"]).all()
    assert one.to_frame("map").equals(one.to_frame("ap[ties=average]"))
    assert title(one.measures[0]) == "letor4:ndcg@10[ties=average]"
    own = compare(folds, rounded, measures="map")
    assert own.to_frame()["mean"].min() > one.to_frame("map")["mean"].max()
    with pytest.raises(ValueError, match="ties: expected"):
        compare(folds, rounded, ties="first")
    with pytest.raises(ValueError, match="11pt has no average over ties"):
        compare(folds, rounded, measures="11pt", ties="average")


class Coarse(models.ListNet):
    """Scores with many ties."""

    def _scores(self, features, ptr):
        return np.round(super()._scores(features, ptr) / 2.0)


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_a_minimum_at_zeros_is_found_by_value(C):
    """Over interleavings weak signals leave w = 0, next to which L-BFGS ends; rows learn them."""
    queries = data.make_letor(100, noise=2.0, rng=0)
    with pytest.warns(ConvergenceWarning, match="the minimum is at w = 0 where the signal is weak"):
        learner = models.ConvexLoss("ap", space="interleavings", C=C).fit(queries)
    assert learner.null_
    assert not learner.coef_.any()
    assert not models.ConvexLoss("ap", C=C).fit(queries).null_
