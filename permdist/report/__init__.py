"""Reports: one self-contained HTML file of texts, numbers, tables and pictures."""

from permdist.report.document import Report, versions
from permdist.report.table import Cell

__all__ = ["Cell", "Report", "versions"]
