"""Chains as netCDF files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.diagnostics.dataset import to_dataset
from permdist.diagnostics.exchange import read_netcdf, write_netcdf

if TYPE_CHECKING:
    import xarray

    from permdist.distributions import Distribution
    from permdist.samplers import Chains

FORMAT = 2


def save(chains: Chains, path: str | Path) -> None:
    """Write chains to a netCDF file, which xarray, arviz and many other tools read.

    The file holds the orders and log-weights of all draws, the names of the items, and how the
    chains were made; its group ``posterior`` is what `to_dataset` returns, which
    ``arviz.from_netcdf`` reads. A checksum follows the data. The file is written atomically.

    Parameters
    ----------
    chains : Chains
    path : path
    """
    import xarray

    orders = chains.drawn("save")
    dataset = xarray.Dataset(
        {
            "order": (("chain", "draw", "position"), orders),
            "log_weight": (("chain", "draw"), chains.log_weight),
            "accept_rate": (("chain",), chains.accept_rate),
        },
        coords={"item": list(chains.names)},
        attrs={
            "permdist_format": FORMAT,
            "kernel": chains.kernel,
            "thin": chains.thin,
            "tune": chains.tune,
            "seconds": chains.seconds,
            "complete": int(chains.complete),
            "normalizer": json.dumps(chains.normalizer),
            "distribution": repr(chains.dist),
        },
    )
    write_netcdf(Path(path), {"": dataset, "posterior": to_dataset(chains)})


def load(path: str | Path, dist: Distribution | None = None) -> Chains:
    """Read chains that `save` wrote.

    Parameters
    ----------
    path : path
    dist : Distribution, optional
        The distribution, which is not in the file.

    Returns
    -------
    Chains

    Raises
    ------
    ValueError
        If the file has another format, was cut or edited, or does not hold valid chains.
    """
    from permdist.samplers import Chains

    source = Path(path)
    dataset = read_netcdf(source)[""]
    if dataset.attrs.get("permdist_format") != FORMAT or "order" not in dataset:
        raise ValueError(f"{source}: expected chains in format {FORMAT}")
    facts = _facts(dataset)
    if dist is not None and dist.n_items != len(facts["names"]):
        raise ValueError(
            f"dist: expected {len(facts['names'])} items as in {source}, got {dist.n_items}"
        )
    return Chains(**facts, dist=dist)


def _facts(dataset: xarray.Dataset) -> dict[str, Any]:
    """Read the parts of chains."""
    given = dataset.attrs
    return {
        "orders": dataset["order"].values.astype(np.int32),
        "log_weight": np.asarray(dataset["log_weight"].values),
        "names": tuple(str(name) for name in dataset["item"].values),
        "kernel": str(given["kernel"]),
        "thin": int(given["thin"]),
        "tune": int(given["tune"]),
        "accept_rate": np.asarray(dataset["accept_rate"].values, dtype=np.float64),
        "seconds": float(given["seconds"]),
        "complete": bool(given["complete"]),
        "normalizer": json.loads(given["normalizer"]),
    }
