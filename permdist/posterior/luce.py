"""The posteriors of Plackett-Luce and Davidson-Luce: scores, coefficients, prevalence of ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist._parallel import rows_of
from permdist.ballots import Ballots, cast_ballots, check_independent, fading
from permdist.ballots.flat import entries_of
from permdist.distributions import DavidsonLuce, PlackettLuce
from permdist.inference.fit import named_features
from permdist.inference.likelihood import Likelihood, check_design
from permdist.posterior import luce_kernels as kernels
from permdist.posterior.ellipse import Reference, times
from permdist.posterior.luce_records import no_records, records_of
from permdist.posterior.priors import Flat, Gamma, Normal, Prior, as_prior
from permdist.posterior.problem import Variable
from permdist.posterior.replicas import replicated
from permdist.posterior.smooth import (
    ImproperPosteriorError,
    Mode,
    Smooth,
    added,
    explain_disconnected,
    find_mode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.distributions import Distribution
    from permdist.inference import Fit

# Ballots over so many items that matrices of items by items are too large.
MOST_ITEMS = 2000
REMEDY = "set a prior, such as prior=1.0, or permdist.posterior.Gamma(1, 1) on worths"


class LucePosterior(Smooth):
    """The posterior of a Plackett-Luce or a Davidson-Luce model.

    The variables are ``scores``, one per item; with features of the items ``coefficients``, too;
    ``covariates``, the coefficients of the ballots' covariates; and ``log_ties``, the logarithm of
    delta_t for each size t of a tie. Rankings say nothing about a constant that is added to all
    scores. Where the prior does not, either, scores add up to 0.

    Parameters
    ----------
    model : type
        `PlackettLuce` or `DavidsonLuce`.
    ballots : Ballots, or what `Ballots.of` accepts; optional
        A weight says how often a ballot was cast. Without ballots, the posterior is the prior.
    prior : Prior, float, mapping or None
        Of the scores, or of the coefficients of items' features where there are some; a number is
        the precision of a normal prior, of scores relative to their mean. A mapping from variables
        to priors sets others, too. What has no prior has a flat one, which is proper if the
        posterior has a mode.
    features : array of float, shape (n, k), or data frame, optional
        Features of the items: scores are their products with coefficients.
    offset : array of float, shape (n,) or (ballots, n), optional
        Known parts of the scores.
    half_life : float, optional
        The time after which a ballot counts half, in days where times are dates or Unix times.
    tie_sizes : sequence of int, optional
        The sizes that a tie may have, of `DavidsonLuce`; by default those that occur.
    n_items : int, optional
    names : sequence of str, optional
        The items, where there are no ballots; or their order.
    subset : bool, optional
        As in `Ballots.from_orders`.

    Examples
    --------
    >>> ballots = [["tea", "milk", "cola"], ["milk", "tea", "cola"], ["cola", "tea", "milk"]]
    >>> problem = LucePosterior(PlackettLuce, ballots, prior=0.5)
    >>> problem.coords["item"]
    ('cola', 'milk', 'tea')
    >>> problem.mode.parameters.round(3)
    array([-0.477,  0.031,  0.446])
    """

    def __init__(
        self,
        model: type,
        ballots: Any = None,
        prior: Any = None,
        *,
        features: Any = None,
        offset: ArrayLike | None = None,
        half_life: float | None = None,
        tie_sizes: Sequence[int] | None = None,
        n_items: int | None = None,
        names: Sequence[str] | None = None,
        subset: bool | None = None,
    ) -> None:
        self.model_class, self.tied = model, issubclass(model, DavidsonLuce)
        self.ballots: Ballots | None = None
        if ballots is not None:
            data = Ballots.of(ballots, n_items=n_items, names=names, subset=subset)
            check_independent(data, "a posterior")
            self.ballots, offset = cast_ballots(data, half_life, offset)
            self.names = self.ballots.names
        else:
            self.names = _item_names(n_items, names, prior)
        n = len(self.names)
        if n < 2:
            raise ValueError(f"data: expected at least two items, got {n}")
        if n > MOST_ITEMS and features is None:
            raise ValueError(
                f"data: expected at most {MOST_ITEMS:,} items for posterior draws, got {n:,}; use "
                "features, leave rare items out (Ballots.without), or fit and take intervals"
            )
        self.sizes = self._sizes(tie_sizes)
        matrix, labels = named_features(features)
        self.design = check_design(matrix, n)
        self.feature_names = labels or tuple(
            f"x{i}" for i in range(0 if self.design is None else self.design.shape[1])
        )
        self.likelihood: Likelihood | None = None
        self._merged: Ballots | None = None
        self._shift: FloatArray | None = None
        self._importance: FloatArray | None = None
        self.known = np.zeros(n)
        if offset is not None:
            table = np.asarray(offset, dtype=np.float64)
            if table.ndim == 2:
                if self.ballots is None:
                    raise ValueError("offset: expected ballots with an offset of each")
                self._shift = entries_of(self.ballots, "offset", table)
            elif table.shape != (n,) or not np.isfinite(table).all():
                raise ValueError(f"offset: expected {n} finite numbers, got shape {table.shape}")
            else:
                self.known = table
        if self.ballots is not None:
            plain = half_life is None and self._shift is None
            self._merged = self.ballots.merged() if plain else self.ballots
            self._importance = fading(self.ballots.times, half_life)
            self.likelihood = self._likelihood_of(self._merged)
        elif half_life is not None:
            raise ValueError("half_life: expected ballots with times")
        self.n_scores = n if self.design is None else self.design.shape[1]
        covariates = () if self.ballots is None else self.ballots.feature_names
        self.covariate_names = tuple(covariates)
        self.priors = self._priors_of(prior)
        self._check_proper()

    # ---- what is estimated -------------------------------------------------------------------

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return "Davidson-Luce" if self.tied else "Plackett-Luce"

    @property
    def n_parameters(self) -> int:
        """The number p of parameters that chains move in."""
        return self.n_scores + len(self.covariate_names) + len(self.sizes)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are recorded."""
        result = [Variable("scores", (len(self.names),), ("item",))]
        if self.design is not None:
            result.append(Variable("coefficients", (self.n_scores,), ("feature",)))
        if self.covariate_names:
            result.append(Variable("covariates", (len(self.covariate_names),), ("covariate",)))
        if self.sizes:
            result.append(Variable("log_ties", (len(self.sizes),), ("tie_size",)))
        return tuple(result)

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The coordinates of the dims of the variables and of `observation`."""
        result: dict[str, Sequence[Any]] = {"item": self.names}
        if self.design is not None:
            result["feature"] = self.feature_names
        if self.covariate_names:
            result["covariate"] = self.covariate_names
        if self.sizes:
            result["tie_size"] = self.sizes
        result["observation"] = range(0 if self.ballots is None else self.ballots.n_ballots)
        return result

    def record(self, parameters: FloatArray) -> FloatArray:
        """Return the draws for parameters (..., p), shape (..., size)."""
        if self.design is None:
            return parameters
        scores = times(parameters[..., : self.n_scores], self._design_rows) + self.known
        return np.concatenate([scores, parameters], axis=-1)

    @cached_property
    def _design_rows(self) -> FloatArray:
        return np.zeros((0, 0)) if self.design is None else np.ascontiguousarray(self.design.T)

    def parameters_of(self, draws: FloatArray) -> FloatArray:
        """Return the parameters (..., p) that belong to draws (..., size)."""
        return draws if self.design is None else draws[..., len(self.names) :]

    @cached_property
    def free(self) -> FloatArray:
        """An orthonormal basis (p, r) of the directions in which the value never changes."""
        none = np.zeros((self.n_parameters, 0))
        if self._chain_prior.settles:
            return none
        if self.likelihood is not None:
            return self.likelihood.free_directions()
        if self.design is not None:
            return none
        none = np.zeros((self.n_parameters, 1))
        none[: self.n_scores] = 1.0 / np.sqrt(self.n_scores)
        return none

    def hold(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return a log-density of free directions, its gradient, minus its second derivatives."""
        level = self._level
        if not level.strength:
            return super().hold(parameters)
        n, p = len(level.mode), self.n_parameters
        parts = level.shares * np.exp(parameters[:n] - level.mode)
        total = float(parts.sum())
        slope = parts / total
        gradient, curvature = np.zeros(p), np.zeros((p, p))
        gradient[:n] = level.strength * (slope - parts)
        curvature[:n, :n] = level.strength * (
            np.outer(slope, slope) - np.diag(slope) + np.diag(parts)
        )
        return level.strength * (np.log(total) - total + 1.0), gradient, curvature

    @cached_property
    def _level(self) -> kernels.Level:
        """The density of the level of scores, where the data have none."""
        if self.design is not None or not self.free.shape[1]:
            return kernels.Level(np.zeros(0), np.zeros(0), 0.0, 0.0)
        n = self.n_scores
        mode = self._centered_mode.parameters[:n]
        wins = self._expected_wins
        if not (wins > 0.0).all():
            return kernels.Level(mode, np.zeros(n), 0.0, self._scale_of_free)
        strength = float(wins.sum())
        return kernels.Level(mode.copy(), wins / strength, strength, 0.0)

    @property
    def _expected_wins(self) -> FloatArray:
        """How often each item is expected to be chosen, at the mode, also by a gamma prior."""
        n, mode = self.n_scores, self._centered_mode.parameters
        wins = np.zeros(n)
        if self.likelihood is not None:
            records = self._records
            if records.layout == 1 or (records.signs < 0.0).any():
                return wins  # to be the worst is no win
            owners = records.owners if records.layout == 2 else np.arange(n)
            # At the mode, the likelihood pulls as much as the prior does.
            pull = self._chain_prior.derivatives(mode[:n])[1]
            wins += np.bincount(owners, records.linear, n) + pull
        shape = getattr(self._chain_prior, "shape", 0.0)
        worths = np.exp(mode[:n] - mode[:n].max())
        wins += shape * n * worths / worths.sum()
        return wins

    @cached_property
    def _scale_of_free(self) -> float:
        records, n = self._records, self.n_scores
        return max(float(np.abs(records.linear).sum()) / n, 1e-6) if self._merged else 1.0

    @cached_property
    def _centered_mode(self) -> Mode:
        """The most probable parameters whose scores add up to 0."""
        return find_mode(self._centered_derivatives, self.first_guess)

    @cached_property
    def mode(self) -> Mode:
        """The most probable parameters; scores add up to 0 unless a prior of your own forbids."""
        if not len(self._level.mode):
            return find_mode(self._held_derivatives, self.first_guess)
        # The density of the level has its maximum there, too.
        found = self._centered_mode
        theta = found.parameters
        curvature = found.curvature - super().hold(theta)[2] + self.hold(theta)[2]
        return replace(found, curvature=curvature)

    def _centered_derivatives(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return added(self.derivatives(theta), super().hold(theta))

    # ---- the posterior -----------------------------------------------------------------------

    def derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and minus the second derivatives (p, p)."""
        p = self.n_parameters
        value, gradient, curvature = 0.0, np.zeros(p), np.zeros((p, p))
        if self.likelihood is not None:
            value, gradient, curvature = self.likelihood(parameters)
        for name, (a, b) in self._places.items():
            if a == b:
                continue
            prior = self._chain_prior if name == "scores" else self.priors[name]
            found, slope, second = prior.derivatives(parameters[a:b])
            value, gradient[a:b] = value + found, gradient[a:b] + slope
            curvature[a:b, a:b] += second
        return value, gradient, curvature

    def value(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times likelihood."""
        records, priors = self._records, self._compiled_priors
        found = kernels.log_likelihood(records, parameters, np.empty(len(records.linear)))
        if priors is None:
            return found + self._log_prior(parameters, self._chain_prior)
        return found + kernels.log_prior(priors, parameters)

    def _advance(
        self,
        found: Reference,
        state: FloatArray,
        thetas: FloatArray,
        values: FloatArray,
        uniforms: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        priors = self._compiled_priors
        if priors is None:
            return super()._advance(found, state, thetas, values, uniforms, rng)
        new = state.copy()
        inputs = self._records, priors, self._level, found
        kernels.advance(*inputs, new, thetas, values, uniforms, rng)
        return new

    @property
    def makes_pilots(self) -> bool:
        """Whether transitions are made to find a better Gaussian; here they take little time."""
        return True

    @property
    def has_levels(self) -> bool:
        """Whether the prior says what the level of scores is, which chains leave out."""
        return self._chain_prior is not self.priors["scores"]

    def add_levels(self, parameters: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Draw the level of scores from the prior, in place; return what that adds."""
        scores = parameters[:, : self.n_scores]
        levels, gains = self.priors["scores"].levels(scores, uniforms)
        scores += levels[:, None]
        return gains

    def log_density_at(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times likelihood of these parameters (p,)."""
        chain, own = self._chain_prior, self.priors["scores"]
        found = self.value(parameters)
        if chain is own:
            return found
        scores = parameters[: self.n_scores]
        return found - chain.log_density(scores) + own.log_density(scores)

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-likelihood of each ballot, shape (draws, ballots).

        A ballot that was cast w times is one observation, with w times the log-likelihood.
        """
        if self.ballots is None:
            return np.zeros((len(draws), 0))
        data = self.ballots
        likelihood = self._likelihood_of(data)
        return np.stack(
            [likelihood.log_likelihoods(each) for each in self.parameters_of(draws)]
        ) * (data.weights * likelihood.importance)

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size); an improper prior raises a ValueError."""
        parts = [
            self.priors[name].draw(size, b - a, rng)
            for name, (a, b) in self._places.items()
            if b > a
        ]
        return self.record(np.column_stack(parts))

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Ballots:
        """Draw ballots on the same alternatives, given a draw; each cast is a ballot.

        A ballot that ranks all its alternatives is replaced by one that does, and one that lists
        some by one with as many stages. Weights that are whole numbers are numbers of ballots.
        """
        if self.ballots is None:
            raise ValueError("replicate: expected a posterior with ballots, got one without")
        likelihood = self._likelihood_of(self.ballots)
        return replicated(likelihood, self.parameters_of(draw), rng)

    def model(self, draw: FloatArray) -> Distribution | None:
        """Return the distribution over rankings of a draw, without covariates of ballots."""
        found = self.split(draw)
        names = None if self.names == tuple(map(str, range(len(self.names)))) else self.names
        if not self.tied:
            return PlackettLuce(found["scores"], names)
        ties = np.full(max(self.sizes, default=1) - 1, -np.inf)
        for size, value in zip(self.sizes, found.get("log_ties", ()), strict=True):
            ties[size - 2] = value
        tied: Any = DavidsonLuce(found["scores"], ties, names)
        return tied

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The data as variables of the group ``observed_data``: dims and values by name."""
        if self.ballots is None:
            return {}
        data = self.ballots
        lengths = np.diff(data.ptr)
        places = np.arange(len(data.items)) - data.ptr[rows_of(data.ptr)]
        table = np.full((len(lengths), int(lengths.max())), -1, dtype=np.int64)
        table[rows_of(data.ptr), places] = data.items
        buckets = np.full(table.shape, -1, dtype=np.int64)
        first = data.stages[rows_of(data.ptr)]
        which = data.bucket_of_entry()
        buckets[rows_of(data.ptr), places] = np.where(which < 0, -1, which - first)
        return {
            "alternatives": (("record", "place"), table),
            "bucket": (("record", "place"), buckets),
            "record_observation": (("record",), np.asarray(data.ballot)),
            "weight": (("observation",), np.asarray(data.weights)),
        }

    @property
    def weights(self) -> FloatArray | None:
        """How much each ballot counts: the number of times it was cast, less with a half-life."""
        if self.ballots is None:
            return None
        faded = 1.0 if self._importance is None else self._importance
        return np.asarray(self.ballots.weights * faded, dtype=np.float64)

    # ---- parts -------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Where the parameters of each prior stand."""
        edges = np.cumsum([0, self.n_scores, len(self.covariate_names), len(self.sizes)]).tolist()
        return {
            name: (edges[i], edges[i + 1])
            for i, name in enumerate(("scores", "covariates", "log_ties"))
        }

    def _sizes(self, given: Sequence[int] | None) -> tuple[int, ...]:
        found = () if self.ballots is None else self.ballots.tie_sizes
        if not self.tied:
            if found:
                raise ValueError("data: some ballots have ties; use permdist.DavidsonLuce")
            if given is not None:
                raise ValueError("tie_sizes: expected none for PlackettLuce; use DavidsonLuce")
            return ()
        if given is None:
            if self.ballots is None:
                raise ValueError("tie_sizes: expected the sizes of ties, such as [2], without data")
            return found
        sizes = tuple(sorted({count("tie_sizes", size, minimum=2) for size in given}))
        if not set(found) <= set(sizes):
            raise ValueError(f"tie_sizes: expected at least those of the ballots, {list(found)}")
        return sizes

    def _likelihood_of(self, ballots: Ballots) -> Likelihood:
        return Likelihood(
            ballots,
            self.sizes,
            design=self.design,
            offset=self.known,
            importance=self._importance,
            shift=self._shift,
        )

    def _priors_of(self, prior: Any) -> dict[str, Prior]:
        relative = self.design is None
        known = ("coefficients" if self.design is not None else "scores", "covariates", "log_ties")
        given = dict(prior) if isinstance(prior, Mapping) else {known[0]: prior}
        for name in given:
            if name not in known:
                raise ValueError(f"prior: unknown variable {name!r}, expected one of {known}")
        strength = getattr(given.get(known[0]), "covariates", 0.0)  # of a Ridge
        if strength and "covariates" not in given:
            given["covariates"] = strength
        return {
            "scores": as_prior(known[0], given.get(known[0]), relative=relative),
            "covariates": as_prior("covariates", given.get("covariates")),
            "log_ties": as_prior("log_ties", given.get("log_ties")),
        }

    def _check_proper(self) -> None:
        """Refuse posteriors that cannot be normalized: with flat priors, there must be a mode."""
        flat = [
            name for name, (a, b) in self._places.items()
            if b > a and isinstance(self.priors[name], Flat)
        ]  # fmt: skip
        if not flat:
            return
        if self.ballots is None:
            raise ImproperPosteriorError(
                f"prior: without data the prior of {', '.join(flat)} needs to be proper; {REMEDY}"
            )
        try:
            _ = self.mode
        except ImproperPosteriorError as error:
            if "scores" in flat and self.design is None:
                explain_disconnected(self.ballots, REMEDY)
            if self.design is not None:
                flat = ["coefficients" if name == "scores" else name for name in flat]
            raise ImproperPosteriorError(
                "prior: the posterior is improper without one: the data say nothing about "
                f"{' or '.join(flat)}, or predict every result; set "
                f"prior={dict.fromkeys(flat, 1.0)}"
            ) from error

    def _log_prior(self, parameters: FloatArray, own: Prior) -> float:
        """Return the log-density of all priors, with another one of the scores."""
        return sum(
            (own if name == "scores" else self.priors[name]).log_density(parameters[a:b])
            for name, (a, b) in self._places.items()
            if b > a
        )

    @cached_property
    def _chain_prior(self) -> Prior:
        """The prior of the scores that chains move in: without their level, where possible."""
        prior = self.priors["scores"]
        relative = prior.relative(self.n_scores) if self.design is None else None
        return prior if relative is None else relative

    @cached_property
    def _records(self) -> kernels.Records:
        design = np.zeros((0, 0)) if self.design is None else np.ascontiguousarray(self.design)
        data, width = self._merged, len(self.covariate_names)
        if data is None:
            return no_records(self.known, design, width, self.sizes)
        weights = data.weights if self._importance is None else data.weights * self._importance
        return records_of(data, weights, self._shift, self.known, design, self.sizes)

    @cached_property
    def _compiled_priors(self) -> kernels.Priors | None:
        """The priors for the kernel; None if some are of a user's own."""
        p, constant, centered, pooled = self.n_parameters, 0.0, 0, 0
        mean, precision, shape, rate = (np.zeros(p) for _ in range(4))
        matrix = np.zeros((0, 0))
        for name, (a, b) in self._places.items():
            prior = self.priors[name]
            if a == b or type(prior) is Flat:
                continue
            if type(prior) is Gamma:
                shape[a:b], rate[a:b] = prior.shape, prior.rate
                constant += prior.constant(b - a)
                if a == 0 and self.has_levels:
                    constant -= prior.shape * b * float(np.log(prior.rate))
                    pooled = b
            elif type(prior) is Normal:
                mean[a:b], found = prior.parts(b - a)
                constant += prior.constant(b - a)
                if a == 0 and self.has_levels and np.ptp(found) == 0.0 and found.ndim == 1:
                    mean[:b] -= mean[:b].mean()
                    precision[:b], centered = found, b
                elif a == 0 and self.has_levels:
                    relative: Any = self._chain_prior
                    matrix = np.ascontiguousarray(relative.matrix)
                elif found.ndim == 1:
                    precision[a:b] = found
                elif a == 0:
                    matrix = np.ascontiguousarray(found)
                else:
                    return None
                if prior.centered and a == 0:
                    centered = b
                elif prior.centered:
                    return None
            else:
                return None
        if self.free.shape[1] and not len(self._level.mode):
            return None
        return kernels.Priors(mean, precision, matrix, shape, rate, constant, centered, pooled)


def _item_names(n_items: Any, names: Any, prior: Any) -> tuple[str, ...]:
    """Return the names of the items where there are no ballots."""
    if names is not None:
        return tuple(map(str, names))
    if n_items is None:
        own = prior.get("scores") if isinstance(prior, Mapping) else prior
        mean = np.atleast_1d(getattr(own, "covariance", 0.0))
        if len(mean) == 1:
            mean = np.atleast_1d(getattr(own, "mean", 0.0))
        if len(mean) == 1:
            raise ValueError(
                "data: expected ballots; without them the posterior is the prior, for which "
                "pass n_items= or names="
            )
        n_items = len(mean)
    return tuple(map(str, range(count("n_items", n_items, minimum=2))))


def luce_problem(model: Any, data: Any, prior: Any, **options: Any) -> LucePosterior:
    """Return the posterior of Plackett-Luce or Davidson-Luce.

    Parameters
    ----------
    model : type, PlackettLuce or DavidsonLuce
        A class, or a model that was fitted: its ballots are the data unless others are given,
        and its features, its offset and its half-life belong to them.
    data, prior
        As in `LucePosterior`.
    **options
        As in `LucePosterior`.
    """
    if isinstance(model, type):
        return LucePosterior(model, data, prior, **options)
    fitted = model.fit_result
    if fitted is None:
        if data is None:
            options.setdefault("names", model.names)
        return LucePosterior(type(model), data, prior, **options)
    known, importance = _known_parts(fitted), fitted.likelihood.importance
    faded = bool((importance != 1.0).any())  # by a half-life
    if data is None:
        data = fitted.ballots
        if faded:
            data = replace(data, weights=data.weights * importance)
        return LucePosterior(type(model), data, prior, **(known | options))
    if known or faded:
        raise ValueError(
            f"data: this model was fitted with {' and '.join([*known, *['half_life'] * faded])} "
            f"of its own ballots; pass {type(model).__name__} itself, with what belongs to others"
        )
    return LucePosterior(type(model), data, prior, **options)


def _known_parts(fitted: Fit) -> dict[str, Any]:
    """Return the features and the offset of a fit, as arguments of `LucePosterior`."""
    likelihood, ballots, n = fitted.likelihood, fitted.ballots, fitted.n_items
    found: dict[str, Any] = {}
    if likelihood.design is not None:
        import pandas as pd

        own = likelihood.n_scores - (likelihood.ballots.n_items - n)  # but for a ghost
        columns = fitted.feature_names[:own]
        found["features"] = pd.DataFrame(likelihood.design[:n, :own], columns=list(columns))
    if likelihood.offset.any():
        found["offset"] = likelihood.offset[:n]
    if likelihood.shift is not None:
        found["offset"] = np.zeros((ballots.n_ballots, n))
        found["offset"][ballots.ballot[rows_of(ballots.ptr)], ballots.items] = likelihood.shift
    return found
