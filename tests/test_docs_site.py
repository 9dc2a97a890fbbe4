"""The documentation's pages hang together, and its reference leaves no public name out.

Nothing here builds the site; ``sphinx-build -W`` does that (docs/README.md).
"""

import doctest
import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

import permdist

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
EXAMPLES = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"common", "published"}
PARTS = sorted(path.stem for path in (DOCS / "api").glob("*.rst") if path.stem != "index")
GENERATED = ("_build/", "_templates/", "gallery/", "api/generated/")
NEEDS_SPHINX = "needs sphinx and its extensions: pip install -e '.[docs]'"


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports one of the site's own extensions."""
    for needed in ("sphinx", "sphinx_gallery", "myst_parser", "numpydoc", "furo"):
        pytest.importorskip(needed, reason=NEEDS_SPHINX)
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return importlib.import_module


# ---- pages -------------------------------------------------------------------------------------


def pages():
    """Return the names of all pages that are written by hand."""
    found = {path.relative_to(DOCS) for end in ("md", "rst") for path in DOCS.rglob(f"*.{end}")}
    names = {path.with_suffix("").as_posix() for path in found}
    return {name for name in names if not name.startswith(GENERATED) and name != "README"}


def links(page):
    """Return the pages that a page's toctrees name."""
    files = [path for end in ("md", "rst") if (path := DOCS / f"{page}.{end}").is_file()]
    text = "".join(path.read_text() for path in files)
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S)
    blocks += re.findall(r"^\.\. toctree::\n((?:(?:   .*)?\n)+)", text, re.M)
    entries = {line.strip() for block in blocks for line in block.splitlines()}
    folder = Path(page).parent
    return {(folder / entry).as_posix() for entry in entries if entry and entry[0] != ":"}


def test_every_page_is_reached_from_the_first_one():
    reached, waiting = set(), ["index"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        if not page.startswith(GENERATED):
            waiting += links(page) - reached
    assert pages() | {"gallery/index"} <= reached


def test_the_first_page_runs():
    text = (DOCS / "index.md").read_text()
    assert "pip install -e . && permdist demo" in text
    assert "pip install -e '.[test]' && pytest" in text
    test = doctest.DocTestParser().get_doctest(text.replace("```\n", "\n"), {}, "index", None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test).failed == 0


# ---- the reference -----------------------------------------------------------------------------


def listed(text):
    """Return the names on a page of the reference, by the module they belong to."""
    names, module, block = {}, None, None
    for line in text.splitlines():
        directive = re.match(r"\.\. ([\w:]+)::(?: (?P<argument>\S+))?", line)
        if directive:
            block = directive[1]
            if block == "automodule":
                module = directive["argument"]
                names.setdefault(module, set())
        if block == "py:data" and (entry := re.fullmatch(r"(?:\.\. py:data:: | {13})(\w+)", line)):
            names[module].add(entry[1])
        if block == "autosummary" and (entry := re.fullmatch(r"   (\w+)", line)):
            names[module].add(entry[1])
    return names


def public(module):
    """Return a module's public names: its list, or its own classes and functions."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    own = (inspect.isclass, inspect.isfunction)
    found = {name: thing for kind in own for name, thing in inspect.getmembers(module, kind)}
    return {
        name
        for name, thing in found.items()
        if thing.__module__ == module.__name__ and name[0] != "_"
    }


@pytest.mark.parametrize("part", PARTS)
def test_every_public_name_is_in_the_reference(part):
    assert f"api/{part}" in links("api/index")
    text = (DOCS / "api" / f"{part}.rst").read_text()
    modules = listed(text)
    module = importlib.import_module(f"permdist.{part}")
    parts = {name.rpartition(".")[2] for name in modules if name.startswith(f"permdist.{part}.")}
    documented = modules[f"permdist.{part}"] | parts & public(module)
    hint = f"list every public name of permdist.{part} in docs/api/{part}.rst"
    assert documented == public(module), hint
    for name, entries in modules.items():
        for entry in entries:
            assert hasattr(importlib.import_module(name), entry), f"{name} has no {entry}"


def test_the_reference_names_what_can_be_imported_from_the_top():
    assert {name for name in permdist.__all__ if re.match("[a-z]", name)} <= set(PARTS)
    text = (DOCS / "api" / "index.rst").read_text()
    for name in permdist.__all__:
        assert re.search(rf"\b{name}\b", text), name


# ---- the gallery -------------------------------------------------------------------------------


def test_every_example_has_a_small_size():
    assert set(json.loads((ROOT / "examples" / "small.json").read_text())) == EXAMPLES


# ---- extensions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "extensions").glob("*.py")))
def test_extension(extension, name):
    module = extension(name)
    assert module.setup.__doc__
    assert doctest.testmod(module).failed == 0


def test_learners_show_the_parameters_of_their_bases(extension):
    from numpydoc.docscrape import NumpyDocString

    from permdist.models import all_learners

    completed = extension("inherited_parameters").completed
    for learner in all_learners():
        lines = completed(learner, inspect.getdoc(learner).splitlines())
        parsed = NumpyDocString("\n".join(lines))
        shown = [name for entry in parsed["Parameters"] for name in entry.name.split(", ")]
        assert sorted(shown) == sorted(inspect.signature(learner).parameters), learner
        assert "coef_" in str(parsed["Attributes"]) or learner.by_query
