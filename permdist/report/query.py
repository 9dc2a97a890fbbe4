"""Sections about one query: its distribution, its rank marginals, and Markov chains over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import grades
from permdist.report.inspection import DISTRIBUTIONS, document_names, inspect_query, standardized
from permdist.report.table import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist.comparison import Comparison
    from permdist.distributions.base import Estimate
    from permdist.report.document import Report
    from permdist.report.inspection import Inspection


def inspection_section(report: Report, found: Inspection, title: str, text: str) -> None:
    """Add one query under one distribution: documents, marginals, pairs, measures, noise."""
    from permdist import plots

    report.section(title, text)
    frame = found.documents().drop(columns="label", errors="ignore")  # the names contain it
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
        plots.marginals(found.dist, plots.new_axes(8, height)),
        "Rank marginals",
        "The probability of every document to be at every position.",
    )
    report.picture(
        plots.pairwise(found.dist, plots.new_axes(8.5, height + 0.5)),
        "Pairwise probabilities",
        "The probability that the document of a row is above the document of a column.",
    )
    if found.expected:
        shown = {**found.expected, "entropy, nats": found.entropy}
        report.table(
            ["expected", "value", "s.e.", "ranked by score"],
            [
                [
                    name,
                    Cell(f"{float(value):.4f}", float(value)),
                    value.standard_error or "exact",
                    Cell(f"{found.by_score[name]:.4f}", found.by_score[name])
                    if name in found.by_score
                    else "",
                ]
                for name, value in shown.items()
            ],
            sortable=False,
        )
    report.picture(
        plots.noise(found),
        "Expected measures by noise scale",
        "With more noise the ranking approaches a random one; the dotted line marks the noise "
        "scale of this report.",
    )


def marginals_section(
    report: Report, scores: ArrayLike, labels: ArrayLike, what: str, names: Sequence[str] = ()
) -> None:
    """Add the rank marginals of a query under three distributions, side by side."""
    from matplotlib.figure import Figure

    from permdist import plots

    label = grades("labels", labels)
    values = standardized(scores)
    shown = list(names) or document_names(label)
    report.section(
        "One query under three distributions",
        f"The {len(label)} documents of {what}, with their labels in parentheses. The scores are "
        "scaled to standard deviation 1, and so is their noise. Expectations without a standard "
        "error are exact.",
    )
    found = {
        kind: inspect_query(values, label, kind=kind, names=shown, measures=("ndcg", "ap", "auc"))
        for kind in DISTRIBUTIONS
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


def _estimate(value: Estimate) -> Cell:
    error = f" ± {value.standard_error:.4f}" if value.standard_error else ""
    return Cell(f"{float(value):.4f}{error}", float(value))


def chains_section(
    report: Report,
    scores: ArrayLike,
    labels: ArrayLike,
    what: str,
    rng: int = 0,
    names: Sequence[str] = (),
) -> None:
    """Add Markov chains over all orders of a query, with their convergence diagnostics."""
    from permdist import GoodBad, plots
    from permdist.samplers import run_chains

    label = grades("labels", labels)
    values = standardized(scores) / len(label)
    shown = list(names) or document_names(label)
    model = GoodBad(values, label, tilt="ap", kappa=5.0, names=shown)
    # Chains even where a small query could be summed: the section shows how to judge them.
    kernel = "relocation" if len(label) <= 21 else "auto"
    chains = run_chains(
        model, draws=1000, kernel=kernel, thin=4 * len(label), rng=rng, progress=False
    )
    found = chains.summary()
    report.section(
        "Convergence of Markov chains",
        f"The {len(label)} documents of {what}. Chains ({chains.kernel}) draw from all their "
        "orders under the good-bad pair model with 5 (1 - AP) in its exponent. This distribution, "
        "which has no closed form, favors orders that score well and rank badly; it is the one "
        "behind the convex loss. The diagnostics are from arviz: R-hat near 1 and a large "
        "effective sample size indicate convergence.",
    )
    report.note(found.verdict, "info" if found.converged else "warning")
    report.preformatted(found.details())
    report.picture(plots.trace(chains), "Ranks of some documents along the chains")
    axes = plots.autocorrelation(chains, 40, plots.new_axes(7, 4.2))
    report.picture(axes, "Autocorrelation of the chains")


def query_section(report: Report, comparison: Comparison, folds: Sequence[Any] | None) -> None:
    """Show the uncertainty of the best learner about a test query that it ranks about as usual."""
    if folds is None:
        return
    test = folds[0][2]
    fitting = (test.n_relevant >= 1) & (test.n_relevant < test.sizes) & (test.sizes >= 5)
    if not fitting.any():
        return
    best = str(comparison.to_frame().index[0])
    short = fitting & (test.sizes <= max(12, int(test.sizes[fitting].min())))
    values = comparison.evaluations[best][0][comparison.measures[0].name]
    known = values[fitting & ~np.isnan(values)]
    unusual = np.nan_to_num(np.abs(values - (known.mean() if known.size else 0.0)), nan=10.0)
    number = int(np.argmin(np.where(short, unusual, 100.0)))
    a, b = test.ptr[number], test.ptr[number + 1]
    scores = comparison.scores(best, 0, test)[a:b]
    labels, qid = test.y[a:b], test.qids[number]
    names = document_names(labels, None if test.doc_ids is None else test.doc_ids[a:b].tolist())
    what = f"query {qid} of the first fold, scored by {best}"
    marginals_section(report, scores, labels, what, names)
    chains_section(report, scores, labels, what, comparison.random_state, names)
