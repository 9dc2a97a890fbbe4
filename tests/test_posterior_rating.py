"""Leaderboards from posterior draws: `rate(..., bayes=True)` and `permdist rate --bayes`."""

import json

import numpy as np
import pytest
from test_cli import permdist

from permdist import Ballots, data
from permdist.cli import main
from permdist.inference import PseudoWins, Ridge
from permdist.rating import rate
from permdist.report.leaderboard import rating_report


@pytest.fixture(scope="module")
def frame():
    return data.make_battles(800, 5, rng=3)


@pytest.fixture(scope="module")
def rating(frame):
    return rate(data.load_battles(frame, covariates="length"), bayes=True, draws=500, folds=0)


def test_the_leaderboard_agrees_with_the_penalized_fit(frame, rating):
    fit = rate(
        data.load_battles(frame, covariates="length"), prior=0.1, errors="penalized", folds=0
    )
    mine = rating.to_frame().set_index("name")
    theirs = fit.to_frame().set_index("name").loc[mine.index]
    assert rating.errors == "posterior"
    # Scores have standard errors of 0.08, and 2,000 draws.
    np.testing.assert_allclose(mine["score"], theirs["score"], atol=0.02)
    np.testing.assert_allclose(mine["standard_error"], theirs["standard_error"], rtol=0.15)
    np.testing.assert_allclose(mine["prob_best"], theirs["prob_best"], atol=0.06)
    np.testing.assert_allclose(mine["n"], theirs["n"])
    table, other = rating.covariates(), fit.covariates()
    np.testing.assert_allclose(table["mean"], other["estimate"], atol=0.02)
    np.testing.assert_allclose(table["sd"], other["standard_error"], rtol=0.15)
    assert (table["low"] < table["mean"]).all()
    names = list(fit.win_chances().index)
    np.testing.assert_allclose(rating.win_chances().loc[names, names], fit.win_chances(), atol=0.01)


def test_it_says_what_it_rests_on(rating):
    text = str(rating)
    assert "normal, of precision 0.1 around the mean score" in text
    assert "4 chains of 500 draws" in text
    facts = rating.to_dict()
    shares = np.array(list(facts["posterior"]["rank_probabilities"].values()))
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    json.dumps(facts, default=float)


def test_one_seed_gives_the_same_board(frame):
    battles = data.load_battles(frame)
    boards = [rate(battles, bayes=True, draws=50, folds=0, rng=seed) for seed in (1, 1, 2)]
    tables = [board.to_frame() for board in boards]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


def test_who_never_lost_has_a_posterior():
    battles = data.load_battles({"a": list("xxxy"), "b": list("yzyz"), "winner": list("aaaa")})
    found = rate(battles, bayes=True, draws=200, folds=0, prior=Ridge(1.0))
    assert found.to_frame()["name"].tolist() == ["x", "y", "z"]
    assert np.isfinite(found.to_frame()["high"]).all()


def test_options_of_other_errors_are_refused(frame):
    battles = data.load_battles(frame)
    for options, argument in (
        ({"errors": "sandwich"}, "errors, bootstrap"),
        ({"bootstrap": 10}, "errors, bootstrap"),
        ({"prior": PseudoWins(0.5)}, "not a prior density"),
        ({"prior": 0}, "expected a positive number"),
        ({"draws": 3}, "draws"),
    ):
        with pytest.raises(ValueError, match=argument):
            rate(battles, bayes=True, **options)


def test_the_report_shows_the_places(rating):
    page = rating_report(rating).html()
    assert "Probabilities of the places" in page
    assert "as far as the data and the prior tell" in page
    assert "The chains agree" in page


def test_the_command(frame, tmp_path):
    path = tmp_path / "battles.csv"
    frame.to_csv(path, index=False)
    shown = permdist("rate", path, "--bayes", "--draws", "100", "--folds", "0", "--json")
    facts = json.loads(shown)
    assert facts["errors"] == "posterior"
    assert facts["posterior"]["draws"] == "4 chains of 100 draws"
    for option in (["--errors", "sandwich"], ["--bootstrap", "5"], ["--prior", "wins=0.5"]):
        failed = permdist("rate", path, "--bayes", *option, code=2)
        assert "--bayes: errors come from the posterior" in failed


# ---- what a reader must know ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """Battles with judges, dates, and a newcomer that won its only battle."""
    frame = data.make_battles(300, 4, rng=3)[["model_a", "model_b", "winner"]]
    frame["judge"] = [f"j{k % 7}" for k in range(len(frame))]
    frame["day"] = range(len(frame))
    frame.loc[len(frame)] = ["newbie", "model-d", "model_a", "j1", 300]
    return frame


def texts(found, kind):
    return [note.text for note in found.notes if note.kind == kind]


def test_too_few_draws_are_no_leaderboard(table):
    battles = data.load_battles(table)
    found = rate(battles, bayes=True, draws=20, folds=0)
    (warning,) = texts(found, "warning")
    assert "too few posterior draws" in warning
    assert "--draws 4000 (in Python, draws=4000)" in warning
    page = rating_report(found).html()
    assert "This leaderboard is not settled" in page
    assert "has the highest score" not in page
    assert page.index("note warning") < page.index("<table")
    assert "tune" not in page
    assert found.to_dict()["posterior"]["converged"] is False
    settled = rate(battles, bayes=True, draws=2000, folds=0)
    assert not texts(settled, "warning")
    assert settled.to_dict()["posterior"]["converged"] is True


def test_who_never_lost_is_named(table):
    found = rate(data.load_battles(table), bayes=True, draws=1000, folds=0)
    (text,) = texts(found, "info")
    assert text.startswith("newbie never lost: its place rests on the prior; --without newbie")
    assert f"Note: {text}" in str(found)
    assert "newbie never lost" in rating_report(found).html()
    rest = data.load_battles(table).without(["newbie"])
    assert not rate(rest, bayes=True, draws=1000, folds=0).notes
    assert not rate(rest, folds=0).notes
    pairs = [["a", "b"], ["b", "a"], ["a", "c"], ["c", "d"], ["d", "c"]]
    group = rate(Ballots.from_orders(pairs, subset=True), bayes=True)
    assert texts(group, "info") == ["always above the others: a, b; their places rest on the prior"]


def test_weights_are_told(table):
    battles = data.load_battles(table, time="day").without(["newbie"])
    found = rate(battles, bayes=True, draws=100, folds=0, half_life=90.0)
    assert any("weights temper the likelihood" in text for text in texts(found, "info"))


def test_the_command_warns(table, tmp_path, capsys, monkeypatch):
    path = tmp_path / "battles.csv"
    table.to_csv(path, index=False)
    options = ["--bayes", "--draws", "30", "--folds", "0"]
    monkeypatch.setattr("sys.argv", ["permdist", "rate", str(path), *options])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr()
    assert "permdist: warning: do not use these numbers yet" in shown.err
    assert "Note: newbie never lost" in shown.out
    text = permdist("rate", path, *options, "--cluster", "judge", code=2)
    assert text.count("independent; leave out --errors, --bootstrap, --cluster and") == 1


def test_the_report_checks_the_model(rating, monkeypatch):
    page = rating_report(rating).html()
    assert "Does the model fit?" in page
    wins = rating.posterior.check("wins")
    assert wins.caption in page
    assert "Check of ties: p = " in page
    strict = rate([["a", "b"], ["b", "a"], ["a", "b"]], bayes=True, draws=200)
    page = rating_report(strict).html()
    assert "Check of wins: " in page
    assert "Check of ties" not in page
