"""Draw which package imports which, from the sources: ``python docs/architecture.py``.

Writes ``_static/architecture.png`` and, beside it, the list of imports that it shows
(``architecture.txt``). ``tests/test_architecture.py`` checks that the list is current, that no
import points up and that there is no cycle.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STATIC = Path(__file__).resolve().parent / "_static"
FOLDERS = {"permdist": "permdist", "samplers": "permdist.samplers", "models": "permdist.models"}

# From the bottom to the top. A layer may import from itself and from those before it. Each layer
# is a title and the rows in which its packages are drawn; a new package is added to one of them.
LAYERS: dict[str, list[dict[str, str]]] = {
    "foundations": [
        {"permdist._*": "checks, kernels, files, text, registries: private, used everywhere"},
    ],
    "objects": [
        {
            "rankings": "orders, ties,\ndistances",
            "data": "queries, folds,\nfile formats",
            "measures": "NDCG, AP, ...\nand evaluation",
            "ballots": "orders, ties, choices,\nbattles: data to fit",
        },
        {
            "targets": "what a chain\nwalks on",
            "distributions": "Plackett-Luce,\ngood-bad pairs, ...",
            "consensus": "one ranking\nfor many",
            "inference": "estimates of worths\nand their errors",
            "sums": "exact sums\nover rankings",
            "distances": "one file each, with\nwhat follows for Mallows",
        },
    ],
    "samplers": [{"samplers": "exact draws, Markov chains\nand their kernels, restarts"}],
    "models": [
        {
            "models": "learners: an objective over\na space, and a solver",
            "objectives": "the objectives,\nwithout a learner",
            "adapters": "the objectives\nin other libraries",
        },
    ],
    "tools": [
        {
            "diagnostics": "convergence\nof chains",
            "comparison": "learners compared\non folds",
            "identities": "mathematical claims,\nto be checked",
            "strategies": "Hypothesis\nstrategies",
        },
        {
            "posterior": "posterior draws\nof parameters",
            "plots": "pictures",
            "report": "HTML pages",
            "rating": "leaderboards\nfrom battles",
        },
        {
            "explorer": "a local page\nto play with",
            "cli": "permdist on the\ncommand line",
        },
    ],
}

# Imports inside functions that point up, and why each is there: nothing else may.
CALLBACKS = {
    ("distributions", "samplers"): "Distribution.sample, where no direct draw is known",
    ("samplers", "diagnostics"): "Chains.summary, Chains.to_dataset, Chains.save",
}


class Import(NamedTuple):
    """One import of one of our modules by another; `when` is "load", "call" or "types"."""

    source: str
    target: str
    when: str


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the file of every module, by its name without ``permdist.``."""
    found = {}
    for folder, name in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = (*name.split(".")[1:], *path.relative_to(root / folder).with_suffix("").parts)
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


def package_of(module: str) -> str:
    """Return the box that a module is drawn in; ``""`` for ``permdist/__init__.py``.

    Examples
    --------
    >>> package_of("samplers.kernels.flip"), package_of("_ragged"), package_of("__main__")
    ('samplers', 'permdist._*', 'cli')
    """
    first = module.split(".")[0]
    if first == "__main__":
        return "cli"
    return "permdist._*" if first.startswith("_") else first


def layer_of(package: str) -> int:
    """Return the number of a package's layer, counted from the bottom."""
    for number, rows in enumerate(LAYERS.values()):
        if any(package in row for row in rows):
            return number
    raise KeyError(
        f"{package}: a new package? Add it to a layer of LAYERS in docs/architecture.py, above "
        "everything that it imports, then run that script and say in docs/architecture.md what it "
        "is for"
    )


