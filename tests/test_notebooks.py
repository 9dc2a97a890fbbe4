"""What notebooks show: every distribution and every result, escaped, well-formed and quick."""

import importlib
import pkgutil
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import permdist
from permdist import (
    Ballots,
    DavidsonLuce,
    GaussianScores,
    GaussianScoresBatch,
    GeneralizedMallows,
    GoodBad,
    Mallows,
    Mixture,
    PairSigns,
    PlackettLuce,
    ValidSigns,
    WeightedOrders,
    comparison,
    data,
    diagnostics,
    identities,
    inference,
    measures,
    posterior,
    rankings,
)
from permdist._result import Result
from permdist.data.trec import Qrels, Run
from permdist.distributions import Distribution, compare_families
from permdist.distributions.items import Items
from permdist.models import ConvexLoss, ListNet, all_learners
from permdist.models.paths import KappaPath
from permdist.rating import rate
from permdist.report.inspection import inspect_query
from permdist.samplers import Chains, LogPartition, RestartSampler, run_chains

EVIL = '<b>&"'
NAMES = [EVIL, "tea", "milk", "cola"]
# Programs, and what setuptools runs, which need not be there.
ELSEWHERE = ("permdist.cli", "permdist.__main__", "permdist._build.")
SCORES, LABELS, GRADES = [0.9, 0.1, -0.3, 0.4], [1, 0, 0, 1], [2, 0, 1, 0]
ORDERS = [[0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2], [2, 0, 3, 1]] * 3

DISTRIBUTIONS = {
    "PlackettLuce": lambda: PlackettLuce(SCORES, NAMES),
    "GaussianScores": lambda: GaussianScores(SCORES, names=NAMES),
    "GoodBad": lambda: GoodBad(SCORES, GRADES, names=NAMES),
    "interleavings": lambda: GoodBad(SCORES, LABELS, space="interleavings", names=NAMES),
    "Mallows": lambda: Mallows([2, 1, 0, 3], 0.5, names=NAMES),
    "GeneralizedMallows": lambda: GeneralizedMallows([2, 1, 0, 3], [0.5, 0.2, 0.1], names=NAMES),
    "Mixture": lambda: Mixture(
        [PlackettLuce(SCORES), Mallows([2, 1, 0, 3], 0.5)], [0.4, 0.6], NAMES
    ),
    "DavidsonLuce": lambda: DavidsonLuce(SCORES, [0.3], names=NAMES),
    "PairSigns": lambda: PairSigns(SCORES, LABELS, names=NAMES),
    "graded PairSigns": lambda: PairSigns(SCORES, GRADES, names=NAMES),
    "ValidSigns": lambda: ValidSigns(SCORES, LABELS, names=NAMES),
    "WeightedOrders": lambda: WeightedOrders(
        4, log_weight=lambda orders: -np.asarray(orders)[..., 0], names=NAMES
    ),
    "FromFunctions": lambda: Distribution.from_functions(
        4, lambda order: -float(order[0]), normalized=False, names=NAMES
    ),
    "drawn": lambda: Distribution.from_functions(
        4, sample=lambda rng: rng.permutation(4), names=NAMES
    ),
}


def ballots():
    return Ballots.of(np.array(ORDERS), names=NAMES)


def battles():
    frame = data.make_battles(200, 3, rng=0).replace("model-a", EVIL)
    return data.load_battles(frame)


def queries():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, size=40)
    return data.Queries(X, y, np.repeat(np.arange(8), 5), feature_names=[EVIL, "b"])


def chains():
    return run_chains(PlackettLuce(SCORES, NAMES), draws=40, tune=5, kernel="adjacent", rng=0)


def compared():
    folds = data.make_folds(queries(), 3, rng=0)[:1]
    learners = {EVIL: ListNet(max_iter=2), "other": ListNet(C=10.0, max_iter=2)}
    return comparison.compare(folds, learners, measures=["map"], n_jobs=1)


def judged_run():
    run = Run([EVIL, EVIL], ["d1", "d2"], [2.0, 1.0])
    return measures.evaluate_run(run, Qrels([EVIL, EVIL], ["d1", "d2"], [0, 1]), ["map"])


def overlap():
    run = Run([EVIL, EVIL], ["d1", "d2"], [2.0, 1.0])
    return measures.compare_runs(run, run)


