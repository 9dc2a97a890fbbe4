"""What is made of posterior draws: datasets, estimates, places, checks, files."""

from functools import cached_property

import numpy as np
import pytest
from scipy import stats

from permdist import Mallows, PlackettLuce
from permdist.ballots import Ballots
from permdist.diagnostics.exchange import has_trees, load_arviz
from permdist.posterior import (
    Gamma,
    Posterior,
    Problem,
    Variable,
    compare,
    load,
    places,
    sample,
)
from permdist.posterior.groups import table_of_ranks

NAMES = ("tea", "milk", "cola")


class Toy(Problem):
    """Scores of three items with a normal prior: independent draws by importance resampling."""

    def __init__(self, orders, sd=1.0, names=NAMES):
        self.ballots = Ballots.of(orders, names=names) if len(orders) else None
        self.orders, self.sd, self.names = np.asarray(orders), sd, names

    @property
    def variables(self):
        return (Variable("scores", (3,), ("item",)), Variable("spread"))

    @property
    def coords(self):
        return {"item": self.names, "observation": range(len(self.orders))}

    @property
    def family(self):
        return "toy Plackett-Luce"

    @cached_property
    def pool(self):
        draws = self.sd * np.random.default_rng(5).normal(size=(20_000, 3))
        value = self.log_likelihood(self.recorded(draws)).sum(axis=1)
        weights = np.exp(value - value.max())
        return draws, value, weights / weights.sum()

    def recorded(self, scores):
        return np.column_stack([scores, np.ptp(scores, axis=1)])

    def start(self, rng):
        return rng.normal(size=3)

    def advance(self, state, draws, log_density, rng):
        pool, value, weights = self.pool
        which = rng.choice(len(pool), size=len(draws), p=weights)
        draws[:] = self.recorded(pool[which])
        prior = stats.norm.logpdf(pool[which], scale=self.sd).sum(axis=1)
        log_density[:] = value[which] + prior
        return pool[which[-1]]

    def log_likelihood(self, draws):
        s = draws[:, :3]
        if not len(self.orders):
            return np.zeros((len(s), 0))
        sorted_ = s[:, self.orders]
        tails = np.logaddexp.accumulate(sorted_[..., ::-1], axis=-1)[..., ::-1]
        return (sorted_ - tails).sum(axis=-1)

    def prior_draws(self, size, rng):
        return self.recorded(self.sd * rng.normal(size=(size, 3)))

    def replicate(self, draw, rng):
        orders = PlackettLuce(draw[:3]).sample(len(self.orders), rng)
        return Ballots.of(orders, names=self.names)

    def model(self, draw):
        return PlackettLuce(draw[:3], names=self.names)

    @property
    def observed(self):
        if not len(self.orders):
            return {}
        return {"rank": (("observation", "item"), table_of_ranks(self.ballots))}


def run(problem, draws=300, chains=4, rng=0):
    table = np.empty((chains, draws, problem.size))
    density = np.empty((chains, draws))
    for chain, generator in enumerate(np.random.default_rng(rng).spawn(chains)):
        state = problem.start(generator)
        problem.advance(state, table[chain], density[chain], generator)
    return Posterior(problem, table, density, seconds=0.5, tune=10)


@pytest.fixture(scope="module")
def problem():
    return Toy([[0, 1, 2]] * 12 + [[0, 2, 1]] * 4 + [[1, 0, 2]] * 6 + [[2, 1, 0]] * 2)


@pytest.fixture(scope="module")
def posterior(problem):
    return run(problem)


# ---- the object ----------------------------------------------------------------------------------


def test_the_dataset_has_names(posterior):
    data = posterior.dataset
    assert dict(data.sizes) == {"chain": 4, "draw": 300, "item": 3}
    assert list(data["item"].values) == list(NAMES)
    np.testing.assert_array_equal(data["scores"].values, posterior["scores"])
    assert data["spread"].dims == ("chain", "draw")
    assert data.attrs["inference_library"] == "permdist"
    with pytest.raises(KeyError, match="expected one of scores, spread"):
        posterior["theta"]


