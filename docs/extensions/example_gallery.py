"""The gallery: scripts of examples/ as pages, each with its picture and what the picture shows.

Sphinx-Gallery wants a headline in every script, and runs what it finds. So copies are made for it,
with a headline from the first line of the docstring and the picture's meaning from the table in
examples/README.md; the scripts themselves stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

DOCS = Path(__file__).resolve().parent.parent
EXAMPLES = DOCS.parent / "examples"
COPIES = DOCS / "_build" / "examples"
LONGEST = 60  # headlines
SMALL = os.environ.get("PERMDIST_DOCS") in ("small", "pages")
RUN = os.environ.get("PERMDIST_DOCS") != "pages"  # otherwise there are no pictures


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the copies before Sphinx-Gallery looks for them."""
    app.connect("config-inited", prepare, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def meanings() -> dict[str, str]:
    """Read what each picture shows, in the order of the table: script without ending to text."""
    rows = re.findall(r"^\| `(\w+)\.py` \| (.+) \|$", (EXAMPLES / "README.md").read_text(), re.M)
    return dict(rows)


def sizes(name: str) -> list[str]:
    """Return the options a script is run with: none, or those of its small size."""
    return json.loads((EXAMPLES / "small.json").read_text())[name] if SMALL else []


def docstring(name: str) -> str:
    """Return what a script says about itself."""
    return (EXAMPLES / f"{name}.py").read_text().split('"""', 2)[1]


def headline(text: str) -> tuple[str, str]:
    """Part the first line of a docstring into a headline and the rest.

    Examples
    --------
    >>> headline("How far do walks stray? The losses of restart samples.")
    ('How far do walks stray?', 'The losses of restart samples.')
    >>> headline("One query under three distributions: where each document may stand.")
    ('One query under three distributions', 'Where each document may stand.')
    >>> headline("Learners that add feature rankings against linear ones, on strict lists.")
    ('Learners that add feature rankings against linear ones', 'On strict lists.')
    """
    end = re.search("[?:.]", text).start()
    if end > LONGEST and "," in text[:end]:
        end = text.index(",")
    title, rest = text[:end] + ("?" if text[end] == "?" else ""), text[end + 1 :].strip()
    return title, rest[:1].upper() + rest[1:]


def prepare(_app: Sphinx, _config: Config) -> None:
    """Write the copies, and the page that lists them."""
    shutil.rmtree(COPIES, ignore_errors=True)
    COPIES.mkdir(parents=True)
    cards = []
    for name, meaning in meanings().items():
        code = (EXAMPLES / f"{name}.py").read_text().split('"""', 2)[2]
        first, _, more = docstring(name).partition("\n")
        title, rest = headline(first)
        shown = _as_rst(meaning[:1].upper() + meaning[1:])
        command = " ".join(["python", f"examples/{name}.py", *sizes(name)])
        text = [title, "=" * len(title), "", f"{shown}.", ""]
        text += [rest, more.strip().replace("|", r"\|"), "", f"Run it with ``{command}``.", ""]
        (COPIES / f"{name}.py").write_text('r"""\n' + "\n".join(text) + '"""' + code)
        cards.append((name, title, shown))
    (COPIES / "index.rst").write_text(_index(cards))


def _index(cards: list[tuple[str, str, str]]) -> str:
    lines = ["Examples", "========", "", _as_rst(_introduction()), ""]
    if SMALL:
        lines += ["These pictures were made at small sizes, to try the scripts.", ""]
    lines += [".. container:: cards pictures", ""]
    for name, title, shown in cards:
        lines += [f"   * .. image:: images/sphx_glr_{name}_001.png"] if RUN else ["   *"]
        lines += [f"        :target: {name}.html", f"        :alt: {title}", ""] if RUN else []
        lines += [
            f"     :doc:`{title} <{name}>`",
            "",
            f"     {shown}.",
            "",
        ]
    lines += [".. toctree::", "   :hidden:", ""]
    return "\n".join([*lines, *(f"   {name}" for name, _, _ in cards), ""])


def _introduction() -> str:
    """Return what examples/README.md says above its table."""
    text = (EXAMPLES / "README.md").read_text()
    return text.partition("\n")[2].partition("\n|")[0].strip()


def _as_rst(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"``\1``", text)


# ---- what Sphinx-Gallery calls -----------------------------------------------------------------


def arguments(_gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the command line of a script, and set what Sphinx-Gallery takes away from it."""
    name = Path(script_vars["src_file"]).stem
    given = {"__doc__": docstring(name), "__file__": script_vars["src_file"]}
    script_vars["example_globals"].update(given)
    return sizes(name)


def picture(block: Any, block_vars: dict[str, Any], _gallery_conf: dict[str, Any]) -> str:
    """Take the picture that a script has left beside itself."""
    made = Path(block_vars["src_file"]).with_suffix(".png")
    if block[0] != "code" or not made.is_file():
        return ""
    target = block_vars["image_path_iterator"].next()
    shutil.move(made, target)
    file = Path(target).name
    lines = [f".. image:: /gallery/images/{file}", f"   :alt: {meanings()[made.stem]}"]
    return "\n".join([*lines, f"   :target: ../_images/{file}", "", ""])


class Order:
    """Sort scripts as the table in examples/README.md does."""

    def __init__(self, _folder: str) -> None:
        self.names = list(meanings())

    def __call__(self, name: str) -> int:
        """Return the place of a script."""
        return self.names.index(Path(name).stem)
