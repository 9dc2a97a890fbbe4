"""Fits on stores that worker processes hold: the bits of a fit in one process."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from types import SimpleNamespace

import numpy as np
import pytest
from test_cli import permdist

from permdist import data
from permdist.models import (
    MLE,
    AdaRank,
    ApproxNDCG,
    ConvexLoss,
    ListMLE,
    RankBoost,
    RankCosine,
    SVMMap,
    load,
)
from permdist.models.crew import Crew, on_workers

growing = importlib.import_module("permdist.models.solvers.growing")
distributed = pytest.importorskip("distributed", reason="dask's scheduler is not installed")

CLUSTER = (
    "from distributed import LocalCluster\n"
    "import sys\n"
    "if __name__ == '__main__':\n"
    "    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True,\n"
    "                      dashboard_address=':0', local_directory=sys.argv[1]) as cluster:\n"
    "        print(cluster.scheduler_address, flush=True)\n"
    "        sys.stdin.read()\n"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "cluster.py").write_text(CLUSTER)
    server = subprocess.Popen(
        [sys.executable, str(folder / "cluster.py"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = server.stdout.readline().strip()
        with distributed.Client(address, timeout="60s") as client:
            yield client
    finally:
        server.stdin.close()
        server.wait(60)
        server.stdout.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two stores of several blocks each; the second has queries that teach nothing."""
    folder = tmp_path_factory.mktemp("stores")
    queries = data.make_letor(120, n_documents=(5, 25), n_features=2000, noise=0.3, rng=0)
    data.write_store(queries.where(np.arange(70)), folder / "a")
    data.write_store(queries.where(np.arange(70, 120)), folder / "b")
    return [folder / "a", folder / "b"]


def _state(learner):
    history = {key: values for key, values in learner.history_.items() if key != "seconds"}
    return learner.coef_.tobytes(), history, learner.null_, learner.n_iter_


def _copy(learner):
    return type(learner)(**learner.get_params())


