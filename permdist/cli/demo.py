"""``permdist demo``: the library on a simulated collection, as a report with pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist._text import visible
from permdist.cli._errors import echo
from permdist.cli._shared import (
    AsJson,
    Seed,
    best_feature,
    command_line,
    need_files,
    need_folder,
    no_litter,
    print_json,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from permdist._typing import FloatArray, IntArray
    from permdist.comparison import Comparison
    from permdist.data import Queries
    from permdist.report import Report

MEASURES = ("map", "ndcg@10")
# Some of every kind, with few settings: fitting all of them takes half a minute.
LEARNERS = (
    "MLE[C=1|10|100]",
    "ExpectedGain[C=10|100]",
    "ConvexLoss[C=10|100,kappa=1|10,scale=true]",
    "AdaRank[accept=better,weak=features,early_stopping=50]",
    "RankBoost[weak=feature,max_iter=100,early_stopping=50]",
    "SVMMap[C=1|10]",
    "ListNet[C=1|10,target=label]",
    "ApproxNDCG[C=10|100,alpha=10]",
)


@dataclass
class Demo:
    """What the steps of the demonstration share."""

    collection: "Queries"
    folds: list[Any]
    seed: int
    output: Path
    report: "Report"
    scores: "FloatArray"
    scored_by: str
    tell: Callable[[str], None]
    comparison: "Comparison | None" = None

    def query(self, fewest: int) -> "tuple[Any, FloatArray, IntArray]":
        """Return the shortest query with at least so many documents, its scores and labels."""
        import numpy as np

        queries = self.collection
        mixed = (queries.n_relevant > 0) & (queries.n_relevant < queries.sizes)
        fitting = mixed & (queries.sizes >= fewest)
        if not fitting.any():  # a tiny collection may have no such query
            fitting = mixed
        if not fitting.any():
            return None, np.empty(0), np.empty(0, np.int64)
        number = int(np.argmin(np.where(fitting, queries.sizes, 10**9)))
        a, b = queries.ptr[number], queries.ptr[number + 1]
        return queries.qids[number], self.scores[a:b], queries.y[a:b]


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the report.")
    ] = Path("permdist-demo"),
    queries: Annotated[
        int, typer.Option(help="Number of queries to simulate.", min=2, max=100_000)
    ] = 300,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Run the whole library on a simulated collection and write a report with pictures.

    The first run takes longer, since it compiles the kernels.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from permdist import data
    from permdist.report import Report

    need_folder(output, "the report")
    need_files(output / "report.html")
    collection = data.make_letor(queries, rng=seed)
    state = Demo(
        collection,
        data.make_folds(collection, 3, rng=seed) if queries >= 3 else [],
        seed,
        output,
        Report(
            "permdist demo",
            f"An overview of the library on a simulated collection of {queries} queries "
            f"(seed {seed}): the ranking distribution of one query, Markov chains and their "
            "diagnostics, a comparison of learners, and a check of the identities.",
        ),
        *_score(collection),
        tell=lambda _: None,
    )
    terminal = Console(stderr=True)
    columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=terminal) as progress:
        for text, step in STEPS:
            task = progress.add_task(text, total=1)
            state.tell = partial(_describe, progress, task, text)
            step(state)
            progress.update(task, completed=1, description=text)
    state.report.provenance({"command": command_line(), "seed": str(seed)})
    state.report.save(output / "report.html")
    if as_json:
        facts = None if state.comparison is None else state.comparison.to_dict()
        print_json({"report": str(output / "report.html"), "comparison": facts})
        return
    if state.comparison is not None:
        text = visible(state.comparison.explain())
        Console().print(f"\n{text}", highlight=False, markup=False)
    echo(f"Report: {output / 'report.html'} (open it in a browser)")


def _describe(progress: "Progress", task: "TaskID", text: str, more: str) -> None:
    progress.update(task, description=f"{text}: {more}")


def _score(collection: "Queries") -> "tuple[FloatArray, str]":
    """Score all documents by a quick fit, or by a feature if nothing can be learned."""
    from permdist.models import MLE

    try:
        return MLE(C=10.0).fit(collection).predict(collection), "MLE"
    except ValueError:
        feature = best_feature(collection)
        return collection.X[:, feature - 1], f"feature {feature}"


def _collection(demo: Demo) -> None:
    from permdist import plots

    collection, relevant = demo.collection, demo.collection.n_relevant
    demo.report.facts(
        {
            "queries": f"{len(collection):,}",
            "documents": f"{collection.n_documents:,}",
            "features": str(collection.n_features),
            "queries without a relevant document": f"{int((relevant == 0).sum())}",
        }
    )
    demo.report.section(
        "The collection",
        "Each column is a query, its height the number of documents. Few documents are relevant, "
        "and some queries have none.",
    )
    demo.report.picture(plots.collection(collection), "Documents per query")


def _inspect(demo: Demo) -> None:
    from permdist.report.query import marginals_section

    qid, scores, labels = demo.query(9)
    if qid is not None:
        marginals_section(demo.report, scores, labels, f"query {qid}, scored by {demo.scored_by}")


def _sample(demo: Demo) -> None:
    from permdist.report.query import chains_section

    qid, scores, labels = demo.query(25)
    if qid is not None:
        what = f"query {qid}, scored by {demo.scored_by}"
        chains_section(demo.report, scores, labels, what, demo.seed)


def _compare(demo: Demo) -> None:
    from permdist.comparison import compare
    from permdist.comparison.entries import check_folds
    from permdist.report import add_sections

    try:
        folds = check_folds(demo.folds)
    except ValueError as error:
        demo.report.section("Results")
        demo.report.note(f"The collection is too small to compare learners: {error}.", "warning")
        return
    named = {text.partition("[")[0]: text for text in LEARNERS}
    demo.comparison = compare(
        folds,
        named,
        measures=MEASURES,
        random_state=demo.seed,
        n_jobs=-1,
        progress=lambda done, total: demo.tell(f"{done} of {total} fits"),
    )
    add_sections(demo.report, demo.comparison, folds, leave_out=("query",))


def _conventions(demo: Demo) -> None:
    """Show that the value of NDCG depends on conventions."""
    from permdist import measures
    from permdist.report import Cell

    collection = demo.collection
    demo.report.section(
        "NDCG under different conventions",
        f"NDCG@10 of {demo.scored_by} by the conventions of four tools, and with queries without "
        "a relevant document left out. State the convention whenever you report NDCG.",
    )
    rows: list[list[str | Cell]] = []
    for preset in measures.PRESETS:
        for options in ("", "[empty=skip]"):
            measure = measures.parse(f"{preset}:ndcg@10{options}")
            mean = measures.evaluate(demo.scores, collection.y, collection.qid, measure).mean(
                measure
            )
            rows.append([preset, measure.name, Cell(f"{mean:.4f}", mean)])
    demo.report.table(["preset", "measure", "mean"], rows)


def _identities(demo: Demo) -> None:
    from permdist.report.identities import identities_section

    with no_litter():
        identities_section(demo.report, 5, demo.seed)


STEPS: tuple[tuple[str, Callable[[Demo], None]], ...] = (
    ("Describing a simulated collection", _collection),
    ("Inspecting one query under three distributions", _inspect),
    ("Sampling rankings by Markov chains, with diagnostics", _sample),
    (f"Fitting and comparing {len(LEARNERS)} learners on three folds", _compare),
    ("Computing NDCG under different conventions", _conventions),
    ("Checking the catalogue of identities", _identities),
)