def result():
    def residual(**_):
        return 0.0

    about = identities.Identity(EVIL, "<i>1 & 2</i>", "nowhere", residual, dict)
    return identities.Result(about, 3, 0.0)


def rated():
    return rate(battles(), folds=0)


@cache
def sampled():
    kept = ballots().without([name for name in NAMES if name not in (EVIL, "tea")])
    return posterior.sample(PlackettLuce, kept, prior=1.0, draws=50, rng=0)


def path():
    learner = type(EVIL, (), {"n_iter_": 3, "converged_": True})()
    values = np.array([0.5])
    return KappaPath(np.array([1.0]), (learner,), measures.parse("ap"), values, values)


def calibration():
    ranks = np.random.default_rng(0).integers(32, size=(40, 2))
    return posterior.Calibration(ranks, 31, (EVIL, "tea"))


RESULTS = {
    "Ballots": ballots,
    "Battles": battles,
    "BattleDescription": lambda: battles().describe(),
    "Bootstrap": lambda: PlackettLuce.fit(ballots()).fit_result.bootstrap(4, n_jobs=1),
    "Calibration": calibration,
    "ChainComparison": lambda: diagnostics.compare_to_exact(chains()),
    "Chains": chains,
    "Check": lambda: sampled().check("top", draws=20),
    "Comparison": compared,
    "Consensus": lambda: rankings.consensus(ballots(), "borda"),
    "CriticalValue": lambda: inference.comparisons.CriticalValue(1.96, 0.0),
    "Description": lambda: queries().describe(),
    "Deviance": lambda: inference.goodness.Deviance(3.0, 2, 0.2, 2.9, 0.0),
    "Difference": lambda: PlackettLuce.fit(ballots()).fit_result.compare(EVIL, "tea"),
    "Estimate": lambda: PlackettLuce(SCORES).expect("ap", LABELS),
    "Evidence": lambda: posterior.Evidence(-3.0, 0.1, 200, 5),
    "Expected": lambda: sampled().expect("ap", [1, 0], size=8),
    "ExactPosterior": lambda: sampled().exact(),
    "Evaluation": lambda: measures.evaluate(SCORES, LABELS, None, ["map", "p@1"]),
    "FamilyComparison": lambda: compare_families(ballots(), ["uniform", "plackett-luce"], folds=2),
    "Fit": lambda: PlackettLuce.fit(ballots()).fit_result,
    "GeneralizedMallowsFit": lambda: GeneralizedMallows.fit(ballots()).fit_result,
    "Goodness": lambda: rated().goodness,
    "Inspection": lambda: inspect_query(SCORES, LABELS, measures=["ap"], names=NAMES),
    "Leaderboard": lambda: PlackettLuce.fit(ballots()).fit_result.leaderboard(),
    "Learners": all_learners,
    "LogPartition": lambda: LogPartition(
        1.5, 0.1, 9.0, 10, np.array([0.0, 1.0]), EVIL, np.ones(10)
    ),
    "Majorities": lambda: rankings.consensus(ballots(), "borda").majorities,
    "MallowsFit": lambda: Mallows.fit(ballots()).fit_result,
    "MixtureFit": lambda: Mixture.fit(ballots(), "mallows", k=2, rng=0, n_init=1).fit_result,
    "Overlap": lambda: rankings.rbo([0, 1], [1, 0]),
    "Posterior": sampled,
    "PosteriorSummary": lambda: sampled().summary(),
    "Preferences": lambda: data.Preferences(
        (EVIL, "tea"), (((0,), (1,)),), np.array([3]), "soc", EVIL
    ),
    "QuasiVariances": lambda: PlackettLuce.fit(ballots()).fit_result.quasi_variances(),
    "Queries": queries,
    "Rating": rated,
    "RestartSample": lambda: RestartSampler("ap").sample(LABELS, 20, rng=0),
    "Result": result,
    "Results": lambda: identities.Results([result()]),
    "RunEvaluation": judged_run,
    "RunOverlap": overlap,
    "Summary": lambda: chains().summary(),
    "Transitivity": lambda: inference.cycles.transitivity([[0, 9, 1], [1, 0, 9], [9, 1, 0]]),
    "Tuned": lambda: comparison.Tuned(ConvexLoss("ap"), {"C": EVIL}, [EVIL]),
    "KappaPath": path,
}


