"""How well the model behind a rating fits: residuals, circles, predictions of held-out battles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, count
from permdist._result import Result
from permdist.ballots import Ballots
from permdist.inference import goodness
from permdist.inference.cycles import expected_cycles, transitivity
from permdist.inference.fit import NoEstimateError, fit_ballots
from permdist.inference.priors import Ridge

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, RandomState
    from permdist.data import Battles
    from permdist.inference.cycles import Transitivity
    from permdist.inference.goodness import Deviance
    from permdist.inference.results import Fit

# Held-out battles may be the only ones that a competitor won: there, a weak prior helps out.
WEAK = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Goodness(Result):
    """How well a model of pairs fits battles.

    Attributes
    ----------
    residuals : DataFrame
        Observed and expected results of every pair, worst fit first; see `pair_residuals`.
    deviance : Deviance or None
        Against free chances of every pair; None with covariates or a half-life, with which the
        model is no special case of that, and with a prior.
    circles : Transitivity
        Majorities that go in circles.
    expected_circles : (float, float)
        The share of circles to be expected if the model were true, and its standard deviation.
    calibration : DataFrame or None
        Chances predicted for battles that were left out of the fit, and what happened; None if
        `folds` is 0.
    log_loss, constant_loss : float
        Of these predictions, and of the same chances for all pairs, in nats; NaN without them.
    """

    residuals: pd.DataFrame
    deviance: Deviance | None
    circles: Transitivity
    expected_circles: tuple[float, float]
    calibration: pd.DataFrame | None
    log_loss: float
    constant_loss: float

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self._facts().items())
        return f"Goodness({len(self.residuals):,} pairs: {told})"

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of `residuals`; `calibration` is another table."""
        return self.residuals.copy()

    @property
    def caption(self) -> str:
        """What the table shows, in one line."""
        return "Observed and expected results of pairs, worst fit first"

    def _facts(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self.deviance is not None:
            told["deviance"] = f"{self.deviance.value:.1f} on {self.deviance.degrees} degrees"
            told["p"] = self.deviance.p_value
        told["circles"] = f"{self.circles.cyclic:,} of {self.circles.triads:,} triples"
        return told | {"log loss": self.log_loss, "of equal chances": self.constant_loss}


def battle_chances(fit: Fit, battles: Battles) -> FloatArray:
    """Return a fit's chances of the first, of the second and of a tie, for every battle.

    Parameters
    ----------
    fit : Fit
        Of these competitors, by `rate` or `fit` of a distribution.
    battles : Battles

    Returns
    -------
    array of float, shape (battles, 3)
    """
    _, coefficients, _ = fit.likelihood.split(fit.parameters)
    shift: Any = 0.0
    if battles.features is not None:
        shift = (battles.features[0] - battles.features[1]) @ coefficients
    return goodness.pair_chances(fit.scores, log_tie_of(fit), battles.first, battles.second, shift)


def check_fit(
    battles: Battles,
    fit: Fit,
    nested: bool,
    prior: Any,
    half_life: float | None,
    folds: int,
    rng: RandomState,
) -> Goodness:
    """Compare the battles with what the model expects of them."""
    pairs = (battles.first, battles.second, battles.outcome)
    weights = np.ones(len(battles)) if battles.weights is None else battles.weights
    chances = battle_chances(fit, battles)
    residuals = goodness.pair_residuals(*pairs, chances, weights=weights, names=battles.names)
    deviance = None
    if nested:
        free = battles.n_items - 1 + (log_tie_of(fit) is not None)
        deviance = goodness.deviance(*pairs, chances, free, weights=weights)
    return Goodness(
        residuals,
        deviance,
        transitivity(battles.counts()[0]),
        expected_cycles(residuals, draws=_draws(battles.n_items), rng=rng),
        *_predictions(battles, weights, fit, prior, half_life, folds, rng),
    )


def _predictions(
    battles: Battles,
    weights: FloatArray,
    fit: Fit,
    prior: Any,
    half_life: float | None,
    folds: int,
    rng: RandomState,
) -> tuple[pd.DataFrame | None, float, float]:
    """Return the calibration of predictions of held-out battles, and log losses."""
    if count("folds", folds, minimum=0) == 0:
        return None, np.nan, np.nan
    chances, part = _held_out(battles, weights, fit, prior, half_life, folds, rng)
    if not part.any():
        return None, np.nan, np.nan
    outcome = np.tile(battles.outcome, folds)
    tie = tie_share(battles)
    constant = np.tile([(1.0 - tie) / 2.0, (1.0 - tie) / 2.0, tie], (len(battles), 1))
    return (
        goodness.calibration(outcome, chances, weights=part),
        goodness.log_loss(outcome, chances, weights=part),
        goodness.log_loss(battles.outcome, constant, weights=weights),
    )


def _held_out(
    battles: Battles,
    weights: FloatArray,
    whole: Fit,
    prior: Any,
    half_life: float | None,
    folds: int,
    rng: RandomState,
) -> tuple[FloatArray, FloatArray]:
    """Predict each part of the battles from the others.

    Every battle is in one of the parts at random; clusters stay together. Returns the chances of
    all battles by fits without part 0, without part 1, ..., and how much of them was held out.
    """
    generator, tie_sizes = as_rng(rng), whole.likelihood.tie_sizes
    if battles.clusters is None:
        # Battles that were counted together are dealt one by one.
        counts, unit = battles.ballots.units()
        parts = generator.multinomial(counts, np.full(folds, 1.0 / folds)) * unit[:, None]
    else:
        number = battles.ballots.cluster_numbers
        fold = generator.integers(folds, size=int(number.max()) + 1)[number]
        parts = weights[:, None] * (fold[:, None] == np.arange(folds))
    predicted = []
    for k in range(folds):
        rest = weights - parts[:, k]
        if rest.sum() <= 0.0:
            rest = weights
        chosen = Ballots.of(battles.ballots, weights=rest)
        weak = Ridge(WEAK, WEAK) if prior is None else prior
        chances = np.full((len(battles), 3), 1.0 / 3.0)
        try:
            if not {*tie_sizes} <= {*chosen.tie_sizes}:
                raise NoEstimateError
            fit = fit_ballots(
                chosen, tie_sizes, half_life=half_life, prior=weak, start=whole.parameters
            )
            chances = battle_chances(fit, battles)
        except NoEstimateError:  # the only ties were held out: no prediction of this part
            parts[:, k] = 0.0
        predicted.append(chances)
    return np.concatenate(predicted), parts.T.ravel()


def _draws(n_items: int) -> int:
    """Return how many data sets to simulate for the expected circles: fewer large ones."""
    return int(np.clip(2e9 / n_items**3, 20, 200))


def log_tie_of(fit: Fit) -> float | None:
    """Return the logarithm of delta_2; None if no two items tie."""
    finite = len(fit.ties) and np.isfinite(fit.ties[0])
    return float(fit.ties[0]) if finite else None


def tie_share(battles: Battles) -> float:
    """Return the share of ties among battles."""
    weights = np.ones(len(battles)) if battles.weights is None else battles.weights
    return float(weights @ battles.tied / weights.sum())
