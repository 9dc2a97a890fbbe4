"""The small shared parts: ragged arrays, tables of named things."""

import importlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import _ragged
from permdist._registry import Registry, load_plugins


@given(st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6))
def test_rows_are_found_again(rows):
    flat, ptr = _ragged.pack([np.array(row, dtype=np.int64) for row in rows])
    assert [flat[a:b].tolist() for a, b in _ragged.bounds(ptr)] == rows
    assert _ragged.rows_of(ptr).tolist() == [r for r, row in enumerate(rows) for _ in row]


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
