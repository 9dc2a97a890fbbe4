"""The small shared parts: ragged arrays, tables of named things."""

import csv
import importlib
import io
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import Ballots, Mallows, _parallel, rating
from permdist._registry import Registry, load_plugins
from permdist._text import aligned, csv_text, text_table, to_tex, visible
from permdist.consensus import consensus
from permdist.data import load_battles


@given(st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6))
def test_rows_are_found_again(rows):
    flat, ptr = _parallel.pack([np.array(row, dtype=np.int64) for row in rows])
    assert [flat[a:b].tolist() for a, b in _parallel.bounds(ptr)] == rows
    assert _parallel.rows_of(ptr).tolist() == [r for r, row in enumerate(rows) for _ in row]


def test_a_name_can_be_taken_once():
    table = Registry("thing")
    first = object()
    assert table.add("a", first) is first
    table.add("a", first)
    with pytest.raises(ValueError, match="'a' is taken"):
        table.add("a", object())
    table.discard("a")
    assert "a" not in table
    with pytest.raises(TypeError, match="expected a name"):
        table.add("", first)


def test_plugins_are_loaded_before_a_look_up(tmp_path, monkeypatch):
    (tmp_path / "a_plugin_of_mine.py").write_text("loaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PERMDIST_PLUGINS", " a_plugin_of_mine, ")
    load_plugins.cache_clear()
    try:
        assert "nothing" not in Registry("thing")
        assert sys.modules["a_plugin_of_mine"].loaded
    finally:
        load_plugins.cache_clear()
        sys.modules.pop("a_plugin_of_mine", None)


def test_only_two_folders_of_a_checkout_are_part_of_the_package():
    for name in ("tests", "examples", "benchmarks", "docs"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"permdist.{name}")


# ---- names that would do something to a terminal or a spreadsheet ------------------------------

NAMES = ["tea\x1b]0;x\x07", "=cmd|' /C calc'!A0", "+mi\u202elk\x9b2J", "@co\rla"]


def unseen(text):
    return [one for one in text if one != visible(one)]


@given(st.text())
def test_control_characters_are_shown(text):
    shown = visible(text, keep="")
    assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in shown)
    shown.encode()  # lone surrogates, of file names that are no text, cannot be printed
    assert not {"\u202e", "\u2028", "\u2066"} & set(shown)
    if text.isprintable():
        assert shown == text
    assert visible(f"{text}\n", keep="\n").endswith("\n")


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_no_control_characters(name):
    for text in (
        aligned({name: name}),
        text_table([name], [[name], ["x"]]),
        text_table([name], [[name], ["x"]], width=40),
        to_tex(name),
    ):
        assert not unseen(text)


@given(st.text(max_size=4), st.integers(-5, 5))
def test_no_cell_of_a_csv_file_is_a_formula(text, number):
    for name in (text, f"={text}", f"-{text}", f"@{text}", str(number)):
        frame = pd.DataFrame({"name": [name], name: [float(number)]}, index=[name])
        head, row = csv.reader(io.StringIO(csv_text(frame, index=True)))
        assert not unseen("".join(head + row))
        for cell in (head[2], *row[:2]):
            if cell[:1] in ("=", "+", "-", "@"):
                assert np.isfinite(float(cell))
        assert float(row[2]) == number


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_names_with_escapes_in_results():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 4, 300)
    two = (one + rng.integers(1, 4, 300)) % 4
    table = {"model_a": [NAMES[i] for i in one], "model_b": [NAMES[i] for i in two]}
    battles = load_battles(table | {"winner": rng.choice(["a", "b", "tie"], 300)})
    found = rating.rate(battles, folds=2)
    drawn = rating.rate(battles, bayes=True, draws=20, folds=0)
    ballots = Ballots.from_orders([[NAMES[i] for i in rng.permutation(4)] for _ in range(30)])
    ranking = consensus(ballots)
    for result in (battles, battles.describe(), found, found.goodness, found.fit, drawn, ballots,
                drawn.posterior, drawn.posterior.summary(), ranking, ballots.describe(),
                Mallows.fit(ballots).fit_result):  # fmt: skip
        assert not unseen(f"{result!r}\n{result}")
    board = found.leaderboard
    assert not unseen(board.to_csv() + board.to_latex())
    assert "'=cmd|" in board.to_csv()
    assert set(board.to_frame()["name"]) == set(NAMES)
    with pytest.raises(ValueError, match="always above the others") as error:
        rating.rate(load_battles({"a": NAMES[:1], "b": NAMES[1:2], "winner": ["a"]}))
    assert not unseen(str(error.value))
    with pytest.raises(ValueError, match="there is no column") as error:
        load_battles(table | {NAMES[0]: [0] * 300}, winner="won")
    assert not unseen(str(error.value))
