"""Rate competitors from battles or ballots: a leaderboard, its errors, and how well it fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, count
from permdist._result import Result
from permdist._text import aligned, visible
from permdist.ballots import check_independent
from permdist.ballots.fading import describe_half_life
from permdist.data import BattleBlocks, Battles
from permdist.data.battle_description import alike_names, alike_text
from permdist.data.battle_values import left_out
from permdist.inference.fit import NoEstimateError, fit_ballots
from permdist.inference.goodness import pair_chances
from permdist.inference.leaderboard import make
from permdist.rating import bayes as posteriors
from permdist.rating.checks import check_fit, log_tie_of, tie_share
from permdist.rating.inputs import ballots_of, loaded
from permdist.rating.notes import as_facts, notes_of, text_of
from permdist.rating.wording import chances_text, coefficients_text, goodness_rows, worst_text

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import RandomState
    from permdist.inference.leaderboard import Leaderboard
    from permdist.inference.results import Fit
    from permdist.posterior import Posterior
    from permdist.rating.checks import Goodness
    from permdist.rating.notes import Note

ERRORS = ("observed", "penalized", "sandwich", "bootstrap", "profile")
FOLDS = 5
MOST_CHANCES = 10


@dataclass(frozen=True, eq=False, repr=False)
class Rating(Result):
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
    posterior : Posterior or None
        The draws behind the leaderboard, with ``bayes=True``. `fit` is then the most probable
        model, on whose predictions `goodness` rests.
    """

    leaderboard: Leaderboard
    fit: Fit
    battles: Battles | None
    errors: str
    goodness: Goodness | None
    posterior: Posterior | None = None
    half_life: float | None = None

    @property
    def tie_chance(self) -> float | None:
        """The chance that two equal competitors tie; None if there are no ties of two."""
        log_tie = log_tie_of(self.fit)
        return None if log_tie is None else float(1.0 / (1.0 + 2.0 * np.exp(-log_tie)))

    @cached_property
    def notes(self) -> list[Note]:
        """Remarks about a posterior leaderboard, each with its ``kind`` and ``text``.

        Warnings where there are too few draws, and which places rest on the prior; empty without
        a posterior.
        """
        return [] if self.posterior is None else notes_of(self.posterior, self.fit.ballots)

    def covariates(self) -> pd.DataFrame | None:
        """Return the coefficients of the covariates with their errors; None without covariates."""
        if not self.fit.likelihood.n_covariates:
            return None
        if self.posterior is not None:
            return posteriors.coefficient_table(self.posterior, self.leaderboard.level)
        return self.fit.coefficient_table("observed" if self.errors == "profile" else self.errors)

    def win_chances(self, outcome: str = "win") -> pd.DataFrame:
        """Return the chance that one competitor beats another in one battle.

        Parameters
        ----------
        outcome : {"win", "tie", "points"}
            A win of the row against the column, a tie, or a win plus half a tie.

        Returns
        -------
        DataFrame
            A row and a column for each competitor, the best first; NaN on the diagonal. With
            covariates, these are chances where both have the same. With a posterior they are its
            means.

        Examples
        --------
        >>> from permdist.data import load_battles
        >>> battles = load_battles({"a": list("xxyx"), "b": list("yyxy"), "winner": list("aaaa")})
        >>> print(f"{rate(battles).win_chances().loc['x', 'y']:.2f}")
        0.75
        """
        import pandas as pd

        choice("outcome", outcome, ("win", "tie", "points"))
        order = np.argsort(-self.fit.scores, kind="stable")
        one, two = (part.ravel() for part in np.meshgrid(order, order, indexing="ij"))
        if self.posterior is not None:
            chances = posteriors.mean_chances(self.posterior, one, two)
        else:
            chances = pair_chances(self.fit.scores, log_tie_of(self.fit), one, two)
        values = {
            "win": chances[:, 0],
            "tie": chances[:, 2],
            "points": chances[:, 0] + chances[:, 2] / 2.0,
        }[outcome].reshape(len(order), len(order))
        np.fill_diagonal(values, np.nan)
        names = [self.fit.names[item] for item in order]
        return pd.DataFrame(values, index=names, columns=names)

    def to_frame(self) -> pd.DataFrame:
        """Return the leaderboard as a data frame; its columns are those of `Leaderboard`.

        `covariates`, `win_chances` and ``goodness.residuals`` are other tables.
        """
        return self.leaderboard.to_frame()

    @property
    def caption(self) -> str:
        """What the leaderboard shows, in one line."""
        return self.leaderboard.caption

    def _facts(self) -> dict[str, str]:
        return self.summary()

    def _remarks(self) -> list[str]:
        return [text_of(note) for note in self.notes]

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        return self.leaderboard._cells(most)  # noqa: SLF001

    def __repr__(self) -> str:
        return f"Rating({self.fit!r})"

    def __str__(self) -> str:
        parts = [str(self.leaderboard), *self._remarks()]
        table = self.covariates()
        if table is not None:
            parts.append(coefficients_text(table))
        if self.fit.n_items <= MOST_CHANCES:
            parts.append(chances_text(self.win_chances()))
        parts.append(aligned(self.summary()))
        if self.goodness is not None:
            parts.append(worst_text(self.goodness.residuals))
        return visible("\n\n".join(parts))

    def summary(self) -> dict[str, str]:
        """Return the facts below the leaderboard: sizes, ties, goodness of fit."""
        noun = "battles" if self.battles is not None else "ballots"
        rows = {noun: f"{self.fit.n_ballots:,.6g}"}
        if self.battles is not None and self.battles.dropped:
            rows["left out"] = left_out(self.battles.dropped)
        if self.battles is not None:
            rows["pairs that met"] = _pairs_met(self)
        ballots = self.fit.ballots
        if self.half_life is not None and ballots.times is not None:
            rows["half-life"] = describe_half_life(self.half_life, ballots.times, ballots.time_unit)
        if self.tie_chance is not None:
            share = "" if self.battles is None else f"{tie_share(self.battles):.1%} of battles; "
            rows["ties"] = f"{share}two equal competitors tie with chance {self.tie_chance:.3f}"
        rows["log-likelihood"] = f"{self.fit.log_likelihood:.2f}"
        if self.goodness is not None:
            rows |= goodness_rows(self.goodness)
        if self.posterior is not None:
            rows |= posteriors.facts(self.posterior)
        alike = alike_names(self.fit.names)
        if self.battles is not None and alike:
            rows["note"] = alike_text(alike)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        facts: dict[str, Any] = {
            "errors": self.errors,
            "level": self.leaderboard.level,
            "n_ballots": self.fit.n_ballots,
            "left_out": {} if self.battles is None else dict(self.battles.dropped),
            "log_likelihood": self.fit.log_likelihood,
            "log_tie": log_tie_of(self.fit),
            "tie_chance": self.tie_chance,
            "leaderboard": self.leaderboard.to_frame().to_dict(orient="records"),
            "win_chances": self.win_chances().to_dict(orient="index"),
        }
        table = self.covariates()
        if self.half_life is not None:
            unit = self.fit.ballots.time_unit or None
            facts["half_life"] = {"value": self.half_life, "unit": unit}
        if table is not None:
            facts["covariates"] = table.reset_index().to_dict(orient="records")
        if self.posterior is not None:
            facts["posterior"] = {
                **posteriors.facts(self.posterior),
                "converged": self.posterior.converged,
                "notes": as_facts(self.notes),
                "rank_probabilities": {
                    name: row.tolist()
                    for name, row in zip(
                        self.posterior.names,
                        self.posterior.rank_probabilities().to_numpy(),
                        strict=True,
                    )
                },
            }
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
    bayes: bool = False,
    draws: int = 1000,
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
    data : Battles, BattleBlocks, or ballots of any kind that `Ballots.of` takes
        Also the name of a file, or a data frame or mapping whose columns have usual names, which
        `permdist.data.load_battles` (PrefLib files: `load_preflib`) then reads; call that yourself
        for its options. Davidson's model of ties is fitted if there are any, else that of Bradley
        and Terry or of Plackett and Luce.
    prior : float, Ridge, Normal, PseudoWins or None
        As in `PlackettLuce.fit`; needed if a competitor only won or only lost.
    half_life : float, optional
        The time after which a battle counts half: days, if the times of the battles are dates or
        Unix times, else in their unit. `Rating.summary` says which.
    errors : {"observed", "penalized", "sandwich", "bootstrap", "profile"}, optional
        What the errors come from; see `Fit`. By default the bootstrap if replicates are asked for,
        the sandwich if there are clusters, and else the observed information, or the penalized one
        if the battles alone do not determine all scores.
    bootstrap : int
        The number of bootstrap replicates; 0 is 1,000 if `errors` asks for the bootstrap.
    bayes : bool
        Whether the leaderboard is that of a posterior: means, credible intervals and places. The
        prior is then normal by default, with precision 0.1 around the mean score. Battles are
        taken as independent, so that clusters are refused; weights, and those by `half_life`,
        temper the likelihood. The draws are ``Rating.posterior``, with ``best()``: the probability
        that each competitor is the best one.
    draws : int
        The number of posterior draws in each of four chains.
    level : float
        Of intervals and rank sets.
    elo : bool
        Whether to add scores on the Elo scale.
    anchor : str, optional
        The competitor that has 1000 points on the Elo scale.
    folds : int
        The number of parts for the predictions of held-out battles; 0 leaves them out.
    rng : int, Generator or None
        For the bootstrap, the posterior, the folds and the expected circles.
    progress : bool
        Whether to show the progress of the bootstrap or of the posterior draws.

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
    0.238
    """
    data = loaded(data)
    if isinstance(data, BattleBlocks):
        data = data.merged()
    battles = data.merged() if isinstance(data, Battles) and half_life is None else data
    whole = isinstance(battles, Battles)
    ballots = battles.ballots if whole else ballots_of(battles)
    if half_life is not None and ballots.times is None:
        raise ValueError(
            "half_life: the battles have no times; pass time=COLUMN to load_battles, or times= to "
            "Ballots"
        )
    if errors is not None:
        choice("errors", errors, ERRORS)
    bootstrap = count("bootstrap", bootstrap, minimum=0)
    if bayes:
        check_independent(ballots, "a posterior")
        prior, draws = posteriors.check_options(prior, errors, bootstrap, draws)
    fit = fit_ballots(ballots, ballots.tie_sizes, half_life=half_life, prior=prior)
    posterior = None
    if bayes:
        posterior = posteriors.posterior_of(ballots, prior, half_life, draws, rng, progress)
        errors, board = "posterior", posterior.leaderboard(level, elo=elo, anchor=anchor)
    else:
        errors = errors or ("bootstrap" if bootstrap else _usual_errors(fit))
        board = _board(fit, errors, bootstrap, level, elo, anchor, rng, progress)
    checked = None
    if whole:
        nested = prior is None and half_life is None and battles.features is None
        checked = check_fit(battles, fit, nested, prior, half_life, folds, rng)
    return Rating(board, fit, data if whole else None, errors, checked, posterior, half_life)


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


def _usual_errors(fit: Fit) -> str:
    """Return the kind of errors that suits the data."""
    if fit.ballots.clusters is not None:
        return "sandwich"
    try:
        fit.covariance("observed")
    except ValueError:
        return "penalized"
    return "observed"


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


def _pairs_met(rating: Rating) -> str:
    n = rating.fit.n_items
    met = 0 if rating.goodness is None else len(rating.goodness.residuals)
    return f"{met:,} of {n * (n - 1) // 2:,}"
