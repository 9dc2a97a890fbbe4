import ast
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import permdist
from permdist._kernels import NOTICE, SILENT, kernel
from permdist.rankings.sorting import (
    ascending,
    count_below,
    count_inversions,
    descending,
    members_by,
    sort,
    weigh_inversions,
)


@given(st.lists(st.integers(0, 30), max_size=400))
def test_inversions(values):
    array = np.array(values, dtype=np.int64)
    expected = int((array[:, None] > array[None, :])[np.triu_indices(len(array), 1)].sum())
    assert count_inversions(array.copy(), np.empty_like(array), len(array)) == expected
    ones = np.ones(len(array))
    weighed = weigh_inversions(
        array.copy(), ones.copy(), np.empty_like(array), ones.copy(), len(array), False
    )
    assert weighed == expected


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import program
import numpy as np
print(program.outer(np.ones(3)), program.outer.stats.cache_hits)
"""


def run(folder, limit=None, **environment):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(folder))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        preexec_fn=limit,
    )
    value, hits = result.stdout.split(" ", 1)
    return float(value), "Counter()" not in hits


def write(folder, factor):
    (folder / "helpers.py").write_text(
        textwrap.dedent(f"""
        from permdist._kernels import kernel

        @kernel
        def inner(x):
            return {factor} * x
        """)
    )
    (folder / "program.py").write_text(
        textwrap.dedent("""
        from helpers import inner
        from permdist._kernels import kernel

        @kernel
        def outer(values):
            total = 0.0
            for value in values:
                total += inner(value)
            return total
        """)
    )


def test_kernels_are_cached_and_follow_their_helpers(tmp_path):
    write(tmp_path, 2.0)
    assert run(tmp_path) == (6.0, False)
    assert run(tmp_path) == (6.0, True)
    write(tmp_path, 5.0)  # the caller's own file is the same as before
    assert run(tmp_path) == (15.0, False)


def test_kernels_work_without_a_cache(tmp_path):
    # A folder that is a file can be written by nobody, not even by root.
    write(tmp_path, 2.0)
    (tmp_path / "__pycache__").write_text("in the way")
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    home = str(blocked / "home")
    assert run(tmp_path, HOME=home, XDG_CACHE_HOME=home, NUMBA_CACHE_DIR="") == (6.0, False)


PARTS = """
import sys
sys.path.insert(0, {folder!r})
import helpers, program
import numpy as np
values = np.ones(3)
if sys.argv[1] == "before":
    helpers.inner(1.0)
print(program.outer(values), program.outer.stats.cache_hits)
print(helpers.inner(1.0), len(helpers.inner.overloads))
"""


@pytest.mark.parametrize("order", ["after", "before"])
def test_kernels_inside_kernels_are_called_from_python_too(tmp_path, order):
    """What is compiled inside a caller is another file than what Python calls; both work."""
    write(tmp_path, 2.0)
    for cached in (False, True):
        assert run(tmp_path) == (6.0, cached)
    found = subprocess.run(
        [sys.executable, "-c", PARTS.format(folder=str(tmp_path)), order],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    assert found[0].startswith("6.0 ")
    assert found[1] == "2.0 1"


def test_kernels_that_call_themselves():
    @kernel
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    @kernel
    def twice(n):
        return 2 * factorial(n)

    assert twice(4) == 48
    assert factorial(4) == 24


def test_a_full_disk_does_not_stop_kernels(tmp_path):
    """A limit on the size of files stands for a disk that fills up."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    write(tmp_path, 2.0)
    assert run(tmp_path, limit) == (6.0, False)
    assert run(tmp_path, limit) == (6.0, False)  # nothing half-written is taken for the whole
    assert run(tmp_path) == (6.0, False)
    assert run(tmp_path) == (6.0, True)


