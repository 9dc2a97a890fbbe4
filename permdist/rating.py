"""Rate competitors from battles or ballots: a leaderboard, its errors, and how well it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, choice, count
from permdist._text import aligned, plural, text_table
from permdist.ballots import Ballots
from permdist.data import Battles
from permdist.inference import goodness
from permdist.inference.cycles import Transitivity, expected_cycles, transitivity
from permdist.inference.fit import NoEstimateError, fit_ballots
from permdist.inference.leaderboard import make
from permdist.inference.priors import Ridge

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, RandomState
    from permdist.inference.goodness import Deviance
    from permdist.inference.leaderboard import Leaderboard
    from permdist.inference.results import Fit

__all__ = ["Goodness", "Rating", "battle_chances", "rate", "rate_slices"]

ERRORS = ("observed", "penalized", "sandwich", "bootstrap", "profile")
FOLDS = 5
# Held-out battles may be the only ones that a competitor won: there, a weak prior helps out.
WEAK = 1e-3
MOST_WORST = 5


@dataclass(frozen=True, eq=False)
class Goodness:
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


@dataclass(frozen=True, eq=False, repr=False)
class Rating:
    """A leaderboard with the fit behind it and how well that fits. Prints as a summary.

    Attributes
    ----------
    leaderboard : Leaderboard
    fit : Fit
    battles : Battles or None
        None for ballots of other kinds.
    errors : str
        The kind of the errors.
    goodness : Goodness or None
        None for ballots of other kinds.
    """

    leaderboard: Leaderboard
    fit: Fit
    battles: Battles | None
    errors: str
    goodness: Goodness | None

    @property
    def tie_chance(self) -> float | None:
        """The chance that two equal competitors tie; None if there are no ties of two."""
        log_tie = _log_tie(self.fit)
        return None if log_tie is None else float(1.0 / (1.0 + 2.0 * np.exp(-log_tie)))

    def covariates(self) -> pd.DataFrame | None:
        """Return the coefficients of the covariates with their errors; None without covariates."""
        if not self.fit.likelihood.n_covariates:
            return None
        return self.fit.coefficient_table("observed" if self.errors == "profile" else self.errors)

    def __repr__(self) -> str:
        return f"Rating({self.fit!r})"

    def __str__(self) -> str:
        parts = [str(self.leaderboard)]
        table = self.covariates()
        if table is not None:
            parts.append(_coefficients_text(table))
        parts.append(aligned(self.summary()))
        if self.goodness is not None:
            parts.append(_worst_text(self.goodness.residuals))
        return "\n\n".join(parts)

    def summary(self) -> dict[str, str]:
        """Return the facts below the leaderboard: sizes, ties, goodness of fit."""
        noun = "battles" if self.battles is not None else "ballots"
        rows = {noun: f"{self.fit.n_ballots:,.6g}"}
        if self.battles is not None:
            rows["pairs that met"] = _pairs_met(self)
        if self.tie_chance is not None:
            share = "" if self.battles is None else f"{_tie_share(self.battles):.1%} of battles; "
            rows["ties"] = f"{share}two equal competitors tie with chance {self.tie_chance:.3f}"
        rows["log-likelihood"] = f"{self.fit.log_likelihood:.2f}"
        if self.goodness is not None:
            rows |= _goodness_rows(self.goodness)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        facts: dict[str, Any] = {
            "errors": self.errors,
            "level": self.leaderboard.level,
            "n_ballots": self.fit.n_ballots,
            "log_likelihood": self.fit.log_likelihood,
            "log_tie": _log_tie(self.fit),
            "tie_chance": self.tie_chance,
            "leaderboard": self.leaderboard.to_frame().to_dict(orient="records"),
        }
        table = self.covariates()
        if table is not None:
            facts["covariates"] = table.reset_index().to_dict(orient="records")
        found = self.goodness
        if found is not None:
            circles = found.circles._asdict()
            names = self.fit.names
            circles["examples"] = [[names[item] for item in row] for row in circles["examples"]]
            facts["goodness"] = {
                "deviance": None if found.deviance is None else found.deviance._asdict(),
                "circles": circles | {"expected_share": found.expected_circles[0]},
                "log_loss": found.log_loss,
                "constant_log_loss": found.constant_loss,
                "worst_pairs": found.residuals.head(20).to_dict(orient="records"),
                "calibration": None
                if found.calibration is None
                else found.calibration.to_dict(orient="records"),
            }
        return facts


def rate(
    data: Battles | Any,
    *,
    prior: Any = None,
    half_life: float | None = None,
    errors: str | None = None,
    bootstrap: int = 0,
    level: float = 0.95,
    elo: bool = False,
    anchor: str | None = None,
    folds: int = FOLDS,
    rng: RandomState = 0,
    progress: bool = False,
) -> Rating:
    """Estimate the scores of competitors, with errors and a check of the model.

    Parameters
    ----------
    data : Battles, or ballots of any kind that `Ballots.of` takes
        Davidson's model of ties is fitted if there are any, else that of Bradley and Terry or of
        Plackett and Luce.
    prior : float, Ridge, Normal, PseudoWins or None
        As in `PlackettLuce.fit`; needed if a competitor only won or only lost.
    half_life : float, optional
        The time after which a battle counts half; the battles need times.
    errors : {"observed", "penalized", "sandwich", "bootstrap", "profile"}, optional
        What the errors come from; see `Fit`. By default the bootstrap if replicates are asked for,
        the sandwich if there are clusters, and else the observed information.
    bootstrap : int
        The number of bootstrap replicates; 0 is 1,000 if `errors` asks for the bootstrap.
    level : float
        Of intervals and rank sets.
    elo : bool
        Whether to add scores on the Elo scale.
    anchor : str, optional
        The competitor that has 1000 points on the Elo scale.
    folds : int
        The number of parts for the predictions of held-out battles; 0 leaves them out.
    rng : int, Generator or None
        For the bootstrap, the folds and the expected circles.
    progress : bool
        Whether to show the progress of the bootstrap.

    Returns
    -------
    Rating

    Examples
    --------
    >>> from permdist.data import load_battles
    >>> names = {"model_a": list("xxyyzz") * 9, "model_b": list("yzzxxy") * 9}
    >>> battles = load_battles(names | {"winner": ["a", "a", "tie", "a", "b", "b"] * 9})
    >>> found = rate(battles)
    >>> found.leaderboard.to_frame()["name"].tolist()
    ['x', 'y', 'z']
    >>> round(found.tie_chance, 3)
    0.269
    """
    battles = data.merged() if isinstance(data, Battles) and half_life is None else data
    whole = isinstance(battles, Battles)
    ballots = battles.ballots if whole else Ballots.of(battles)
    if half_life is not None and ballots.times is None:
        raise ValueError("half_life: the battles have no times; pass time=COLUMN to load_battles")
    if errors is None:
        errors = "sandwich" if ballots.clusters is not None else "observed"
        errors = "bootstrap" if bootstrap else errors
    choice("errors", errors, ERRORS)
    fit = fit_ballots(ballots, ballots.tie_sizes, half_life=half_life, prior=prior)
    board = _board(
        fit, errors, count("bootstrap", bootstrap, minimum=0), level, elo, anchor, rng, progress
    )
    checked = None
    if whole:
        nested = prior is None and half_life is None and battles.features is None
        checked = _goodness(battles, fit, nested, prior, half_life, folds, rng)
    return Rating(board, fit, data if whole else None, errors, checked)


def rate_slices(battles: Battles, **options: Any) -> tuple[dict[str, Rating], dict[str, str]]:
    """Rate every slice of battles by itself.

    Parameters
    ----------
    battles : Battles
        Loaded with ``by=COLUMN``.
    **options
        As of `rate`.

    Returns
    -------
    ratings : dict of str to Rating
    failures : dict of str to str
        Why slices have no estimate.

    Examples
    --------
    >>> from permdist.data import load_battles
    >>> table = {"a": list("xxy") * 4, "b": list("yyx") * 4, "winner": list("aba") * 4}
    >>> battles = load_battles(table | {"task": ["code"] * 9 + ["art"] * 3}, by="task")
    >>> ratings, failures = rate_slices(battles)
    >>> list(ratings), failures
    (['code', 'art'], {})
    """
    ratings, failures = {}, {}
    for name, part in battles.slices().items():
        try:
            ratings[name] = rate(part, **options)
        except NoEstimateError as error:
            failures[name] = str(error)
    return ratings, failures


# ---- parts of a rating -------------------------------------------------------------------------


def _board(
    fit: Fit,
    errors: str,
    replicates: int,
    level: float,
    elo: bool,
    anchor: str | None,
    rng: RandomState,
    progress: bool,
) -> Leaderboard:
    """Make the leaderboard with errors of a kind."""
    intervals = None
    if errors == "bootstrap":
        drawn = fit.bootstrap(replicates or 1000, rng=rng, progress=progress).scores
        covariance = np.atleast_2d(np.cov(drawn.T))
        tails = [50.0 * (1.0 - level), 50.0 * (1.0 + level)]
        intervals = np.percentile(drawn, tails, axis=0).T
    else:
        covariance = fit.covariance("observed" if errors == "profile" else errors)
        if errors == "profile":
            intervals = fit.intervals(level, "profile")
    return make(
        fit.names,
        fit.scores,
        covariance,
        level,
        fit.ballots.counts()[: fit.n_items],
        elo,
        anchor,
        intervals=intervals,
        kind=errors,
        rng=rng,
    )


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
    return goodness.pair_chances(fit.scores, _log_tie(fit), battles.first, battles.second, shift)


def _goodness(
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
        free = battles.n_items - 1 + (_log_tie(fit) is not None)
        deviance = goodness.deviance(*pairs, chances, free, weights=weights)
    calibration, losses = None, (np.nan, np.nan)
    if count("folds", folds, minimum=0):
        held = _held_out(battles, weights, fit.likelihood.tie_sizes, prior, half_life, folds, rng)
        predicted, part = held
        rows = np.tile(battles.outcome, folds)
        calibration = goodness.calibration(rows, predicted, weights=part)
        tie = _tie_share(battles)
        constant = np.tile([(1.0 - tie) / 2.0, (1.0 - tie) / 2.0, tie], (len(battles), 1))
        losses = (
            goodness.log_loss(rows, predicted, weights=part),
            goodness.log_loss(battles.outcome, constant, weights=weights),
        )
    return Goodness(
        residuals,
        deviance,
        transitivity(battles.counts()[0]),
        expected_cycles(residuals, draws=_draws(battles.n_items), rng=rng),
        calibration,
        *losses,
    )


def _held_out(
    battles: Battles,
    weights: FloatArray,
    tie_sizes: tuple[int, ...],
    prior: Any,
    half_life: float | None,
    folds: int,
    rng: RandomState,
) -> tuple[FloatArray, FloatArray]:
    """Predict each part of the battles from the others.

    Every battle is in one of the parts at random; clusters stay together. Returns the chances of
    all battles by fits without part 0, without part 1, ..., and how much of them was held out.
    """
    generator = as_rng(rng)
    if battles.clusters is None and (weights == np.floor(weights)).all():
        # Battles that were counted together are dealt one by one.
        dealt = generator.multinomial(weights.astype(np.int64), np.full(folds, 1.0 / folds))
        parts = dealt.astype(np.float64)
    else:
        number = np.arange(len(battles)) if battles.clusters is None else battles.clusters
        fold = generator.integers(folds, size=int(number.max()) + 1)[number]
        parts = weights[:, None] * (fold[:, None] == np.arange(folds))
    predicted = []
    for k in range(folds):
        rest = weights - parts[:, k]
        if rest.sum() <= 0.0:
            rest = weights
        chosen = Ballots.of(battles.ballots, weights=rest)
        fit = fit_ballots(
            chosen,
            tie_sizes,
            half_life=half_life,
            prior=Ridge(WEAK, WEAK) if prior is None else prior,
        )
        predicted.append(battle_chances(fit, battles))
    return np.concatenate(predicted), parts.T.ravel()


def _draws(n_items: int) -> int:
    """Return how many data sets to simulate for the expected circles: fewer large ones."""
    return int(np.clip(2e9 / n_items**3, 20, 200))


def _log_tie(fit: Fit) -> float | None:
    """Return the logarithm of delta_2; None if no two items tie."""
    finite = len(fit.ties) and np.isfinite(fit.ties[0])
    return float(fit.ties[0]) if finite else None


# ---- words -------------------------------------------------------------------------------------


def _tie_share(battles: Battles) -> float:
    weights = np.ones(len(battles)) if battles.weights is None else battles.weights
    return float(weights @ battles.tied / weights.sum())


def _pairs_met(rating: Rating) -> str:
    n = rating.fit.n_items
    met = 0 if rating.goodness is None else len(rating.goodness.residuals)
    return f"{met:,} of {n * (n - 1) // 2:,}"


def _coefficients_text(table: pd.DataFrame) -> str:
    rows = [
        [str(name), f"{estimate:.4f}", f"{error:.4f}", f"{z:.2f}", f"{p:.3g}"]
        for name, (estimate, error, z, p) in zip(table.index, table.to_numpy(), strict=True)
    ]
    return text_table(["covariate", "estimate", "s.e.", "z", "p"], rows)


def _worst_text(residuals: pd.DataFrame) -> str:
    rows = [
        [
            f"{row['first']} - {row['second']}",
            f"{row['battles']:,g}",
            f"{row['wins'] + row['ties'] / 2:,g}",
            f"{row['expected_wins'] + row['expected_ties'] / 2:,.1f}",
            f"{row['z']:+.2f}",
            f"{row['adjusted']:.3g}",
        ]
        for row in residuals.head(MOST_WORST).to_dict(orient="records")
    ]
    head = ["worst fitting pairs", "battles", "points", "expected", "z", "adjusted p"]
    return text_table(head, rows)


def _goodness_rows(found: Goodness) -> dict[str, str]:
    rows = {}
    if found.deviance is not None:
        value = found.deviance
        text = f"{value.value:.1f} on {value.degrees:,} degrees of freedom"
        if value.degrees > 0:
            text += f", p = {value.p_value:.3g}"
        if value.sparse > 0.2:
            text += f" (rough: {value.sparse:.0%} of the expected counts are below 5)"
        rows["deviance"] = text
    unusual = int((found.residuals["adjusted"] < 0.05).sum())
    rows["pairs that do not fit"] = (
        f"{unusual:,} at 5%, adjusted for {len(found.residuals):,} pairs"
    )
    circles = found.circles
    if circles.triads:
        rows["circles"] = (
            f"{circles.share:.1%} of {plural(circles.triads, 'triple')}, "
            f"{found.expected_circles[0]:.1%} expected; {circles.significant:,} significant"
        )
    if found.calibration is not None:
        rows["log loss, held out"] = (
            f"{found.log_loss:.4f}; {found.constant_loss:.4f} with equal chances for all pairs"
        )
    return rows
