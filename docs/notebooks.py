"""Makes notebooks from the tutorials.

    python docs/notebooks.py

Every page of `docs/tutorials` becomes a notebook in `docs/notebooks`: its text, and its examples
without prompts and without their results, which the notebook shows when it is run. Code that has no
prompts is for reading, and stays text.
"""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TUTORIALS, NOTEBOOKS = HERE / "tutorials", HERE / "notebooks"
_FENCE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()(?!\w+:|/|#)([^)\s]+)\)")


def notebook(page: str) -> str:
    """Return a tutorial as a notebook, in JSON.

    Parameters
    ----------
    page : str
        The name of the page, without its ending.
    """
    text = (TUTORIALS / f"{page}.md").read_text(encoding="utf-8")
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(_FENCE.split(text)):
        if number % 2 and ">>>" not in part:  # to be read, not run
            cells.append(_cell("markdown", f"```python\n{part}```"))
        elif number % 2:
            cells += [_code(*one) for one in _examples(part)]
        elif part.strip():
            cells.append(_cell("markdown", _LINK.sub(_moved, part.strip())))
    for number, cell in enumerate(cells):
        cell["id"] = f"{page}-{number}"
    whole = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _examples(block: str) -> list[tuple[str, bool]]:
    """Return the code of cells, and whether it raises: a cell ends where something is shown."""
    found: list[tuple[str, bool]] = []
    waiting = ""
    for example in doctest.DocTestParser().get_examples(block):
        waiting += _gap(waiting, example.source) + example.source
        if example.want:
            found.append((waiting, example.exc_msg is not None))
            waiting = ""
    return [*found, *([(waiting, False)] if waiting else [])]


def _gap(before: str, after: str) -> str:
    """Return what separates two statements: blank lines after imports and around definitions."""
    if not before:
        return ""
    last = [line for line in before.splitlines() if line[:1].strip()][-1]
    definitions = ("def ", "class ", "@")
    if after.startswith(definitions) or last.startswith(definitions):
        return "\n\n"
    imports = ("import ", "from ")
    return "\n" if last.startswith(imports) and not after.startswith(imports) else ""


def _moved(link: re.Match[str]) -> str:
    """Return a link of a tutorial as one of a notebook in the folder beside."""
    target, mark, place = link[2].partition("#")
    if (TUTORIALS / target).suffix == ".md" and "/" not in target:  # another tutorial
        return f"{link[1]}{target.removesuffix('.md')}.ipynb)"
    moved = target if target.startswith("../") else f"../tutorials/{target}"
    return f"{link[1]}{moved}{mark}{place})"


def _cell(kind: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}


def _code(source: str, raises: bool) -> dict[str, Any]:
    cell = _cell("code", source.rstrip("\n")) | {"execution_count": None, "outputs": []}
    if raises:  # running all cells goes on after it
        cell["metadata"] = {"tags": ["raises-exception"]}
    return cell


def main() -> None:
    """Write all notebooks."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in sorted(TUTORIALS.glob("*.md")):
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(notebook(path.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
