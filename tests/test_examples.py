"""Every example runs, at small size, and leaves its picture."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from permdist import data

ROOT = Path(__file__).resolve().parent.parent
SHARED = {"common.py", "published.py"}
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in SHARED]
FEW = {"RankCosine": "RankCosine[C=inf]"}
SMALL = json.loads((ROOT / "examples" / "small.json").read_text())


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script, tmp_path):
    picture = tmp_path / "picture.png"
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script), "--output", str(picture), *SMALL[script.stem]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
    assert len(script.read_text().splitlines()) <= 150


@pytest.fixture
def common(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("common")


def options_of(common, monkeypatch, *arguments, **options):
    monkeypatch.setattr(sys, "argv", ["small.py", *map(str, arguments)])
    return common.read_options("small.py", "Small.", common.FOLDS, queries=4, **options)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--output", "x.md"], "--output: expected a picture (.png, .svg, .pdf), got x.md"),
        (["--output", "/nowhere/x.png"], "--output: there is no folder /nowhere"),
        (["--output", "folder.png"], "--output: expected the name of a file, folder.png is a"),
        (["--queries", "0"], "--queries: expected at least 1, got 0"),
        (["--paper", "b"], "argument --paper: invalid choice: 'b'"),
    ],
)
def test_options_are_checked_before_any_work(
    common, monkeypatch, tmp_path, capsys, arguments, text
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SystemExit) as ended:
        options_of(common, monkeypatch, *arguments, paper=("a", "which one", ("a", "c")))
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(f"small.py: {text}")
    assert told.count("\n") == 1


def test_a_table_may_be_written_where_there_is_one(common, monkeypatch, tmp_path):
    for name in ("x.md", "x.txt", "x.PDF"):
        options = options_of(common, monkeypatch, "--output", tmp_path / name, table=True)
        assert options.output.name == name


def test_queries_cut_real_parts_too(common, monkeypatch, tmp_path, capsys):
    for number in range(1, 6):
        part = data.make_letor(6, n_documents=(3, 5), rng=number)
        ids = [f"{number}-{one}" for one in part.qid]
        data.save_letor(data.Queries(part.X, part.y, ids), tmp_path / f"S{number}.txt")
    whole = common.load_folds(options_of(common, monkeypatch, "--data", tmp_path))
    cut = common.load_folds(options_of(common, monkeypatch, "--data", tmp_path, "--queries", 2))
    assert [len(part) for part in whole[0]] == [18, 6, 6]
    assert all(len(part) == 2 for fold in cut for part in fold)
    assert cut[0].test.qids.tolist() == whole[0].test.qids.tolist()[:2]
    assert "the first 2 queries of each part, all 5 folds" in capsys.readouterr().out
    options = options_of(common, monkeypatch, "--data", tmp_path / "S7.txt")
    with pytest.raises(SystemExit, match=r"^small\.py: --data: .*S7\.txt"):
        common.load_folds(options)


def test_paper_tables_writes_the_table(common, monkeypatch, tmp_path, capsys):
    script = importlib.import_module("paper_tables")
    monkeypatch.setitem(script.PAPERS, "wang", script.PAPERS["wang"]._replace(learners=FEW))
    for name, text in (("x.md", "| RankCosine | 0."), ("x.txt", "RankCosine  0.")):
        arguments = ["--paper", "wang", "--queries", "3", "--output", str(tmp_path / name)]
        monkeypatch.setattr(sys, "argv", ["paper_tables.py", *arguments])
        script.main()
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert text in written
        assert ("--- | ---" in written) == (name == "x.md")
        shown = capsys.readouterr().out
        assert f"The table: {tmp_path / name}" in shown
        assert "Fitted in " in shown
    assert written.strip() in shown


def test_examples_are_indexed():
    listed = set(re.findall(r"`(\w+)\.py`", (ROOT / "examples" / "README.md").read_text()))
    assert listed == {path.stem for path in EXAMPLES}
