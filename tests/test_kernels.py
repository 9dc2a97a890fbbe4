import os
import resource
import subprocess
import sys
import textwrap

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from permdist._inversions import count_inversions, weigh_inversions


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


def test_a_full_disk_does_not_stop_kernels(tmp_path):
    """A limit on the size of files stands for a disk that fills up."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    write(tmp_path, 2.0)
    assert run(tmp_path, limit) == (6.0, False)
    assert run(tmp_path, limit) == (6.0, False)  # nothing half-written is taken for the whole
    assert run(tmp_path) == (6.0, False)
    assert run(tmp_path) == (6.0, True)
