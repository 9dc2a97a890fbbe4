"""``permdist demo``: the whole library on a simulated collection, as a report with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from permdist.data import Queries
    from permdist.measures import Evaluation
    from permdist.report import Report

MEASURES = (
    "map",
    "ndcg@10",
    "ndcg",
    "p@5",
    "rr",
    "wta",
    "err@10[max_grade=2]",
    "auc[empty=skip]",
    "tau[empty=skip]",
    "persistence@10",
)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the report and its pictures.")
    ] = Path("permdist-demo"),
    seed: Annotated[int, typer.Option(help="The seed of the simulated collection.", min=0)] = 0,
    queries: Annotated[int, typer.Option(help="How many queries to simulate.", min=2)] = 300,
) -> None:
    """Simulate a collection, evaluate, inspect, sample, and write a report with pictures."""
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress

    from permdist import data, measures
    from permdist.report import Report

    console = Console()
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: expected a folder for the report, this is a file")
    output.mkdir(parents=True, exist_ok=True)
    collection = data.make_letor(queries, rng=seed)
    console.print(f"[bold]A simulated LETOR-like collection[/bold] (seed {seed})")
    console.print(str(collection.describe()), highlight=False, markup=False)
    console.print()
    rankings = {}
    varying = np.flatnonzero(np.ptp(collection.X, axis=0) > 0)
    with Progress(console=console) as progress:
        for feature in progress.track(
            varying, description="Evaluating each feature (compiling at first)"
        ):
            rankings[f"feature {feature + 1}"] = measures.evaluate(
                collection.X[:, feature], collection.y, collection.qid, MEASURES
            )
        best = max(rankings, key=lambda name: float(rankings[name].mean("map")))
        task = progress.add_task("Inspecting, sampling, learning, checking", total=8)
        report = Report(
            "permdist demo",
            f"A simulated collection of {len(collection)} queries (seed {seed}), ranked by each of "
            f"its {len(varying)} features that vary and evaluated by {len(MEASURES)} measures.",
        )
        for draw in (
            _overview,
            _features,
            _conventions,
            _likeness,
            _distributions,
            _chains,
            _learners,
            _identities,
        ):
            draw(report, output, collection, rankings)
            progress.advance(task)
    report.save(output / "report.html")
    console.print(f"\n[bold]The best single feature is {best}[/bold]")
    console.print(str(rankings[best]), highlight=False, markup=False)
    console.print(
        f"\nThe report: [bold]{output / 'report.html'}[/bold], its pictures beside it",
        soft_wrap=True,
    )


def _overview(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Show what is in the collection."""
    from permdist import plots

    report.section(
        "The collection",
        "Each column is a query, its height the number of its documents. Few documents are "
        "relevant, and some queries have none.",
    )
    report.preformatted(str(collection.describe()))
    _show(report, output, "collection", plots.collection(collection), "Documents of each query")


