"""What is installed: every module, one top-level name, and a light import."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import warnings
import zipfile
from functools import cache, partial
from pathlib import Path

import pytest

import permdist

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"permdist": "permdist", "samplers": "permdist/samplers", "models": "permdist/models"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build from a clean copy, so that nothing left in the checkout can slip in.

    Returns the copy, which is named permdist, and by kind the wheel and the editable wheel.
    """
    build = pytest.importorskip("build")
    from build.env import DefaultIsolatedEnv

    copy = tmp_path_factory.mktemp("source") / "permdist"
    skip = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=skip)
    out = tmp_path_factory.mktemp("wheel")
    quiet = partial(subprocess.run, check=True, capture_output=True)

    def run(command, cwd=None, extra_environ=None):
        quiet(command, cwd=cwd, env={**os.environ, **(extra_environ or {})})

    with DefaultIsolatedEnv() as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # setuptools warns of folders that have the package's name
        builder = build.ProjectBuilder.from_isolated_env(environment, copy, runner=run)
        environment.install(builder.build_system_requires)
        kinds = {kind: builder.build(kind, out / kind) for kind in ("wheel", "editable")}
    return copy, {kind: Path(path) for kind, path in kinds.items()}


@pytest.fixture(scope="module")
def wheel(built):
    return built[1]["wheel"]


@pytest.fixture(scope="module")
def install(built, tmp_path_factory):
    """Return a function that installs the wheel, or the editable one, in a new environment."""

    @cache
    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        venv.create(folder, symlinks=True)
        paths = {"base": str(folder), "platbase": str(folder)}
        site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        zipfile.ZipFile(built[1][kind]).extractall(site)
        # As plain folders: the editable install of the test environment must not help.
        own = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
        own |= {path for path in sys.path if path.endswith("-packages")}
        (site / "others.pth").write_text("\n".join(sorted(own)))
        return Path(sysconfig.get_path("scripts", "venv", vars=paths)) / "python", site

    return make


@pytest.mark.parametrize("where", ["root", "above", "elsewhere"])
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_every_install_works_from_everywhere(built, install, tmp_path, kind, where):
    clone = built[0]
    python, site = install(kind)
    # What the folder above would import is a namespace package: it has the name, and nothing in it.
    code = (
        "import permdist\nfrom importlib.util import find_spec\n"
        "names = 'permdist.cli', 'permdist.samplers', 'permdist.models'\n"
        "print(permdist.__file__, *(find_spec(name).origin for name in names), sep='\\n')"
    )
    if kind == "editable" and where == "above":
        code += "\nfrom permdist import PlackettLuce"
    done = subprocess.run(
        [python, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd={"root": clone, "above": clone.parent, "elsewhere": tmp_path}[where],
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    in_clone = kind == "editable" or where == "root"
    home = clone if in_clone else site
    beside = clone if in_clone else site / "permdist"
    expected = home / "permdist", home / "permdist/cli", beside / "samplers", beside / "models"
    assert done.stdout.splitlines() == [str(folder / "__init__.py") for folder in expected]


def test_an_editable_install_gives_way_to_a_real_package(install, tmp_path):
    """Another clone that a program puts on its path, or starts in, is what it wants."""
    python, _ = install("editable")
    (tmp_path / "permdist").mkdir()
    (tmp_path / "permdist" / "__init__.py").write_text("mine = True")
    code = "import permdist; print(permdist.mine)"
    subprocess.run([python, "-c", code], check=True, cwd=tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([python, "-c", code], check=True, cwd=tmp_path.parent, env=environment)


def test_everything_in_an_editable_wheel_is_on_record(built):
    """Or uninstalling would leave something behind."""
    archive = zipfile.ZipFile(built[1]["editable"])
    record = next(name for name in archive.namelist() if name.endswith("RECORD"))
    rows = [line.split(",") for line in archive.read(record).decode().splitlines()]
    assert {row[0] for row in rows} == set(archive.namelist())
    for name, digest, size in rows:
        if name != record:
            content = archive.read(name)
            assert int(size) == len(content)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            assert digest == f"sha256={found.rstrip('=')}"


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


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("permdist", "arviz matplotlib numba scipy sklearn pandas hypothesis rich"),
        ("permdist.cli", "numpy numba pandas"),
        ("permdist.rankings, permdist.measures, permdist.data", "arviz matplotlib sklearn pandas"),
    ],
)
def test_imports_are_light(modules, absent):
    code = f"import {modules}, sys; assert not set({absent!r}.split()) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_shows_public_names_only():
    import permdist.cli  # which loads modules with and without an underscore

    assert permdist.cli
    assert dir(permdist) == sorted(permdist.__all__)


def test_submodules_are_reached_by_name():
    for name in permdist.__all__:
        assert getattr(permdist, name) is not None
    with pytest.raises(AttributeError, match="module 'permdist' has no attribute 'ranking'"):
        _ = permdist.ranking
