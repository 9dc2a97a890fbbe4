"""Posteriors as groups of datasets, for arviz of either generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, choice, count
from permdist.ballots import Ballots

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import xarray
    from numpy.typing import NDArray

    from permdist._typing import FloatArray, RandomState
    from permdist.posterior.problem import Problem
    from permdist.posterior.result import Posterior

# Entries of a table of the ranks of observed ballots.
MOST_RANKS = 10_000_000
GROUPS = (
    "posterior",
    "sample_stats",
    "prior",
    "log_likelihood",
    "posterior_predictive",
    "prior_predictive",
    "observed_data",
)


def dataset_of(problem: Problem, draws: FloatArray, attrs: Mapping[str, Any]) -> xarray.Dataset:
    """Return draws, shape (chain, draw, size), as a dataset with named coordinates.

    Parameters
    ----------
    problem : Problem
    draws : array of float, shape (chain, draw, size)
    attrs : mapping
    """
    dims = {one.name: one.dims for one in problem.variables}
    values = {name: (dims[name], part) for name, part in problem.split(draws).items()}
    return _dataset(problem, values, draws.shape[:2], attrs)


def _dataset(
    problem: Problem,
    values: Mapping[str, tuple[tuple[str, ...], Any]],
    lead: tuple[int, ...],
    attrs: Mapping[str, Any],
) -> xarray.Dataset:
    import xarray

    variables = {
        name: ((*("chain", "draw")[: len(lead)], *dims), np.asarray(array))
        for name, (dims, array) in values.items()
    }
    used = {dim for dims, _ in values.values() for dim in dims}
    coords: dict[str, Any] = {
        name: np.arange(length) for name, length in zip(("chain", "draw"), lead, strict=False)
    }
    coords |= {dim: list(labels) for dim, labels in problem.coords.items() if dim in used}
    return xarray.Dataset(variables, coords=coords, attrs=dict(attrs))


def attributes(posterior: Posterior) -> dict[str, Any]:
    """Return what the datasets say about their origin, in the words that arviz uses.

    Parameters
    ----------
    posterior : Posterior
    """
    from permdist import __version__

    return {
        "inference_library": "permdist",
        "inference_library_version": __version__,
        "family": posterior.problem.family,
        "tuning_steps": posterior.tune,
        "sampling_time": posterior.seconds,
        "complete": int(posterior.complete),
    }


def groups_of(
    posterior: Posterior, groups: Iterable[str] | None, predictive: int, rng: RandomState
) -> dict[str, xarray.Dataset]:
    """Return the datasets of groups by their names.

    Parameters
    ----------
    posterior : Posterior
    groups : iterable of str, optional
        All that exist for the problem by default; what was asked for by name must exist.
    predictive : int
        How many draws the groups of replicated data have.
    rng : int, Generator or None
    """
    wanted = GROUPS if groups is None else tuple(choice("groups", g, GROUPS) for g in groups)
    generators = dict(zip(GROUPS, as_rng(rng).spawn(len(GROUPS)), strict=True))
    found = {}
    for name in GROUPS:
        if name not in wanted:
            continue
        try:
            found[name] = _group(posterior, name, count("predictive", predictive), generators[name])
        except _AbsentError as error:
            if groups is not None:
                raise ValueError(f"groups: {name!r} does not exist here: {error}") from error
    return found


class _AbsentError(Exception):
    """A group has no meaning for a problem."""


def _group(
    posterior: Posterior, name: str, predictive: int, rng: np.random.Generator
) -> xarray.Dataset:
    problem, attrs = posterior.problem, attributes(posterior)
    lead = posterior.draws.shape[:2]
    if name == "posterior":
        return posterior.dataset
    if name == "sample_stats":
        return _dataset(problem, {"lp": ((), posterior.log_density)}, lead, attrs)
    if name == "log_likelihood":
        values = {"observation": (("observation",), posterior.log_likelihood())}
        if values["observation"][1].shape[-1] == 0:
            raise _AbsentError("there are no observations")
        # arviz looks for a variable; the dimension of the same name would hide it.
        return _dataset(problem, {"y": values["observation"]}, lead, attrs)
    if name == "observed_data":
        observed = dict(problem.observed)
        if not observed:
            raise _AbsentError("there are no observations")
        ballots = getattr(problem, "ballots", None)
        if isinstance(ballots, Ballots) and len(ballots.weights) * ballots.n_items <= MOST_RANKS:
            observed |= as_variables(problem, ballots)
        return _dataset(problem, observed, (), attrs)
    if name == "posterior_predictive":
        return _replicated(problem, posterior.some(predictive), rng, attrs)
    prior = _from_prior(problem, predictive if "predictive" in name else _size(posterior), rng)
    if name == "prior":
        return dataset_of(problem, prior[None], attrs)
    return _replicated(problem, prior, rng, attrs)


def _size(posterior: Posterior) -> int:
    return int(posterior.draws.shape[1])


def _from_prior(problem: Problem, size: int, rng: np.random.Generator) -> FloatArray:
    try:
        return problem.prior_draws(size, rng)
    except (ValueError, NotImplementedError) as error:
        raise _AbsentError(str(error)) from error


def _replicated(
    problem: Problem, draws: FloatArray, rng: np.random.Generator, attrs: Mapping[str, Any]
) -> xarray.Dataset:
    """Return replicated data, one set per draw, in one chain."""
    if not problem.observed:
        raise _AbsentError("there are no observations to replicate")
    tables: list[dict[str, tuple[tuple[str, ...], Any]]] = []
    for draw in draws:
        try:
            one = as_variables(problem, problem.replicate(draw, rng))
        except NotImplementedError as error:
            raise _AbsentError(str(error)) from error
        tables.append(one)
    values = {
        name: (dims, np.stack([np.asarray(table[name][1]) for table in tables])[None])
        for name, (dims, _) in tables[0].items()
    }
    return _dataset(problem, values, (1, len(draws)), attrs)


def as_variables(problem: Problem, data: Any) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return replicated data as variables like those observed: dims and values by name.

    Parameters
    ----------
    problem : Problem
    data : Ballots, array, or mapping of str to array
        What `Problem.replicate` returned. Ballots become a table of ranks; see `table_of_ranks`.
    """
    observed = problem.observed
    if isinstance(data, Ballots):
        table = table_of_ranks(data)
        same = len(table) == len(problem.coords.get("observation", table))
        return {"rank": (("observation" if same else "ballot", "item"), table)}
    if isinstance(data, dict):
        return {name: (observed[name][0], values) for name, values in data.items()}
    array = np.asarray(data)
    for name, (dims, values) in observed.items():
        if np.shape(values) == array.shape:
            return {name: (dims, array)}
    return {"replicate": (tuple(f"replicate_dim_{k}" for k in range(array.ndim)), array)}


