"""The EM algorithm for mixtures: starts, the choice of the number of components, and errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from scipy.special import entr, logsumexp

from permdist._check import as_rng, choice, count, finite
from permdist.distributions.mixture import ballot_log_probs

if TYPE_CHECKING:
    from permdist._typing import FloatArray, RandomState
    from permdist.distributions.base import Distribution
    from permdist.distributions.mixture import Mixture
    from permdist.distributions.mixture_families import Family

CRITERIA = ("bic", "icl", "cv")
# Errors are computed for up to this many parameters, and numbers in a matrix by ballots.
MOST_PARAMETERS, MOST_SLOPES = 1000, 30_000_000
# A component with less than this share keeps its parameters, and has no errors.
NOTHING = 1e-12
# A fall of the objective by this, relative to its size, is rounding.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Settings:
    """How long to look for a maximum; as in `Mixture.fit`."""

    n_init: int
    max_iter: int
    tol: float
    folds: int
    n_jobs: int

    def __post_init__(self) -> None:
        count("n_init", self.n_init)
        count("max_iter", self.max_iter)
        count("folds", self.folds, minimum=2)
        if self.n_jobs != -1:
            count("n_jobs", self.n_jobs)
        if finite("tol", self.tol, ndim=0) < 0.0:
            raise ValueError(f"tol: expected a non-negative number, got {self.tol:g}")


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """How a mixture was fitted.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    objective : float
        The same with the logarithm of the prior: what was maximized.
    history : array of float
        The objective at every iteration of the best start; it never falls.
    n_iter : int
    converged : bool
    starts : array of float, shape (n_init,)
        The objective that each start arrived at; NaN if it failed.
    n_ballots : float
        The sum of the weights.
    n_parameters : int or None
        All mixing weights but one, and the parameters of the components: n - 1 scores for
        Plackett-Luce, and theta for Mallows, whose center is no real number and not counted.
    bic, icl : float
        The smaller, the better; NaN if `n_parameters` is not known.
    weight_errors : array of float, shape (k,)
        Standard errors of the mixing weights, from the observed information of the mixture, without
        the prior. NaN where the ballots do not determine all parameters, and for a component
        without ballots. Families that are no names have components that are taken as known.
    component_errors : tuple of array
        Standard errors of the parameters of each component: scores that add up to 0 for
        Plackett-Luce, theta for Mallows.
    criterion : str or None
        What the number of components was chosen by; None if it was given.
    criteria : dict of int to float
        Its value for each number; for ``"cv"`` the log-likelihood of ballots left out, the larger
        the better.
    """

    log_likelihood: float
    objective: float
    history: FloatArray = field(repr=False)
    n_iter: int
    converged: bool
    starts: FloatArray = field(repr=False)
    n_ballots: float
    n_parameters: int | None
    bic: float
    icl: float
    weight_errors: FloatArray
    component_errors: tuple[FloatArray, ...] = field(repr=False)
    criterion: str | None = None
    criteria: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class State:
    """Components, their weights, and what the ballots say about them."""

    models: list[Distribution]
    weights: FloatArray
    logs: FloatArray
    joint: FloatArray
    total: FloatArray
    log_likelihood: float
    objective: float

    @classmethod
    def of(
        cls, family: Family, models: list[Any], weights: FloatArray, counts: FloatArray
    ) -> State:
        """Compute the probability of every ballot under each component."""
        logs = component_logs(family, models)
        with np.errstate(divide="ignore"):
            joint = logs + np.log(weights)[:, None]
        total = logsumexp(joint, axis=0)
        impossible = (total == -np.inf) & (counts > 0.0)
        if impossible.any():
            raise ValueError(
                f"ballots: no component allows the one at index {int(np.argmax(impossible))}"
            )
        value = float(counts[counts > 0.0] @ total[counts > 0.0])
        prior = sum(family.log_prior(model) for model in models)
        return cls(models, weights, logs, joint, total, value, value + prior)

    @property
    def responsibilities(self) -> FloatArray:
        """The probability of each component given each ballot, shape (k, ballots)."""
        known = np.where(self.total > -np.inf, self.total, 0.0)
        return np.exp(self.joint - known)


@dataclass(frozen=True, eq=False)
class Start:
    """Where one start arrived."""

    state: State
    history: list[float]
    converged: bool


def component_logs(family: Family, models: list[Any]) -> FloatArray:
    """Return the log-probability of every ballot under each component, noise last."""
    rows = [family.log_prob(model) for model in models]
    if family.has_noise:
        rows.append(ballot_log_probs(family.noise, family.ballots))
    return np.stack(rows)


def fit_mixture(
    cls: type[Mixture],
    family: Family,
    k: int | Iterable[int],
    criterion: str,
    settings: Settings,
    rng: RandomState,
) -> Mixture:
    """Fit for every number of components, and return the best mixture; see `Mixture.fit`."""
    choice("criterion", criterion, CRITERIA)
    numbers, generator = _numbers(k), as_rng(rng)
    if not isinstance(k, Iterable):
        start, objectives = best_start(family, numbers[0], family.counts, settings, generator)
        return _finished(cls, family, start, objectives)
    if criterion != "cv" and family.n_parameters is None:
        raise ValueError(
            f"criterion: {criterion} needs the number of parameters of a component; pass "
            "n_parameters, or criterion='cv'"
        )
    fits: dict[int, tuple[Start, FloatArray]] = {}
    criteria: dict[int, float] = {}
    parts = folds_of(family.counts, settings.folds, generator) if criterion == "cv" else []
    for number in numbers:
        if criterion == "cv":
            criteria[number] = sum(
                _left_out(family, number, part, settings, generator) for part in parts
            )
        else:
            fits[number] = best_start(family, number, family.counts, settings, generator)
            bic, icl = _penalized(family, fits[number][0])
            criteria[number] = bic if criterion == "bic" else icl
    sign = -1.0 if criterion == "cv" else 1.0
    best = min(numbers, key=lambda number: sign * criteria[number])
    if best not in fits:
        fits[best] = best_start(family, best, family.counts, settings, generator)
    return _finished(cls, family, *fits[best], criterion, criteria)


def _numbers(k: Any) -> list[int]:
    """Return the numbers of components to try."""
    if not isinstance(k, Iterable):
        return [count("k", k)]
    numbers = sorted({count("k", number) for number in k})
    if not numbers:
        raise ValueError("k: expected at least one number, got none")
    return numbers


# ---- EM ----------------------------------------------------------------------------------------


def best_start(
    family: Family, k: int, counts: FloatArray, settings: Settings, rng: np.random.Generator
) -> tuple[Start, FloatArray]:
    """Run all starts in threads; return the best one, and what each has arrived at."""

    def run(stream: np.random.Generator) -> Start | Exception:
        try:
            return climb(family, k, counts, settings, stream)
        except (ValueError, RuntimeError) as error:
            return error

    streams = rng.spawn(settings.n_init if k > 1 or family.has_noise else 1)
    workers = (os.cpu_count() or 1) if settings.n_jobs == -1 else settings.n_jobs
    if workers == 1:
        found = [run(stream) for stream in streams]
    else:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(run, streams))
    good = [each for each in found if isinstance(each, Start)]
    if not good:
        raise next(each for each in found if isinstance(each, Exception))
    objectives = np.array(
        [each.state.objective if isinstance(each, Start) else np.nan for each in found]
    )
    return max(good, key=lambda each: each.state.objective), objectives


def climb(
    family: Family, k: int, counts: FloatArray, settings: Settings, rng: np.random.Generator
) -> Start:
    """Alternate between responsibilities and weighted fits, from random seeds."""
    models = seeds(family, k, counts, rng)
    shares = np.full(k + family.has_noise, 1.0 / (k + family.has_noise))
    state = State.of(family, models, shares, counts)
    history, total = [state.objective], float(counts.sum())
    for _ in range(settings.max_iter):
        following = improved(family, state, counts)
        gain = following.objective - history[-1]
        if gain < 0.0:
            return Start(state, history, gain >= -ROUNDING * (1.0 + abs(history[-1])))
        state = following
        history.append(state.objective)
        if gain <= settings.tol * total:
            return Start(state, history, True)
    return Start(state, history, False)


def improved(family: Family, state: State, counts: FloatArray) -> State:
    """Return the components and weights after one iteration."""
    held = state.responsibilities * counts
    sums = held.sum(axis=1)
    shares = sums / sums.sum()
    models = [
        family.fit(mine, model) if share > NOTHING else model
        for mine, model, share in zip(held, state.models, shares, strict=False)
    ]
    return State.of(family, models, shares, counts)


def seeds(
    family: Family, k: int, counts: FloatArray, rng: np.random.Generator
) -> list[Distribution]:
    """Fit each component to all ballots, half of the weight on one that the others do not explain.

    Ballots are chosen one after the other, the first by weight, the next ones by weight times how
    improbable they are so far.
    """
    if k == 1 and not family.has_noise:
        return [family.fit(counts, None)]
    models: list[Distribution] = []
    chance, total = counts / counts.sum(), float(counts.sum())
    nearest = np.full(len(counts), -np.inf)
    for _ in range(k):
        held = 0.5 * counts
        held[rng.choice(len(counts), p=chance)] += 0.5 * total
        models.append(family.fit(held, None))
        nearest = np.maximum(nearest, family.log_prob(models[-1]))
        finite_logs = np.maximum(nearest, -1e6)
        far = counts * (finite_logs.max() - finite_logs)
        chance = far / far.sum() if far.sum() > 0.0 else counts / total
    return models


# ---- the number of components ------------------------------------------------------------------


def _penalized(family: Family, start: Start) -> tuple[float, float]:
    """Return BIC and ICL; NaN if the number of parameters is not known."""
    number = _n_parameters(family, len(start.state.models))
    if number is None:
        return np.nan, np.nan
    counts = family.counts
    bic = number * np.log(counts.sum()) - 2.0 * start.state.log_likelihood
    overlap = float(counts @ entr(start.state.responsibilities).sum(axis=0))
    return float(bic), float(bic + 2.0 * overlap)


def _n_parameters(family: Family, k: int) -> int | None:
    if family.n_parameters is None:
        return None
    return k * family.n_parameters + k - 1 + family.has_noise


def folds_of(counts: FloatArray, folds: int, rng: np.random.Generator) -> list[FloatArray]:
    """Divide ballots into parts: how often each one is in each part."""
    whole = bool((counts == np.floor(counts)).all()) and counts.sum() < 1e8
    voters = np.repeat(np.arange(len(counts)), counts.astype(np.int64) if whole else 1)
    if len(voters) < folds:
        raise ValueError(f"folds: expected at most {len(voters)}, the number of ballots")
    part = rng.permutation(np.arange(len(voters)) % folds)
    each = np.ones(len(counts)) if whole else counts
    return [np.bincount(voters[part == f], minlength=len(counts)) * each for f in range(folds)]


def _left_out(
    family: Family, k: int, part: FloatArray, settings: Settings, rng: np.random.Generator
) -> float:
    """Return the log-likelihood of a part of the ballots after a fit to the others."""
    state = best_start(family, k, family.counts - part, settings, rng)[0].state
    return float(part[part > 0.0] @ state.total[part > 0.0])


# ---- results -----------------------------------------------------------------------------------


def _finished(
    cls: type[Mixture],
    family: Family,
    start: Start,
    objectives: FloatArray,
    criterion: str | None = None,
    criteria: dict[int, float] | None = None,
) -> Mixture:
    """Put the components in order, and add errors."""
    state, k = start.state, len(start.state.models)
    order = np.argsort(-state.weights[:k], kind="stable")
    models = [state.models[j] for j in order]
    parts = [*models, family.noise] if family.has_noise else models
    shares = np.append(state.weights[:k][order], state.weights[k:])
    model = cls(parts, shares, family.names)
    weight_errors, component_errors = standard_errors(
        family, State.of(family, models, shares, family.counts)
    )
    bic, icl = _penalized(family, start)
    model.__dict__["_fit"] = MixtureFit(
        log_likelihood=state.log_likelihood,
        objective=state.objective,
        history=np.array(start.history),
        n_iter=len(start.history) - 1,
        converged=start.converged,
        starts=objectives,
        n_ballots=float(family.counts.sum()),
        n_parameters=_n_parameters(family, k),
        bic=bic,
        icl=icl,
        weight_errors=weight_errors,
        component_errors=component_errors,
        criterion=criterion,
        criteria=criteria or {},
    )
    return model


def standard_errors(family: Family, state: State) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Return standard errors of weights and of the parameters of each component.

    From the observed information of the mixture, by Louis' formula: that of the complete data,
    less the covariance of its score given the ballots. Weights have a sum of 1, and so are scores
    held at a sum of 0.
    """
    held, weights = state.responsibilities, state.weights
    counts, k = family.counts, len(weights)
    slopes = [family.slopes(model) for model in state.models]
    slopes += [np.zeros((len(counts), 0))] * (k - len(slopes))
    edges = np.cumsum([k, *(each.shape[1] for each in slopes)])
    size = int(edges[-1])
    blank = np.full(k, np.nan), tuple(np.full(each.shape[1], np.nan) for each in slopes)
    if size > MOST_PARAMETERS or size * len(counts) > MOST_SLOPES or weights.min() < NOTHING:
        return blank
    score, information, fixed = np.zeros((len(counts), size)), np.zeros((size, size)), []
    fixed.append(np.arange(size) < k)
    for j in range(k):
        own = np.r_[j, edges[j] : edges[j + 1]]
        rows = np.column_stack([np.full(len(counts), 1.0 / weights[j]), slopes[j]])
        score[:, own] = held[j][:, None] * rows
        mine = counts * held[j]
        block = -(rows * mine[:, None]).T @ rows
        block[0, 0] += mine.sum() / weights[j] ** 2
        if slopes[j].shape[1]:
            block[1:, 1:] += family.information(state.models[j], mine)
            if family.is_relative:
                fixed.append((np.arange(size) >= edges[j]) & (np.arange(size) < edges[j + 1]))
        information[np.ix_(own, own)] += block
    information += (score * counts[:, None]).T @ score
    free = linalg.null_space(np.array(fixed, dtype=np.float64))
    if not free.shape[1]:
        return np.zeros(k), tuple(np.zeros(each.shape[1]) for each in slopes)
    try:
        inverse = linalg.inv(linalg.cholesky(free.T @ information @ free, lower=True))
    except linalg.LinAlgError:
        return blank
    errors = np.linalg.norm(inverse @ free.T, axis=0)
    return errors[:k], tuple(errors[edges[j] : edges[j + 1]] for j in range(k))
