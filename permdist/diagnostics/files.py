"""Chains as netCDF files."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._files import parse_json, write_atomically
from permdist._seals import is_sealed, seal, unseal
from permdist.diagnostics.dataset import to_dataset
from permdist.rankings import check_orders

if TYPE_CHECKING:
    import xarray

    from permdist.distributions import Distribution
    from permdist.samplers import Chains

FORMAT = 2
READABLE = (1, 2)  # files of format 1 have no checksum
LARGEST_RATIO = 1100  # no compression that netCDF knows reaches this


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
    import h5netcdf
    import xarray
    from xarray.backends import H5NetCDFStore

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
    buffer = io.BytesIO()  # HDF5 itself does not survive a disk that fills up
    with h5netcdf.File(buffer, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file))
        to_dataset(chains).dump_to_store(H5NetCDFStore(file.create_group("posterior")))
    write_atomically(Path(path), [seal(buffer.getvalue())])


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
    import xarray

    from permdist.samplers import Chains

    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file")
    raw = source.read_bytes()
    sealed = is_sealed(raw)
    try:
        data = unseal(raw) if sealed else raw
        with xarray.open_dataset(io.BytesIO(data), engine="h5netcdf") as opened:
            if opened.nbytes > LARGEST_RATIO * len(data):
                raise ValueError(f"it declares {opened.nbytes:,} bytes of data")
            dataset = opened.load()
    except Exception as error:  # a damaged file may raise any
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"{source}: not a netCDF file, or a damaged one ({told})") from error
    found = dataset.attrs.get("permdist_format")
    if found not in READABLE or "order" not in dataset:
        raise ValueError(f"{source}: expected chains in format {FORMAT}")
    try:
        if found == FORMAT and not sealed:
            raise ValueError("the checksum at its end is missing: it was cut or edited")
        facts = _facts(dataset)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        told = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{source}: not valid chains ({told})") from error
    if dist is not None and dist.n_items != len(facts["names"]):
        raise ValueError(
            f"dist: expected {len(facts['names'])} items as in {source}, got {dist.n_items}"
        )
    return Chains(**facts, dist=dist)


def _facts(dataset: xarray.Dataset) -> dict[str, Any]:
    """Read the parts of chains; raise ValueError if they are inconsistent."""
    given = dataset.attrs
    orders = dataset["order"].values
    if orders.ndim != 3 or orders.dtype.kind not in "iu":
        raise ValueError(f"order: expected three dimensions of integers, got {orders.dtype}")
    chains, draws, n = orders.shape
    names = tuple(str(name) for name in dataset["item"].values)
    if len(names) != n or len(set(names)) != n:
        raise ValueError(f"item: expected {n} different names, got {len(set(names))}")
    check_orders(orders.reshape(-1, n), n, name="order")
    weights = np.asarray(dataset["log_weight"].values)
    unknown = np.isnan(weights) if weights.dtype == np.float64 else None
    if weights.shape != (chains, draws) or unknown is None:
        raise ValueError(f"log_weight: expected shape {(chains, draws)}, got {weights.shape}")
    if unknown.any() != unknown.all() or (weights == np.inf).any():
        raise ValueError("log_weight: expected numbers that are finite or -inf")
    rates = np.asarray(dataset["accept_rate"].values, dtype=np.float64)
    if rates.shape != (chains,) or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise ValueError(f"accept_rate: expected {chains} numbers between 0 and 1")
    thin, tune, seconds = int(given["thin"]), int(given["tune"]), float(given["seconds"])
    if thin < 1 or tune < 0 or not 0.0 <= seconds < math.inf:
        raise ValueError(f"thin, tune, seconds: got {thin}, {tune} and {seconds}")
    normalizer = parse_json(given["normalizer" if "normalizer" in given else "normaliser"])
    if normalizer is not None:
        if not isinstance(normalizer, int | float) or not math.isfinite(normalizer):
            raise ValueError(f"normalizer: expected a finite number, got {normalizer!r}")
        normalizer = float(normalizer)
    return {
        "orders": orders.astype(np.int32),
        "log_weight": weights,
        "names": names,
        "kernel": str(given["kernel"]),
        "thin": thin,
        "tune": tune,
        "accept_rate": rates,
        "seconds": seconds,
        "complete": bool(given["complete"]),
        "normalizer": normalizer,
    }
