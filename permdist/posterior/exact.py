"""Exact posteriors of small models, by quadrature, to put beside draws."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from permdist._result import Result
from permdist.posterior.diagnose import labels_of
from permdist.posterior.evidence import FlatCoordinates, check_evidence
from permdist.posterior.places import scored
from permdist.posterior.smooth import Smooth

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray
    from permdist.posterior.problem import Problem

MOST_COORDINATES = 4
# Distance of nodes along a direction, in standard deviations, and how far below the mode in
# log-density they end.
STEP, DEPTH, FARTHEST = 0.5, 36.0, 200
MOST_NODES = 600_000
# Nodes of Gauss-Legendre along a gap between two scores, by the number of gaps.
GAP_NODES = {1: 200, 2: 60, 3: 20}


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosterior(Result):
    """The posterior of a small model on nodes with weights.

    Attributes
    ----------
    problem : Problem
    points : array of float, shape (nodes, size)
        Nodes, in the order of a draw. Scores of rankings are relative to their mean, also where
        the prior says something about the mean.
    weights : array of float, shape (nodes,)
        They add up to 1.
    log_evidence : float
        The logarithm of the marginal likelihood; NaN with an improper prior.
    error : float
        How much it changed when every second node was left out along each direction, which is far
        more than its error.
    """

    problem: Problem
    points: FloatArray
    weights: FloatArray
    log_evidence: float
    error: float

    @property
    def mean(self) -> FloatArray:
        """The posterior means, shape (size,)."""
        return np.asarray(self.weights @ self.points)

    @property
    def sd(self) -> FloatArray:
        """The posterior standard deviations, shape (size,)."""
        away = self.points - self.mean
        return np.sqrt(self.weights @ away**2)

    @property
    def covariance(self) -> FloatArray:
        """The posterior covariance matrix, shape (size, size)."""
        away = self.points - self.mean
        return np.asarray((away * self.weights[:, None]).T @ away)

    @property
    def caption(self) -> str:
        """What was integrated."""
        return f"Exact posterior of {self.problem.family}, {len(self.weights):,} nodes"

    def _facts(self) -> dict[str, Any]:
        return {"log evidence": self.log_evidence, "error": f"{self.error:.1g}"}

    def to_frame(self) -> pd.DataFrame:
        """Return means and standard deviations as a data frame, a row per parameter."""
        import pandas as pd

        index = pd.Index(labels_of(self.problem), name="parameter")
        return pd.DataFrame({"mean": self.mean, "sd": self.sd}, index=index)

    def rank_probabilities(self) -> pd.DataFrame:
        """Return the probability that each item has each place.

        Integrals over the scores in each order of the items, exact to about four digits.

        Returns
        -------
        DataFrame
            A row per item, a column per place, 1 at the top.
        """
        import pandas as pd

        shares = _shares_by_order(self)
        names = [str(name) for name in self.problem.coords["item"]]
        columns = pd.RangeIndex(1, len(names) + 1, name="place")
        return pd.DataFrame(shares, index=pd.Index(names, name="item"), columns=columns)


def exact(problem: Problem) -> ExactPosterior:
    """Compute the exact posterior of a small model.

    Smooth posteriors of up to four free parameters are integrated on a grid: Plackett-Luce with up
    to four items, or five relative to their mean.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    ExactPosterior

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.posterior import exact, problem_of
    >>> battles = [["tea", "milk"], ["tea", "milk"], ["milk", "tea"]]
    >>> found = exact(problem_of(PlackettLuce, battles, prior=1.0))
    >>> found.mean.round(3)
    array([-0.223,  0.223])
    """
    if not isinstance(problem, Smooth):
        raise ValueError(
            "exact: known for smooth models of a few parameters, not for a posterior of "
            f"{problem.family}; use draws"
        )
    found = FlatCoordinates(problem)
    if found.size > MOST_COORDINATES:
        raise ValueError(
            f"exact: expected at most {MOST_COORDINATES} free parameters, such as those of five "
            f"items, got {found.size} in a posterior of {problem.family}; use draws"
        )
    points, values, log_cell = _grid(found, problem)
    flat = values.ravel()
    log_total = float(special.logsumexp(flat))
    coarse = values[tuple(slice(None, None, 2) for _ in values.shape)]
    rough = float(special.logsumexp(coarse)) + found.size * np.log(2.0)
    try:
        check_evidence(problem)
        log_evidence = log_total + log_cell
    except ValueError:
        log_evidence = np.nan
    return ExactPosterior(
        problem,
        found.to_draws(points),
        np.exp(flat - log_total),
        log_evidence,
        abs(log_total - rough),
    )


def _grid(found: FlatCoordinates, problem: Smooth) -> tuple[FloatArray, FloatArray, float]:
    """Return nodes (N, k), log-densities on the grid, and the logarithm of a cell's volume."""
    mode = problem.mode
    center = found.basis.T @ mode.parameters
    curvature = found.basis.T @ mode.curvature @ found.basis
    values, vectors = np.linalg.eigh(curvature)
    root = vectors / np.sqrt(values)  # a column per direction, one standard deviation long
    top = found.log_density(center)
    axes = []
    for column in root.T:
        ends = []
        for side in (-1.0, 1.0):
            number = 4
            while number < FARTHEST:
                drop = top - found.log_density(center + side * number * STEP * column)
                if not drop < DEPTH:
                    break
                number += 2
            ends.append(number)
        axes.append(np.arange(-ends[0], ends[1] + 1) * STEP)
    number = int(np.prod([len(axis) for axis in axes]))
    if number > MOST_NODES:
        raise ValueError(
            f"exact: this posterior needs {number:,} nodes, expected at most {MOST_NODES:,}; use "
            "draws, or a stronger prior"
        )
    steps = np.array(list(product(*axes)))
    points = center + steps @ root.T
    density = np.array([found.log_density(point) for point in points])
    density[~(density < np.inf)] = -np.inf
    log_cell = found.size * np.log(STEP) - 0.5 * float(np.log(values).sum())
    return points, density.reshape([len(axis) for axis in axes]), log_cell