def table_of_ranks(ballots: Ballots) -> NDArray[np.int16 | np.int32]:
    """Return the ranks of items on ballots, shape (ballots, n): 1 at the top, 0 for the absent.

    Items that share a bucket share its first rank; those that a ballot has and never chose share
    the rank after all others.

    Examples
    --------
    >>> table_of_ranks(Ballots.of([[2, 0, 1], [1, 2]], subset=True)).tolist()
    [[2, 3, 1], [0, 1, 2]]
    """
    kind = np.int16 if ballots.n_items < 2**15 else np.int32
    table = np.zeros((ballots.n_ballots, ballots.n_items), dtype=kind)
    lengths, buckets = np.diff(ballots.ptr), np.diff(ballots.stages)
    record = np.repeat(np.arange(len(lengths)), lengths)
    owner = np.repeat(np.arange(len(buckets)), buckets)
    # Where in its record a bucket begins; what was never chosen comes after all buckets.
    ends = np.cumsum(ballots.sizes)
    before = np.concatenate([[0], ends])[ballots.stages[:-1]]
    begins = ends - ballots.sizes - before[owner]
    chosen = np.bincount(owner, ballots.sizes, len(lengths))
    bucket = ballots.bucket_of_entry()
    place = np.where(bucket >= 0, begins[np.maximum(bucket, 0)], chosen[record]) + 1
    turned = ballots.signs[record] < 0
    # The worst of a menu: chosen last, among those that the first record already has.
    place = np.where(turned, lengths[record] + 1 - place, place)
    rows = ballots.ballot[record]
    keep = ~turned | (bucket >= 0)
    table[rows[keep], ballots.items[keep]] = place[keep]
    return table
