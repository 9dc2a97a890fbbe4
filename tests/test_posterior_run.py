"""The driver of posterior draws: threads, checkpoints, Ctrl-C, problems of one's own."""

import signal
import threading
import time

import numpy as np
import pytest

from permdist import DavidsonLuce, GaussianScores, PlackettLuce
from permdist.ballots import Ballots
from permdist.posterior import Gamma, Normal, Problem, Variable, problem_of, register_family, sample
from permdist.posterior.families import FAMILIES
from permdist.samplers import run_chains
from permdist.samplers.chain import Chain

DATA = [[0, 1, 2, 3], [1, 0, 2, 3], [3, 0, 1, 2], [0, 2, 1, 3]]
QUIET = {"progress": False, "rng": 5}


class Walk(Problem):
    """A normal distribution by random-walk Metropolis, in Python."""

    def __init__(self, mean=0.0, pause=0.0):
        self.mean, self.pause = mean, pause

    @property
    def variables(self):
        return (Variable("x"), Variable("y", (2,), ("axis",)))

    @property
    def coords(self):
        return {"axis": ("a", "b")}

    def start(self, rng):
        return np.concatenate([rng.normal(size=3), [0.0]])

    def advance(self, state, draws, log_density, rng):
        state = state.copy()
        for step in range(len(draws)):
            time.sleep(self.pause)
            x = state[:3]
            trial = x + rng.normal(size=3)
            gain = 0.5 * ((x - self.mean) ** 2 - (trial - self.mean) ** 2).sum()
            if np.log(rng.random()) < gain:
                state[:3] = trial
            state[3] += 1
            draws[step], log_density[step] = state[:3], -0.5 * (state[:3] ** 2).sum()
        return state

    def log_likelihood(self, draws):
        return np.zeros((len(draws), 0))

    def prior_draws(self, size, rng):
        return rng.normal(size=(size, 3))

    def replicate(self, draw, rng):
        raise NotImplementedError

    def model(self, draw):
        return None

    @property
    def observed(self):
        return {}


@pytest.mark.parametrize("model", [lambda: problem_of(PlackettLuce, DATA, 1.0), Walk])
def test_the_same_bits_on_any_number_of_threads(model):
    one = sample(model(), draws=300, n_jobs=1, chains=3, **QUIET)
    many = sample(model(), draws=300, n_jobs=3, chains=3, **QUIET)
    assert np.array_equal(one.draws, many.draws)
    assert np.array_equal(one.log_density, many.log_density)
    assert one.complete
    assert one.draws.shape == (3, 300, one.problem.size)
    fewer = sample(model(), draws=100, tune=one.tune, chains=3, **QUIET)
    assert np.array_equal(one.draws[:, :100], fewer.draws)


@pytest.mark.parametrize(
    ("model", "prior", "options"),
    [
        (PlackettLuce, 1.0, {}),
        (PlackettLuce, Normal([0.3, 0.2, 0.1, 0.0], [1.0, 2.0, 3.0, 4.0]), {}),
        (PlackettLuce, Gamma(1.3, 2.0), {}),
        (PlackettLuce, 1.0, {"features": [[0.3, 1.1], [0.7, 0.2], [1.9, -0.4], [0.3, 0.9]]}),
        (DavidsonLuce, {"scores": 1.0, "log_ties": 1.0}, {"tie_sizes": [2]}),
        (GaussianScores, Normal(0.0, 1.0), {}),
    ],
)
def test_slices_make_no_difference_to_bits(model, prior, options):
    problem = problem_of(model, DATA, prior, **options)
    found = []
    for sizes in ([24], [1] * 24, [1, 3, 13, 7]):
        rng, at = np.random.default_rng(5), 0
        state = problem.start(rng)
        table, values = np.empty((24, problem.size)), np.empty(24)
        for size in sizes:
            here = slice(at, at + size)
            state, at = problem.advance(state, table[here], values[here], rng), at + size
        found.append(np.column_stack([table, values]))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


class Killed(Exception):
    """Stands for a process that ends."""


@pytest.mark.parametrize("model", [lambda: problem_of(PlackettLuce, DATA, 1.0), Walk])
def test_a_run_that_was_killed_is_continued(model, tmp_path, monkeypatch):
    options = {"draws": 300, "tune": 40, "chains": 2, **QUIET}
    whole = sample(model(), **options)
    slices, calls = Chain.slice, []

    def killed(chain, *args):
        calls.append(chain)
        if len(calls) > 12:
            raise Killed
        slices(chain, *args)

    monkeypatch.setattr("permdist.samplers.chain.SAVE_EVERY", -1.0)
    monkeypatch.setattr(Chain, "slice", killed)
    with pytest.raises(Killed):
        sample(model(), checkpoint=tmp_path / "run", **options)
    monkeypatch.setattr(Chain, "slice", slices)
    again = sample(model(), checkpoint=tmp_path / "run", **options)
    assert np.array_equal(whole.draws, again.draws)
    assert np.array_equal(whole.log_density, again.log_density)
    # More draws than before, with another number of threads, and any seed if none is given.
    more = sample(model(), checkpoint=tmp_path / "run", n_jobs=1, **(options | {"draws": 400}))
    assert np.array_equal(whole.draws, more.draws[:, :300])
    free = options | {"rng": None}
    again = sample(model(), checkpoint=tmp_path / "run", **free)
    assert np.array_equal(whole.draws, again.draws)


