"""No import points up, packages do not import each other in circles, and the picture is current."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UPDATE = "run `python docs/architecture.py` and look at docs/_static/architecture.png"


@pytest.fixture(scope="module")
def architecture():
    path = ROOT / "docs" / "architecture.py"
    spec = importlib.util.spec_from_file_location("architecture", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(architecture):
    return architecture.imports()


def test_every_package_has_a_layer(architecture):
    for package in {architecture.package_of(module) for module in architecture.modules()} - {""}:
        architecture.layer_of(package)  # raises KeyError, which says what to do


def test_no_import_points_up(architecture, found):
    package_of, layer_of = architecture.package_of, architecture.layer_of
    up = [
        f"{one.source} imports {one.target}"
        for one in found
        if one.when != "types" and not architecture.is_callback(one)
        if layer_of(package_of(one.target)) > layer_of(package_of(one.source))
    ]
    assert not up, "move what is imported down, or the importer up: " + "; ".join(up)


def test_packages_do_not_import_each_other_in_circles(architecture, found):
    graph = architecture.edges(("load",), found)
    circles = sorted(package for package in graph if architecture.reaches(graph, package, package))
    assert not circles, f"import cycles when loaded: {circles}"


def test_the_picture_is_current(architecture, found):
    kept = (ROOT / "docs" / "_static" / "architecture.txt").read_text()
    assert kept == architecture.listing(found), UPDATE
    assert (ROOT / "docs" / "_static" / "architecture.png").is_file(), UPDATE


def test_the_page_names_every_package(architecture):
    page = (ROOT / "docs" / "architecture.md").read_text()
    for package in {architecture.package_of(module) for module in architecture.modules()} - {""}:
        assert f"`{package}`" in page, f"docs/architecture.md does not name {package}"
