"""Can these chains be trusted? Draws as an xarray Dataset, judged by arviz, or by the truth.

The Dataset has the dimensions ``chain``, ``draw`` and ``item``, which is all that arviz asks for,
before and after its version 1.
"""

from permdist.diagnostics.comparison import Comparison, compare_to_exact
from permdist.diagnostics.dataset import to_dataset
from permdist.diagnostics.files import load, save
from permdist.diagnostics.summary import Summary, summary

__all__ = ["Comparison", "Summary", "compare_to_exact", "load", "save", "summary", "to_dataset"]
