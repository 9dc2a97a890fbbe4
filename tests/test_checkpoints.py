"""Fits that are killed and go on: equal bits, and a clear word where a file is of another fit."""

import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from permdist import data
from permdist.measures import AP
from permdist.models import MLE, AdaRank, ConvexLoss, SVMMap
from permdist.models.checkpoints import Checkpoint, Recorded, fingerprint
from permdist.models.history import Watch
from permdist.models.progress import iterations_left, told
from permdist.models.solvers import lbfgs
from permdist.models.solvers.total import Evaluation
from permdist.models.totals import SumOverBlocks

FACTS = {"permdist": "1", "learner": "L", "params": {"C": 1.0}, "data": {}, "start": None}


class Bowl(SumOverBlocks):
    """A smooth function of three coefficients that counts how often it is evaluated."""

    width, n_queries, n_documents = 3, 2, 4

    def __init__(self, dies_at=None):
        self.calls, self.dies_at = 0, dies_at

    def over_blocks(self, name, *args):
        return [name]

    def __call__(self, w):
        self.calls += 1
        if self.calls == self.dies_at:
            raise KeyboardInterrupt
        scaled = np.array([1.0, 10.0, 100.0]) * (w - [1.0, 2.0, 3.0])
        return Evaluation(float(np.cosh(scaled / 50).sum()), np.sinh(scaled / 50) / 50, 0.5, 1)


def _solved(path, bowl, name="bowl"):
    checkpoint = Checkpoint(path, FACTS)
    try:
        return lbfgs(Recorded(bowl, checkpoint, name), None, 100.0), checkpoint
    finally:
        checkpoint.close()


def test_a_solver_goes_on_with_the_same_bits(tmp_path):
    plain = Bowl()
    wanted = lbfgs(plain, None, 100.0)
    counted = Bowl()
    assert _solved(tmp_path / "whole", counted)[0].w.tobytes() == wanted.w.tobytes()
    assert counted.calls <= plain.calls  # what is asked for twice is computed once
    for dies_at in range(1, counted.calls + 1, 3):
        path = tmp_path / f"at-{dies_at}"
        with pytest.raises(KeyboardInterrupt):
            _solved(path, Bowl(dies_at))
        bowl = Bowl()
        found, checkpoint = _solved(path, bowl)
        assert found.w.tobytes() == wanted.w.tobytes()
        assert found.value == wanted.value
        assert checkpoint.found == dies_at - 1
        assert bowl.calls + checkpoint.found == counted.calls
        again = Bowl()
        assert _solved(path, again)[0].w.tobytes() == wanted.w.tobytes()
        assert again.calls == 0


def test_evaluations_come_back_as_they_were(tmp_path):
    checkpoint = Checkpoint(tmp_path / "file", FACTS)
    w = np.array([0.1, -0.0, 3.0])
    wanted = Recorded(Bowl(), checkpoint, "bowl")(w)
    checkpoint.close()
    checkpoint, bowl = Checkpoint(tmp_path / "file", FACTS), Bowl()
    recorded = Recorded(bowl, checkpoint, "bowl")
    found = recorded(w)
    assert bowl.calls == 0
    assert (found.value, found.steepest, found.silent) == wanted[:1] + wanted[2:]
    assert found.gradient.tobytes() == wanted.gradient.tobytes()
    assert found.gradient.flags.writeable
    # Another objective, or the same one after it has been adapted, is evaluated for itself.
    Recorded(bowl, checkpoint, "other")(w)
    recorded.over_blocks("redraw", w)
    recorded(w)
    recorded.over_blocks("effective", w)  # which changes nothing
    recorded.over_blocks("asked", w, "sum_changes")
    recorded(w)
    assert bowl.calls == 2
    checkpoint.close()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"learner": "M"}, r"another learner \(L, here M\)"),
        ({"permdist": "2"}, r"another version of permdist \(1, here 2\)"),
        ({"params": {"C": 3.0}}, r"another value of C \(1.0, here 3.0\)"),
        ({"data": {"documents": 7}}, r"another collection \(unknown, here 7 documents\)"),
        ({"start": "x"}, r"another start \(None, here x\)"),
        ({"kind": "x"}, "is no checkpoint of a fit"),
    ],
)
def test_files_of_other_fits_are_refused(tmp_path, facts, message):
    Checkpoint(tmp_path / "file", FACTS).close()
    before = (tmp_path / "file").read_bytes()
    if "kind" in facts:
        (tmp_path / "file").write_bytes(
            before.replace(b"evaluations of a fit", b"other things.....")
        )
        facts, before = {}, None
    with pytest.raises(ValueError, match=message):
        Checkpoint(tmp_path / "file", FACTS | facts)
    assert before is None or (tmp_path / "file").read_bytes() == before


def test_fingerprints_see_labels_queries_and_features():
    queries = data.make_letor(20, rng=0)
    wanted = fingerprint(queries)
    X, y, qid = np.array(queries.X), np.array(queries.y), queries.qid
    assert fingerprint(data.Queries(np.asfortranarray(X), y, qid)) == wanted
    y[3] += 1
    assert fingerprint(data.Queries(X, y, qid))["labels"] != wanted["labels"]
    assert fingerprint(queries.where(np.arange(19)))["queries"] != wanted["queries"]
    assert fingerprint(data.Queries(X.astype(np.float32).astype(float), queries.y, qid)) != wanted


def test_fingerprints_see_every_value():
    queries = data.make_letor(120, rng=0)  # of more blocks than one
    wanted = fingerprint(queries)
    for row in (0, 1, 777, queries.n_documents - 1):
        X = np.array(queries.X)
        X[row, row % X.shape[1]] += 1e-9
        changed = fingerprint(data.Queries(X, queries.y, queries.qid))
        assert {key for key in wanted if changed[key] != wanted[key]} == {"features"}


def test_the_rest_of_a_fit_is_told_only_where_it_can_be():
    rng = np.random.default_rng(0)
    noisy = np.exp(-0.5 * np.arange(30) + 0.5 * rng.normal(size=30))
    assert iterations_left(noisy, noisy[-1] * np.exp(-5.0)) == pytest.approx(10.0, abs=3.0)
    assert iterations_left(noisy[:7], 1e-6) is None
    assert iterations_left(np.exp(rng.normal(size=30)), 1e-6) is None
    assert iterations_left([1.0] * 20 + [0.0], 1e-6) is None
    assert iterations_left(noisy, 1.0) == 0.0
    assert told(61.0) == "1 min"


def test_a_slow_fit_tells_how_long_it_may_take(capsys, monkeypatch):
    clock = iter(np.arange(0.0, 1e4, 2.0))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    watch = Watch("It", measure=AP(), verbose=True)
    watch.expect(1e-9, 100)
    for step in range(12):
        watch.linear(np.zeros(2), objective=1.0, gap=10.0**-0.5 * 10.0 ** (-0.5 * step))
    lines = capsys.readouterr().err.splitlines()
    assert "s per iteration" not in lines[0]
    assert lines[4].endswith("gap 0.00316228, 2 s per iteration")
    assert lines[-1].endswith("2 s per iteration, about 10 s left")
    watch = Watch("It", measure=AP(), verbose=True)
    watch.expect(1e-9, 9)
    for step in range(8):
        watch.linear(np.zeros(2), objective=1.0, lower=1.0 - 10.0 ** (-0.1 * step))
    assert capsys.readouterr().err.splitlines()[-1].endswith("about 2 s left")


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
