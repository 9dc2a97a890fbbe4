"""``permdist convert``, and stores wherever commands take a LETOR file."""

import json

import pandas as pd
import pytest
from test_cli import permdist

from permdist import data
from permdist.cli._shared import Reading
from permdist.cli.compare import _folds


@pytest.fixture
def files(tmp_path):
    queries = data.make_letor(12, n_features=6, n_constant=1, rng=0)
    data.save_letor(queries, tmp_path / "data.txt")
    frame = pd.DataFrame(queries.X).add_prefix("f")
    frame.insert(0, "q", queries.qid)
    frame.insert(1, "relevance", queries.y)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_commands_take_stores_as_they_take_text(files):
    text = permdist("convert", "data.txt", "data.store", "--dtype", "float64", cwd=files)
    assert text == "Queries(12 queries, 428 documents, 6 features): data.store\n"
    found = {}
    for name in ("data.txt", "data.store"):
        fit = ("fit", name, "MLE", "-o", f"{name}.json", "--json")
        said = [permdist("describe", name, cwd=files)]
        said += [permdist("describe", name, "--json", cwd=files)]
        said += [permdist(*fit, cwd=files).replace(f"{name}.json", "")]
        said += [permdist("predict", f"{name}.json", name, cwd=files)]
        (files / "scores.txt").write_text(said[-1])
        said += [permdist("evaluate", "scores.txt", name, "-m", "map", cwd=files)]
        said += [permdist("inspect", name, "--feature", "2", "--json", cwd=files)]
        found[name] = said
    assert found["data.txt"] == found["data.store"]


def test_compare_splits_stores_as_it_splits_text(files):
    permdist("convert", "data.txt", "data.store", "--dtype", "float64", cwd=files)
    folds = [_folds(files / name, 3, 0, Reading()) for name in ("data.txt", "data.store")]
    assert folds[0] == folds[1]


def test_convert_tables(files):
    options = ("--qid", "q", "--json", "--dtype", "float64")
    facts = json.loads(permdist("convert", "data.csv", "out", *options, cwd=files))
    assert facts == {
        "store": "out",
        "dtype": "float64",
        "n_queries": 12,
        "n_documents": 428,
        "n_features": 6,
        "has_missing": False,
        "version": 1,
    }
    read, opened = data.load_letor(files / "data.txt"), data.open_store(files / "out")
    assert opened.X.tolist() == read.X.tolist()


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("convert data.txt data.store", 2, "data.store: exists already; overwrite=True, on the"),
        ("convert data.csv new", 2, "data.csv: expected a column 'qid', got q, relevance, f0"),
        ("convert data.txt data.csv new", 2, "data.csv: expected a file of the same kind"),
        ("convert data.txt", 2, "Missing argument"),
        ("convert none.txt new", 2, "none.txt: no such file"),
        ("convert data.txt new -j 0", 2, "--jobs: expected a number of threads or -1, got 0"),
        ("describe data.store --zero-based", 2, "--zero-based: only for text files"),
        ("predict wide.json data.store", 2, "data.store: expected 9 features, got 6"),
        ("describe broken", 2, "header.json: the store has version 9 of the format"),
        ("convert data.txt full", 1, "permdist: full: expected about "),
    ],
)
def test_mistakes(files, monkeypatch, command, code, message):
    permdist("convert", "data.txt", "data.store", "--json", cwd=files)
    (files / "broken").mkdir()
    (files / "broken/header.json").write_text('{"format": "permdist-store", "version": 9}')
    if command.startswith("predict"):
        wide = data.make_letor(9, n_features=9, n_constant=0, rng=0)
        data.save_letor(wide, files / "wide.txt")
        permdist("fit", "wide.txt", "MLE", "-o", "wide.json", cwd=files)
    if code == 1:
        usage = type("Usage", (), {"free": 1})
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    told = permdist(*command.split(), cwd=files, code=code)
    assert message in " ".join(told.replace("│", " ").split())
    assert not (files / "new").exists()


def test_pyarrow_is_asked_for(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (files / "t.parquet").write_bytes(b"PAR1")
    told = permdist("convert", "t.parquet", "out", cwd=files, code=2)
    assert told == "permdist: t.parquet: requires pyarrow; pip install pyarrow\n"
