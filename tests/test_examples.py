"""Every example runs, at small size, and leaves its picture."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALL = {
    "measure_conventions": ["--queries", "30"],
    "distances_between_ballots": ["--voters", "12"],
    "inspect_one_query": ["--documents", "5"],
    "trust_a_chain": ["--draws", "300", "--largest", "12"],
    "restart_smear": ["--size", "900"],
    "compare_conditional_models": ["--queries", "12"],
    "exact_and_sampled": ["--queries", "15"],
    "sample_size_saturation": ["--queries", "8", "--seeds", "1"],
    "restart_skew": ["--queries", "8", "--size", "5"],
    "loss_and_exponent": ["--queries", "12"],
    "bounds_of_the_loss": ["--points", "12"],
    "learning_curves": ["--queries", "20", "--rounds", "9"],
    "pairs_and_queries": ["--queries", "15"],
    "compare_bound_learners": ["--queries", "12"],
    "approximation_error": ["--queries", "12", "--passes", "3"],
    "feature_rankings": ["--queries", "12", "--cycles", "2"],
    "compare_feature_rankings": ["--queries", "8"],
}


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
    assert len(script.read_text().splitlines()) <= 80


def test_examples_are_indexed():
    listed = set(re.findall(r"`(\w+)\.py`", (ROOT / "examples" / "README.md").read_text()))
    assert listed == {path.stem for path in EXAMPLES}