class _Reader(ast.NodeVisitor):
    """Collects the imports of one module."""

    def __init__(self, module: str, known: dict[str, Path]) -> None:
        self.module, self.known = module, known
        self.when, self.found = "load", set[Import]()

    def _during(self, when: str, nodes: list[ast.stmt]) -> None:
        before = self.when
        self.when = when if before == "load" else before
        for node in nodes:
            self.visit(node)
        self.when = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._during("call", node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_If(self, node: ast.If) -> None:
        typing = ast.unparse(node.test).endswith("TYPE_CHECKING")
        self._during("types" if typing else self.when, node.body)
        self._during(self.when, node.orelse)

    def _add(self, name: str) -> None:
        if name.split(".")[0] != "permdist":
            return
        target = name.partition(".")[2]
        while target not in self.known:
            target = target.rpartition(".")[0]
        self.found.add(Import(self.module, target, self.when))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._add(f"{node.module}.{alias.name}")


def imports(root: Path = ROOT) -> list[Import]:
    """Return every import of one package by another, sorted; those for types alone included."""
    known, found = modules(root), set[Import]()
    for module, path in known.items():
        reader = _Reader(module, known)
        reader.visit(ast.parse(path.read_text(encoding="utf-8")))
        found |= reader.found
    packages = ((one, package_of(one.source), package_of(one.target)) for one in found)
    # permdist/__init__.py loads parts by name when they are asked for, and imports none of them.
    return sorted(one for one, source, target in packages if source and target and source != target)


def is_callback(one: Import) -> bool:
    """Return whether an import that points up is one of `CALLBACKS`."""
    allowed = CALLBACKS.keys()
    sources = {one.source, package_of(one.source)}
    return one.when == "call" and any((s, package_of(one.target)) in allowed for s in sources)


def edges(when: tuple[str, ...], found: list[Import]) -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    graph: dict[str, set[str]] = {}
    for one in found:
        if one.when in when:
            graph.setdefault(package_of(one.source), set()).add(package_of(one.target))
    return graph


def reaches(graph: dict[str, set[str]], start: str, end: str) -> bool:
    """Return whether there is a path from one package to another."""
    seen, waiting = set(), [start]
    while waiting:
        for following in graph.get(waiting.pop(), set()) - seen:
            seen.add(following)
            waiting.append(following)
    return end in seen


def listing(found: list[Import]) -> str:
    """Return the text of ``architecture.txt``: a line per pair of packages."""
    load, call = edges(("load",), found), edges(("call",), found)
    lines = ["# Written by docs/architecture.py: which package imports which, and when."]
    for package in sorted({*load, *call}, key=lambda name: (layer_of(name), name)):
        targets = load.get(package, set())
        lines += [f"{package} -> {target}" for target in sorted(targets)]
        later = sorted(call.get(package, set()) - targets)
        lines += [f"{package} -> {target} (when called)" for target in later]
    return "\n".join([*lines, ""])


# ---- the picture -------------------------------------------------------------------------------

COLORS = ["#8c8c8c", "#4c72b0", "#55a868", "#c99a2e", "#b5544e"]
WIDTH, HEIGHT, GAP = 1.72, 0.62, 0.2
HALF = 5.2  # of the width of all rows
SPANS = {"samplers": (-HALF, -1.2), "models": (-4.3, 2.7)}  # so that arrows pass beside the boxes


def shown(found: list[Import]) -> list[tuple[str, str]]:
    """Return the arrows to draw: those that no chain of others implies, foundations left out."""
    graph = edges(("load",), found)
    for one in found:
        source, target = package_of(one.source), package_of(one.target)
        below = one.when == "call" and layer_of(target) <= layer_of(source)
        if below and not reaches(graph, target, source):
            graph.setdefault(source, set()).add(target)
    for targets in graph.values():
        targets.discard("permdist._*")
    return [
        (source, target)
        for source, targets in sorted(graph.items())
        for target in sorted(targets)
        if not any(reaches(graph, other, target) for other in targets - {target})
    ]


def draw(found: list[Import], path: Path) -> None:
    """Draw the layers, their packages and the arrows between them."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    present = {package_of(module) for module in modules()}
    figure = Figure(figsize=(11, 8.0), layout="constrained")
    ax = figure.add_subplot()
    ax.axis("off")
    places: dict[str, tuple[float, float, float]] = {}  # center, height, half of the width
    level = 0.0
    for color, (title, rows) in zip(COLORS, LAYERS.items(), strict=True):
        bottom = level
        for row in rows:
            here = {name: text for name, text in row.items() if name in present}
            left, right = SPANS.get(title, (-HALF, HALF))
            lines = [max(map(len, text.split("\n"))) for text in here.values()]
            widths = [max(WIDTH, 0.078 * line + 0.3) for line in lines]
            space = (right - left - sum(widths)) / len(here)
            center = left - space / 2
            for wide, (name, text) in zip(widths, here.items(), strict=True):
                center += space + wide / 2
                places[name] = center, level, wide / 2
                corner = (center - wide / 2, level)
                style = {"facecolor": "white", "edgecolor": color, "linewidth": 1.6, "zorder": 3}
                ax.add_patch(FancyBboxPatch(corner, wide, HEIGHT, "round,pad=0.05", **style))
                label = {"ha": "center", "va": "center", "zorder": 4}
                two = "\n" in text
                top = level + HEIGHT * (0.8 if two else 0.7)
                ax.text(center, top, name, weight="bold", fontsize=9.5, **label)
                down = level + HEIGHT * (0.3 if two else 0.25)
                ax.text(center, down, text, fontsize=7.6, color="0.25", linespacing=1.0, **label)
                center += wide / 2
            level += HEIGHT + 2.6 * GAP
        level -= 2.6 * GAP
        band = {"facecolor": color, "alpha": 0.1, "linewidth": 0, "zorder": 0}
        size = (2 * HALF + 1.7, level - bottom + 2 * GAP)
        ax.add_patch(FancyBboxPatch((-HALF - 1.6, bottom - GAP), *size, "round,pad=0.03", **band))
        ax.text(-HALF - 1.45, (bottom + level) / 2, title, color=color, weight="bold", va="center")
        level += 4.2 * GAP

    def arrow(source: str, target: str, **style: object) -> None:
        (x, y, w), (to_x, to_y, to_w) = places[source], places[target]
        if y == to_y:  # neighbors: straight; others: over the top
            side = 1.0 if to_x > x else -1.0
            near = not any(
                y == other[1] and min(x, to_x) < other[0] < max(x, to_x)
                for other in places.values()
            )
            if near:
                start = (x + side * (w + 0.06), y + HEIGHT / 2)
                end, bend = (to_x - side * (to_w + 0.06), to_y + HEIGHT / 2), 0.0
            else:
                start, end = (x + side * w / 2, y + HEIGHT + 0.06), (to_x, to_y + HEIGHT + 0.06)
                bend = -0.09 * side
        else:
            down = y > to_y
            reach = max(-0.8 * to_w, min(0.8 * to_w, 0.16 * (x - to_x)))
            leave = max(-0.8 * w, min(0.8 * w, 0.16 * (to_x - x)))
            start = (x + leave, y - 0.06 if down else y + HEIGHT + 0.06)
            end = (to_x + reach, to_y + HEIGHT + 0.06 if down else to_y - 0.06)
            bend = 0.0 if down else 0.12
        curve = f"arc3,rad={bend:g}"
        kind = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0, **style}
        ax.add_patch(FancyArrowPatch(start, end, connectionstyle=curve, **kind))

    colors = dict(zip(range(len(LAYERS)), COLORS, strict=True))
    for source, target in shown(found):
        arrow(source, target, color=colors[layer_of(source)], linewidth=1.2, zorder=2, alpha=0.85)
    up = {(package_of(one.source), package_of(one.target)) for one in found if is_callback(one)}
    for source, target in sorted(pair for pair in up if pair[0] != "permdist._*"):
        arrow(source, target, color="0.45", linestyle=(0, (3, 2)), linewidth=1.1, zorder=2)
    ax.set(xlim=(-HALF - 1.75, HALF + 0.3), ylim=(-2 * GAP, level - 2.6 * GAP))
    ax.set_title(
        "An arrow points to what is used; arrows that others imply are left out. "
        "Dashed: a call back, loaded when it is made.",
        fontsize=9,
        color="0.3",
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    """Write the picture and the list."""
    found = imports()
    draw(found, STATIC / "architecture.png")
    (STATIC / "architecture.txt").write_text(listing(found), encoding="utf-8")
    print(f"{STATIC / 'architecture.png'}, {STATIC / 'architecture.txt'}")


if __name__ == "__main__":
    main()