def parsed(text):
    """Parse HTML that is XML, too, and check what every output must obey."""
    tree = ElementTree.fromstring(text)
    tags = {element.tag for element in tree.iter()}
    assert tree.attrib == {"class": "permdist"}
    assert not tags & {"script", "b", "i", "iframe", "link", "img"}
    assert not any(key.startswith("on") or "href" in key for e in tree.iter() for key in e.attrib)
    return tree


def words(tree):
    tree.remove(tree.find("style"))
    return " ".join(tree.itertext())


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_shown(name):
    dist = DISTRIBUTIONS[name]()
    tree = parsed(dist._repr_html_())
    pictures = list(tree.iter("svg"))
    assert pictures
    assert all(picture.find("title").text for picture in pictures)
    told = words(tree)
    assert EVIL in told
    assert repr(dist).partition("(")[0] in told
    assert ("estimated from 400 draws" in told) == (name == "drawn")
    if isinstance(dist, Distribution) and name != "drawn":
        assert len(pictures) == dist.n_items
        mean = 1.0 + dist.rank_marginals() @ np.arange(4)
        assert all(f"{value:.3f}" in told for value in mean)
        assert " > ".join(NAMES[item] for item in dist.mode()) in told


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_shown_and_are_frames(name):
    found = RESULTS[name]()
    tree = parsed(found._repr_html_())
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) >= 1
    assert len(frame.columns) >= 1
    text = words(tree)
    cells = [cell for _, row in frame.reset_index().iterrows() for cell in row]
    if name not in ("RunEvaluation", "RunOverlap"):  # they show means, not queries
        assert (EVIL in text) or not any(EVIL in str(cell) for cell in cells)
    assert type(found).__name__ == name or isinstance(found, Result)


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_nothing_is_missing_here():
    for package in ("permdist", "permdist.samplers", "permdist.models"):
        path = importlib.import_module(package).__path__
        for entry in pkgutil.walk_packages(path, f"{package}."):
            if not entry.name.startswith(ELSEWHERE):
                importlib.import_module(entry.name)
    parts = {"FitTable", "QueriesView", "BattlesView", "BallotsView", "LargeFit"}
    ours = {kind for kind in subclasses(Result) if kind.__module__.startswith("permdist")}
    assert {kind.__name__ for kind in ours} - parts <= set(RESULTS)
    abstract = {
        "Distribution",
        "ExactAnswers",
        "TiedRankings",
        "RandomUtility",
        "DistanceModel",
        "PairModel",
    }
    batches = {"RandomUtilityBatch", "PlackettLuceBatch", "GaussianScoresBatch"}
    models = {kind for kind in subclasses(Items) if kind.__module__.startswith("permdist")}
    assert {kind.__name__ for kind in models} - abstract - batches <= set(DISTRIBUTIONS)


def test_large_distributions_are_shown_at_once():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=100), rng.integers(0, 2, size=100)
    several = [
        PlackettLuce(rng.normal(size=100_000)),
        PlackettLuce(scores),
        PlackettLuce(rng.normal(size=500)),
        GoodBad(scores, labels),
        Mallows(np.arange(3000), 0.1),
        Mallows(np.arange(100), 0.1, "spearman"),
        DavidsonLuce(rng.normal(size=200), [0.1]),
        PairSigns(rng.normal(size=3000), rng.integers(0, 2, size=3000)),
    ]
    for dist in several:
        text = dist._repr_html_()
        assert len(text) < 60_000
        assert "ot shown" in words(parsed(text))
    assert "exact" in words(parsed(several[1]._repr_html_()))
    assert "from 400 draws" in words(parsed(several[2]._repr_html_()))
    assert several[2]._repr_html_() == several[2]._repr_html_()


def test_batches_are_shown_list_by_list():
    batch = GaussianScoresBatch(np.zeros((3, 5, 4)), names=NAMES)
    told = words(parsed(batch._repr_html_()))
    assert "3 x 5 lists" in told
    assert told.count(EVIL) == 12
    assert "1, 4" in told
    assert "3 more lists" in told


def test_a_distribution_that_fails_is_still_shown():
    class Broken(PlackettLuce):
        def rank_marginals(self):
            raise RuntimeError(EVIL)

        def mode(self):
            raise RuntimeError("no mode")

    told = words(parsed(Broken(SCORES, NAMES)._repr_html_()))
    assert f"RuntimeError: {EVIL}" in told
    assert "most probable" not in told


