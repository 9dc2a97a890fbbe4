"""Posteriors as netCDF files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._files import parse_json
from permdist.diagnostics.exchange import read_netcdf, write_netcdf
from permdist.posterior.groups import groups_of
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.result import Posterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray

    from permdist._typing import FloatArray
    from permdist.distributions import Distribution

FORMAT = 1
# Numbers of a log-likelihood that are still kept in the file.
MOST_KEPT = 20_000_000


def save(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to a netCDF file; see `Posterior.save`.

    The file holds the draws with their names and how they were made; its groups ``posterior``,
    ``sample_stats``, ``observed_data`` and, up to 20 million numbers, ``log_likelihood`` are those
    of `Posterior.to_arviz`, and ``arviz.from_netcdf`` reads them. A checksum follows the data. The
    file is written atomically.

    Parameters
    ----------
    posterior : Posterior
    path : path
    """
    import xarray

    problem = posterior.problem
    facts = {
        "family": problem.family,
        "variables": [[one.name, list(one.shape), list(one.dims)] for one in problem.variables],
        "coords": {dim: _plain(labels) for dim, labels in problem.coords.items()},
        "seconds": posterior.seconds,
        "tune": posterior.tune,
        "complete": bool(posterior.complete),
    }
    root = xarray.Dataset(
        {
            "draws": (("chain", "draw", "number"), posterior.draws),
            "log_density": (("chain", "draw"), posterior.log_density),
        },
        attrs={"permdist_posterior": FORMAT, "facts": json.dumps(facts)},
    )
    wanted = ["posterior", "sample_stats"]
    if problem.observed:
        wanted.append("observed_data")
    first = problem.log_likelihood(posterior.flat[:1]).shape[1] if _has_likelihood(problem) else 0
    if 0 < first * len(posterior.flat) <= MOST_KEPT:
        wanted.append("log_likelihood")
    write_netcdf(Path(path), {"": root, **groups_of(posterior, wanted, 1, 0)})


def load(path: str | Path, problem: Problem | None = None) -> Posterior:
    """Read a posterior that `Posterior.save` wrote.

    Parameters
    ----------
    path : path
    problem : Problem, optional
        The problem, which is not in the file; as from `permdist.posterior.problem_of`. Without it
        there are all draws, estimates, places, diagnostics and the log-likelihood, but neither
        models nor replicated data.

    Returns
    -------
    Posterior

    Raises
    ------
    ValueError
        If the file has another format, was cut or edited, or belongs to another problem.
    """
    source = Path(path)
    groups = read_netcdf(source, ("", "observed_data", "log_likelihood"))
    root = groups[""]
    if root.attrs.get("permdist_posterior") != FORMAT:
        raise ValueError(f"{source}: expected a posterior in format {FORMAT}")
    facts = parse_json(root.attrs["facts"])
    saved = SavedProblem(facts, groups.get("observed_data"), groups.get("log_likelihood"))
    seconds, tune = float(facts["seconds"]), int(facts["tune"])
    draws, density = root["draws"].values, root["log_density"].values
    result = Posterior(saved, draws, density, seconds, tune, bool(facts["complete"]))
    if problem is None:
        return result
    same = problem.variables == saved.variables and problem.family == saved.family
    if not same or {k: _plain(v) for k, v in problem.coords.items()} != saved.plain_coords:
        raise ValueError(
            f"problem: {source} is of another one: {saved.family} with {saved.size} parameters, "
            f"got {problem.family} with {problem.size}, or other names"
        )
    return Posterior(problem, draws, density, seconds, tune, result.complete)


class SavedProblem(Problem):
    """What a file tells of a problem: names, observations and their log-likelihood.

    Parameters
    ----------
    facts : dict
    observed : xarray.Dataset or None
    likelihood : xarray.Dataset or None
    """

    def __init__(
        self,
        facts: dict[str, Any],
        observed: xarray.Dataset | None,
        likelihood: xarray.Dataset | None,
    ) -> None:
        self._family = str(facts["family"])
        self._variables = tuple(
            Variable(str(name), tuple(int(n) for n in shape), tuple(map(str, dims)))
            for name, shape, dims in facts["variables"]
        )
        self.plain_coords: dict[str, list[Any]] = {
            str(dim): list(labels) for dim, labels in facts["coords"].items()
        }
        self._observed = observed
        self._likelihood = likelihood

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are recorded."""
        return self._variables

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The coordinates of the dims of the variables and of `observation`."""
        return dict(self.plain_coords)

    @property
    def family(self) -> str:
        """What was estimated."""
        return self._family

    @property
    def has_likelihood(self) -> bool:
        """Whether the file has the log-likelihood."""
        return self._likelihood is not None

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The data as variables."""
        if self._observed is None:
            return {}
        return {
            str(name): (tuple(map(str, values.dims)), values.values)
            for name, values in self._observed.data_vars.items()
        }

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return what the file has, for all its draws or the first of them."""
        if self._likelihood is None:
            raise ValueError(_missing("log-likelihood"))
        values = self._likelihood["y"].values
        return values.reshape(-1, values.shape[-1])[: len(draws)]

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Refuse: a file has no chains."""
        del rng
        raise ValueError(_missing("chains"))

    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Refuse: a file has no chains."""
        del state, draws, log_density, rng
        raise ValueError(_missing("chains"))

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Refuse: the prior is not in the file."""
        del size, rng
        raise ValueError(_missing("prior"))

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Any:
        """Refuse: the model is not in the file."""
        del draw, rng
        raise NotImplementedError(_missing("model"))

    def model(self, draw: FloatArray) -> Distribution | None:
        """Refuse: the model is not in the file."""
        del draw
        raise ValueError(_missing("model"))


def _missing(what: str) -> str:
    return f"the {what} is not in the file; pass problem=... to permdist.posterior.load"


def _has_likelihood(problem: Problem) -> bool:
    return not isinstance(problem, SavedProblem) or problem.has_likelihood


def _plain(labels: Sequence[Any]) -> list[Any]:
    return [one.item() if isinstance(one, np.generic) else one for one in labels]
