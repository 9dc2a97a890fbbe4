"""Every example runs, at small size, and leaves its picture."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = {"common.py", "published.py"}
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in SHARED]
SMALL = json.loads((ROOT / "examples" / "small.json").read_text())


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script, tmp_path):
    picture = tmp_path / "picture.png"
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script), "--output", str(picture), *SMALL[script.stem]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
    assert len(script.read_text().splitlines()) <= 150


def test_examples_are_indexed():
    listed = set(re.findall(r"`(\w+)\.py`", (ROOT / "examples" / "README.md").read_text()))
    assert listed == {path.stem for path in EXAMPLES}