def test_fit_results_print_as_tables():
    fit = Mallows.fit(ballots()).fit_result
    head = str(fit).splitlines()[1].split()
    assert head == ["parameter", "estimate", "s.e.", "95%", "low", "95%", "high"]
    assert fit.to_frame().loc["theta", "standard_error"] == fit.standard_error
    wide, narrow = fit.to_frame(level=0.99), fit.to_frame(level=0.5)
    assert wide.loc["theta", "high"] > narrow.loc["theta", "high"]
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1, got 2"):
        fit.to_frame(level=2)
    stages = GeneralizedMallows.fit(ballots())
    np.testing.assert_array_equal(stages.fit_result.to_frame()["estimate"], stages.thetas)
    mixture = Mixture.fit(ballots(), "plackett-luce", k=2, rng=0, n_init=1)
    frame = mixture.fit_result.to_frame()
    assert len(frame) == 2 * (1 + 4)
    assert frame.loc["1: weight", "estimate"] == mixture.weights[0]
    found = frame.loc[[f"2: score of {name}" for name in NAMES], "estimate"].to_numpy()
    scores = mixture.components[1].scores
    np.testing.assert_allclose(found, scores - scores.mean())
    whole = PlackettLuce.fit(ballots()).fit_result
    assert str(whole) == str(whole.leaderboard())
    pd.testing.assert_frame_equal(whole.to_frame(), whole.leaderboard().to_frame())


def test_fits_of_many_items_are_shown_without_simulations():
    for n, told in ((21, "not computed: rank sets"), (201, "not computed: errors, rank sets")):
        circle = np.arange(n)
        other = (circle + 1) % n
        games = Ballots.from_pairs(np.r_[circle, other], np.r_[other, circle])
        fit = PlackettLuce.fit(games).fit_result
        text = words(parsed(fit._repr_html_()))
        assert told in text
        assert "see leaderboard()" in text


def test_frames_of_chains():
    found = chains()
    draws = found.to_frame("draws")
    assert draws.index.names == ["chain", "draw"]
    np.testing.assert_array_equal(draws.loc[(2, 7)].to_numpy(), found.ranks[2, 7] + 1)
    items = found.to_frame()
    np.testing.assert_allclose(items.loc[NAMES, "mean_place"], draws.mean().to_numpy())
    np.testing.assert_allclose(items.loc[NAMES, "sd"], draws.std(ddof=0).to_numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="of: expected one of items, draws, got 'all'"):
        found.to_frame("all")


def test_long_chains_are_thinned_and_large_ones_not_pictured():
    orders = np.tile(np.arange(20, dtype=np.uint8), (1, 300_000, 1))
    names = tuple(map(str, range(20)))
    nothing = np.zeros((1, 300_000))
    long = Chains(orders, nothing, names, "exact", 1, 0, np.ones(1), 1.0)
    assert "from some of the draws" in words(parsed(long._repr_html_()))
    names = tuple(map(str, range(1001)))
    one = np.arange(1001)[None, None]
    large = Chains(one, np.zeros((1, 1)), names, "exact", 1, 0, np.ones(1), 1.0, complete=False)
    told = words(parsed(large._repr_html_()))
    assert "not shown for so many items" in told
    assert "interrupted" in told


def test_long_tables_say_what_is_left_out():
    rng = np.random.default_rng(0)
    many = rankings.consensus([rng.permutation(40)], "borda")
    tree = parsed(many._repr_html_())
    assert len(list(tree.iter("tr"))) == 31
    assert "The first 30 rows; all of them are in to_frame()." in words(tree)


def test_ballots_of_all_kinds_as_frames():
    tied = Ballots.of([[["a", "b"], ["c"]]])
    assert tied.to_frame()["ballot"].tolist() == ["a = b > c"]
    chosen = Ballots.from_choices([0], [[0, 1, 2]], names=["a", "b", "c"])
    assert chosen.to_frame()["ballot"].tolist() == ["a > ... b, c"]


def test_frames_of_data():
    frame = battles().to_frame()
    assert set(frame["outcome"]) <= {"first", "second", "tie", "both bad"}
    full = queries()
    np.testing.assert_array_equal(full.to_frame()[[EVIL, "b"]], full.X)
    np.testing.assert_array_equal(full.to_frame()["qid"], full.qid)
    assert "34 more documents" in words(parsed(full._repr_html_()))
    assert permdist.data.Queries([[1.0]], [1]).to_frame().columns.tolist() == [
        "qid",
        "y",
        "feature 1",
    ]