def test_two_processes_that_save_different_signatures_do_not_mix_them_up(tmp_path):
    """Both see an empty index before either has written: numba would give both number 1."""
    write(tmp_path, 2.0)
    program = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np
        import program
        record = program.outer._cache._cache_file
        if sys.argv[2] == "save":
            waiting = record._load_index
            record._load_index = lambda: {{}}  # what a process sees that was a moment too early
        values = np.ones(3, np.dtype(sys.argv[3]))
        print(float(program.outer(values)), sum(program.outer.stats.cache_hits.values()))
    """).replace("{{}}", "{}")

    def call(task, dtype):
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), task, dtype],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            },
        ).stdout.split()

    for dtype in ("f8", "i8"):
        assert call("save", dtype)[0] == "6.0"
    names = [path.name for path in tmp_path.rglob("program.outer*.nbc")]
    assert len(names) == 2
    assert call("load", "i8") == ["6.0", "1"]  # the index is that of the last one
    assert call("load", "f8")[0] == "6.0"


def kernels_of(path):
    """Find the functions of a file that are compiled."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            names = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
            if any(getattr(name, "id", None) == "kernel" for name in names):
                yield node


def slow_to_compile(function):
    """Find what takes a second to compile: numba's sorts, and arrays assigned to slices."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("sort", "argsort", "lexsort"):
                yield node
        elif isinstance(node, ast.Assign):
            parts = [part for one in node.targets for part in getattr(one, "elts", [one])]
            subscripts = [one for one in parts if isinstance(one, ast.Subscript)]
            if isinstance(node.value, ast.Subscript):  # a row of a table is a slice, too
                subscripts += [node.value] * bool(subscripts)
            indices = [
                part for one in subscripts for part in getattr(one.slice, "elts", [one.slice])
            ]
            constant = ast.unparse(node.value).lstrip("-") in (
                "0",
                "1",
                "0.0",
                "1.0",
                "np.inf",
                "False",
            )
            if any(isinstance(part, ast.Slice) for part in indices) and not constant:
                yield node


def test_kernels_do_without_what_is_slow_to_compile():
    """Use `permdist.rankings.sorting` instead; it is compiled once, and quickly."""
    root = Path(permdist.__file__).parents[1]
    files = [
        path for name in ("permdist", "samplers", "models") for path in (root / name).rglob("*.py")
    ]
    found = [
        f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node)}"
        for path in files
        for function in kernels_of(path)
        for node in slow_to_compile(function)
    ]
    assert found == []


@given(st.lists(st.integers(0, 30), max_size=200))
def test_sorting(values):
    array = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(ascending(array), np.argsort(array, kind="stable"))
    np.testing.assert_array_equal(descending(array), np.argsort(-array, kind="stable"))
    members = np.arange(0, len(array), 2)
    expected = members[np.argsort(-array[members], kind="stable")]
    np.testing.assert_array_equal(members_by(-1.0, array, members), expected)
    sort(array)
    np.testing.assert_array_equal(array, np.sort(np.array(values, dtype=np.float64)))


NOTICED = """
import os, sys, time
from permdist._kernels import kernel

@kernel
def double(x):
    return 2.0 * x

from permdist import _kernels
_kernels.PATIENCE = 0.0
double.py_func.__module__ = "permdist.own"
for x in (1, 1.0, 1j):  # one compilation each
    listener = _kernels.COMPILING
    class Event:
        data = {"dispatcher": double}
    listener.on_start(Event)
    time.sleep(0.3)
    listener.on_end(Event)
"""


def in_a_terminal(code, **environment):
    """Run a program whose errors go to a terminal; return what it shows."""
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stderr=follower, env={**os.environ, **environment}) as process:
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 1000):
                shown += part
        except OSError:  # closed at the other end
            pass
    os.close(leader)
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_long_compilation_is_announced_once_in_a_terminal_and_never_in_a_pipe():
    assert in_a_terminal(NOTICED).splitlines() == [NOTICE]
    piped = subprocess.run([sys.executable, "-c", NOTICED], capture_output=True, check=True)
    assert piped.stderr == b""


def test_workers_announce_nothing():
    assert in_a_terminal(NOTICED, **{SILENT: "1"}) == ""


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(-1, 10))
def test_counting_below(values, limit):
    array = np.sort(np.array(values, dtype=np.float64))
    assert count_below(array, float(limit)) == np.searchsorted(array, limit)
