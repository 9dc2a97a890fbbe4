"""The EM algorithm for mixtures: starts, the choice of the number of components, and errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr, logsumexp

from permdist._check import as_rng, choice, count, finite
from permdist.distributions.fit_tables import FitTable, mixture_estimates
from permdist.distributions.mixture import ballot_log_probs
from permdist.distributions.mixture_errors import NOTHING, standard_errors
from permdist.distributions.mixture_parameters import parameters_of

if TYPE_CHECKING:
    from permdist._typing import FloatArray, RandomState
    from permdist.ballots import Ballots
    from permdist.distributions.base import Distribution
    from permdist.distributions.mixture import Mixture
    from permdist.distributions.mixture_families import Family
    from permdist.distributions.mixture_parameters import Parameters

CRITERIA = ("bic", "icl", "cv")
TRIALS = 4  # of an extrapolation
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
    accelerate: bool = True

    def __post_init__(self) -> None:
        count("n_init", self.n_init)
        count("max_iter", self.max_iter)
        count("folds", self.folds, minimum=2)
        if self.n_jobs != -1:
            count("n_jobs", self.n_jobs)
        if finite("tol", self.tol, ndim=0) < 0.0:
            raise ValueError(f"tol: expected a non-negative number, got {self.tol:g}")


@dataclass(frozen=True, eq=False)
class MixtureFit(FitTable):
    """How a mixture was fitted. Prints as a table.

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
        without ballots.
    component_errors : tuple of array
        Standard errors of the parameters of each component: scores that add up to 0 for
        Plackett-Luce, theta for Mallows. For a family of your own, those of the scores of
        `GaussianScores`, the thetas of `GeneralizedMallows`, or whatever the components have as an
        attribute ``parameters`` (an array) with a method ``with_parameters(values)``, by difference
        quotients; empty if they have neither.
    error_note : str
        Why errors are missing; empty if they are not.
    criterion : str or None
        What the number of components was chosen by; None if it was given.
    criteria : dict of int to float
        Its value for each number; for ``"cv"`` the log-likelihood of ballots left out, the larger
        the better.
    estimates : tuple of (str, float, float)
        Weights and parameters of the components, with standard errors; see `to_frame`.
    about : str
        What was fitted, in one line.
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
    error_note: str = ""
    criterion: str | None = None
    criteria: dict[int, float] = field(default_factory=dict)
    estimates: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    about: str = field(default="", repr=False)

    def _remarks(self) -> list[str]:
        return [f"no errors: {self.error_note}"] if self.error_note else []


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
    parts = folds_of(family.ballots, settings.folds, generator) if criterion == "cv" else []
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
    trail = [state]
    for _ in range(settings.max_iter):
        if settings.accelerate and len(trail) == 3:
            state = extrapolated(family, trail, counts)
            trail = [state]
        following = improved(family, state, counts)
        gain = following.objective - state.objective
        if gain < 0.0:
            return Start(state, history, gain >= -ROUNDING * (1.0 + abs(history[-1])))
        state = following
        trail.append(state)
        history.append(state.objective)
        if gain <= settings.tol * total:
            return Start(state, history, True)
    return Start(state, history, False)


def extrapolated(family: Family, trail: list[State], counts: FloatArray) -> State:
    """Return where two iterations lead if they go on, or the last one if nothing is gained.

    SQUAREM (Varadhan and Roland, 2008), in the logarithms of the weights and the parameters of the
    components: along ``start + 2 a r + a^2 v`` with r the first step and v the change from the
    first to the second one, for ``a = |r| / |v|`` and, while the objective is below that of the
    second iteration, for a closer to 1, which is the second iteration itself.
    """
    last = trail[-1]
    parts = [[parameters_of(model) for model in state.models] for state in trail]
    if any(part is None for row in parts for part in row) or last.weights.min() < NOTHING:
        return last
    known = [[part for part in row if part is not None] for row in parts]
    if any(
        a.discrete != b.discrete for row in known[:2] for a, b in zip(row, known[2], strict=True)
    ):
        return last
    first, second, third = (
        np.concatenate([np.log(state.weights), *(part.values for part in row)])
        for state, row in zip(trail, known, strict=True)
    )
    step, bend = second - first, (third - second) - (second - first)
    size = float(np.linalg.norm(bend))
    reach = float(np.linalg.norm(step)) / size if size > 0.0 else 1.0
    for _ in range(TRIALS):
        if reach <= 1.0:
            break
        point = first + 2.0 * reach * step + reach**2 * bend
        try:
            found = _at(family, known[2], point, counts)
        except (ValueError, FloatingPointError):
            found = None  # outside of what the parameters may be
        if found is not None and found.objective >= last.objective:
            return found
        reach = (1.0 + reach) / 2.0
    return last


def _at(
    family: Family, parts: list[Parameters], point: FloatArray, counts: FloatArray
) -> State | None:
    """Return the state with other weights and parameters."""
    k = len(parts) + family.has_noise
    logs = point[:k] - logsumexp(point[:k])
    cuts = np.cumsum([k, *(len(part.values) for part in parts)])
    models = [part.rebuild(point[a:b]) for part, a, b in zip(parts, cuts, cuts[1:], strict=False)]
    found = State.of(family, models, np.exp(logs), counts)
    return found if np.isfinite(found.objective) else None


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


def folds_of(ballots: Ballots, folds: int, rng: np.random.Generator) -> list[FloatArray]:
    """Divide ballots into parts: the weight of each one in each part."""
    counts, unit = ballots.units()
    if counts.sum() >= 1e8:
        counts, unit = np.ones_like(counts), ballots.weights
    voters = np.repeat(np.arange(len(counts)), counts)
    if len(voters) < folds:
        raise ValueError(f"folds: expected at most {len(voters)}, the number of ballots")
    part = rng.permutation(np.arange(len(voters)) % folds)
    return [np.bincount(voters[part == f], minlength=len(counts)) * unit for f in range(folds)]


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
    errors = standard_errors(family, State.of(family, models, shares, family.counts))
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
        weight_errors=errors.weights,
        component_errors=errors.components,
        error_note=errors.note,
        criterion=criterion,
        criteria=criteria or {},
        estimates=mixture_estimates(parts, shares, errors),
        about=f"Mixture of {k}: {type(models[0]).__name__}",
    )
    return model
