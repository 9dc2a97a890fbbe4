"""Ratings: the numbers behind a leaderboard, its report, and `permdist rate`."""

import json
import re

import naive
import numpy as np
import pandas as pd
import pytest
from test_cli import permdist

from permdist import data
from permdist.ballots import Ballots
from permdist.inference import PseudoWins
from permdist.inference.fit import NoEstimateError, fit_ballots
from permdist.rating import battle_chances, rate, rate_slices
from permdist.report.leaderboard import rating_report


@pytest.fixture(scope="module")
def frame():
    return data.make_battles(600, 5, rng=3)


@pytest.fixture(scope="module")
def battles(frame):
    return data.load_battles(frame)


@pytest.fixture(scope="module")
def rating(battles):
    return rate(battles)


@pytest.fixture(scope="module")
def adjusted(frame):
    options = {"covariates": "length,position", "cluster": "voter", "by": "language"}
    return data.load_battles(frame, **options)


@pytest.fixture
def file(frame, tmp_path):
    path = tmp_path / "battles.csv"
    frame.to_csv(path, index=False)
    return path


# ---- battles as ballots --------------------------------------------------------------------------


def test_battles_become_ballots(frame, battles):
    winners, losers, ties = [], [], []
    for one, two, won in frame[["model_a", "model_b", "winner"]].itertuples(index=False):
        winners.append(two if won == "model_b" else one)
        losers.append(one if won == "model_b" else two)
        ties.append(won.startswith("tie"))
    wanted = fit_ballots(Ballots.from_pairs(winners, losers, ties=ties), (2,))
    found = fit_ballots(battles.ballots, (2,))
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-9)
    np.testing.assert_allclose(found.ties, wanted.ties, atol=1e-9)
    merged = fit_ballots(battles.merged().ballots, (2,))
    np.testing.assert_allclose(merged.scores, wanted.scores, atol=1e-9)
    assert merged.log_likelihood == pytest.approx(wanted.log_likelihood)


