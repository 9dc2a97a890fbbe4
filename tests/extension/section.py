"""A section of the report: which learners were compared."""

from permdist.report import register_section


def write(report, comparison, _folds):
    """Add a section with the names of the learners."""
    report.section("Who took part", ", ".join(comparison.names))


def register():
    """Let reports find it."""
    register_section("who", write, after="results")
