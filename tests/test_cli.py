"""The command line as a user meets it: what it prints and its exit codes."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import pytest

from permdist import __version__, data, measures
from permdist.cli import COMMANDS, main

LETOR = (
    "2 qid:1 1:0.9 2:0.1\n0 qid:1 1:0.5 2:0.2\n1 qid:1 1:0.1 2:0.3\n"
    "0 qid:2 1:0.9 2:0.1\n1 qid:2 1:0.5 2:0.2\n"
)


def permdist(*arguments, cwd=".", code=0):
    """Run a command in this process; give its output, or what it says on an error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(mock.patch.object(sys, "argv", ["permdist", *map(str, arguments)]))
        stack.enter_context(mock.patch.dict(os.environ, COLUMNS="100", NO_COLOR="1", TERM="dumb"))
        ended = stack.enter_context(pytest.raises(SystemExit))
        main()
    assert (ended.value.code or 0) == code, out.getvalue() + err.getvalue()
    return out.getvalue() if code == 0 else err.getvalue()


def test_it_is_installed_as_a_command(tmp_path):
    command = Path(sysconfig.get_path("scripts")) / "permdist"
    arguments = [str(command), "describe", "none.txt"]
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "permdist: none.txt: no such file\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "data.txt").write_text(LETOR)
    (tmp_path / "scores.txt").write_text("3\n2\n1\n1\n2\n")
    return tmp_path


def test_help_and_version():
    assert permdist("--version") == f"permdist {__version__}\n"
    text = permdist("--help")
    for command in COMMANDS:
        assert command.__name__ in text
        options = permdist(command.__name__, "-h")
        assert "--json" in options
    assert "letor3, letor4, trec or burges" in " ".join(
        re.sub(r"[│╭╮╰╯─]", " ", permdist("evaluate", "-h")).split()
    )


def test_evaluate(files):
    text = permdist("evaluate", "scores.txt", "data.txt", "-m", "map", "-m", "p@1", cwd=files)
    lines = text.splitlines()
    assert lines[0].split() == ["measure", "mean", "std.err.", "queries"]
    assert lines[1].split()[:2] == ["ap", f"{(5 / 6 + 1) / 2:.4f}"]
    assert lines[2].split()[:2] == ["p@1", "1.0000"]


def test_evaluate_with_a_preset_and_json(files):
    arguments = ("evaluate", "scores.txt", "data.txt", "--preset", "letor4", "-m", "ndcg@3")
    facts = json.loads(permdist(*arguments, "--json", "--per-query", cwd=files))
    queries = data.load_letor(files / "data.txt")
    expected = measures.evaluate([3, 2, 1, 1, 2], queries.y, queries.qid, measures.letor4("ndcg@3"))
    name = "ndcg@3[discount=jk,short=zero]"
    assert facts["mean"] == {name: expected.mean(name)}
    assert facts["n_queries"] == {name: 2}
    assert facts["per_query"] == {"1": {name: expected[name][0]}, "2": {name: 0.0}}
    skipped = permdist(
        "evaluate", "scores.txt", "data.txt", "-m", "auc[empty=skip]", "--per-query", cwd=files
    )
    assert "auc[empty=skip]" in skipped
    (files / "one.txt").write_text("0 qid:1 1:1\n")
    (files / "s.txt").write_text("1\n")
    arguments = ("evaluate", "s.txt", "one.txt", "-m", "ap[empty=skip]", "--json", "--per-query")
    facts = json.loads(permdist(*arguments, cwd=files))
    assert facts["mean"] == {"ap[empty=skip]": None}
    assert facts["per_query"] == {"1": {"ap[empty=skip]": None}}


def test_describe(files):
    text = permdist("describe", "data.txt", cwd=files)
    assert "labels                               0:2  1:2  2:1" in text
    facts = json.loads(permdist("describe", "data.txt", "--json", cwd=files))
    assert facts["n_documents"] == 5
    (files / "v.soc").write_text("# NUMBER ALTERNATIVES: 2\n3: 2,1\n")
    assert "strict complete orders" in permdist("describe", "v.soc", cwd=files)
    assert json.loads(permdist("describe", "v.soc", "--json", cwd=files))["n_voters"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe", "none.txt"), "permdist: none.txt: no such file"),
        (("evaluate", "scores.txt", "data.txt", "-m", "ndgc"), "did you mean 'ndcg'?"),
        (("evaluate", "data.txt", "data.txt"), "data.txt, line 1: expected a finite number"),
        (("evaluate", "short.txt", "data.txt"), "expected 5 scores, one for each document, got 1"),
        (("evaluate", "scores.txt", "data.txt", "--preset", "x"), "preset: expected one of"),
        (("describe", "scores.txt"), "scores.txt, line 1: expected qid:ID after the label"),
        (("demo", "-o", "scores.txt/x"), "not a directory"),
        (("demo", "-o", "scores.txt"), "expected a folder for the report, got a file"),
        (("demo", "--queries", "0"), "Invalid value for '--queries'"),
        (("dmeo",), "No such command 'dmeo'"),
    ],
)
def test_mistakes_are_one_line(files, arguments, message):
    (files / "short.txt").write_text("1\n")
    text = permdist(*arguments, cwd=files, code=2)
    assert message in " ".join(text.replace("│", " ").split())
    if text.startswith("permdist:"):
        assert len(text.splitlines()) == 1


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pictures, self.links, self.headings, self.open = 0, [], [], []

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.pictures += tag == "img" and facts["src"].startswith("data:image/png;base64,")
        self.links += [value for key, value in attributes if key in ("href", "src")]
        self.open.append(tag)

    def handle_data(self, text):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(text)
        if text.strip() and self.open:
            self.open.pop()


def test_the_demo_writes_a_report_that_needs_no_network(tmp_path):
    text = permdist("demo", "--queries", "15", "--seed", "3", "--output", "out", cwd=tmp_path)
    assert "has the highest mean" in text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]
    page = Page()
    page.feed((tmp_path / "out" / "report.html").read_text())
    assert page.pictures == 9
    assert all(link.startswith(("data:", "#")) for link in page.links)
    for heading in ("NDCG under different conventions", "Identities checked", "Results: ap"):
        assert heading in page.headings
    assert "Convergence of Markov chains" in page.headings
    arguments = ("demo", "--queries", "15", "--seed", "3", "--output", "out", "--json")
    facts = json.loads(permdist(*arguments, cwd=tmp_path))
    best = max(facts["comparison"]["tables"]["ap"].items(), key=lambda one: one[1]["mean"])
    assert f"{best[0]} has the highest mean, {best[1]['mean']:.4f}" in text


def test_calls_of_warmup_run():
    expected = "--jobs: expected a number of processes or -1, got 0"
    assert expected in permdist("warmup", "-j0", code=2)
    warmup = sys.modules["permdist.cli.warmup"]
    few = warmup.calls()[:3]  # two groups, and the first learner
    with mock.patch.object(warmup, "calls", return_value=few):
        facts = json.loads(permdist("warmup", "-j1", "--json"))
    assert facts.keys() == {"kernels", "seconds"}
    with mock.patch.object(warmup, "calls", return_value=few[1:2]):
        assert permdist("warmup", "-j1").startswith("Compiled 0 kernels in ")  # just compiled