def test_merged_battles_have_the_same_counts(battles, adjusted):
    merged = battles.merged()
    assert len(merged) <= 3 * 10
    for one, two in zip(battles.counts(), merged.counts(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert adjusted.merged() is adjusted


def test_competitors_can_be_left_out(battles):
    rest = battles.without(["model-b", "model-e"])
    assert rest.names == ("model-a", "model-c", "model-d")
    keep = [0, 2, 3]
    np.testing.assert_array_equal(rest.counts()[0], battles.counts()[0][np.ix_(keep, keep)])


def test_covariates_go_with_their_side():
    frame = {"a": ["x", "x"], "b": ["y", "y"], "winner": ["b", "a"]}
    frame |= {"length_a": [1.0, 2.0], "length_b": [3.0, 4.0]}
    ballots = data.load_battles(frame, covariates="length").ballots
    assert ballots.items.tolist() == [1, 0, 0, 1]
    assert ballots.features.ravel().tolist() == [3.0, 1.0, 2.0, 4.0]


def test_simulated_battles_are_found_again():
    # 4.5 standard errors: 1 in 15,000 of 11 numbers.
    frame = data.make_battles(5000, 6, rng=5)
    found = rate(data.load_battles(frame, covariates="length,position"), folds=0)
    place = np.linspace(1, -1, 6)
    errors = found.fit.standard_errors()
    assert (np.abs(found.fit.scores - 0.7 * place / place.std()) < 4.5 * errors).all()
    table = found.covariates()
    z = (table["estimate"] - [0.3, 0.0]) / table["standard_error"]
    assert np.abs(z).max() < 4.5
    assert abs(found.fit.ties[0] - np.log(0.5)) < 4.5 * found.fit.tie_errors()[0]
    assert not data.make_battles(50, 3, ties=0.0, rng=0)["winner"].str.startswith("tie").any()
    pd.testing.assert_frame_equal(data.make_battles(9, 3, rng=1), data.make_battles(9, 3, rng=1))


# ---- ratings -------------------------------------------------------------------------------------


def test_chances_are_those_of_the_fit(battles, rating, adjusted):
    chances = battle_chances(rating.fit, battles)
    log_tie = rating.fit.ties[0]
    for row in range(0, 600, 97):
        one, two = battles.first[row], battles.second[row]
        wanted = naive.davidson(rating.fit.scores, log_tie, one, two)
        np.testing.assert_allclose(chances[row], wanted)
    # The chances of what happened make up the likelihood, with covariates, too.
    for part, fit in ((battles, rating.fit), (adjusted, rate(adjusted, folds=0).fit)):
        happened = np.minimum(part.outcome, 2)
        logs = np.log(battle_chances(fit, part)[np.arange(len(part)), happened])
        assert logs.sum() == pytest.approx(fit.log_likelihood)


def test_win_chances(rating):
    wins, ties = rating.win_chances(), rating.win_chances("tie")
    assert wins.index[0] == rating.leaderboard.to_frame()["name"][0]
    number = rating.fit.names.index
    for one in wins.index:
        for two in wins.columns.drop(one):
            wanted = naive.davidson(rating.fit.scores, rating.fit.ties[0], number(one), number(two))
            assert wins.loc[one, two] == pytest.approx(wanted[0])
            assert ties.loc[one, two] == pytest.approx(wanted[2])
            points = rating.win_chances("points").loc[one, two]
            assert points == pytest.approx(wanted[0] + wanted[2] / 2)
        assert np.isnan(wins.loc[one, one])
    assert "chance of a win against  model-a" in str(rating)
    assert rating.to_dict()["win_chances"]["model-a"]["model-b"] == wins.loc["model-a", "model-b"]


def test_the_deviance_is_that_of_the_likelihood(battles, rating):
    wins, ties = battles.counts()
    value = 0.0
    for i in range(5):
        for j in range(i):
            seen = np.array([wins[i, j], wins[j, i], ties[i, j]])
            value += float((seen * np.log(np.maximum(seen, 1e-9) / seen.sum())).sum())
    found = rating.goodness.deviance
    assert found.value == pytest.approx(2 * (value - rating.fit.log_likelihood))
    assert found.degrees == 2 * 10 - 5


def test_expected_points_of_a_competitor_are_those_it_has(rating):
    # The score equations of maximum likelihood.
    table = rating.goodness.residuals
    for name in rating.fit.names:
        seen = expected = 0.0
        for side, points in (("first", "wins"), ("second", "losses")):
            rows = table[table[side] == name]
            seen += (rows[points] + rows["ties"] / 2).sum()
            expected += (rows[f"expected_{points}"] + rows["expected_ties"] / 2).sum()
        assert seen == pytest.approx(expected)
    assert table["ties"].sum() == pytest.approx(table["expected_ties"].sum())


def test_held_out_battles_are_predicted_without_them(rating, battles):
    table = rating.goodness.calibration
    assert table["n"].sum() == 2 * 600
    assert rating.goodness.log_loss < rating.goodness.constant_loss
    in_sample = -rating.fit.log_likelihood / 600
    assert in_sample < rating.goodness.log_loss < in_sample + 0.05
    again = rate(battles, rng=1).goodness
    assert again.log_loss != rating.goodness.log_loss
    none = rate(battles, folds=0).goodness
    assert none.calibration is None
    assert np.isnan(none.log_loss)


def test_kinds_of_errors(battles, frame):
    clustered = data.load_battles(frame, cluster="voter")
    assert rate(battles, folds=0).errors == "observed"
    assert rate(clustered, folds=0).errors == "sandwich"
    drawn = rate(battles, bootstrap=50, folds=0)
    assert drawn.errors == drawn.leaderboard.kind == "bootstrap"
    scores = drawn.fit.bootstrap(50, rng=0).scores
    board = drawn.leaderboard.to_frame().set_index("name").loc[list(drawn.fit.names)]
    np.testing.assert_allclose(board["standard_error"], scores.std(axis=0, ddof=1))
    np.testing.assert_allclose(board["low"], np.percentile(scores, 2.5, axis=0))
    profile = rate(battles, errors="profile", level=0.9, folds=0)
    board = profile.leaderboard.to_frame().set_index("name").loc[list(profile.fit.names)]
    np.testing.assert_allclose(board[["low", "high"]], profile.fit.intervals(0.9, "profile"))


def test_half_lives(frame):
    timed = data.load_battles(frame, time="date")
    found = rate(timed, half_life=30.0, folds=2)
    wanted = fit_ballots(timed.ballots, (2,), half_life=30.0)
    np.testing.assert_allclose(found.fit.scores, wanted.scores)
    assert found.goodness.deviance is None
    assert found.to_dict()["half_life"] == {"value": 30.0, "unit": "days"}
    assert "30 days" in rating_report(found).html()
    frame = frame.copy()
    frame["date"] = pd.to_datetime(frame["date"]).astype("datetime64[s]").astype(np.int64)
    unix = rate(data.load_battles(frame, time="date"), half_life=30.0, folds=2)
    np.testing.assert_allclose(unix.fit.scores, wanted.scores, atol=1e-12)
    frame["date"] -= frame["date"].min()
    plain = rate(data.load_battles(frame, time="date"), half_life=30.0 * 86_400, folds=0)
    np.testing.assert_allclose(plain.fit.scores, wanted.scores, atol=1e-12)
    assert plain.to_dict()["half_life"]["unit"] is None
    with pytest.raises(ValueError, match="half_life: the battles have no times"):
        rate(data.load_battles(frame), half_life=30.0)


def test_ballots_of_other_kinds(tmp_path):
    orders = [[0, 1, 2], [1, 0, 2], [[0, 2], 1], [2, 1, 0]]
    found = rate(Ballots.from_orders(orders, names=["x", "y", "z"]))
    assert found.goodness is None
    assert found.battles is None
    assert "ballots" in str(found)
    assert 0 < found.tie_chance < 1
    assert rate(np.array([[0, 1], [1, 0]])).tie_chance is None
    page = rating_report(found).html()
    assert page.count("<img ") == 1


def test_a_competitor_that_never_lost(battles):
    frame = {"a": list("xxyz"), "b": list("yzzy"), "winner": ["a", "a", "a", "a"]}
    lone = data.load_battles(frame)
    with pytest.raises(NoEstimateError, match="always above the others: x"):
        rate(lone)
    found = rate(lone, prior=PseudoWins(0.5))
    assert found.leaderboard.to_frame()["name"][0] == "x"
    assert found.goodness.deviance is None


def test_slices_are_rated_by_themselves(adjusted):
    ratings, failures = rate_slices(adjusted, folds=0)
    assert set(ratings) == {"English", "German", "Chinese"}
    assert not failures
    sizes = {name: one.fit.n_ballots for name, one in ratings.items()}
    assert sum(sizes.values()) == 600
    frame = {"a": list("xyx"), "b": list("yxy"), "winner": list("aaa"), "task": ["m", "m", "n"]}
    ratings, failures = rate_slices(data.load_battles(frame, by="task"), folds=0)
    assert list(ratings) == ["m"]
    assert "no maximum likelihood estimate" in failures["n"]


def test_text_and_plain_values(rating, adjusted):
    text = str(rating)
    assert "deviance" in text
    facts = rating.to_dict()
    assert facts["leaderboard"][0]["name"] == "model-a"
    assert facts["goodness"]["deviance"]["degrees"] == 15
    found = rate(adjusted, folds=0)
    assert [row["covariate"] for row in found.to_dict()["covariates"]] == ["length", "position"]


# ---- the report and the command ------------------------------------------------------------------


def test_a_report_has_all_pictures(adjusted):
    found = rate(adjusted, elo=True)
    ratings, _ = rate_slices(adjusted, folds=0)
    report = rating_report(
        found, slices=ratings, failures={"Welsh": "too few"}, facts={"seed": "0"}
    )
    page = report.html()
    assert page.count("<img ") == 4
    assert "Welsh: too few" in page
    assert "with equal covariates" in page


def test_significant_circles_are_listed():
    n = 30
    frame = {"a": list("rps") * n, "b": list("srp") * n, "winner": list("aaa") * n}
    found = rate(data.load_battles(frame), folds=0)
    assert found.goodness.circles.significant == 1
    assert found.goodness.deviance.p_value < 1e-9
    page = rating_report(found).html()
    assert "Significant circles" in page
    assert "Calibration" not in page


def test_rate_on_the_command_line(file):
    text = permdist("rate", file, "--elo", "--anchor", "model-c")
    assert re.search(r"^3 +model-c .* 1000 +\d+ +\d+$", text, re.M)
    assert "two equal competitors tie with chance" in text
    text = permdist("rate", file, "--without", "model-a", "--bootstrap", "20", "--folds", "0")
    assert "4 items; errors: bootstrap" in text
    arguments = ("--covariates", "length", "--cluster", "voter", "--by", "language", "--folds", "2")
    facts = json.loads(permdist("rate", file, *arguments, "--json"))
    assert facts["errors"] == "sandwich"
    assert set(facts["slices"]) == {"English", "German", "Chinese"}
    assert facts["covariates"][0]["covariate"] == "length"
    text = permdist("rate", file, "--time", "date", "--half-life", "60", "--by", "language")
    assert re.search(r"^language = German, \d+ battles$", text, re.M)


def test_output_by_suffix(file, tmp_path):
    for name in ("r.html", "r.csv", "r.json", "r.tex"):
        sliced = ("--by", "language") if name == "r.csv" else ()
        text = permdist("rate", file, *sliced, "--folds", "0", "-o", name, cwd=tmp_path)
        assert text.endswith(f"Written: {name}\n")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    table = pd.read_csv(tmp_path / "r.csv")
    assert table["slice"].unique().tolist()[0] == "all"
    assert len(table) == 4 * 5
    assert json.loads((tmp_path / "r.json").read_text())["leaderboard"][0]["place"] == 1
    assert (tmp_path / "r.tex").read_text().count(r"\begin{tabular}") == 1


def test_names_with_escapes_on_the_command_line(tmp_path):
    lines = ["a,b,winner,task"]
    lines += [f"{one},{two},a,t\x1bx" for one in ("=1+2", "te\x1b[2Ja") for two in ("x", "@y")]
    lines += [f"{two},{one},a,t\x1bx" for one in ("=1+2", "te\x1b[2Ja") for two in ("x", "@y")]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    rated = ("rate", "b.csv", "--folds", "0", "--by", "task")
    assert "\x1b" not in permdist(*rated, cwd=tmp_path)
    for name in ("r.csv", "r.tex"):
        assert permdist(*rated, "-o", name, cwd=tmp_path)
        assert "\x1b" not in (tmp_path / name).read_text()
    names = set(pd.read_csv(tmp_path / "r.csv")["name"])
    assert names == {"'=1+2", r"te\x1b[2Ja", "x", "'@y"}
    assert "\x1b" not in permdist("describe", "b.csv", cwd=tmp_path)


def test_preflib_files_are_rated(tmp_path):
    text = "# NUMBER ALTERNATIVES: 3\n3: 2,{1,3}\n2: 1,2,3\n2: 3,2,1\n"
    (tmp_path / "v.toc").write_text(text)
    assert "alternative 2" in permdist("rate", "v.toc", cwd=tmp_path).splitlines()[2]
    shown = permdist("rate", "v.toc", "--without", "alternative 1", cwd=tmp_path)
    assert "2 items" in shown


def test_spellings_on_the_command_line(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text("a,b,winner\n0,1,1\n1,0,1\n0,1,0\n1,0,1\n")
    rated = ("rate", "b.csv", "--folds", "0")
    text = permdist(*rated, cwd=tmp_path, code=2)
    assert text.endswith("pass --spellings names or --spellings sides\n")
    for spellings, name in {"names": "1", "sides": "1", "1=second,0=first": "0"}.items():
        facts = json.loads(permdist(*rated, "--spellings", spellings, "--json", cwd=tmp_path))
        assert facts["leaderboard"][0]["name"] == name
    path.write_text("a,b,winner\nx,y,1\nx,y,2\nx,y,1\nx,y,0\n")
    text = permdist(*rated, cwd=tmp_path, code=2)
    assert "pass for example --spellings 0=tie,1=first,2=second" in text
    facts = json.loads(
        permdist(*rated, "--spellings", "0=tie,1=first,2=second", "--json", cwd=tmp_path)
    )
    assert facts["leaderboard"][0]["name"] == "x"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "langage"), ": --by: there is no column 'langage'; did you mean 'language'?"),
        (("--prior", "wins"), "--prior: expected a positive number, ridge=NUMBER or wins=NUMBER"),
        (("--half-life", "3"), "--half-life: pass the column with the times by --time"),
        (("-o", "r.pdf"), "--output: expected a file .html"),
        (("--anchor", "model-x"), "permdist: --anchor: expected one of"),
        (("--missing", "skip"), "permdist: --missing: expected one of error, drop, got 'skip'"),
        (("--covariates", "winner"), ": winner: expected a finite number, got 'model_"),
        (("--by", "length_a"), "--by: expected a column with at most 200 different values"),
    ],
)
def test_mistakes_are_one_line(file, arguments, message):
    text = permdist("rate", file, *arguments, code=2)
    assert message in text
    assert len(text.splitlines()) == 1


