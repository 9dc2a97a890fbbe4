"""Fits that are killed and go on: equal bits, and a clear word where a file is of another fit."""

import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from permdist import data
from permdist.models import MLE, AdaRank, ConvexLoss, SVMMap
from permdist.models.checkpoints import fingerprint


def test_fingerprints_see_every_value():
    queries = data.make_letor(120, rng=0)  # of more blocks than one
    wanted = fingerprint(queries)
    for row in (0, 1, 777, queries.n_documents - 1):
        X = np.array(queries.X)
        X[row, row % X.shape[1]] += 1e-9
        changed = fingerprint(data.Queries(X, queries.y, queries.qid))
        assert {key for key in wanted if changed[key] != wanted[key]} == {"features"}


# ---- fits ---------------------------------------------------------------------------------------

QUERIES = data.make_letor(60, n_documents=(5, 25), rng=0)


def _state(learner):
    history = {key: values for key, values in learner.history_.items() if key != "seconds"}
    return learner.coef_.tobytes(), history, learner.converged_, learner.n_iter_


SLOW = """
import sys, time
from permdist import data
from permdist.models import MLE
from permdist.models.totals import BlockTotal

quick = BlockTotal.__call__
def slow(self, w):
    time.sleep(0.02)
    return quick(self, w)
BlockTotal.__call__ = slow
queries = data.make_letor(60, n_documents=(5, 25), rng=0)
MLE(C=10.0).fit(queries, checkpoint=sys.argv[1])
print("done")
"""


def test_a_fit_that_is_killed_goes_on_with_the_same_bits(tmp_path):
    wanted, path = MLE(C=10.0).fit(QUERIES), tmp_path / "file"
    assert wanted.n_iter_ > 20
    fit = subprocess.Popen([sys.executable, "-c", SLOW, str(path)], stdout=subprocess.PIPE)
    record = 16 + 4 + 8 + 8 + 8 + 8 + 16 * QUERIES.n_features
    while fit.poll() is None and not (path.exists() and path.stat().st_size > 10 * record):
        time.sleep(0.002)
    fit.kill()
    assert fit.communicate()[0] == b""  # it had not come to its end
    torn = path.read_bytes()[:-3]  # and it may have been killed while it wrote
    path.write_bytes(torn)
    assert _state(MLE(C=10.0).fit(QUERIES, checkpoint=path)) == _state(wanted)
    grown = path.read_bytes()
    assert len(grown) > len(torn)
    assert _state(MLE(C=10.0).fit(QUERIES, checkpoint=path)) == _state(wanted)
    assert path.read_bytes() == grown


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "learner",
    [
        ConvexLoss(max_iter=20),  # sorts its rows again between rounds
        ConvexLoss(reweight=1, max_iter=30),
        SVMMap(max_iter=20),
        AdaRank(max_iter=20),
    ],
    ids=repr,
)
def test_a_fit_that_ends_early_goes_on(tmp_path, learner):
    wanted = clone(learner).fit(QUERIES)
    assert _state(clone(learner).fit(QUERIES, checkpoint=tmp_path / "whole")) == _state(wanted)
    for steps in (1, 5, 12):
        clone(learner).set_params(max_iter=steps).fit(QUERIES, checkpoint=tmp_path / "file")
        found = clone(learner).fit(QUERIES, checkpoint=tmp_path / "file")
        assert _state(found) == _state(wanted)


def test_a_fit_refuses_the_file_of_another(tmp_path):
    path = tmp_path / "file"
    MLE(C=10.0, n_jobs=1).fit(QUERIES, checkpoint=path)
    MLE(C=10.0, n_jobs=2, tol=1e-7).fit(QUERIES, checkpoint=path)  # they change no evaluation
    with pytest.raises(ValueError, match=r"another value of C \(10.0, here 3.0\)"):
        MLE(C=3.0).fit(QUERIES, checkpoint=path)
    with pytest.raises(ValueError, match=r"another learner \(MLE, here ConvexLoss\)"):
        ConvexLoss().fit(QUERIES, checkpoint=path)
    fewer = QUERIES.where(np.arange(59))
    with pytest.raises(ValueError, match=r"another collection \([\d,]+ documents, here"):
        MLE(C=10.0).fit(fewer, checkpoint=path)
    other = data.Queries(QUERIES.X * 2.0, QUERIES.y, QUERIES.qid)
    with pytest.raises(ValueError, match=r"another collection \(as many .* other features\)"):
        MLE(C=10.0).fit(other, checkpoint=path)
    labels = np.array(QUERIES.y)
    labels[7] += 1
    other = data.Queries(QUERIES.X, labels, QUERIES.qid)
    with pytest.raises(ValueError, match=r"another collection \(as many .* other labels\)"):
        MLE(C=10.0).fit(other, checkpoint=path)
    start = MLE(C=1.0).fit(QUERIES)
    with pytest.raises(ValueError, match="another start"):
        MLE(C=10.0).fit(QUERIES, checkpoint=path, warm_start_from=start)
    own = SimpleNamespace(choose=lambda X, y, qid, weights: None)
    with pytest.raises(ValueError, match="AdaRank has none, its weak rankers learn"):
        AdaRank(weak=own).fit(QUERIES, checkpoint=tmp_path / "new")
    with pytest.raises(ValueError, match="random_state=None cannot be repeated"):
        ConvexLoss(random_state=None).fit(QUERIES, checkpoint=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    text = tmp_path / "text"
    text.write_text("something else")
    with pytest.raises(ValueError, match="something else, or of another version"):
        MLE().fit(QUERIES, checkpoint=text)
    assert text.read_text() == "something else"
