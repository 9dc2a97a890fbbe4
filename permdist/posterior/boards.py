"""Leaderboards of posteriors: means, credible intervals and places of items with scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.ballots.ballots import find_item
from permdist.inference.leaderboard import ELO_ANCHOR, ELO_SCALE, Leaderboard
from permdist.posterior.places import SCORES, scored

if TYPE_CHECKING:
    from permdist.posterior.result import Posterior


def leaderboard_of(
    posterior: Posterior, level: float, elo: bool, anchor: int | str | None
) -> Leaderboard:
    """Make a leaderboard from draws of scores.

    Parameters
    ----------
    posterior : Posterior
    level : float
    elo : bool
    anchor : int or str, optional
    """
    import pandas as pd

    variable = scored(posterior.problem)
    if variable.name not in SCORES:
        raise ValueError(
            f"a posterior of {posterior.problem.family} has no scores: see rank_probabilities(), "
            "rank_sets() and best()"
        )
    scores = posterior[variable.name].reshape(-1, variable.size)
    scores = scores - scores.mean(axis=1, keepdims=True)
    tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    means, bounds = scores.mean(axis=0), np.quantile(scores, tails, axis=0)
    places = posterior.rank_sets(level).to_numpy()
    chances = posterior.best()["probability"].reindex(pd.Index(posterior.names)).to_numpy()
    columns: dict[str, Any] = {
        "name": list(posterior.names),
        "score": means,
        "low": bounds[0],
        "high": bounds[1],
        "standard_error": scores.std(axis=0, ddof=1) if len(scores) > 1 else 0.0 * means,
        "rank_low": places[:, 0],
        "rank_high": places[:, 1],
        "prob_best": chances,
    }
    ballots = getattr(posterior.problem, "ballots", None)
    if ballots is not None:
        columns["n"] = ballots.counts()[: variable.size]
    if elo or anchor is not None:
        base = 0.0 if anchor is None else means[find_item(anchor, posterior.names)]
        columns["elo"] = ELO_ANCHOR + ELO_SCALE * (means - base)
        columns["elo_low"] = ELO_ANCHOR + ELO_SCALE * (bounds[0] - base)
        columns["elo_high"] = ELO_ANCHOR + ELO_SCALE * (bounds[1] - base)
    frame = pd.DataFrame(columns)
    frame = frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    frame.insert(0, "place", np.arange(1, len(frame) + 1))
    return Leaderboard(frame, level, "posterior")