def names_of(groups):
    """Return the names of groups, of a tree or of what arviz had before 1.0."""
    return list(groups.children) if has_trees() else groups.groups()


def test_arviz_takes_every_group(posterior):
    arviz = load_arviz()
    data = posterior.to_arviz(predictive=20, rng=1)
    for name in (
        "posterior",
        "sample_stats",
        "prior",
        "log_likelihood",
        "posterior_predictive",
        "prior_predictive",
        "observed_data",
    ):
        assert name in names_of(data)
    assert data["log_likelihood"]["y"].shape == (4, 300, 24)
    assert data["posterior_predictive"]["rank"].shape == (1, 20, 24, 3)
    assert data["observed_data"]["rank"].shape == (24, 3)
    np.testing.assert_allclose(data["sample_stats"]["lp"].values, posterior.log_density, rtol=1e-12)
    table = arviz.summary(data)
    np.testing.assert_allclose(
        table.loc["scores[tea]", "mean"], posterior["scores"][..., 0].mean(), atol=6e-3
    )


def test_groups_without_a_meaning(problem):
    prior_only = run(Toy([]), draws=50)
    groups = names_of(prior_only.to_arviz())
    assert "observed_data" not in groups
    assert "log_likelihood" not in groups
    assert "posterior" in groups
    assert "prior" in groups

    class Improper(Toy):
        def prior_draws(self, size, rng):
            raise ValueError("prior: it is improper")

    groups = names_of(run(Improper(problem.orders), draws=50).to_arviz())
    assert "prior" not in groups
    assert "prior_predictive" not in groups
    assert "posterior_predictive" in groups


# ---- estimates -----------------------------------------------------------------------------------


def test_summary_has_arviz_numbers_and_a_verdict(posterior):
    arviz = load_arviz()
    found = posterior.summary(0.9)
    assert list(found.table.index) == [
        *(f"scores[{name}]" for name in NAMES),
        "spread",
        "log_density",
    ]
    assert {"5%", "50%", "95%"} < set(found.table.columns)
    theirs = arviz.ess(posterior.dataset, method="tail", prob=(0.05, 0.95))["scores"].values
    np.testing.assert_allclose(found.table["ess_tail"].iloc[:3], theirs, rtol=1e-6)
    flat = posterior.flat[:, 1]
    np.testing.assert_allclose(found.table.loc["scores[milk]", "95%"], np.quantile(flat, 0.95))
    assert found.converged
    assert found.verdict.startswith("The chains agree: R-hat is at most 1.0")
    assert "toy Plackett-Luce" in str(found)
    assert "The chains agree" in posterior._repr_html_()


def test_the_verdict_tells_what_is_wrong(problem):
    good = run(problem, draws=100)
    draws = good.draws.copy()
    draws[1] += 5.0
    apart = Posterior(problem, draws, good.log_density)
    assert "The chains do not agree yet: R-hat of" in apart.summary().verdict
    assert not apart.summary().converged
    few = Posterior(problem, good.draws[:, :10], good.log_density[:, :10], complete=False)
    assert few.summary().verdict == (
        "10 draws per chain: too few for diagnostics; take at least 20. The run was interrupted."
    )


