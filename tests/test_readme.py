"""The README's Python runs and prints what it says it prints."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/measures.md",
        "docs/rankings.md",
        "docs/distributions.md",
        "docs/samplers.md",
        "docs/models.md",
        "docs/compare.md",
    ],
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A fence ends an example's output as a blank line would.
    text = (ROOT / page).read_text().replace("```\n", "\n")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test).failed == 0


def test_the_two_commands_stand_at_the_top():
    top = (ROOT / "README.md").read_text()[:1500]
    assert "pip install -e . && permdist demo" in top
    assert "pip install -e '.[test]' && pytest" in top
