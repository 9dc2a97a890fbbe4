"""Comparisons: learners by folds, settings chosen on validation, differences put to the test."""

from permdist.comparison.entries import Entry, read_entries
from permdist.comparison.results import Comparison
from permdist.comparison.run import compare
from permdist.comparison.statistics import adjust, randomisation_test

__all__ = [
    "Comparison",
    "Entry",
    "adjust",
    "compare",
    "randomisation_test",
    "read_entries",
]
