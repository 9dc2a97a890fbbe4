"""``permdist warmup``: compile the kernels that common calls need, before they are needed."""

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, Jobs, print_json


def warmup(jobs: Jobs = -1, as_json: AsJson = False) -> None:
    """Compile the kernels of common calls, so that nothing has to wait for them later.

    Kernels are otherwise compiled by the first call that needs them, once per installation.
    """
    from joblib import delayed

    from permdist._text import plural
    from permdist.comparison.workers import make_pool

    if jobs == 0:
        raise ValueError("--jobs: expected a number of processes or -1, got 0")
    begin = time.perf_counter()
    kernels = sum(make_pool(jobs, batch_size=1)(delayed(warm)(call) for call in calls()))
    seconds = time.perf_counter() - begin
    if as_json:
        print_json({"kernels": kernels, "seconds": round(seconds, 3)})
    else:
        echo(f"Compiled {plural(kernels, 'kernel')} in {seconds:.0f} s.")


def calls() -> list[Callable[[], None]]:
    """Return the calls that kernels are compiled for."""
    from permdist.models import all_learners

    return [warm_distributions, warm_data, *(partial(warm_learner, one) for one in all_learners())]


def warm(call: Callable[[], None]) -> int:
    """Make one call, in a worker; return the number of kernels that it has compiled."""
    from permdist._kernels import COMPILING

    before = COMPILING.kernels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return COMPILING.kernels - before


def warm_learner(kind: Callable[[], Any]) -> None:
    """Fit a learner and measure it."""
    from permdist.data import make_letor

    queries = make_letor(40, rng=0)
    kind().fit(queries, eval_set=queries).score(queries)


def warm_distributions() -> None:
    """Draw, expect and run chains."""
    from permdist import GaussianScores, GoodBad, Mallows, PlackettLuce, samplers

    scores, labels = [0.9, 0.4, 0.1, -0.3, -0.8], [1, 0, 1, 0, 0]
    tilted = GoodBad(scores, labels, tilt="ap")
    for model in (PlackettLuce(scores), GaussianScores(scores), Mallows(range(5), 0.5), tilted):
        model.log_prob(model.sample(3, rng=0))
        model.expect("ndcg@10", labels)
        model.rank_marginals()
        model.pairwise()
    samplers.run_chains(tilted, draws=100, chains=2, rng=0, progress=False).summary()


def warm_data() -> None:
    """Read a file, evaluate scores, rate battles and find a consensus."""
    from permdist import consensus, data, measures, rating

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        data.save_letor(data.make_letor(40, rng=0), path)
        queries = data.load_letor(path)
    wanted = ["map", "ndcg@10", "mrr", "p@10", "auc", "err"]
    measures.evaluate(queries.X[:, 0], queries.y, queries.qid, wanted)
    battles = data.load_battles(data.make_battles(300, 5, rng=0))
    rating.rate(battles)
    consensus.consensus(battles.ballots)
