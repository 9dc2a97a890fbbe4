"""``permdist warmup``: compile the kernels that common calls need, before they are needed."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, no_litter, print_json


def warmup(
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Number of processes; -1 uses one per core.", min=-1024, max=1024
        ),
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels of common calls, so that nothing has to wait for them later.

    Kernels are otherwise compiled by the first call that needs them, once per installation.
    """
    from joblib import delayed

    from permdist._kernels import cache_stamp
    from permdist._loops import copy
    from permdist._progress import progress_bar
    from permdist._text import plural
    from permdist.comparison.workers import make_pool

    if jobs == 0:
        raise ValueError("--jobs: expected a number of processes or -1, got 0")
    if cache_stamp(copy) is None:
        raise OSError(
            "compiled kernels cannot be kept: no folder can be written; set NUMBA_CACHE_DIR to one"
        )
    begin = time.perf_counter()
    kernels = 0
    # What takes longest comes first, so that no process waits for another one at the end.
    with progress_bar("Compiling", len(CALLS), True) as show:
        pool = make_pool(min(jobs, len(CALLS)), return_as="generator_unordered", batch_size=1)
        for done, compiled in enumerate(pool(delayed(warm)(name) for name in CALLS), 1):
            kernels += compiled
            show(done)
    seconds = time.perf_counter() - begin
    if as_json:
        print_json({"kernels": kernels, "seconds": round(seconds, 3), "calls": list(CALLS)})
    elif kernels:
        echo(f"Compiled {plural(kernels, 'kernel')} in {seconds:.0f} s.")
    else:
        echo(f"All kernels are compiled already (checked in {seconds:.0f} s).")


def warm(name: str) -> int:
    """Make one call, in a worker; return the number of kernels that it has compiled."""
    from permdist._compiling import COMPILING

    before = COMPILING.kernels
    with warnings.catch_warnings(), no_litter():
        warnings.simplefilter("ignore")
        CALLS[name]()
    return COMPILING.kernels - before


def _identities() -> None:
    from permdist.identities import check_all

    check_all(max_examples=2, rng=0)


def _collection() -> Any:
    from permdist import data

    return data.make_letor(40, rng=0)


def _fit(name: str, **options: Any) -> None:
    from permdist import models

    collection = _collection()
    learner = getattr(models, name)(**options)
    learner.fit(collection, eval_set=collection)
    learner.score(collection)


def _distributions() -> None:
    from permdist import (
        GaussianScores,
        GaussianScoresBatch,
        GoodBad,
        Mallows,
        PlackettLuce,
        PlackettLuceBatch,
    )

    scores, labels = [0.9, 0.4, 0.1, -0.3, -0.8], [2, 0, 1, 0, 0]
    binary = [1, 0, 1, 0, 0]
    for model in (
        PlackettLuce(scores),
        GaussianScores(scores),
        GoodBad(scores, labels),
        GoodBad(scores, binary),
        GoodBad(scores, binary, space="interleavings"),
        GoodBad(scores, binary, tilt="ap"),
        Mallows([0, 1, 2, 3, 4], 0.5),
    ):
        model.sample(3, rng=0)
        model.rank_marginals()
        model.pairwise()
        model.mode()
        model.entropy()
        model.log_prob(model.sample(3, rng=0))
        for measure in ("ndcg@10", "map", "mrr"):
            model.expect(measure, binary)
    for batch in (PlackettLuceBatch([scores]), GaussianScoresBatch([scores])):
        batch.log_prob_gradient(batch.sample(rng=0))
        batch.log_prob(batch.mode())
        batch.expect_gradient("ndcg@10", [binary])
        batch.exposure()


def _chains() -> None:
    from permdist import GoodBad, plots
    from permdist.samplers import run_chains

    for labels, tilt in (([1, 0, 1, 0], None), ([2, 1, 0, 0], None), ([1, 0, 1, 0], "ap")):
        model = GoodBad([0.3, 0.1, -0.2, 0.0], labels, tilt=tilt)
        for kernel in ("auto", "adjacent", "relocation"):
            run_chains(model, draws=300, chains=2, rng=0, kernel=kernel, progress=False)
    model = GoodBad([0.1 * i for i in range(25)], [1, 0, 0, 0, 0] * 5, tilt="ap", kappa=5.0)
    chains = run_chains(model, draws=100, chains=2, rng=0, progress=False)
    chains.summary()
    plots.autocorrelation(chains)


def _measures() -> None:
    from permdist import measures

    collection = _collection()
    wanted = ["map", "ndcg@10", "mrr", "p@10", "auc", "err", "wta", "rbp"]
    for ties in ("index", "average"):
        scores = collection.X[:, 0]
        measures.evaluate(scores, collection.y, collection.qid, wanted, ties=ties)


def _files() -> None:
    import tempfile

    from permdist import data

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        data.save_letor(_collection(), path)
        data.load_letor(path)


def _rating() -> None:
    from permdist import DavidsonLuce, Mallows, PlackettLuce, consensus, data, rating

    battles = data.load_battles(data.make_battles(300, 5, rng=0))
    DavidsonLuce.fit(battles.ballots)
    rating.rate(battles)
    orders = PlackettLuce([0.5, 0.2, 0.0, -0.3, -0.4]).sample(40, rng=0)
    PlackettLuce.fit(orders)
    Mallows.fit(orders)
    consensus.consensus(orders)


CALLS: dict[str, Callable[[], None]] = {
    "identities": _identities,
    **{
        f"{name}.fit": partial(_fit, name)
        for name in (
            "SVMMap",
            "SVMNDCG",
            "SoftRank",
            "ConvexLoss",
            "ExpectedGain",
            "MLE",
            "L2",
            "L3",
        )
    },
    "distributions": _distributions,
    "chains": _chains,
    "rating": _rating,
    "measures": _measures,
    "files": _files,
    **{
        f"{name}.fit": partial(_fit, name)
        for name in (
            "SVMNDCG",
            "PermuRank",
            "BoltzRank",
            "ListNet",
            "ListMLE",
            "ApproxNDCG",
            "ApproxAP",
            "RankSVM",
            "RankBoost",
            "AdaRank",
            "RankCosine",
            "FeatureRank",
            "BLFeatureRank",
            "DiffRank",
        )
    },
}
