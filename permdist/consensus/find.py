"""The public function: ballots of any kind in, a consensus ranking out."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from permdist._check import choice, finite
from permdist._progress import live_bar
from permdist.ballots import Ballots
from permdist.consensus.methods import METHODS, answer, counted, placed_for
from permdist.consensus.result import Consensus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike


def consensus(
    ballots: Any,
    method: str = "kemeny",
    *,
    weights: ArrayLike | None = None,
    subset: bool | None = None,
    names: Sequence[str] | None = None,
    penalty: float = 0.5,
    time_limit: float | None = None,
    progress: bool = False,
) -> Consensus:
    """Return one ranking that represents many.

    ================  ============================================================================
    method            order
    ================  ============================================================================
    ``kemeny``        the smallest sum of Kendall distances to the ballots, with a proof
    ``footrule``      the smallest sum of footrule distances, exact
    ``spearman``      the smallest sum of squared distances of positions, exact
    ``borda``         by points: for each ballot, the number of items below, ties as half
    ``copeland``      by the number of items that are beaten by a majority, even ones as half
    ``ranked-pairs``  majorities are fixed from the largest on, unless they close a circle
    ``schulze``       by strongest paths of majorities
    ================  ============================================================================

    Parameters
    ----------
    ballots : Ballots, Preferences, array, BucketOrder, TopK, or sequence of rankings
        All that `permdist.Ballots.of` accepts, with ties, of some of the items, or of the first
        places.
    method : str
        One of the table.
    weights : array of float, shape (ballots,), optional
        How often each ballot was cast.
    subset : bool, optional
        What a ballot that leaves items out means: True if it ranks the listed items among
        themselves, False if all others are below. It must be given where there are such ballots,
        unless the ballots are from `permdist.data.load_preflib`; there False is the default.
    names : sequence of str, optional
        The names of the items 0, 1, ...
    penalty : float
        The part, from 0 to 1, of a disagreement that a pair costs if it is tied on a ballot. It is
        the same for every order, and changes only the value of the cost.
    time_limit : float, optional
        Seconds for Kemeny's method, after which the best order so far is returned; see `proved`.
    progress : bool
        Whether to show on the terminal how far Kemeny's method is.

    Returns
    -------
    Consensus

    Notes
    -----
    A pair of items costs a ballot's weight if the ballot has it in the opposite order, `penalty`
    times the weight if the ballot ties it or has both below all that it lists, and nothing if one
    of the two is not on the ballot. For the footrule and Spearman's distance, tied items and those
    below all that are listed have the mean position of their bucket; ballots of some of the items
    have no positions among all and are refused.

    Equal scores are sorted by item number. Of several orders with the lowest cost one is returned,
    always the same. Kemeny's problem is solved for each strongly connected component of the
    majority graph by a linear program with cutting planes, then an integer program if that
    leaves a gap. It is NP-hard: a hundred items take a fraction of a second if the ballots agree
    somewhat, 60 items in random order a second or two, and 80 up to half a minute; set a time limit
    for more.

    References
    ----------
    Kemeny (1959); Young and Levenglick (1978); Truchon (1998), for the components; Grötschel,
    Jünger and Reinelt (1984) and Caprara and Fischetti (1996), for the cutting planes; Tideman
    (1987); Schulze (2011).

    Examples
    --------
    >>> from permdist import rankings
    >>> found = rankings.consensus([[0, 1, 2, 3], [1, 2, 0, 3], [[0, 2], 3, 1]])
    >>> found.order, found.cost, found.proved
    (array([0, 1, 2, 3]), 4.5, True)
    >>> rankings.consensus([[0, 1, 2], [2, 1]], "borda", subset=True).scores
    array([3. , 1.5, 1.5])
    """
    choice("method", method, METHODS)
    share = float(finite("penalty", penalty, ndim=0))
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"penalty: expected a number from 0 to 1, got {penalty}")
    if time_limit is not None and not float(time_limit) > 0.0:
        raise ValueError(f"time_limit: expected a positive number of seconds, got {time_limit}")
    votes = Ballots.of(ballots, subset=subset, names=names, weights=weights)
    placed = placed_for(votes, method)
    counts = counted(votes, placed, votes.weights)
    with _telling(progress and method == "kemeny") as tell:
        found = answer(method, counts, share, time_limit=time_limit, tell=tell)
    return Consensus(
        names=votes.names,
        method=method,
        majorities=counts.majorities,
        ballots=votes,
        penalty=share,
        **found._asdict(),
    )


@contextlib.contextmanager
def _telling(progress: bool) -> Iterator[Callable[[str], None] | None]:
    """Show lines of text, each in the place of the last one."""
    if not progress:
        yield None
        return
    with live_bar("kemeny", math.nan, transient=True) as bar:
        yield lambda text: bar.update(0.0, text)