def test_a_prolonged_run_discards_what_the_first_one_did(tmp_path):
    options = {"chains": 2, **QUIET}
    sample(Walk(), draws=60, checkpoint=tmp_path / "run", **options)
    more = sample(Walk(), draws=300, checkpoint=tmp_path / "run", **options)
    assert np.array_equal(more.draws, sample(Walk(), draws=300, tune=30, **options).draws)


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    options = {"draws": 20, "chains": 2, "checkpoint": tmp_path / "run", **QUIET}
    sample(PlackettLuce, DATA, 1.0, **options)
    before = (tmp_path / "run").read_bytes()
    for data, prior, changed, message in (
        (DATA, 2.0, {}, "data, prior or options"),
        (DATA[:3], 1.0, {}, "data, prior or options"),
        (DATA, 1.0, {"rng": 6}, "another seed"),
        (DATA, 1.0, {"chains": 3}, "chains 2, this run has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            sample(PlackettLuce, data, prior, **(options | changed))
    with pytest.raises(ValueError, match="kind parameters, this run has orders"):
        run_chains(PlackettLuce([0.0, 1.0]), 20, checkpoint=tmp_path / "run", rng=5)
    assert (tmp_path / "run").read_bytes() == before


def test_draws_after_ctrl_c(tmp_path, monkeypatch):
    slices = Chain.slice

    def interrupted(chain, *args):
        slices(chain, *args)
        if chain.number == 0 and chain.kept > 60 and not asked.is_set():
            asked.set()
            signal_main()

    import _thread

    asked, signal_main = threading.Event(), _thread.interrupt_main
    monkeypatch.setattr(Chain, "slice", interrupted)
    options = {"draws": 10_000, "tune": 0, "chains": 2, "n_jobs": 2, **QUIET}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
    try:
        found = sample(Walk(pause=1e-4), checkpoint=tmp_path / "run", **options)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not found.complete
    kept = found.draws.shape[1]
    assert 10 < kept < 10_000
    assert np.isfinite(found.log_density).all()
    rest = sample(Walk(), checkpoint=tmp_path / "run", **(options | {"draws": kept + 50}))
    assert np.array_equal(rest.draws[:, :kept], found.draws)
    assert rest.complete


def test_progress_is_shown(capsys):
    sample(PlackettLuce, DATA, 1.0, 200, chains=2, rng=0, progress=True)
    shown = capsys.readouterr().err
    assert "2 chains, Plackett-Luce" in shown
    assert "draws/s, R-hat" in shown


def test_problems_of_ones_own_have_names(monkeypatch):
    class Thing:
        pass

    monkeypatch.setattr("permdist.posterior.families.FAMILIES", dict(FAMILIES))
    register_family(Thing, lambda model, data, prior, *, mean=0.0: Walk(mean))
    assert problem_of(Thing, mean=3.0).mean == 3.0
    assert sample(Thing(), draws=5, **QUIET).problem.family == "Walk"
    with pytest.raises(TypeError, match="prior: a Problem has its own data, prior and options"):
        sample(Walk(), prior=1.0)
    with pytest.raises(TypeError, match="expected a class, got Thing"):
        register_family(Thing(), print)


def test_faults_of_a_problem_are_told():
    class Broken(Walk):
        def advance(self, state, draws, log_density, rng):
            log_density[:] = np.nan
            return state

    with pytest.raises(ValueError, match=r"Broken\.advance: expected finite draws"):
        sample(Broken(), draws=5, **QUIET)
    with pytest.raises(ValueError, match="draws: expected"):
        sample(Walk(), draws=0)


def test_weights_count_ballots():
    weighted = Ballots.from_orders([[0, 1], [1, 0]], weights=[3.0, 2.0])
    repeated = Ballots.from_orders([[0, 1]] * 3 + [[1, 0]] * 2)
    options = {"draws": 50, "chains": 1, **QUIET}
    one = sample(PlackettLuce, weighted, 1.0, **options)
    two = sample(PlackettLuce, repeated, 1.0, **options)
    assert np.array_equal(one.draws, two.draws)
    first, second = (each.problem.log_likelihood(each.draws[0, :2]) for each in (one, two))
    assert first.shape == (2, 2)
    assert second.shape == (2, 5)
    np.testing.assert_allclose(first.sum(axis=1), second.sum(axis=1))
