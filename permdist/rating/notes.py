"""What a reader of posterior leaderboards must know: too few draws, and what rests on the prior."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._text import plural
from permdist.diagnostics.summary import FEW_DRAWS, GOOD_ESS, GOOD_RHAT
from permdist.inference.fit import NoEstimateError, check_connected

if TYPE_CHECKING:
    from permdist.ballots import Ballots
    from permdist.posterior import Posterior

MOST_NAMES = 5
USUAL = 1000  # draws per chain to begin with


class Note(NamedTuple):
    """A remark about a leaderboard.

    Attributes
    ----------
    kind : {"warning", "info"}
    text : str
    """

    kind: str
    text: str


def notes_of(posterior: Posterior, ballots: Ballots) -> list[Note]:
    """Return remarks about a posterior leaderboard, warnings first.

    Parameters
    ----------
    posterior : Posterior
    ballots : Ballots
        That were rated.
    """
    found = []
    if not posterior.converged:
        found.append(Note("warning", _too_few(posterior)))
    found += [Note("info", text) for text in _unsettled(ballots)]
    weights = posterior.problem.weights
    if weights is not None and (weights != np.rint(weights)).any():
        text = (
            "weights temper the likelihood: a battle of weight 0.5, such as one that a half-life "
            "ago, counts as half a battle, and intervals rest on that"
        )
        found.append(Note("info", text))
    return found


def _too_few(posterior: Posterior) -> str:
    """Say what is wrong with the draws, and how many to take."""
    wanted = max(_needed(posterior), USUAL)
    size = 10 ** int(math.log10(wanted))
    rounded = math.ceil(wanted / size) * size
    finding = posterior.verdict.partition(" Do not use")[0].partition("; for ")[0]
    finding = finding.partition("; take at")[0].rstrip(".")
    start = "there are few posterior draws"
    if not agree(posterior):
        start = "do not use these numbers yet, there are too few posterior draws"
    return f"{start}. {finding}. Remedy: --draws {rounded} (in Python, draws={rounded})"


def agree(posterior: Posterior) -> bool:
    """Return whether the chains agree, also if there are few effective draws.

    Parameters
    ----------
    posterior : Posterior
    """
    rhat = posterior.summary().table["r_hat"].max()
    return posterior.converged or (posterior.n_draws >= FEW_DRAWS and bool(rhat <= GOOD_RHAT))


def _needed(posterior: Posterior) -> float:
    """Return how many draws per chain give enough effective ones, with something to spare."""
    ess = posterior.summary().table["ess_bulk"].min()
    if not ess >= 1.0 or posterior.n_draws < USUAL // 10:
        return 4.0 * USUAL
    share = 1.5 * GOOD_ESS * posterior.n_chains / float(ess)
    return posterior.n_draws * min(max(share, 1.0 if agree(posterior) else 4.0), 100.0)


def _unsettled(ballots: Ballots) -> list[str]:
    """Name the competitors whose places the data alone do not settle."""
    try:
        check_connected(ballots)
    except NoEstimateError as error:
        reason = str(error).partition("exists, ")[2].partition("; ")[0]
    else:
        return []
    won, lost = ballots.ever()
    found = []
    for which, word in ((won & ~lost, "never lost"), (lost & ~won, "never won")):
        names = [ballots.names[item] for item in np.flatnonzero(which)]
        if names:
            found.append(_named(names, word))
    relation, _, listed = reason.partition(": ")
    return found or [f"{relation}: {listed}; their places rest on the prior"]


def _named(names: list[str], word: str) -> str:
    many = len(names) > 1
    listed = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f" and {plural(len(names) - MOST_NAMES, 'other')}"
    text = f"{listed} {word}: {'their places rest' if many else 'its place rests'} on the prior"
    if len(names) > MOST_NAMES:
        return text
    option, them = shlex.quote(",".join(names)), "them" if many else "it"
    return f"{text}; --without {option} leaves {them} out (in Python, battles.without({names}))"


def text_of(note: Note) -> str:
    """Return a note as a sentence of its own, such as ``"Warning: ..."``.

    Examples
    --------
    >>> text_of(Note("info", "all is well"))
    'Note: all is well'
    """
    return f"{'Warning' if note.kind == 'warning' else 'Note'}: {note.text}"


def as_facts(notes: list[Note]) -> list[dict[str, Any]]:
    """Return notes as plain values, for JSON.

    Parameters
    ----------
    notes : list of Note
    """
    return [note._asdict() for note in notes]
