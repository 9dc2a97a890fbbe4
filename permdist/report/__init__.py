"""Reports: single self-contained HTML files with text, numbers, tables and pictures."""

from permdist.report.document import Report, versions
from permdist.report.inspection import Inspection, inspect_query, make_distribution
from permdist.report.sections import add_sections, register_section, unregister_section
from permdist.report.table import Cell

__all__ = [
    "Cell",
    "Inspection",
    "Report",
    "add_sections",
    "inspect_query",
    "make_distribution",
    "register_section",
    "unregister_section",
    "versions",
]
