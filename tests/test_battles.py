"""Battles from files: columns, spellings of the winner, covariates, and every kind of bad row."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from permdist import Ballots
from permdist.data import load_battles, read_battles
from permdist.data.battles import Battles

HEAD = "model_a,model_b,winner\n"


def table(winners, first="x", second="y", **columns):
    n = len(winners)
    return {"model_a": [first] * n, "model_b": [second] * n, "winner": winners, **columns}


def outcomes(winners, **options):
    return load_battles(table(winners), **options).outcome.tolist()


@pytest.mark.parametrize(
    "spellings",
    [
        ["model_a", "model_b", "tie", "tie (bothbad)"],
        ["a", "b", "draw", "both_bad"],
        ["A", "B", "Both", "BothBad"],
        ["left", "right", "both", "bothbad"],
        ["first", "second", "Tie", "both bad"],
        ["1", "0", "0.5", "neither"],
        ["1.0", "0.0", "0.5", "tie (both bad)"],
        ["x", "y", "tie", "tie (bothbad)"],
        ["[[A]]", "[[B]]", "[[C]]", "both-bad"],
        [" model_a ", "MODEL_B", "tie (bothgood)", "tie(bothbad)"],
        ["1-0", "0-1", "1/2-1/2", "neither"],
        ["x", "model_b", "tie", "neither"],  # names and sides may be mixed
    ],
)
def test_spellings_in_use(spellings):
    assert outcomes(spellings) == [0, 1, 2, 3]


def test_numbers_say_who_won():
    assert outcomes([1, 0, 0.5]) == [0, 1, 2]
    assert outcomes([1, 0]) == [0, 1]
    assert outcomes([True, False]) == [0, 1]
    assert outcomes([1, 2]) == [0, 1]
    assert outcomes([1, -1, 0]) == [0, 1, 2]
    with pytest.raises(ValueError, match="0, 1 and 2 have no common meaning; pass for example"):
        outcomes([1, 2, 0])
    meaning = {"0": "tie", "1": "first", "2": "second"}
    assert outcomes([1, 2, 0], spellings=meaning) == [0, 1, 2]
    with pytest.raises(ValueError, match="spellings: expected one of first, second, tie, both bad"):
        outcomes([1], spellings={"1": "left"})


def test_names_count_before_sides_where_they_explain_every_row():
    named = {"model_a": ["b", "a"], "model_b": ["a", "b"], "winner": ["a", "a"]}
    assert load_battles(named).outcome.tolist() == [1, 0]
    numbered = {"model_a": [3, 4], "model_b": [4, 1], "winner": [1, 0]}
    assert load_battles(numbered).outcome.tolist() == [0, 1]
    assert load_battles(numbered).names == ("1", "3", "4")


def test_numbers_that_may_be_names_or_sides_are_asked_for():
    players = {"model_a": [0, 1, 0], "model_b": [1, 0, 1], "winner": [1, 1, 0]}
    expected = {"names": [1, 0, 0], "sides": [0, 0, 1]}
    with pytest.raises(
        ValueError, match=r"row 0: the winner '1' may be .*; pass spellings='names'"
    ):
        load_battles(players)
    for meaning, outcome in expected.items():
        assert load_battles(players, spellings=meaning).outcome.tolist() == outcome
    spelled = load_battles(players, spellings={"1": "first", "0": "second"})
    assert spelled.outcome.tolist() == expected["sides"]
    alike = {"model_a": [1, 1], "model_b": [2, 2], "winner": [1, 2]}  # both readings agree
    assert load_battles(alike).outcome.tolist() == [0, 1]
    with pytest.raises(ValueError, match="spellings: expected one of"):
        load_battles(players, spellings="ids")
    with pytest.raises(ValueError, match="may be a competitor's name or a side"):
        list(read_battles([pd.DataFrame(players)]))


def test_winners_may_be_numbers_of_competitors():
    rng = np.random.default_rng(0)
    one, two = np.array([rng.permutation(10)[:2] for _ in range(200)]).T
    won = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"a": one, "b": two, "winner": np.where(won, two, one)})
    assert load_battles(frame).outcome.tolist() == won.tolist()
    blocks = list(read_battles([frame[:100], frame[100:]]))
    assert np.concatenate([block.outcome for block in blocks]).tolist() == won.tolist()
    frame.loc[7, "winner"] = next(
        n for n in range(10) if n not in frame.loc[7, ["a", "b"]].tolist()
    )
    with pytest.raises(ValueError, match=r"row 7: the winner '.' is neither '.' nor '.'"):
        load_battles(frame)


@pytest.mark.parametrize(
    "columns",
    [
        ("model_a", "model_b", "winner"),
        ("Model_A", "Model_B", "Winner"),
        ("player_1", "player_2", "result"),
        ("left", "right", "vote"),
        ("white", "black", "outcome"),
        (" model_a", "model_b ", "winner"),
    ],
)
def test_columns_are_found_by_their_usual_names(columns):
    first, second, winner = columns
    frame = pd.DataFrame({winner: ["a", "b"], second: ["y", "z"], first: ["x", "x"]})
    battles = load_battles(frame)
    assert battles.names == ("x", "y", "z")
    assert battles.outcome.tolist() == [0, 1]
    assert battles.columns == {"first": first, "second": second, "winner": winner}


def test_the_name_of_a_column_is_a_spelling():
    frame = {"home": ["x", "x"], "away": ["y", "y"], "result": ["home", "AWAY"]}
    assert load_battles(frame).outcome.tolist() == [0, 1]


def test_winners_and_losers():
    frame = {"winner": ["x", "y", "x"], "loser": ["y", "z", "z"], "tie": [False, True, False]}
    assert load_battles(frame).outcome.tolist() == [0, 2, 0]
    frame = {"won": ["x", "y"], "lost": ["y", "z"], "even": ["no", "yes"]}
    battles = load_battles(frame, winner="won", loser="lost", ties="even")
    assert battles.outcome.tolist() == [0, 2]
    assert load_battles(frame, winner="won", loser="lost").outcome.tolist() == [0, 0]
    frame["even"][1] = "perhaps"
    with pytest.raises(ValueError, match="battles, row 1: expected true or false, got 'perhaps'"):
        load_battles(frame, winner="won", loser="lost", ties="even")


def test_one_column_per_outcome():
    frame = {"model_a": ["x"] * 3, "model_b": ["y"] * 3}
    frame |= {"winner_model_a": [1, 0, 0], "winner_model_b": [0, 1, 0], "winner_tie": [0, 0, 1]}
    assert load_battles(frame).outcome.tolist() == [0, 1, 2]
    frame["winner_tie"] = [0, 1, 1]
    with pytest.raises(ValueError, match="row 1: expected one 1 and zeros in the columns winner_"):
        load_battles(frame)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".csv.gz"])
def test_files(suffix, tmp_path):
    frame = pd.DataFrame(table(["model_a", "tie"], note=['said "no",\nthen left', "Zoë"]))
    path = tmp_path / f"battles{suffix}"
    if "json" in suffix:
        frame.to_json(path, orient="records", lines=suffix == ".jsonl")
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    battles = load_battles(path, by="note")
    assert battles.outcome.tolist() == [0, 2]
    assert "Zoë" in battles.groups
    assert battles.source == str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y,z\n", "line 2: expected the winner 'x' or 'y', a side .* or a tie, got 'z'"),
        ("x,y,x\ny,z,x\n", "line 3: the winner 'x' is neither 'y' nor 'z'"),
        ("x,y,modle_a\n", "line 2: .* got 'modle_a'; did you mean 'model_a'\\? invalid='drop'"),
        ("x,y,a\nz,z,a\n", "line 3: 'z' is matched against itself"),
        ("x,y,a\nz,,a\n", "line 3: model_b is missing; missing='drop' leaves such rows out"),
        ("x,y,a\nNaN,z,a\n", "line 3: model_a is missing"),
        ("x,y,a\nx,z\n", "line 3: winner is missing"),
        ("x,y,a\nx,y,a,b\n", "line 3: expected 3 fields, got more"),
        ('"x\n1",y,a\n\nx,x,a\n', "line 5: 'x' is matched against itself"),
        ("", "expected at least one battle, there is none"),
    ],
)
def test_bad_rows_are_named_by_their_line(text, message, tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text(HEAD + text)
    with pytest.raises(ValueError, match=f"^{path}.*{message}") as caught:
        load_battles(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.csv", "", "the file is empty"),
        ("b.csv", "\n\n", "the file is empty"),
        ("b.csv", "a\0b", "binary data"),
        (
            "b.jsonl",
            '{"a": "x", "b": "y", "winner": "a"}\n\n{"a": "x", \n',
            "line 3: expected a JSON",
        ),
        ("b.jsonl", '\n{"a": "x", "b": "x", "winner": "a"}\n', "line 2: 'x' is matched against"),
        (
            "b.jsonl",
            '{"a": "x", "b": ["y"], "winner": "a"}',
            "line 1: b: expected a text or a number",
        ),
        ("b.json", '[{"a": "x", "b": "x", "winner": "a"}]', "record 1: 'x' is matched against"),
        ("b.json", "[1, 2]", "expected JSON objects"),
        ("b.json", "[1, 2", "expected a list of JSON objects"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_battles(tmp_path / name)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: no such file"):
        load_battles(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="source: expected a file name or a data frame, got int"):
        load_battles(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"winner": "wnner"}, "winner: there is no column 'wnner'; did you mean 'winner'?; the"),
        ({"by": "language"}, "by: there is no column 'language'; the columns are model_a, model_b"),
        ({"covariates": "len"}, "no pair len_a, len_b either: covariates: there is no column"),
        ({"first": "model_a"}, "first, second: pass both columns or none of them"),
        ({"first": "model_a", "second": "model_b", "loser": "x"}, "pass winner and loser, or"),
        ({"loser": "model_c"}, "loser: there is no column 'model_c'"),
        ({"missing": "skip"}, "missing: expected one of error, drop, got 'skip'"),
        ({"invalid": "skip"}, "invalid: expected one of error, drop, got 'skip'"),
    ],
)
def test_unknown_columns_are_told_what_there_is(options, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        load_battles(table(["a"]), **options)


def test_columns_without_a_usual_name():
    with pytest.raises(ValueError, match="expected columns for model_a and model_b, or winner and"):
        load_battles({"this": ["x"], "that": ["y"]})
    with pytest.raises(ValueError, match="expected columns for a winner, got left, right; name"):
        load_battles({"left": ["x"], "right": ["y"]})
    frame = {"this": ["x"], "that": ["y"], "better": ["that"]}
    battles = load_battles(frame, first="this", second="that", winner="better")
    assert battles.outcome.tolist() == [1]


def test_weights():
    battles = load_battles(table(["a", "b"], n=[2.5, 1]), weight="n")
    assert battles.weights.tolist() == [2.5, 1.0]
    wins, ties = battles.counts()
    assert wins.tolist() == [[0.0, 2.5], [1.0, 0.0]]
    assert not ties.any()
    for bad in (-1, np.nan, "many", np.inf):
        with pytest.raises(ValueError, match=r"row 1: .*expected a (weight|finite number)"):
            load_battles(table(["a", "b"], n=[1, bad]), weight="n")


def test_incomplete_rows_can_be_dropped_and_lines_stay_right(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text(HEAD + ",y,a\nx,y,a\nx,y,\nz,z,a\n")
    with pytest.raises(ValueError, match="line 5: 'z' is matched against itself"):
        load_battles(path, missing="drop")
    path.write_text(HEAD + ",w,a\nx,y,a\nx,y,\n")
    battles = load_battles(path, missing="drop")
    assert (battles.names, battles.outcome.tolist()) == (("x", "y"), [0])
    with pytest.raises(ValueError, match="every row lacks a competitor or the winner"):
        load_battles(table([None]), missing="drop")


DIRTY = "x,y,a\nz,z,a\nx,y,b\nx,,a\nx,y,nobody\nx,y,a,b\ny,z,x\nonly,only,-1\nx,y,0\n"


def test_all_bad_rows_are_told_at_once(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text(HEAD + DIRTY)
    with pytest.raises(ValueError, match="6 rows cannot be used") as caught:
        load_battles(path)
    assert all(f"line {number}: " in str(caught.value) for number in (3, 5, 6, 7, 8, 9))
    with pytest.raises(ValueError, match=r"battles.csv, line 5: model_b is missing; missing='dr"):
        load_battles(path, invalid="drop")
    with pytest.raises(ValueError, match=r"5 rows .*\(invalid='drop' leaves such rows out\)"):
        load_battles(path, missing="drop")
    path.write_text(HEAD + "x,y,a\n" + "z,z,a\n" * 12)
    with pytest.raises(ValueError, match=r"lines 3, 4, .*, 12: 'z' is .* itself; and 2 more$"):
        load_battles(path)
    with pytest.raises(ValueError, match="2 rows cannot be used: row 1: n: expected a finite num"):
        load_battles(table(["a", "b", "a"], n=[1, "p", "q"]), weight="n")


def test_bad_rows_can_be_left_out_and_are_counted(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text(HEAD + DIRTY)
    battles = load_battles(path, missing="drop", invalid="drop")
    # The -1 of a row that is left out does not make a tie of 0.
    assert (battles.names, battles.outcome.tolist()) == (("x", "y"), [0, 1, 1])
    assert battles.dropped == {"invalid": 5, "missing": 1}
    said = "1 row without a competitor or a winner, 5 invalid rows"
    assert f"left out                {said}" in str(battles.describe())
    assert battles.describe().to_dict()["left_out"] == battles.dropped
    assert battles.merged().dropped == battles.without([]).dropped == battles.dropped
    blocks = read_battles(path, block=2, missing="drop", invalid="drop")
    assert sum(map(len, blocks)) == 3
    assert blocks.merged().dropped == battles.dropped
    path.write_text(HEAD + "z,z,a\nx,,a\n")
    with pytest.raises(ValueError, match=r"no row is left; left out: 1 row without .*, 1 inv"):
        load_battles(path, missing="drop", invalid="drop")


def test_a_winner_that_cannot_be_read_does_not_change_the_others():
    frame = {"a": list("aba"), "b": list("bab"), "winner": ["a", "a", "?"]}
    assert load_battles(frame, invalid="drop").outcome.tolist() == [0, 1]
    assert load_battles(
        {"won": ["x", "y"], "lost": ["y", "x"], "even": ["no", "?"]},
        winner="won",
        loser="lost",
        ties="even",
        invalid="drop",
    ).outcome.tolist() == [0]


def test_the_same_battle_has_one_winner(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text("id,model_a,model_b,winner,judge\n7,x,y,a,p\n8,x,y,b,p\n7,x,y,b,q\n7,x,y,b,p\n")
    with pytest.raises(
        ValueError, match=r"battles\.csv, line 5: the same battle as line 2, with another winner"
    ):
        load_battles(path)
    path.write_text("id,model_a,model_b,winner\n7,x,y,a\n7,x,y,a\n7,x,z,b\n")
    with pytest.warns(UserWarning, match="line 3: repeats an earlier row, as 1 row do in all"):
        assert len(load_battles(path)) == 3
    # Without an id, rows that look alike are different battles.
    assert len(load_battles(table(["a", "b", "a"]))) == 3
    with pytest.raises(ValueError, match="row 1: the same battle as row 0"):
        load_battles(table(["a", "b"], prompt=["p", "p"]), id="prompt")


@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl"])
def test_json_that_is_nested_too_deeply(name, tmp_path):
    path = tmp_path / name
    path.write_text('[{"model_a": ' + "[" * 100_000 if name == "deep.json" else "[" * 100_000)
    with pytest.raises(ValueError, match=rf"{name}.*: expected .* \(it is nested too deeply\)"):
        load_battles(path)
    if name == "deep.jsonl":
        with pytest.raises(ValueError, match=rf"{name}, line 1: expected a JSON object"):
            list(read_battles(path))


def test_covariates():
    frame = table(["a", "b"], length_a=[10, 20], length_b=[15, 5], bold=[1, -2])
    battles = load_battles(frame, covariates="length, bold,position")
    one, two = battles.features
    assert battles.feature_names == ("length", "bold", "position")
    assert one.tolist() == [[10, 1, 1], [20, -2, 1]]
    assert two.tolist() == [[15, 0, 0], [5, 0, 0]]
    frame["bold"][1] = "yes"
    with pytest.raises(ValueError, match="row 1: bold: expected a finite number, got 'yes'"):
        load_battles(frame, covariates=["bold"])


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6, 1e9])
def test_unix_times_are_days(unit):
    seconds = np.array([1_700_000_000.0, 1_700_086_400.0, 1_700_043_200.0])
    for when in (seconds * unit, (seconds * unit).astype(np.int64).astype(str)):
        battles = load_battles(table(["a", "b", "a"], when=when), time="when")
        assert battles.times - battles.times[0] == pytest.approx([0.0, 1.0, 0.5], abs=1e-6)
        assert battles.time_unit == battles.take([0, 1]).time_unit == "days"
        assert battles.ballots.time_unit == "days"
        ballots = Ballots.from_pairs([0, 0, 0], [1, 1, 1], times=when)
        assert ballots.times == pytest.approx(battles.times, abs=1e-9)
        assert (ballots + ballots.take(np.array([True, False, True]))).time_unit == "days"


def test_dates_as_ballots_have_them():
    expected = [0.0, 2.0]
    for when in (
        ["2024-02-28", "2024-03-01"],
        [20240228, 20240301],
        np.array(["2024-02-28", "2024-03-01"], dtype="datetime64[s]"),
        [datetime.date(2024, 2, 28), datetime.date(2024, 3, 1)],
    ):
        ballots = Ballots.from_pairs([0, 1], [1, 0], times=when)
        assert (ballots.times - ballots.times[0]).tolist() == expected
        assert ballots.time_unit == "days"
    numbers = Ballots.from_pairs([0, 1], [1, 0], times=[0.0, 1_700_000_000.0])
    assert (numbers.times.tolist(), numbers.time_unit) == ([0.0, 1.7e9], "")
    with pytest.raises(ValueError, match="only one of the two has dates as times"):
        numbers + ballots
    for bad in ([1.0, np.nan], ["2024-02-28", "soon"], [None, 3.0]):
        with pytest.raises(ValueError, match="times: expected finite numbers or dates, got"):
            Ballots.from_pairs([0, 1], [1, 0], times=bad)


def test_times_are_days_or_numbers():
    dates = ["2024-01-01", "2024-01-02T12:00:00Z"]
    found = load_battles(table(["a", "b"], when=dates), time="when").times
    assert found[1] - found[0] == 1.5
    dates = ["January 1, 2024", "3 January 2024"]
    found = load_battles(table(["a", "b"], when=dates), time="when").times
    assert found[1] - found[0] == 2.0
    when = pd.to_datetime(["2024-01-01", "2024-01-04"])
    found = load_battles(table(["a", "b"], when=when), time="when").times
    assert found[1] - found[0] == 3.0
    assert load_battles(table(["a"], when=[17.5]), time="when").times.tolist() == [17.5]
    assert load_battles(table(["a"], when=["17.5"]), time="when").times.tolist() == [17.5]
    with pytest.raises(ValueError, match="row 1: when: expected a finite number, got 'nan'"):
        load_battles(table(["a", "b"], when=[1.0, np.nan]), time="when")
    with pytest.raises(ValueError, match="row 1: when: expected a date, got 'soon'"):
        load_battles(table(["a", "b"], when=["2024-01-01", "soon"]), time="when")


def test_slices_and_parts():
    frame = {"a": list("xxyz"), "b": list("yzzx"), "winner": list("abab"), "voter": list("pqpq")}
    frame["task"] = ["code", None, "code", "math"]
    battles = load_battles(frame, by="task", cluster="voter")
    slices = battles.slices()
    assert {name: len(part) for name, part in slices.items()} == {
        "code": 2,
        "math": 1,
        "(missing)": 1,
    }
    part = slices["math"]
    assert (part.names, part.first.tolist(), part.second.tolist()) == (("x", "z"), [1], [0])
    assert battles.clusters.tolist() == ["p", "q", "p", "q"]
    assert repr(part) == "Battles(1 of 2 competitors)"
    with pytest.raises(ValueError, match="rows: expected at least one battle, got none"):
        battles.take(np.zeros(4, bool))
    with pytest.raises(ValueError, match="slices: pass by=COLUMN to load_battles"):
        load_battles(table(["a"])).slices()


def test_counts_add_up():
    rng = np.random.default_rng(3)
    n, rows = 5, 300
    first = rng.integers(n, size=rows)
    second = (first + 1 + rng.integers(n - 1, size=rows)) % n
    outcome = rng.integers(4, size=rows)
    weights = rng.random(rows)
    battles = Battles(tuple("abcde"), first, second, outcome, weights)
    wins, ties = np.zeros((n, n)), np.zeros((n, n))
    for i, j, won, weight in zip(first, second, outcome, weights, strict=True):
        if won >= 2:
            ties[i, j] += weight
            ties[j, i] += weight
        else:
            wins[(i, j) if won == 0 else (j, i)] += weight
    found = battles.counts()
    np.testing.assert_allclose(found[0], wins)
    np.testing.assert_allclose(found[1], ties)


def test_description():
    frame = {"a": list("xxyvv"), "b": list("yzzww"), "winner": ["a", "a", "tie", "b", "both_bad"]}
    found = load_battles(frame).describe()
    assert (found.n_battles, found.n_items, found.n_pairs) == (5, 5, 4)
    assert (found.ties, found.both_bad, found.first_wins, found.second_wins) == (2, 1, 2, 1)
    assert found.never_won == ("v", "y", "z")
    assert found.never_lost == ("w", "x")
    assert found.parts == (("x", "y", "z"), ("v", "w"))
    assert not found.comparable
    text = str(found)
    assert "no: 2 groups that never met, one of them v, w" in text
    assert found.table.loc["w"].tolist() == [2, 1, 1, 0, 0.75]
    assert json.loads(json.dumps(found.to_dict()))["table"][0]["name"] == "x"
    frame = {"a": list("xxy"), "b": list("yzz"), "winner": ["a", "a", "tie"]}
    text = str(load_battles(frame).describe())
    assert "some are always above the others: a fit needs a prior" in text
    frame["winner"][1] = "b"
    assert load_battles(frame).describe().comparable
