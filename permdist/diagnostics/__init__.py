"""Diagnostics of chains: by arviz, from an `xarray.Dataset`, or against exact marginals.

The Dataset has the dimensions ``chain``, ``draw`` and ``item``; all versions of arviz accept it.
"""

from permdist.diagnostics.comparison import ChainComparison, compare_to_exact
from permdist.diagnostics.dataset import to_dataset
from permdist.diagnostics.files import load, save
from permdist.diagnostics.summary import Summary, summary

__all__ = [
    "ChainComparison",
    "Summary",
    "compare_to_exact",
    "load",
    "save",
    "summary",
    "to_dataset",
]