def _shares_by_order(exact_posterior: ExactPosterior) -> FloatArray:
    """Integrate the density over the scores in each order, in coordinates of gaps."""
    problem: Any = exact_posterior.problem
    n = scored(problem).size
    free = problem.free
    plain = problem.n_parameters == n and problem.size == n and free.shape[1] == 1
    if not plain or n - 1 not in GAP_NODES:
        raise ValueError(
            "rank_probabilities: exact for up to four items with a prior of scores relative to "
            "their mean, or an equal one for all items, and no other parameters; use draws"
        )
    heavy = exact_posterior.points[exact_posterior.weights > 1e-13]
    sorted_ = -np.sort(-heavy, axis=1)
    longest = (sorted_[:, :-1] - sorted_[:, 1:]).max(axis=0)
    nodes, node_weights = np.polynomial.legendre.leggauss(GAP_NODES[n - 1])
    axes = [0.5 * far * (nodes + 1.0) for far in longest]
    logs = [np.log(0.5 * far * node_weights) for far in longest]
    gaps = np.array(list(product(*axes)))
    weights = np.array(list(product(*logs))).sum(axis=1)
    scores = np.concatenate([np.zeros((len(gaps), 1)), -np.cumsum(gaps, axis=1)], axis=1)
    scores -= scores.mean(axis=1, keepdims=True)
    masses: dict[tuple[int, ...], float] = {}
    for order in permutations(range(n)):
        theta = np.empty_like(scores)
        theta[:, list(order)] = scores
        values = np.array([problem.value(row) for row in theta])
        masses[order] = float(special.logsumexp(values + weights))
    total = special.logsumexp(list(masses.values()))
    shares = np.zeros((n, n))
    for order, mass in masses.items():
        shares[list(order), np.arange(n)] += np.exp(mass - total)
    return shares
