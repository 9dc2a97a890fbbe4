"""Declared parameters: constructors, docstrings, old names, and learners from outside."""

import inspect
import json
import re

import numpy as np
import pytest
from marks import UNFINISHED_FITS
from sklearn.base import clone

from permdist import data
from permdist.models import (
    L3,
    MLE,
    SVMNDCG,
    Approx,
    ConvexLoss,
    ExpectedGain,
    FeatureRank,
    ListNet,
    Ranker,
    SoftRank,
    all_learners,
    learned,
    load,
    option,
)
from permdist.models.attributes import Numbers
from permdist.models.rules import Number
from permdist.models.spaces import Restart

pytestmark = UNFINISHED_FITS


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(10, n_features=3, rng=0)


@pytest.mark.parametrize("kind", all_learners(), ids=lambda kind: kind.__name__)
def test_every_parameter_and_attribute_is_documented(kind):
    sections = re.split(r"\n(\w+)\n-{3,}\n", kind.__doc__)
    named = dict(zip(sections[1::2], sections[2::2], strict=True))
    listed = set(re.findall(r"^(\w+)(?=(?:, \w+)* :)", named["Parameters"], re.MULTILINE))
    assert listed == set(inspect.signature(kind).parameters)
    attributes = set(re.findall(r"^(\w+)(?=(?:, \w+)* :)", named["Attributes"], re.MULTILINE))
    assert set(kind.fitted) <= attributes
    assert kind.parameter_names() == sorted(listed)


def test_no_learner_takes_what_it_does_not_use():
    assert not {"kappa", "orders", "sample_size", "skew"} & set(MLE.parameter_names())
    assert "kappa" not in ExpectedGain.parameter_names()
    assert {"kappa"} <= set(L3.parameter_names())


def test_defaults_can_be_replaced_by_plain_values():
    class Strong(SVMNDCG):
        """A structural SVM with a weak penalty."""

        C = 100.0

    assert Strong().C == 1e2
    assert Strong("ap").measure == "ap"
    assert clone(Strong(C=3.0)).C == 3.0
    assert Strong.__doc__.count("C : float, default=100.0") == 1
    with pytest.raises(ValueError, match="C: expected a positive number"):
        Strong.check_parameter("C", -1.0)


def test_a_fit_changes_no_parameter(queries):
    learner = SoftRank("ndcg@3", noise="learned", method="softrank", C=7.0, max_iter=3)
    before = learner.get_params()
    assert learner.fit(queries).get_params() == before
    assert SoftRank(noise="learned", warm_start=True, max_iter=3).fit(queries).fit(queries).C == 1e2


class Shifted(Ranker):
    """A learner with a parameter and an attribute of its own."""

    power: float = option(Number(0.0, 4.0), "Of the shift.", default=1.0)
    shift_: float = learned(Numbers(()), "What is added.")

    def _learn(self, features, batch, watch, start):
        assert start is None
        self.coef_ = features.T @ batch.labels.astype(float)
        self.shift_ = float(batch.labels.mean() ** self.power)


def test_a_learner_of_ones_own(queries, tmp_path):
    learner = Shifted(power=2.0, normalize=True).fit(queries)
    learner.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json", Shifted)
    assert again.shift_ == learner.shift_
    assert repr(again) == repr(learner)
    with pytest.raises(ValueError, match=r"power: expected a number from 0 to 4, got 9\.0"):
        Shifted(power=9.0).fit(queries)
    assert "Of the shift." in Shifted.__doc__
    stored = json.loads((tmp_path / "x.json").read_text())
    stored["state"]["shift_"] = "a"
    (tmp_path / "x.json").write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="shift_: expected numbers"):
        load(tmp_path / "x.json", Shifted)


def test_tables_of_older_learners_still_work(queries):
    with pytest.warns(DeprecationWarning, match=r"the table 'rules' .*models.option"):

        class Older(Ranker):
            rules = {"power": Number(0.0, 4.0)}  # noqa: RUF012

            def __init__(self, power=1.0):
                self.power = power

            def _learn(self, features, batch, watch, start):
                self.coef_ = features.T @ batch.labels.astype(float)

    assert Older().fit(queries).converged_
    with pytest.raises(ValueError, match="power: expected a number"):
        Older(9.0).fit(queries)


def test_old_names_of_parameters_work_and_warn(queries, tmp_path):
    with pytest.warns(DeprecationWarning, match="normalise is deprecated.*use normalize"):
        learner = MLE(normalise=True)
    assert learner.normalize is True
    with pytest.warns(DeprecationWarning, match=r"sample_size .*use space='restart\[sample_size=7"):
        learner = ConvexLoss(space="restart", sample_size=7, orders=3)
    assert learner.space == Restart(sample_size=7)
    with pytest.warns(DeprecationWarning, match="kappa"):
        MLE(kappa=3.0)
    with pytest.warns(DeprecationWarning, match="normalise"):
        MLE().set_params(normalise="rank")
    with pytest.warns(DeprecationWarning, match="optimiser is deprecated"):
        assert Approx(optimiser="stochastic").optimizer == "stochastic"
    with pytest.warns(DeprecationWarning, match="minimises is deprecated"):
        assert MLE.card.minimises == MLE.card.minimizes
    ranks = FeatureRank().fit(queries)
    with pytest.warns(DeprecationWarning, match="centres_ is deprecated"):
        assert ranks.centres_ is ranks.centers_
    ranks.save(tmp_path / "y.json")
    older = (tmp_path / "y.json").read_text().replace("centers_", "centres_")
    (tmp_path / "y.json").write_text(older)
    np.testing.assert_array_equal(load(tmp_path / "y.json").centers_, ranks.centers_)
    with pytest.raises(TypeError, match="MLE: there is no parameter 'nonsense', expected some of"):
        MLE(nonsense=3)
    fitted = ListNet(normalize="rank", max_iter=3).fit(queries)
    fitted.save(tmp_path / "x.json")
    stored = json.loads((tmp_path / "x.json").read_text())
    stored["params"]["normalise"] = stored["params"].pop("normalize")
    (tmp_path / "x.json").write_text(json.dumps(stored))
    np.testing.assert_array_equal(load(tmp_path / "x.json").coef_, fitted.coef_)


def test_features_are_not_copied_and_queries_are_built_once(queries, monkeypatch):
    useful = queries.where([len(np.unique(query.y > 0)) > 1 for query in queries])
    X, built = np.array(useful.X), []
    made = data.Queries.__init__

    def counted(self, *args, **options):
        built.append(1)
        made(self, *args, **options)

    class Probe(Ranker):
        """Keeps the features that it is given."""

        def _learn(self, features, batch, watch, start):
            self.kept, self.coef_ = features, features.T @ batch.labels.astype(float)

    monkeypatch.setattr(data.Queries, "__init__", counted)
    probe = Probe().fit(X, useful.y, useful.qid)
    assert np.shares_memory(probe.kept, X)
    assert len(built) == 1
    assert np.shares_memory(Probe().fit(useful).kept, useful.X)
    assert len(built) == 1
