"""Sections that several reports share: one query's distribution, its chains, the identities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from permdist._check import finite, grades
from permdist._typing import IntArray
from permdist.inspection import KINDS, Inspection, inspect_query
from permdist.report import Cell, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def standardized(scores: ArrayLike) -> Any:
    """Give scores with mean 0 and standard deviation 1, so that a noise scale means something."""
    values = finite("scores", scores, ndim=1)
    values = values / max(1.0, float(np.abs(values).max(initial=0.0)))  # their squares are finite
    spread = float(values.std())
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


def document_names(labels: IntArray, ids: Sequence[Any] | None = None) -> list[str]:
    """Name documents by their id or number, with their label in brackets."""
    names = [f"document {i + 1}" for i in range(len(labels))] if ids is None else map(str, ids)
    return [f"{name} ({label})" for name, label in zip(names, labels, strict=True)]


def inspection_section(report: Report, found: Inspection, title: str, text: str) -> None:
    """Add one query under one distribution: documents, marginals, pairs, measures, noise."""
    from permdist import plots

    report.section(title, text)
    frame = found.documents().drop(columns="label", errors="ignore")  # the names say it
    report.table(
        ["document", *(str(column).replace("_", " ") for column in frame.columns)],
        [
            [str(name), *(Cell(f"{value:.3f}", value) for value in row.tolist())]
            for name, row in frame.iterrows()
        ],
        caption="Documents, best first",
    )
    height = min(11.0, 2.5 + 0.22 * found.dist.n_items)
    report.picture(
        plots.marginals(found.dist, _canvas(8, height)),
        "Rank marginals",
        "The chance of every document to stand at every position.",
    )
    report.picture(
        plots.pairwise(found.dist, _canvas(8.5, height + 0.5)),
        "Pairwise chances",
        "The chance that the document of a row is above the document of a column.",
    )
    if found.expected:
        rows = [
            [
                name,
                Cell(f"{float(value):.4f}", float(value)),
                value.standard_error or "exact",
                Cell(f"{found.by_score[name]:.4f}", found.by_score[name]),
            ]
            for name, value in found.expected.items()
        ]
        rows.append(
            [
                "entropy, nats",
                Cell(f"{float(found.entropy):.4f}", float(found.entropy)),
                found.entropy.standard_error or "exact",
                "",
            ]
        )
        head = ["expected", "value", "s.e.", "ranked by score"]
        report.table(head, rows, sortable=False)
    report.picture(
        plots.noise(found),
        "Expected measures by noise scale",
        "The more noise, the nearer to a ranking by chance; the line is where this report stands.",
    )


def marginals_section(
    report: Report, scores: ArrayLike, labels: ArrayLike, what: str, names: Sequence[str] = ()
) -> None:
    """Add rank marginals of a query under three distributions, side by side."""
    from matplotlib.figure import Figure

    from permdist import plots

    label = grades("labels", labels)
    values = standardized(scores)
    shown = list(names) or document_names(label)
    report.section(
        "One query under three distributions",
        f"The {len(label)} documents of {what}, with their labels in brackets: where each may "
        "stand when the scores, scaled to standard deviation 1, are uncertain by as much. "
        "Expectations without a standard error are exact.",
    )
    found = {
        kind: inspect_query(values, label, kind=kind, names=shown, measures=("ndcg", "ap", "auc"))
        for kind in KINDS
    }
    rows: list[list[str | Cell]] = [
        [kind, *(_estimate(value) for value in (*one.expected.values(), one.entropy))]
        for kind, one in found.items()
    ]
    names_of = next(iter(found.values())).expected
    report.table(["distribution", *(f"E[{name}]" for name in names_of), "entropy, nats"], rows)
    figure = Figure(figsize=(13, min(11.0, 2.2 + 0.22 * len(label))), layout="constrained")
    highest = max(float(one.marginals.max()) for one in found.values())
    for axes, (kind, one) in zip(figure.subplots(1, 3), found.items(), strict=True):
        plots.marginals(one.dist, axes, highest=highest).set_title(kind, loc="left")
    report.picture(figure, "Rank marginals under three distributions")


def _estimate(value: Any) -> Cell:
    text = f"{float(value):.4f}"
    if value.standard_error:
        text += f" ± {value.standard_error:.4f}"
    return Cell(text, float(value))


def chains_section(
    report: Report,
    scores: ArrayLike,
    labels: ArrayLike,
    what: str,
    seed: int = 0,
    names: Sequence[str] = (),
) -> None:
    """Add Markov chains over all orders of a query, judged by arviz."""
    from permdist import GoodBad, plots
    from permdist.samplers import run_chains

    label = grades("labels", labels)
    values = standardized(scores) / len(label)
    shown = list(names) or document_names(label)
    model = GoodBad(values, label, tilt="ap", kappa=5.0, names=shown)
    # Chains although a small query could be summed: what is shown is how to judge them.
    kernel = "relocation" if len(label) <= 21 else "auto"
    chains = run_chains(
        model, draws=1000, kernel=kernel, thin=4 * len(label), rng=seed, progress=False
    )
    found = chains.summary()
    report.section(
        "Chains, and whether to trust them",
        f"The {len(label)} documents of {what}. Chains ({chains.kernel}) draw from all their "
        "orders under the good-bad pair model with 5 (1 - AP) in its exponent: orders that score "
        "well and rank badly, the distribution behind the convex loss, which has no closed form. "
        "arviz judges them: R-hat near 1 and many effective draws are good signs.",
    )
    report.note(found.verdict, "info" if found.converged else "warning")
    report.preformatted(found.details())
    report.picture(plots.trace(chains), "Ranks of some documents along the chains")
    axes = plots.autocorrelation(chains, 40, _canvas(7, 4.2))
    report.picture(axes, "How fast the chains forget")


def identities_section(report: Report, examples: int, seed: int = 0) -> None:
    """Add the catalogue of identities, checked."""
    from permdist.identities import check_all

    results = check_all(max_examples=examples, rng=seed)
    verdict = "All of them hold." if results.passed else "Some of them fail!"
    report.section(
        "What is claimed, checked",
        f"The identities and bounds behind the library, each on {examples} random instances. "
        f"{verdict}",
    )
    report.table(
        ["identity", "verdict", "statement", "source", "worst residual"],
        [
            [
                one.identity.name,
                Cell("holds", mark="good") if one.passed else Cell("fails", mark="bad"),
                one.identity.statement,
                one.identity.source,
                Cell(f"{one.worst:.1e}", one.worst),
            ]
            for one in results
        ],
    )


def _canvas(width: float, height: float) -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()
