"""What is installed: every module, one top-level name, and a light import."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import permdist

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"permdist": "permdist", "samplers": "permdist/samplers", "models": "permdist/models"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a clean copy, so that nothing left in the checkout can slip in."""
    pytest.importorskip("build")
    copy = tmp_path_factory.mktemp("source") / "permdist"
    skip = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=skip)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(copy)],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_the_wheel_holds_every_module_and_one_top_level_name(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    expected = set()
    for folder, installed in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            expected.add(f"{installed}/{path.relative_to(ROOT / folder).as_posix()}")
    modules = {name for name in names if name.endswith(".py")}
    assert modules == expected
    assert "permdist/py.typed" in names
    page = {path.name for path in (ROOT / "permdist" / "explorer").glob("*.*s*")} | {"page.html"}
    assert {"page.css", "page.js", "port.js", "drawing.js"} < page
    assert {f"permdist/explorer/{name}" for name in page} <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"permdist", f"permdist-{permdist.__version__}.dist-info"}


@pytest.mark.parametrize("where", ["root", "elsewhere"])
def test_a_plain_install_works_from_the_checkout_and_from_elsewhere(wheel, tmp_path, where):
    # A plain install is shadowed by the checkout's own folder in the checkout's root.
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "import sys, permdist.samplers, permdist.models, permdist.rankings\n"
        "print(permdist.__file__); print(permdist.samplers.__file__)"
    )
    program = f"import sys; sys.path.append({str(site)!r}); exec({code!r})"
    cwd = ROOT if where == "root" else tmp_path
    # -S and a bare path: the editable install of the test environment must not help.
    lines = subprocess.run(
        [sys.executable, "-c", _without_editable(program)],
        check=True,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""},
    ).stdout.splitlines()
    home = ROOT if where == "root" else site
    assert lines[0] == str(home / "permdist" / "__init__.py")
    expected = "samplers/__init__.py" if where == "root" else "permdist/samplers/__init__.py"
    assert lines[1] == str(home / expected)


def _without_editable(program):
    """Take away the import hook of an editable install before running a program."""
    return (
        "import sys\n"
        "def ours(finder): return 'Editable' in getattr(finder, '__name__', '')\n"
        "sys.meta_path[:] = [finder for finder in sys.meta_path if not ours(finder)]\n" + program
    )


def test_import_is_light():
    heavy = {"arviz", "matplotlib", "numba", "scipy", "sklearn", "pandas", "hypothesis", "rich"}
    code = f"import permdist, sys; assert not {heavy!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_needs_no_numbers():
    code = "import permdist.cli, sys; assert not {'numpy', 'numba', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_data_and_measures_need_no_plotting():
    code = (
        "import sys\nfrom permdist import rankings, measures, data\n"
        "assert not {'arviz', 'matplotlib', 'sklearn', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_submodules_are_reached_by_name():
    assert set(permdist.__all__) <= set(dir(permdist))
    for name in permdist.__all__:
        assert getattr(permdist, name) is not None
    with pytest.raises(AttributeError, match="module 'permdist' has no attribute 'ranking'"):
        _ = permdist.ranking
