"""Teams: the worth of a team is the sum or the mean of its members'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd


def team_features(
    members: Sequence[Iterable[Any]], *, teams: Sequence[str] | None = None, how: str = "sum"
) -> pd.DataFrame:
    """Return features by which `fit` estimates the strengths of players from results of teams.

    Parameters
    ----------
    members : sequence of iterables of int or str
        The players of each team, in the order of the items of the ballots.
    teams : sequence of str, optional
        The names of the teams.
    how : {"sum", "mean"}
        Whether a team's score is the sum or the mean of its players'.

    Returns
    -------
    pandas.DataFrame
        A row for each team, a column for each player, by name.

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> players = team_features([["ann", "bo"], ["bo", "cy"], ["ann", "cy"]], how="mean")
    >>> players
       ann   bo   cy
    0  0.5  0.5  0.0
    1  0.0  0.5  0.5
    2  0.5  0.0  0.5
    >>> games = [[0, 1], [0, 1], [1, 2], [2, 0], [0, 2], [2, 1]]
    >>> fit = PlackettLuce.fit(games, subset=True, features=players).fit_result
    >>> fit.coefficients["estimate"].round(2).abs().to_dict()
    {'ann': 1.51, 'bo': 0.0, 'cy': 1.51}
    """
    import pandas as pd

    choice("how", how, ("sum", "mean"))
    sides = [[str(player) for player in side] for side in members]
    for number, side in enumerate(sides):
        if not side:
            raise ValueError(f"members: expected at least one player, team {number} has none")
        if len(set(side)) < len(side):
            raise ValueError(f"members: team {number} lists a player twice")
    players = sorted({player for side in sides for player in side})
    table = pd.DataFrame(np.zeros((len(sides), len(players))), columns=players, index=teams)
    for row, side in enumerate(sides):
        table.iloc[row, [players.index(player) for player in side]] = (
            1.0 if how == "sum" else 1.0 / len(side)
        )
    return table
