"""Comparisons of learners: settings chosen on validation queries, differences tested."""

from permdist.comparison.entries import Entry, read_entries
from permdist.comparison.results import Comparison
from permdist.comparison.run import Tuned, compare, tune
from permdist.comparison.scores import compare_scores
from permdist.comparison.statistics import adjust, randomization_test

__all__ = [
    "Comparison",
    "Entry",
    "Tuned",
    "adjust",
    "compare",
    "compare_scores",
    "randomization_test",
    "read_entries",
    "tune",
]
