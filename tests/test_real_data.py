"""The real collections, where they are at hand (``PERMDIST_DATA`` names their folder)."""

import numpy as np
import pytest

from permdist import Ballots, DavidsonLuce, GoodBad, PlackettLuce, measures
from permdist.data import Queries, load_letor, load_letor_folds, load_preflib, save_letor
from permdist.diagnostics import compare_to_exact
from permdist.inference import PseudoWins
from permdist.models import MLE, ConvexLoss
from permdist.samplers import run_chains

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def mq2008(real_data):
    parts = [load_letor(real_data / "mq2008" / f"S{k}.txt.gz") for k in range(1, 6)]
    return Queries.concatenate(parts)


def test_mq2008_describes_itself(mq2008):
    facts = mq2008.describe()
    assert (facts.n_queries, facts.n_documents, facts.n_features) == (784, 15_211, 46)
    assert facts.label_counts == {0: 12_279, 1: 2_001, 2: 931}
    assert facts.queries_without_relevant == 220
    assert facts.constant_features == (6, 7, 8, 9, 10, 43)
    assert facts.has_doc_ids


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mq2008_makes_the_round_trip(mq2008, tmp_path, ending):
    save_letor(mq2008, tmp_path / f"all.txt{ending}")
    assert load_letor(tmp_path / f"all.txt{ending}") == mq2008


def test_mq2008_folds(real_data, mq2008):
    folds = load_letor_folds(real_data / "mq2008")
    assert len(folds) == 5
    for fold in folds:
        assert sum(part.n_queries for part in fold) == 784
    assert sum(fold.test.n_documents for fold in folds) == mq2008.n_documents


def test_conventions_explain_the_published_ndcg(mq2008):
    # One feature as a ranking: LETOR's own rules give about half of the usual figure.
    scores = mq2008.X[:, 38]
    names = ["letor4:ndcg@10", "ndcg@10"]
    result = measures.evaluate(scores, mq2008.y, mq2008.qid, names)
    strange, usual = result.mean().values()
    assert 0.20 < strange < 0.24
    assert 0.45 < usual < 0.53


@pytest.mark.parametrize(
    ("name", "items", "voters"),
    [("apa-1998.soi", 5, 18_723), ("netflix-1.soc", 3, 664), ("skate-1.toc", 30, 9)],
)
def test_preflib(real_data, name, items, voters):
    votes = load_preflib(real_data / "preference" / name)
    assert (votes.n_items, votes.n_voters) == (items, voters)
    assert all(order.n_items == items for order in votes.bucket_orders())


@pytest.mark.parametrize("kernel", ["relocation", "flip"])
def test_chains_on_a_real_query(mq2008, kernel):
    query = next(q for q in mq2008 if len(q.y) == 16 and 0 < (q.y > 0).sum() < 16)
    scores = query.X[:, 38] - query.X[:, 38].mean()
    model = GoodBad(scores / 4, (query.y > 0).astype(int), tilt="ap", kappa=2.0)
    chains = run_chains(model, 3000, kernel=kernel, thin=100, rng=0)
    assert compare_to_exact(chains).worst_score < 5


def test_learners_beat_every_feature(real_data):
    train, _, test = load_letor_folds(real_data / "mq2008")[0]
    rule = measures.parse("letor4:map")
    best = max(
        measures.evaluate(test.X[:, k], test.y, test.qid, rule).mean(rule)
        for k in np.flatnonzero(np.ptp(test.X, axis=0) > 0)
    )
    for learner in (MLE(scale=True, C=10.0), ConvexLoss("ap", scale=True, C=10.0)):
        assert learner.fit(train).score(test, measure=rule) > best


def test_nascar_with_and_without_the_four_who_lost_every_race(real_data):
    path = real_data / "preference" / "nascar.csv"
    races = np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:].astype(np.int64) - 1
    ballots = Ballots.from_orders(races, n_items=87, subset=True)
    with pytest.raises(ValueError, match="always below the others: 83, 84, 85, 86"):
        PlackettLuce.fit(ballots)
    everyone = PlackettLuce.fit(ballots, prior=PseudoWins(0.5)).fit_result
    known = [-2.171065, -1.744754, -1.590764, -1.768629]
    assert (everyone.scores - everyone.scores[0])[83:] == pytest.approx(known, abs=1e-6)
    errors = [1.812994, 1.855365, 1.881708, 1.904871]
    assert everyone.contrast_errors(0)[83:] == pytest.approx(errors, abs=1e-6)
    without = PlackettLuce.fit(ballots.without(range(83, 87)))
    lists = [[driver for driver in race if driver < 83] for race in races.tolist()]
    plain = PlackettLuce.fit(lists, n_items=83, subset=True)
    assert without.scores == pytest.approx(plain.scores, abs=1e-8)
    one, two = without.fit_result, plain.fit_result
    assert one.standard_errors() == pytest.approx(two.standard_errors(), rel=1e-6)


def test_judges_with_ties(real_data):
    votes = load_preflib(real_data / "preference" / "skate-1.toc")
    with pytest.raises(ValueError, match="always above the others: Alexei Yagudin"):
        DavidsonLuce.fit(votes)
    model = DavidsonLuce.fit(votes, prior=0.1)
    assert model.names[int(model.scores.argmax())] == "Alexei Yagudin"
    assert model.log_prob(votes).shape == (9,)
    assert model.log_prob(votes) @ votes.counts == pytest.approx(model.fit_result.log_likelihood)
