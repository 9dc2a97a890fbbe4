"""Shared set-up of the tests: Hypothesis profiles, a headless matplotlib, a browser, real data."""

import os
import shutil
from pathlib import Path

import matplotlib
import pytest
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")

# The first example of a test may compile a kernel: no deadline can be fair to it.
common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=60, **common)
settings.register_profile("ci", max_examples=50, derandomize=True, print_blob=True, **common)
settings.register_profile("thorough", max_examples=2000, **common)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real collections; tests that need it are skipped without."""
    folder = os.environ.get("PERMDIST_DATA")
    if not folder:
        pytest.skip("PERMDIST_DATA does not name a folder with real collections")
    return Path(folder)


@pytest.fixture(scope="module")
def browser():
    """Chromium, or whatever is like it; tests that need it are skipped without."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is on the PATH")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=program, args=flags)
        yield started
        started.close()


@pytest.fixture
def no_report(monkeypatch):
    """Leave out the pictures of a comparison, which take longer than all the rest."""
    from permdist import report

    empty = report.Report("Nothing", "to see")
    name = "permdist.report.comparison.comparison_report"
    monkeypatch.setattr(name, lambda *_, **__: empty)
