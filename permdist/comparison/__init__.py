"""Comparisons: learners by folds, settings chosen on validation, differences put to the test."""

from permdist.comparison.entries import Entry, read_entries
from permdist.comparison.results import Comparison
from permdist.comparison.run import Tuned, compare, tune
from permdist.comparison.statistics import adjust, randomisation_test

__all__ = [
    "Comparison",
    "Entry",
    "Tuned",
    "adjust",
    "compare",
    "randomisation_test",
    "read_entries",
    "tune",
]