def test_files_and_tables_are_loaded(file, tmp_path):
    board = rate(data.load_battles(file), folds=0).leaderboard.to_frame()
    frame = pd.read_csv(file)
    for given in (file, str(file), frame, frame.to_dict(orient="list")):
        pd.testing.assert_frame_equal(rate(given, folds=0).leaderboard.to_frame(), board)
    (tmp_path / "v.soc").write_text("# NUMBER ALTERNATIVES: 3\n3: 2,1,3\n2: 1,2,3\n2: 3,2,1\n")
    assert rate(tmp_path / "v.soc").fit.n_ballots == 7
    # A data frame of orders stays one.
    assert rate(pd.DataFrame([[0, 1, 2], [1, 2, 0], [2, 0, 1]])).fit.n_ballots == 3
    with pytest.raises(ValueError, match=r"data: expected battles, ballots or"):
        rate("clean.txt")


def test_names_that_differ_by_case_are_noted():
    frame = {"a": ["GPT-X", "gpt-x", "m", "GPT-X", "m"], "b": ["m", "m", "gpt-x", "gpt-x", "GPT-X"]}
    battles = data.load_battles(frame | {"winner": list("aaaba")})
    assert battles.describe().to_dict()["alike"] == [["GPT-X", "gpt-x"]]
    assert "GPT-X and gpt-x" in rate(battles, prior=0.1, folds=0).summary()["note"]
    other = {"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "a"]}
    assert "note" not in rate(data.load_battles(other), folds=0).summary()


def test_dirty_tables_on_the_command_line(tmp_path):
    (tmp_path / "b.csv").write_text(
        "model_a,model_b,winner\nx,y,a\nx,,a\nz,z,a\ny,x,y\nx,y,modle_b\ny,x,a\n"
    )
    text = permdist("rate", "b.csv", cwd=tmp_path, code=2)
    assert "3 rows cannot be used" in text
    clean = ("--missing", "drop", "--invalid", "drop")
    said = "1 row without a competitor or a winner, 2 invalid rows"
    assert f"left out               {said}" in permdist("rate", "b.csv", *clean, cwd=tmp_path)
    assert f"left out                {said}" in permdist("describe", "b.csv", *clean, cwd=tmp_path)
    permdist("rate", "b.csv", *clean, "--folds", "0", "-o", "b.html", cwd=tmp_path)
    assert said in (tmp_path / "b.html").read_text()
    facts = json.loads(permdist("rate", "b.csv", *clean, "--json", cwd=tmp_path))
    assert facts["left_out"] == {"missing": 1, "invalid": 2}


def test_remedies_are_named(tmp_path):
    (tmp_path / "b.csv").write_text("model_a,model_b,winner\nx,y,a\nx,z,a\ny,z,a\nz,y,a\n")
    text = permdist("rate", "b.csv", cwd=tmp_path, code=2)
    assert "always above the others: x" in text
    assert text.endswith("--without NAMES, or --prior wins=0.5\n")
    assert "x" in permdist("rate", "b.csv", "--prior", "wins=0.5", cwd=tmp_path)


def test_describe_tables_of_battles(file):
    text = permdist("describe", file)
    assert "pairs that met          10 of 10" in text
    facts = json.loads(permdist("describe", file, "--json"))
    assert facts["n_battles"] == 600
    assert facts["parts"] == [[f"model-{letter}" for letter in "abcde"]]
    assert "line" not in permdist("describe", file, "--weight", "voter")


def test_describe_says_whether_ballots_can_be_rated(tmp_path):
    (tmp_path / "v.soc").write_text("# NUMBER ALTERNATIVES: 2\n3: 2,1\n")
    text = permdist("describe", "v.soc", cwd=tmp_path)
    assert "estimate of worths        none: always above the others: alternative 2\n" in text
    assert json.loads(permdist("describe", "v.soc", "--json", cwd=tmp_path))["comparable"] is False
    (tmp_path / "v.soc").write_text("# NUMBER ALTERNATIVES: 2\n3: 2,1\n2: 1,2\n")
    assert "estimate of worths        exists\n" in permdist("describe", "v.soc", cwd=tmp_path)


def test_small_tables_are_rated():
    frame = {"a": ["x", "y", "x"], "b": ["y", "x", "y"], "winner": ["a", "a", "tie"]}
    found = rate(data.load_battles(frame))  # without the tie there is nothing to predict it from
    assert found.fit.ties[0] == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(found.goodness.log_loss)
    assert rate(data.load_battles(frame), folds=100).goodness.calibration is not None
    apart = {"a": list("xv"), "b": list("yw"), "winner": list("aa")}
    assert rate(data.load_battles(apart), prior=0.1).errors == "penalized"
    weighted = rate(data.load_battles(frame | {"n": [0.5, 1.5, 2.0]}, weight="n"))
    assert weighted.fit.n_ballots == 4.0