def test_probabilities_of_places_are_counts(posterior):
    scores = posterior.flat[:, :3]
    orders = np.argsort(-scores, axis=1)
    shares = posterior.rank_probabilities()
    pairs = posterior.pairwise()
    for i, name in enumerate(NAMES):
        for place in range(3):
            assert shares.loc[name, place + 1] == pytest.approx((orders[:, place] == i).mean())
        for j, other in enumerate(NAMES):
            if i != j:
                wanted = (scores[:, i] > scores[:, j]).mean()
                assert pairs.loc[name, other] == pytest.approx(wanted)
    assert np.isnan(np.diagonal(pairs)).all()
    best = posterior.best()
    assert best.index[0] == "tea"
    assert best["probability"].sum() == pytest.approx(1.0)
    p = best.loc["tea", "probability"]
    assert best.loc["tea", "mcse"] == pytest.approx(np.sqrt(p * (1 - p) / 1200), rel=0.5)
    assert posterior.best(top=3)["probability"].tolist() == [1.0, 1.0, 1.0]
    assert posterior.best(top=3)["mcse"].tolist() == [0.0, 0.0, 0.0]


def test_rank_sets_hold_what_they_promise():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4000, 8)) * 0.7 + np.linspace(2, 0, 8)
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    for level in (0.5, 0.9, 0.99):
        alone = places.interval_sets(ranks, level)
        inside = (ranks + 1 >= alone[:, 0]) & (ranks + 1 <= alone[:, 1])
        assert (inside.mean(axis=0) >= level - 1e-9).all()
        # No shorter run of places would do.
        shares = places.place_shares(ranks)
        for item, (first, last) in enumerate(alone):
            for shorter in range(last - first):
                sums = [shares[item, a : a + shorter + 1].sum() for a in range(8 - shorter)]
                assert max(sums) < level
        together = places.simultaneous_sets(ranks, level)
        inside = (ranks + 1 >= together[:, 0]) & (ranks + 1 <= together[:, 1])
        assert inside.all(axis=1).mean() >= level - 1e-9
        assert inside.all(axis=1).mean() <= level + 0.2
    whole = places.simultaneous_sets(ranks, 1.0 - 1e-9)
    assert (whole[:, 0] == ranks.min(axis=0) + 1).all()
    assert (whole[:, 1] == ranks.max(axis=0) + 1).all()


def test_relabeling_items_relabels_everything(posterior):
    turned = [2, 0, 1]
    problem = posterior.problem
    other = Toy(problem.orders, names=tuple(NAMES[i] for i in turned))
    draws = posterior.draws[..., [*turned, 3]]
    found = Posterior(other, draws, posterior.log_density)
    for method in ("rank_probabilities", "pairwise", "rank_sets"):
        mine, theirs = getattr(posterior, method)(), getattr(found, method)()
        np.testing.assert_allclose(
            theirs.loc[list(NAMES), list(mine.columns)].to_numpy(float), mine.to_numpy(float)
        )


def test_the_leaderboard_holds_means_and_intervals(posterior):
    board = posterior.leaderboard(0.9, elo=True)
    frame = board.to_frame().set_index("name")
    centered = posterior.flat[:, :3] - posterior.flat[:, :3].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(frame.loc[list(NAMES), "score"], centered.mean(axis=0))
    np.testing.assert_allclose(frame.loc[list(NAMES), "high"], np.quantile(centered, 0.95, axis=0))
    assert frame.loc["tea", "n"] == 24
    np.testing.assert_allclose(
        frame.loc["tea", "elo"], 1000 + 400 / np.log(10) * frame.loc["tea", "score"]
    )
    assert "errors: posterior; 90% intervals" in str(board)


def test_expected_measures(posterior):
    labels = [2, 0, 1]
    found = posterior.expect("ndcg", labels, size=60)
    models = posterior.models(60)
    wanted = [model.expect("ndcg", labels) for model in models]
    np.testing.assert_allclose(found.values, wanted)
    assert found.low <= found.mean <= found.high
    assert found.noise == 0.0
    assert float(found) == pytest.approx(np.mean(wanted))
    assert found.to_frame().loc[0, "measure"] == "ndcg"
    assert "Posterior of the expected ndcg" in found._repr_html_()
    assert len(posterior.models(5, rng=1)) == 5


# ---- checks --------------------------------------------------------------------------------------


