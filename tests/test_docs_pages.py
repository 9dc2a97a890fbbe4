"""The tutorials and guides run, and show exactly the pictures made for them."""

import ast
import doctest
import importlib.util
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = re.compile(r"!\[([^\]]*)\]\(pictures/([^)\s]+)\)")


def loaded(path):
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pictures():
    return loaded(DOCS / "tutorials" / "pictures.py")


PAGES = [
    "tutorials/inspect.md",
    "tutorials/fit.md",
    "tutorials/lightgbm.md",
    "tutorials/rate.md",
    "tutorials/leaderboard.md",
    "tutorials/test-your-own.md",
    "explore.md",
    "notebooks.md",
    "which.md",
    "preferences.md",
    "posterior.md",
    "promises.md",
    "measures.md",
    "objectives.md",
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
    kept = re.findall(r"!\[[^\]]+\]\((_static/[^)\s]+)\)", source)
    assert all((DOCS / name).stat().st_size < 150_000 for name in kept)
    assert source.count("![") == len(shown) + len(kept)
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


def test_links_between_pages_lead_somewhere():
    for page in (*(DOCS / "tutorials").glob("*.md"), DOCS / "which.md", DOCS / "explore.md"):
        text = page.read_text(encoding="utf-8")
        for target, _, place in re.findall(r"\]\(([^)\s#]+\.md)(#([^)]*))?\)", text):
            file = page.parent / target
            assert file.is_file(), f"{page.name}: {target}"
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
            assert not place or place in anchors, f"{page.name}: {target}#{place}"


# ---- the tutorials as notebooks ----------------------------------------------------------------

TUTORIALS = [page for page in PAGES if page.startswith("tutorials/")]


@pytest.fixture(scope="module")
def notebooks():
    return loaded(DOCS / "notebooks.py")


def cells_of(page):
    """Return the code cells of a tutorial's notebook."""
    text = (DOCS / "notebooks" / f"{Path(page).stem}.ipynb").read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def test_pictures_are_current(pictures):
    remedy = "run python docs/tutorials/pictures.py docs/tutorials/pictures"
    assert pictures.are_current(), remedy
    shown = {name for page in TUTORIALS for _, name in PICTURES.findall((DOCS / page).read_text())}
    assert {path.name for path in (DOCS / "tutorials" / "pictures").glob("*.png")} == shown, remedy


def test_notebooks_are_current(notebooks):
    made = {path.stem: path.read_text("utf-8") for path in (DOCS / "notebooks").glob("*.ipynb")}
    wanted = {path.stem: notebooks.notebook(path.stem) for path in notebooks.TUTORIALS.glob("*.md")}
    assert made == wanted, "run python docs/notebooks.py"
    assert len(made) == len(TUTORIALS)


@pytest.mark.parametrize("page", TUTORIALS)
def test_notebooks_run_what_the_pages_run(page):
    # The examples of the pages are run above, so equal code runs, too.
    cells = cells_of(page)
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    assert len({cell["id"] for cell in cells}) == len(cells)
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_examples(text.replace("```\n", "\n"), page)
    ours = "\n".join("".join(cell["source"]) for cell in cells)
    theirs = "".join(example.source for example in examples)
    assert ast.dump(ast.parse(ours)) == ast.dump(ast.parse(theirs))
    failing = [cell for cell in cells if cell["metadata"]]
    assert len(failing) == sum(example.exc_msg is not None for example in examples)
    assert all(cell["metadata"] == {"tags": ["raises-exception"]} for cell in failing)


def test_links_of_notebooks_lead_somewhere():
    for path in (DOCS / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for target in re.findall(r"\]\((?!\w+:)([^)\s#]+)", "".join(cell["source"])):
                assert cell["cell_type"] == "code" or (path.parent / target).is_file(), target
