"""Code spans of the Markdown pages that name something, as links to it.

Pages say ``PlackettLuce``, ``plots.marginals`` or ``permdist.models.MLE`` in plain Markdown, which
reads well anywhere; here such a name becomes a link to its page of the reference. A script of
examples/ becomes a link to its page of the gallery, ``identity: NAME`` one to its claim.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

REFERENCE = Path(__file__).resolve().parent.parent / "api"
PARTS = sorted(page.stem for page in REFERENCE.glob("*.rst") if page.stem != "index")


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page when it has been read."""
    app.add_transform(NameLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class NameLinks(SphinxTransform):
    """Turns code spans into references; those that lead nowhere stay as they are."""

    default_priority = 400

    def apply(self, **_kwargs: Any) -> None:
        """Go through the code spans of a Markdown page."""
        if not str(self.env.doc2path(self.env.docname)).endswith(".md"):
            return
        for span in list(self.document.findall(nodes.literal)):
            found = target(span.astext())
            if found and not isinstance(span.parent, nodes.reference | pending_xref):
                domain, kind, name = found
                link = pending_xref(
                    "",
                    span.deepcopy(),
                    refdomain=domain,
                    reftype=kind,
                    reftarget=name,
                    refexplicit=True,
                    refdoc=self.env.docname,
                    refwarn=False,
                )
                span.replace_self(link)


def target(text: str) -> tuple[str, str, str] | None:
    """Say what a code span refers to: domain, kind and name.

    Examples
    --------
    >>> target('ConvexLoss("ap")')
    ('py', 'obj', 'permdist.models.ConvexLoss')
    >>> target("permdist.GoodBad"), target("plots.marginals")
    (('py', 'obj', 'permdist.distributions.GoodBad'), ('py', 'obj', 'permdist.plots.marginals'))
    >>> target("examples/restart_skew.py")
    ('std', 'doc', '/gallery/restart_skew')
    >>> target("scores")
    """
    if script := re.fullmatch(r"(?:python )?examples/(\w+)\.py", text):
        return "std", "doc", f"/gallery/{script[1]}"
    if claim := re.fullmatch(r"identity: ([\w-]+)", text):
        return "std", "ref", f"identity-{claim[1]}"
    called = re.fullmatch(r"([A-Za-z_][\w.]*)(\(.*\))?", text)
    if not called:
        return None
    name = called[1].removeprefix("permdist.")
    first, _, rest = name.partition(".")
    if first in short_names():
        name = short_names()[first] + (f".{rest}" if rest else "")
    elif first not in PARTS or not (rest or called[1].startswith("permdist.")):
        return None
    return "py", "obj", f"permdist.{name}"


@cache
def short_names() -> dict[str, str]:
    """Return the public names that need no part before them: of classes, and of several words."""
    names: dict[str, str] = {}
    twice = set()
    for part in PARTS:
        if part == "objectives":  # several share their names with learners, which come first
            continue
        for name in getattr(importlib.import_module(f"permdist.{part}"), "__all__", ()):
            if name[0].isupper() or "_" in name:
                twice |= {name} & set(names)
                names[name] = f"{part}.{name}"
    return {name: full for name, full in names.items() if name not in twice}
