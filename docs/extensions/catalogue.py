"""The directive ``catalogue``: the claims of one module of `permdist.identities` as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sphinx.util.docutils import SphinxDirective

from permdist.identities import CATALOGUE

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


class Catalogue(SphinxDirective):
    """Writes a table of names, statements and sources; the argument names the module."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 28 44 28", ""]
        lines += ["   * - name", "     - claim", "     - from"]
        for entry in CATALOGUE.values():
            if entry.residual.__module__ == f"permdist.identities.{self.arguments[0]}":
                statement = entry.statement.replace("*", r"\*").replace("_", r"\_")
                lines += [f"   * - .. _identity-{entry.name}:", "", f"       ``{entry.name}``"]
                lines += [f"     - {statement}", f"     - {entry.source}"]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the directive."""
    app.add_directive("catalogue", Catalogue)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
