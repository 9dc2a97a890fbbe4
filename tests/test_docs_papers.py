"""The pages of the papers name what there is, leave no number out, and run."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

from permdist.identities import CATALOGUE
from permdist.models import Ranker

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "papers"

# What the papers number, as read from them. Of Xu et al. 2008, (9) is the last equation that the
# text refers to, and Figures 5 and 6 stand between those it does refer to.
NUMBERED = {
    "dubey2009": {"Equation": range(1, 15), "Figure": range(1, 9)},
    "xu2010": {
        "Equation": range(1, 12),
        "Figure": range(1, 17),
        "Table": range(1, 5),
        "Theorem": range(1, 5),
    },
    "xu2008": {
        "Equation": range(1, 10),
        "Figure": range(1, 9),
        "Table": range(1, 4),
        "Theorem": range(1, 3),
    },
    "qin2008": {
        "Equation": range(1, 48),
        "Figure": range(1, 6),
        "Table": range(1, 4),
        "Theorem": (1, 2, 3, 5, 6, 7),
        "Corollary": (4,),
        "Algorithm": (1,),
    },
    "wang": {
        "Equation": range(1, 32),
        "Figure": range(1, 10),
        "Table": range(1, 3),
        "Theorem": range(1, 3),
        "Lemma": range(1, 5),
        "Definition": range(1, 3),
        "Property": range(1, 3),
    },
}
# How the catalogue names the papers.
SOURCES = {
    "dubey2009": "Dubey et al. 2009",
    "xu2010": "Xu et al., Direct Optimization",
    "qin2008": "Qin et al. 2008",
    "wang": "Wang et al.",
}
PAGES = ["index", *NUMBERED]
EQUATION = re.compile(r"\((\d+)\)(?: to \((\d+)\))?")
NAMED = re.compile(
    r"(Figure|Table|Theorem|Corollary|Algorithm|Lemma|Definition|Property)s? (\d+)"
    r"(?: (?:to|and) (\d+))?"
)
IDENTITY = re.compile(r"identity: ([a-z0-9-]+)")
SCRIPT = re.compile(r"(?:examples|benchmarks|tests)/\w+\.py")


def text_of(page):
    return (FOLDER / f"{page}.md").read_text()


def codes(text):
    """Return what stands in single backticks, outside of fenced blocks."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", prose)


def rows(text):
    """Return the cells of the table whose first column is called number."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| number |"))
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def numbers(cell):
    """Return what a first cell covers, as (kind, number)."""
    found = [("Equation", *match.groups()) for match in EQUATION.finditer(cell)]
    found += [match.groups() for match in NAMED.finditer(cell)]
    return [
        (kind, number)
        for kind, start, end in found
        for number in range(int(start), int(end or start) + 1)
    ]


def resolve(name):
    """Import as much of a dotted name as is a module, and look up the rest."""
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 1):
        if not hasattr(thing, part) and inspect.ismodule(thing):
            importlib.import_module(".".join(parts[: i + 1]))
        thing = getattr(thing, part)
    return thing


def check_code(code):
    """Resolve a name; where arguments follow, it must take them, and their values."""
    call = ast.parse(code, mode="eval").body
    if not isinstance(call, ast.Call):
        return resolve(code)
    thing = resolve(ast.unparse(call.func))
    keywords = {argument.arg: argument.value for argument in call.keywords}
    inspect.signature(thing).bind_partial(*call.args, **keywords)
    if all(isinstance(one, ast.Constant) for one in [*call.args, *keywords.values()]):
        made = thing(*(one.value for one in call.args), **{k: v.value for k, v in keywords.items()})
        if isinstance(made, Ranker):
            made.check_parameters()  # estimators look at their parameters in fit
    return thing


@pytest.mark.parametrize("page", PAGES)
def test_names_resolve(page):
    names = [code for code in codes(text_of(page)) if code.startswith("permdist.")]
    assert len(names) >= 10
    for name in names:
        check_code(name)


@pytest.mark.parametrize("page", PAGES)
def test_scripts_exist(page):
    named = [code for code in codes(text_of(page)) if "/" in code]
    assert named
    for code in named:
        assert SCRIPT.fullmatch(code), code
        assert (ROOT / code).is_file(), code


@pytest.mark.parametrize("page", PAGES)
def test_identities_exist(page):
    named = [code for code in codes(text_of(page)) if code.startswith("identity")]
    assert named
    for code in named:
        match = IDENTITY.fullmatch(code)
        assert match, code
        assert match[1] in CATALOGUE, code


@pytest.mark.parametrize("page", SOURCES)
def test_no_identity_of_a_paper_is_left_out(page):
    expected = {name for name, entry in CATALOGUE.items() if SOURCES[page] in entry.source}
    assert expected
    assert expected <= set(IDENTITY.findall(text_of(page)))


@pytest.mark.parametrize("page", NUMBERED)
def test_every_number_is_there(page):
    table = rows(text_of(page))
    covered = [one for cells in table for one in numbers(cells[0])]
    expected = {(kind, number) for kind, all_ in NUMBERED[page].items() for number in all_}
    assert set(covered) == expected
    assert len(covered) == len(set(covered))
    equations = [number for kind, number in covered if kind == "Equation"]
    assert equations == sorted(equations)


@pytest.mark.parametrize("page", NUMBERED)
def test_every_row_has_an_object_or_says_none(page):
    for cells in rows(text_of(page)):
        assert len(cells) == 4, cells
        number, statement, thing, remark = cells
        assert number
        assert statement
        if thing == "none":
            assert remark, number  # why not
            continue
        for code in codes(thing):
            assert code.startswith(("permdist.", "identity: ")) or SCRIPT.fullmatch(code), code
        assert codes(thing), number
        assert remark == "" or remark.endswith((".", "?")), remark


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", text_of(page))
    if page == "index":
        assert {f"{name}.md" for name in NUMBERED} <= set(links)
    for link in links:
        assert (FOLDER / link).is_file(), link


def test_no_page_is_forgotten():
    assert {path.stem for path in FOLDER.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = text_of(page)
    fences = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert fences
    assert all(fence.endswith("\n\n") for fence in fences)  # or a fence would be output
    test = doctest.DocTestParser().get_doctest("".join(fences), {}, page, page, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(test).failed == 0
