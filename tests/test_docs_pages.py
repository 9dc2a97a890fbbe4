"""The tutorials and guides run, and show exactly the pictures made for them."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = re.compile(r"!\[([^\]]*)\]\(pictures/([^)\s]+)\)")


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "tutorials" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = [
    "tutorials/inspect.md",
    "tutorials/fit.md",
    "tutorials/lightgbm.md",
    "tutorials/rate.md",
    "tutorials/test-your-own.md",
    "which.md",
    "preferences.md",
    "promises.md",
    "measures.md",
    "rankings.md",
    "large_data.md",
    "large_data_cluster.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_and_pictures_are_made(page, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = (DOCS / page).read_text(encoding="utf-8")
    # A fence ends an example's output as a blank line would.
    test = doctest.DocTestParser().get_doctest(
        source.replace("```\n", "\n"), {"__name__": page}, page, page, 0
    )
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test, clear_globs=False).failed == 0
    shown = PICTURES.findall(source)
    assert source.count("![") == len(shown)
    assert all(meaning for meaning, _ in shown)
    assert ("pictures/" in source) == (Path(page).name in pictures.PAGES)
    if not shown:
        return
    folder = tmp_path / "made"
    folder.mkdir()
    made = pictures.draw(Path(page).name, test.globs, folder)
    assert sorted(made) == sorted(name for _, name in shown)
    assert sorted(path.name for path in folder.iterdir()) == sorted(made)
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 200_000


def test_the_script_draws_what_pages_leave_behind(pictures, tmp_path, monkeypatch, capsys):
    # The pages are run above; here a short one stands for them.
    page = tmp_path / "short.md"
    page.write_text(
        "```python\n>>> width = 2.0\n>>> print(width)\n2.0\n>>> 1 / 0\n"
        "Traceback (most recent call last):\nZeroDivisionError: division by zero\n\n```\n"
    )
    monkeypatch.setattr(pictures, "HERE", tmp_path)
    drawn = {"short.md": lambda page: iter([("line", pictures._figure(page.width, 1.0))])}
    monkeypatch.setattr(pictures, "PAGES", drawn)
    pictures.main([str(tmp_path / "made")])
    assert capsys.readouterr().out == "short.md: line.png\n"
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["line.png"]


def test_links_between_pages_lead_somewhere():
    for page in (*(DOCS / "tutorials").glob("*.md"), DOCS / "which.md"):
        text = page.read_text(encoding="utf-8")
        for target, _, place in re.findall(r"\]\(([^)\s#]+\.md)(#([^)]*))?\)", text):
            file = page.parent / target
            assert file.is_file(), f"{page.name}: {target}"
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
            assert not place or place in anchors, f"{page.name}: {target}#{place}"