def test_checks_of_a_model_that_holds(posterior):
    check = posterior.check("top", draws=150)
    np.testing.assert_allclose(check.observed, [16 / 24, 6 / 24, 2 / 24])
    assert check.labels == NAMES
    assert check.to_frame()["inside"].all()
    wins = posterior.check("wins", draws=50)
    assert wins.labels == ("tea over milk", "tea over cola", "milk over cola")
    np.testing.assert_allclose(wins.observed, [16 / 24, 22 / 24, 18 / 24])
    distance = posterior.check(draws=150)
    assert 0.01 < distance.p_values[0] <= 1.0
    assert "Check of distance: p =" in str(distance)


def test_checks_notice_a_model_that_does_not_hold():
    # Two camps: no Plackett-Luce agrees with itself so much within and so little between them.
    camps = run(Toy([[0, 1, 2]] * 40 + [[2, 1, 0]] * 40))
    assert camps.check("top", draws=100).p_values[1] < 0.02


# ---- comparison and files ------------------------------------------------------------------------


def elpd(found):
    return getattr(found, "elpd", None) or found["elpd_loo"]  # of arviz 1.0, and before


def test_files_come_back(posterior, problem, tmp_path):
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    found = load(path)
    np.testing.assert_array_equal(found.draws, posterior.draws)
    np.testing.assert_array_equal(found.log_density, posterior.log_density)
    assert (found.tune, found.seconds, found.complete) == (10, 0.5, True)
    assert found.best().equals(posterior.best())
    assert found.summary().verdict == posterior.summary().verdict
    assert np.isclose(elpd(found.loo()), elpd(posterior.loo()))
    with pytest.raises(ValueError, match="pass problem="):
        found.models()
    whole = load(path, problem)
    assert whole.expect("ap", [1, 0, 0]).mean == posterior.expect("ap", [1, 0, 0]).mean
    with pytest.raises(ValueError, match="is of another one"):
        load(path, Toy(problem.orders, names=("a", "b", "c")))


def test_arviz_reads_the_file(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    theirs = load_arviz().from_netcdf(path, engine="h5netcdf")["posterior"]
    np.testing.assert_array_equal(theirs["scores"].values, posterior["scores"])
    theirs.close()


def test_damaged_files_are_refused(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (10, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:cut])
        with pytest.raises(ValueError, match="damaged"):
            load(path)
    for place in rng.integers(len(raw), size=5):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.nc")


REFUSED = {
    "draws": lambda one: Posterior(one.problem, np.zeros((2, 5, 3)), np.zeros((2, 5))),
    "log_density": lambda one: Posterior(one.problem, np.zeros((2, 5, 4)), np.zeros((5, 2))),
    "groups": lambda one: one.to_arviz(["posterio"]),
    "statistic": lambda one: one.check("tops"),
    "has no data to check": lambda _: run(Toy([]), draws=20).check(),
    "has no scores": lambda _: sample(Mallows, [[0, 1], [1, 0]], Gamma(), draws=9).leaderboard(),
    "two or more": lambda one: compare({"one": one}),
    "name": lambda one: one.plot_variable("theta"),
    "same observations": lambda one: compare({"a": one, "b": run(Toy([[0, 1, 2]]), draws=30)}),
}


@pytest.mark.parametrize("argument", REFUSED)
def test_refusals(posterior, argument):
    with pytest.raises(ValueError, match=argument):
        REFUSED[argument](posterior)


# ---- pictures ------------------------------------------------------------------------------------


def test_pictures_show_the_numbers(posterior):
    axes = posterior.plot_rank_probabilities()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["tea", "milk", "cola"]
    axes = posterior.plot_scores()
    assert "credible" in axes.get_xlabel()
    assert len(posterior.plot_variable("scores").get_yticklabels()) == 3
    for statistic in ("distance", "wins", "top"):
        posterior.check(statistic, draws=30).plot().figure.canvas.draw()