def _features(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Compare the features as rankings."""
    from permdist import plots

    names = list(next(iter(rankings.values())))
    report.section(
        "Every feature as a ranking",
        "Mean over queries of each measure, with its standard error for the mean average "
        "precision. A learner has to beat the first row.",
    )
    ordered = sorted(rankings, key=lambda name: -float(rankings[name].mean("map")))
    report.table(
        ["ranking", "ap", "std.err.", *names[1:]],
        [
            [
                name,
                f"{rankings[name].mean('map'):.4f}",
                f"{rankings[name].standard_error('map'):.4f}",
                *(f"{rankings[name].mean(measure):.4f}" for measure in names[1:]),
            ]
            for name in ordered[:10]
        ],
    )
    axes = plots.means(rankings, ax=_canvas(8, 7))
    _show(report, output, "features", axes, "Means of all measures for all features")
    spread = {
        name: rankings[name] for name in (ordered[0], ordered[len(ordered) // 2], ordered[-1])
    }
    axes = plots.sorted_values(spread, "ap")
    _show(report, output, "queries", axes, "Average precision of every query, best first")


def _conventions(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Show that one ranking has many NDCGs."""
    from permdist import measures

    best = max(rankings, key=lambda name: float(rankings[name].mean("map")))
    scores = collection.X[:, int(best.split()[1]) - 1]
    report.section(
        "One ranking, many NDCGs",
        f"NDCG@10 of {best} by the conventions of four tools, and with queries without a relevant "
        "document left out. Always say which one you mean.",
    )
    rows = []
    for preset in measures.PRESETS:
        for options in ("", "[empty=skip]"):
            measure = measures.parse(f"{preset}:ndcg@10{options}")
            mean = measures.evaluate(scores, collection.y, collection.qid, measure).mean(measure)
            rows.append([preset, measure.name, f"{mean:.4f}"])
    report.table(["preset", "measure", "mean"], rows)


def _likeness(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Show which features rank alike."""
    import numpy as np

    from permdist import plots
    from permdist.rankings import distance_matrix, order_by_scores

    varying = [int(name.split()[1]) - 1 for name in rankings]
    total = np.zeros((len(varying), len(varying)))
    chosen = [query for query in collection if len(query.y) > 1]
    for query in chosen:
        orders = order_by_scores(query.X[:, varying].T)
        total += distance_matrix(orders, distance="kendall", normalize=True)
    report.section(
        "Which features rank alike",
        "Mean Kendall distance between the rankings by two features: 0 is the same order, 1/2 is "
        "chance, 1 the opposite. Families of features show as dark blocks.",
    )
    axes = plots.distances(
        total / len(chosen),
        list(rankings),
        label="Kendall distance",
        ax=_canvas(7.5, 6.5),
    )
    _show(report, output, "likeness", axes, "Kendall distances between features")


def _distributions(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Inspect one query under three distributions."""
    import numpy as np

    from permdist import GaussianScores, GoodBad, PlackettLuce, plots

    best = max(rankings, key=lambda name: float(rankings[name].mean("map")))
    fitting = (collection.n_relevant >= 2) & (collection.n_relevant <= collection.sizes - 7)
    if not fitting.any():  # a tiny collection may have no such query
        return
    query = collection[int(np.argmin(np.where(fitting, collection.sizes, 10**9)))]
    # The best documents and some bad ones: few enough for every quantity to be exact.
    chosen = np.sort(np.argsort(-query.y, kind="stable")[[0, 1, *range(-7, 0)]])
    scores = query.X[chosen, int(best.split()[1]) - 1]
    scores = 1.5 * (scores - scores.mean()) / max(float(scores.std()), 1e-9)
    labels = query.y[chosen]
    names = [f"document {i + 1} ({y})" for i, y in zip(chosen, labels, strict=True)]
    models = {
        "Plackett-Luce": PlackettLuce(scores, names),
        "Gaussian scores": GaussianScores(scores, 1.0, names),
        "good-bad pairs": GoodBad(scores, labels, scale=0.25, names=names),
    }
    report.section(
        "One query under three distributions",
        f"Nine documents of query {query.qid}, scored by {best}, their labels in brackets: where "
        "each may stand when the scores are uncertain. Expectations are exact; the entropy of "
        "Gaussian scores is estimated.",
    )
    rows = []
    for name, model in models.items():
        values = [model.expect(measure, labels) for measure in ("ndcg", "ap", "auc")]
        entropy = model.entropy(rng=0, draws=2000)
        rows.append([name, *(f"{value:.4f}" for value in values), f"{entropy:.3f}"])
    report.table(["distribution", "E[NDCG]", "E[AP]", "E[AUC]", "entropy (nats)"], rows)
    figure = _canvas(13, 4.2).figure
    figure.clear()
    for axes, (name, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
        plots.marginals(model, axes).set_title(name, loc="left")
    _show(report, output, "marginals", axes, "Rank marginals under three distributions")


def _chains(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Sample one query that is too large for exact answers, and judge the chains."""
    import numpy as np

    from permdist import GoodBad, plots
    from permdist.samplers import run_chains

    best = max(rankings, key=lambda name: float(rankings[name].mean("map")))
    mixed = (collection.n_relevant > 0) & (collection.n_relevant < collection.sizes)
    if not mixed.any():
        return
    query = collection[int(np.argmax(np.where(mixed, collection.sizes, 0)))]
    scores = query.X[:, int(best.split()[1]) - 1]
    scores = (scores - scores.mean()) / max(float(scores.std()), 1e-9) / len(scores)
    names = [f"document {i + 1} ({y})" for i, y in enumerate(query.y)]
    model = GoodBad(scores, query.y, tilt="ap", kappa=5.0, names=names)
    chains = run_chains(model, draws=1000, thin=4 * len(scores), rng=0, progress=False)
    summary = chains.summary()
    report.section(
        "Sampling what cannot be summed",
        f"All orders of the {len(scores)} documents of query {query.qid} under the loss-augmented "
        "good-bad model: too many to sum over, so Markov chains draw from it, with the kernel that "
        "a short trial found best, and arviz judges them.",
    )
    report.preformatted(str(summary))
    figure = plots.trace(chains)
    figure.savefig(output / "trace.png", dpi=130)
    report.picture(figure, "Ranks of some documents along the chains")
    axes = plots.autocorrelation(chains, 40, _canvas(7, 4.2))
    _show(report, output, "autocorrelation", axes, "How fast the chains forget")


def _learners(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Fit learners to two thirds of the queries and compare them on the rest."""
    import numpy as np

    from permdist import measures, models, plots

    third = np.arange(len(collection)) % 3
    if len(collection) < 3:
        return
    train, test = collection.where(third != 2), collection.where(third == 2)
    if not ((train.n_relevant > 0) & (train.n_relevant < train.sizes)).any():
        return
    chosen = ("ap", "ndcg@10", "rr", "auc[empty=skip]")
    best = max(rankings, key=lambda name: float(rankings[name].mean("map")))
    found = {best: _judge(test, test.X[:, int(best.split()[1]) - 1], chosen)}
    learners = {
        "MLE": models.MLE(C=10.0),
        "ExpectedGain, AUC": models.ExpectedGain("auc", space="pairs", C=10.0, n_starts=1),
        "ExpectedGain, AP": models.ExpectedGain("ap", C=10.0, n_starts=1),
        "ConvexLoss, AP": models.ConvexLoss("ap", C=10.0),
        "ConvexLoss, NDCG@10": models.ConvexLoss("ndcg@10", C=10.0),
        "AdaRank, AP": models.AdaRank("ap"),
        "RankBoost": models.RankBoost(weak="feature", max_iter=100),
        "SVMMap": models.SVMMap(C=10.0),
    }
    for name, learner in learners.items():
        found[name] = _judge(test, learner.fit(train).predict(test), chosen)
    report.section(
        "Learners",
        f"Ranking functions fitted to {len(train)} of the queries and tested on the other "
        f"{len(test)}, beside the best single feature. The losses of AP and NDCG are summed over "
        "whole lattices of rankings, exactly.",
    )
    names = [measures.parse(measure).name for measure in chosen]
    rows = [
        [name, *(f"{result.mean(measure):.4f}" for measure in names)]
        for name, result in found.items()
    ]
    report.table(["ranking", *names], rows)
    axes = plots.means(found, ax=_canvas(8, 4))
    _show(report, output, "learners", axes, "Learners on queries they have not seen")


def _judge(queries: Queries, scores: Any, chosen: tuple[str, ...]) -> Evaluation:
    from permdist import measures

    return measures.evaluate(scores, queries.y, queries.qid, chosen)


def _identities(
    report: Report, output: Path, collection: Queries, rankings: dict[str, Evaluation]
) -> None:
    """Check the catalogue of identities."""
    from permdist.identities import check_all

    results = check_all(max_examples=10)
    verdict = "All of them hold." if results.passed else "Some of them fail!"
    report.section(
        "What is claimed, checked",
        f"The identities and bounds behind the library on random instances. {verdict}",
    )
    report.table(
        ["identity", "statement", "source", "tried", "worst residual", ""],
        [
            [
                result.identity.name,
                result.identity.statement,
                result.identity.source,
                str(result.tried),
                f"{result.worst:.0e}",
                "pass" if result.passed else "FAIL",
            ]
            for result in results
        ],
    )


def _canvas(width: float, height: float) -> Any:
    """Give axes of a figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def _show(report: Report, output: Path, name: str, axes: Any, description: str) -> None:
    """Put a picture into the report and beside it."""
    axes.figure.savefig(output / f"{name}.png", dpi=130)
    report.picture(axes.figure, description)
