"""`check_distribution`: tests that any distribution over orders must pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, count
from permdist.distributions import Distribution
from permdist.distributions.base import NotExactError
from permdist.distributions.drawn import ask
from permdist.identities.answers import Wrong
from permdist.identities.catalogue import Identity, Result, Results
from permdist.identities.claims import CLAIMS, Claim, some_orders
from permdist.identities.draws import Draws, same_global_state

if TYPE_CHECKING:
    from permdist._typing import RandomState

UNCHANGED = "in the end log_prob and draws are what they were at first"


def check_distribution(
    dist: Distribution,
    *,
    draws: int = 10_000,
    rng: RandomState = 0,
    tolerance: float = 1e-8,
    false_alarms: float = 1e-5,
) -> Results:
    """Check a distribution against what every distribution over orders satisfies.

    Draws must be orders, of the batch shape asked for, the same for the same seed and others for
    another, independent, and distributed as `log_prob` says. Up to 8 items every order is counted;
    beyond, items at positions, pairs of items, orders drawn more than once, the mean of -log Pr,
    and which of two orders was drawn that differ by an exchange of two items. Single draws are
    compared with those of a batch, and each draw with those 1 to 100 later, and some farther on.

    Probabilities must add up to one, and marginals, pairwise chances, expectations, entropy,
    divergence and mode must be theirs: up to 8 items all orders are listed. What a distribution
    refuses with `NotExactError` is reported as not offered. Any other exception fails the entry in
    which it is raised, and the rest is still checked.

    Parameters
    ----------
    dist : Distribution
        Ours or your own.
    draws : int
        The number of draws to check. A sampler whose probabilities are off by d is detected with
        about 25 / d^2 draws.
    rng : int, Generator or None
        The source of all seeds; the same seed reproduces the result.
    tolerance : float
        The largest residual that counts as rounding.
    false_alarms : float
        An upper bound on the probability that draws of a correct distribution fail, over all
        entries; it holds for every distribution.

    Returns
    -------
    Results
        A table with an entry for each claim: its residual or p-value, and pass or fail.

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> check_distribution(PlackettLuce([1.0, 0.0, -1.0])).passed
    True
    """
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution, got {type(dist).__name__}")
    if not 0.0 < false_alarms < 1.0:
        raise ValueError(f"false_alarms: expected a chance between 0 and 1, got {false_alarms}")
    if not 0.0 <= tolerance < math.inf:
        raise ValueError(f"tolerance: expected a number of at least 0, got {tolerance}")
    size = count("draws", draws, minimum=100)
    given = Draws(dist, size, as_rng(rng), tolerance)
    kind = "listed" if given.is_listed else "beyond"
    chosen = [claim for claim in CLAIMS if claim.where in ("all", kind)]
    level = -math.log10(false_alarms / sum(claim.chance for claim in chosen))
    with same_global_state():
        chosen.append(Claim("asking changes nothing", UNCHANGED, _Before(given).changes))
        results = Results(_try(claim, given, level, tolerance) for claim in chosen)
    offered = {result.identity.name for result in results if result.offered}
    if not offered & {"log-probabilities", "draws are orders"}:
        raise ValueError(
            f"dist: expected log-probabilities or draws, got neither at {given.n} items: "
            f"{results[0].note.partition(';')[0]}; check it with fewer items, or give it draws "
            "(sample= of Distribution.from_functions, _sample of a class); chains are not enough"
        )
    return results


def _try(claim: Claim, given: Draws, level: float, tolerance: float) -> Result:
    """Check one claim; what it raises is its result."""

    def check(dist: Distribution) -> float:
        answer = claim.check(Draws(dist, given.size, np.random.default_rng(0), tolerance))
        return _log10(answer[0]) if claim.chance else float(answer)

    allowed = level if claim.chance else tolerance
    unknown = math.nan if claim.chance else None
    identity = Identity(claim.name, claim.statement, "definition", check, dict, allowed)
    try:
        answer = claim.check(given)
    except NotExactError as error:
        return Result(identity, 0, math.nan, unknown, str(error), offered=False)
    except Wrong as error:
        return Result(identity, 1, math.inf, unknown, str(error))
    except Exception as error:
        return Result(identity, 1, math.inf, unknown, f"{type(error).__name__}: {error}")
    if claim.chance:
        return Result(identity, answer[1], _log10(answer[0]), answer[0])
    return Result(identity, 1, float(answer))


def _log10(p: float) -> float:
    """Return -log10 of a p-value."""
    return abs(math.log10(p)) if p > 0.0 else math.nan if math.isnan(p) else math.inf


class _Before:
    """What a distribution says at first, to be compared with what it says in the end."""

    def __init__(self, given: Draws) -> None:
        self._given = given
        self._orders = some_orders(given.n)
        self._logs, self._draws = self._ask()

    def _ask(self) -> tuple[Any, Any]:
        given = self._given
        answers: list[Any] = []
        for question in (
            lambda: given.log_prob(self._orders),
            lambda: given.sample(10, given.seeds[1]),
        ):
            try:
                answers.append(question())
            except Exception:  # the claims about it say so
                answers.append(None)
        return answers[0], answers[1]

    def changes(self, given: Draws) -> float:
        """Ask again, after everything else, and after writing into what was returned."""
        for name in ("mode", "rank_marginals", "pairwise"):
            try:
                first = np.asarray(ask(getattr(given.dist, name), method="exact"))
            except Exception:  # not offered, or said elsewhere
                continue
            kept = first.copy()
            if first.flags.writeable:
                first[...] = 0
                try:
                    again = np.asarray(ask(getattr(given.dist, name), method="exact")).copy()
                finally:
                    first[...] = kept
                if not np.array_equal(again, kept, equal_nan=True):
                    raise Wrong(f"{name}: writing into the array it returned changes it")
        logs, draws = self._ask()
        if self._logs is not None and (logs is None or not np.array_equal(logs, self._logs)):
            raise Wrong("log_prob: the same orders have other log-probabilities in the end")
        if self._draws is not None and (draws is None or not np.array_equal(draws, self._draws)):
            raise Wrong("sample: the same seed draws other orders in the end")
        return 0.0
