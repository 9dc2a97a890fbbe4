"""Fits that are killed and go on: equal bits, and a clear word where a file is of another fit."""

import numpy as np
import pytest

from permdist import data
from permdist.models.checkpoints import Checkpoint, Recorded, fingerprint
from permdist.models.progress import iterations_left, told
from permdist.models.solvers import lbfgs
from permdist.models.solvers.total import Evaluation, Total

FACTS = {"permdist": "1", "learner": "L", "params": {"C": 1.0}, "data": {}, "start": None}


class Bowl(Total):
    """A smooth function of three coefficients that counts how often it is evaluated."""

    width, n_queries, n_documents = 3, 2, 4

    def __init__(self, dies_at=None):
        self.calls, self.dies_at = 0, dies_at

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
    for dies_at in range(1, plain.calls, 3):
        path = tmp_path / f"at-{dies_at}"
        with pytest.raises(KeyboardInterrupt):
            _solved(path, Bowl(dies_at))
        bowl = Bowl()
        found, checkpoint = _solved(path, bowl)
        assert found.w.tobytes() == wanted.w.tobytes()
        assert found.value == wanted.value
        assert checkpoint.found == dies_at - 1
        # Evaluations at the same coefficients are made once.
        assert bowl.calls + checkpoint.found <= plain.calls
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
    recorded.adapted(w)
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
    assert fingerprint(queries.where(np.arange(19)))["starts"] != wanted["starts"]
    X[0, 0] += 1.0
    assert fingerprint(data.Queries(X, queries.y, qid))["sample"] != wanted["sample"]


def test_the_rest_of_a_fit_is_told_only_where_it_can_be():
    rng = np.random.default_rng(0)
    noisy = np.exp(-0.5 * np.arange(30) + 0.5 * rng.normal(size=30))
    assert iterations_left(noisy, noisy[-1] * np.exp(-5.0)) == pytest.approx(10.0, abs=3.0)
    assert iterations_left(noisy[:7], 1e-6) is None
    assert iterations_left(np.exp(rng.normal(size=30)), 1e-6) is None
    assert iterations_left([1.0] * 20 + [0.0], 1e-6) is None
    assert iterations_left(noisy, 1.0) == 0.0
    assert told(61.0) == "1 min"