LEARNERS = [
    MLE(C=0.01, max_iter=8, missing="mean"),
    ConvexLoss(C=0.01, max_iter=12),  # over rows, which are sorted again between rounds
    SVMMap(C=0.01, max_iter=8, normalize=("raw", "zscore")),
    RankCosine(max_iter=5),
    AdaRank(max_iter=4, accept="literal"),
    ListMLE(max_iter=5, ties="random"),  # draws, for documents in their canonical order
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_workers_give_the_bits_of_one_process(client, stores, learner):
    assert len(MLE().training_table(data.open_store(stores[0]))) > 1  # blocks
    local = _copy(learner).fit(stores)
    assert _state(_copy(learner).fit(stores, client=client)) == _state(local)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_growing_sets_of_blocks(client, stores, tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "FIRST", 2)
    monkeypatch.setattr(growing, "FEWEST", 2)
    learner, path = MLE(C=0.01, max_iter=5, solver="growing"), tmp_path / "file"
    local = _copy(learner).fit(stores)
    assert _state(_copy(learner).fit(stores, client=client)) == _state(local)
    assert _state(_copy(learner).fit(stores, checkpoint=path)) == _state(local)
    assert _state(_copy(learner).fit(stores, checkpoint=path)) == _state(local)
    one = _copy(learner).fit(data.open_store(stores[0]))
    assert _state(_copy(learner).fit(stores[0], client=client)) == _state(one)
    assert _state(_copy(learner).set_params(solver="lbfgs").fit(stores)) != _state(local)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_store_is_as_good_as_queries_in_memory(client, stores):
    learner = MLE(C=0.01, max_iter=5)
    opened = data.open_store(stores[0])
    local = _copy(learner).fit(opened, eval_set=data.open_store(stores[1]))
    memory = data.Queries(np.array(opened.X), opened.y, opened.qid)
    assert _state(_copy(learner).fit(memory, eval_set=data.open_store(stores[1]))) == _state(local)
    assert _state(_copy(learner).fit(stores[0], eval_set=str(stores[1]))) == _state(local)
    remote = _copy(learner).fit(opened, eval_set=stores[1], client=client)
    assert _state(remote) == _state(local)
    assert len(remote.history_["measure"]) == remote.n_iter_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", [LEARNERS[1], LEARNERS[4]], ids=["ConvexLoss", "AdaRank"])
def test_a_lost_worker_changes_nothing(client, stores, learner, monkeypatch):
    workers = client.run(os.getpid)
    wanted = _state(_copy(learner).fit(stores))
    asked, ask = [], Crew.ask

    def kill_one(self, *args):
        asked.append(args)
        if len(asked) == 9:
            pid = next(iter(client.run(os.getpid).values()))
            threading.Timer(0.01, os.kill, (pid, signal.SIGKILL)).start()
        return ask(self, *args)

    monkeypatch.setattr(Crew, "ask", kill_one)
    found = _state(_copy(learner).fit(stores, client=client))
    assert found == wanted
    assert set(client.run(os.getpid).values()) != set(workers.values())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_goes_from_one_process_to_a_cluster(client, stores, tmp_path):
    learner, path = ConvexLoss(C=0.01, max_iter=12), tmp_path / "file"
    wanted = _state(_copy(learner).fit(stores))
    _copy(learner).set_params(max_iter=3).fit(stores, checkpoint=path)
    size = path.stat().st_size
    assert _state(_copy(learner).fit(stores, checkpoint=path, client=client)) == wanted
    assert path.stat().st_size > size
    size = path.stat().st_size
    assert _state(_copy(learner).fit(stores, checkpoint=path)) == wanted
    assert path.stat().st_size == size


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scores_and_measures_of_stores(client, stores):
    learner = MLE(C=0.01, max_iter=5).fit(stores)
    parts = [learner.predict(data.open_store(path)) for path in stores]
    scores = learner.predict(stores, client=client)
    np.testing.assert_allclose(scores, np.concatenate(parts), rtol=1e-12)
    np.testing.assert_array_equal(scores, learner.predict(stores, client=client))
    both = data.Queries.concatenate([data.open_store(path) for path in stores])
    assert learner.score(stores, client=client) == pytest.approx(learner.score(both), abs=1e-12)
    found = learner.score(stores, client=client, measure="ndcg@5")
    assert found == pytest.approx(learner.score(both, measure="ndcg@5"), abs=1e-12)


def test_what_cannot_be_fitted_on_a_cluster_says_why(client, stores):
    with pytest.raises(TypeError, match="client: X must be a store or a list of stores"):
        MLE().fit(data.make_letor(10, rng=0), client=client)
    with pytest.raises(ValueError, match=r"RankBoost cannot be fitted .* on a cluster: .* no sum"):
        RankBoost().fit(stores, client=client)
    own = SimpleNamespace(choose=lambda X, y, qid, weights: None)
    with pytest.raises(ValueError, match=r"AdaRank cannot .* on several stores: its weak rankers"):
        AdaRank(weak=own).fit(stores)
    with pytest.raises(ValueError, match=r"AdaRank cannot .* on a cluster: its weak rankers learn"):
        AdaRank(weak=own).fit(stores, client=client)
    with pytest.raises(ValueError, match="takes a step after each query"):
        ApproxNDCG(optimizer="stochastic").fit(stores[0], client=client)
    with pytest.raises(ValueError, match="is given more than once"):
        MLE().fit([stores[0], stores[0]], client=client)


def test_a_store_that_a_worker_cannot_open_is_named(client, stores, tmp_path):
    with pytest.raises(ValueError, match=r"the worker tcp://.* cannot open the store .*none"):
        MLE().fit([stores[0], tmp_path / "none"], client=client)
    other = data.make_letor(20, n_features=7, rng=0)
    data.write_store(other, tmp_path / "other")
    with pytest.raises(ValueError, match=r"has 7 features, .* has 2000"):
        MLE().fit([stores[0], tmp_path / "other"], client=client)
    with pytest.raises(ValueError, match="eval_set: expected 2000 features, got 7"):
        MLE().fit(stores[0], eval_set=tmp_path / "other", client=client)
    flat = data.Queries(np.zeros((4, 2000)), [0, 0, 1, 1], [1, 1, 2, 2])
    shutil.rmtree(tmp_path / "other")
    data.write_store(flat, tmp_path / "other")
    with pytest.raises(ValueError, match="there is nothing to learn from"):
        MLE().fit(tmp_path / "other", client=client)


def test_the_command_line_fits_on_a_scheduler(client, stores, tmp_path):
    arguments = "fit", stores[0], "MLE[C=0.01,max_iter=5]", "--json", "-o", tmp_path / "model.json"
    local = json.loads(permdist(*arguments))
    one = (tmp_path / "model.json").read_text()
    address = client.scheduler.address
    path = tmp_path / "file"
    remote = json.loads(permdist(*arguments, "--scheduler", address, "--checkpoint", path))
    found, wanted = (facts.pop("measures")["training"] for facts in (remote, local))
    assert found == pytest.approx(wanted)
    assert remote == local
    assert json.loads(one)["state"]["coef_"] == load(tmp_path / "model.json").coef_.tolist()
    assert path.stat().st_size > 5 * 16 * 2000
    message = permdist(*arguments, "--validation", stores[1], "--checkpoint", path, code=2)
    assert "--checkpoint: for one fit, and --validation makes many" in message
    message = permdist(*arguments, "--scheduler", "tcp://127.0.0.1:9", code=2)
    assert "--scheduler: no answer from tcp://127.0.0.1:9" in message


@pytest.mark.usefixtures("no_report")
def test_a_comparison_on_a_scheduler_is_that_of_one_process(client, tmp_path):
    data.save_letor(data.make_letor(45, n_features=6, rng=0), tmp_path / "all.txt")
    learners = ("-M", "MLE[C=1|10],ListNet[C=1]", "-m", "map", "--folds", "3")
    arguments = ("compare", "all.txt", *learners, "--identities", "0", "--json")
    address = ("--scheduler", client.scheduler.address)
    local = permdist(*arguments, "-j", "1", "-o", "a", cwd=tmp_path)
    remote = permdist(*arguments, *address, "-o", "b", cwd=tmp_path)
    found, wanted = json.loads(remote), json.loads(local)
    for facts in (found, wanted):
        for row in facts["tables"]["ap"].values():
            row.pop("seconds", None)
    assert found["tables"] == wanted["tables"]
    cells = [len(list((tmp_path / name / "cells").iterdir())) for name in "ab"]
    assert cells[0] == cells[1] > 0


class Broken:
    """A client whose results never come."""

    def __init__(self, error):
        self.error = error

    def map(self, function, *columns, pure):
        return []

    def nthreads(self):
        return {}

    def gather(self, futures):
        raise self.error


def test_workers_that_are_lost_again_and_again_end_a_fit():
    worker = SimpleNamespace(address="tcp://10.0.0.7:1234")
    client = Broken(distributed.KilledWorker("task", worker, 3))
    with pytest.raises(RuntimeError, match=r"lost, one after the other, .* tcp://10.0.0.7:1234"):
        on_workers(client, len, [([],)])
    with pytest.raises(RuntimeError, match="the connection to the scheduler was lost"):
        on_workers(Broken(CancelledError("key")), len, [([],)])
    with pytest.raises(ValueError, match="client: the cluster has no workers yet"):
        Crew([], Broken(None))
