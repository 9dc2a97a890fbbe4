"""What a run leaves on disk and reads again: checkpoints, cells of comparisons, chains."""

from __future__ import annotations

import json
import math
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from fuzz.engine import expect, target
from fuzz.mutate import pack, unpack
from fuzz.targets.models import fitted
from permdist import PlackettLuce, diagnostics, models
from permdist.comparison.fits import Fit, Outcome, Store
from permdist.samplers import run_chains

N_ITEMS = 5
KINDS = {
    "adjacent": {"kernel": "adjacent", "thin": 3},
    "exact": {"kernel": "exact"},
    "moments": {"kernel": "relocation", "thin": 2, "keep": "moments"},
}


@cache
def model() -> PlackettLuce:
    return PlackettLuce(np.linspace(1.0, 0.0, N_ITEMS))


def start(kind: str, draws: int, path: str) -> object:
    return run_chains(model(), draws, 4, chains=2, rng=0, n_jobs=1, checkpoint=path, **KINDS[kind])


# ---- checkpoints -------------------------------------------------------------------------------


@cache
def checkpoint_seeds() -> list[bytes]:
    """Run chains of every kind for a moment; the first file says which kind it was."""
    found = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            start(kind, 8, f"{folder}/run")
            found.append(pack({"kind": kind.encode(), "run": Path(folder, "run").read_bytes()}))
    return found


@target("checkpoint", form="bundle", seeds=checkpoint_seeds, says="checkpoint")
def checkpoint(case: bytes) -> None:
    files = unpack(case)
    kind = files.pop("kind", b"").decode(errors="replace")
    Path("run").write_bytes(files.pop("run", b""))
    chains = start(kind if kind in KINDS else "adjacent", 16, "run")
    expect(chains.n_draws == 16, f"16 draws were asked for, got {chains.n_draws}")
    if chains.moments:
        marginals = chains.rank_marginals()
        expect(np.allclose(marginals.sum(axis=0), 1.0), "marginals sum to one")
        expect(marginals.min() >= 0.0, "marginals are not negative")
    else:
        drawn = np.sort(chains.orders, axis=-1)
        expect((drawn == np.arange(N_ITEMS)).all(), "draws are orders")
        right = model().log_prob(chains.orders)
        expect(np.allclose(chains.log_prob, right), "log-probabilities belong to the draws")
    expect(((chains.accept_rate >= 0) & (chains.accept_rate <= 1)).all(), "rates of acceptance")
    expect(math.isfinite(chains.seconds), "a finite time")


# ---- cells of a comparison ---------------------------------------------------------------------


@cache
def cell() -> Fit:
    return Fit("MLE", 0, {"C": 1.0}, models.MLE(), "0123456789abcdef" * 4, 2)


@cache
def cell_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        outcome = Outcome(
            json.loads(fitted(models.MLE)), {"ap": 0.5}, {"ap": [0.25, 0.75]}, 0.1, ["slow"]
        )
        Store(Path(folder)).write(cell(), outcome)
        return [Path(folder, "cells", cell().file_name).read_bytes()]


@target("cell", form="json", seeds=cell_seeds)
def one_cell(case: bytes) -> None:
    """A damaged cell counts as none: reading it never raises."""
    store = Store(Path("."))
    Path("cells", cell().file_name).write_bytes(case)
    found = store.read(cell())
    if found is None:
        raise ValueError("no such cell")
    expect(all(len(row) == 2 for row in found.test.values()), "a value for each query")
    values = [*found.validation.values(), *(one for row in found.test.values() for one in row)]
    expect(all(isinstance(one, float) for one in [*values, found.seconds]), "numbers")
    expect(not any(math.isinf(one) for one in values), "no infinite measures")


# ---- chains in netCDF --------------------------------------------------------------------------


@cache
def netcdf_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        chains = run_chains(model(), 4, 2, chains=2, kernel="adjacent", thin=2, rng=0, n_jobs=1)
        diagnostics.save(chains, Path(folder, "chains.nc"))
        return [Path(folder, "chains.nc").read_bytes()]


@target("netcdf", form="nc", seeds=netcdf_seeds, says="case.nc")
def netcdf(case: bytes) -> None:
    Path("case.nc").write_bytes(case)
    chains = diagnostics.load("case.nc")
    expect(chains.orders.ndim == 3, "chains, draws, positions")
    expect(chains.orders.shape[2] == chains.n_items, "a position for each item")
    drawn = np.sort(chains.orders, axis=-1)
    expect((drawn == np.arange(chains.n_items)).all(), "draws are orders of the items")
    expect(chains.log_weight.shape == chains.orders.shape[:2], "a weight for each draw")
    expect(chains.accept_rate.shape == (chains.n_chains,), "a rate for each chain")
    expect(math.isfinite(chains.seconds) and chains.thin >= 1 and chains.tune >= 0, "plain facts")
    expect(repr(chains), "it can be shown")
