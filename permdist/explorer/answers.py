"""What the explorer shows about a setting: a pure function from JSON values to JSON values."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng
from permdist._parallel import row_blocks
from permdist.distributions.estimates import Estimate, Estimates, mean_of, means_of
from permdist.distributions.tied_draws import measured, pairs_drawn, places_drawn
from permdist.distributions.tied_rankings import TiedRankings
from permdist.explorer.settings import read_setting
from permdist.measures import AUC, Composite, KendallTau
from permdist.rankings import BucketOrder, order_by_scores, order_to_ranks, ranks_to_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import IntArray
    from permdist.explorer.settings import Setting
    from permdist.measures import Measure

DRAWS = 4000
SHOWN = 10


def answer(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Compute rank marginals, pairwise chances, expected measures and draws of a setting.

    The same setting always has the same answer. Whatever takes too long to compute exactly is
    estimated from 4,000 draws.

    Parameters
    ----------
    setting : dict
        Plain values: ``scores``, and any of ``model`` (a key of `FAMILIES`), ``noise``, ``ties``,
        ``labels``, ``names``, ``measures`` and ``seed``.

    Returns
    -------
    dict
        ``rank_marginals`` and ``pairwise`` (``values``, the largest ``standard_error``, and the
        number of ``draws``, 0 if exact), ``expected`` (a list of ``measure``, ``value``,
        ``standard_error``, ``draws`` and the value ``by_score``, that is, without noise; values
        are None where a measure is not defined), ``entropy`` (None where it takes too long),
        ``draws`` (rankings as lists of lists of tied items), and ``notes``.

    Raises
    ------
    ValueError, TypeError
        If the setting is wrong; the message names the entry.

    Examples
    --------
    >>> found = answer({"scores": [1.0, 0.0], "labels": [1, 0], "measures": ["rr"]})
    >>> [round(chance, 3) for chance in found["rank_marginals"]["values"][0]]
    [0.731, 0.269]
    >>> round(found["expected"][0]["value"], 3), found["expected"][0]["draws"]
    (0.866, 0)
    """
    checked = read_setting(setting)
    family, n = checked.family, len(checked.scores)
    dist = family.make(checked)
    draws = _Draws(dist, checked.seed)
    marginals = dist.rank_marginals() if n <= family.marginals else draws.rank_marginals()
    pairwise = dist.pairwise() if n <= family.pairwise else draws.pairwise()
    return {
        "rank_marginals": _table(marginals),
        "pairwise": _table(pairwise),
        "expected": [_expected(dist, draws, one, checked) for one in checked.measures],
        "entropy": _entropy(dist, checked),
        "draws": _drawn(dist, checked.seed),
        "notes": family.notes(n),
    }


class _Draws:
    """Draws of a distribution, made when they are first needed, and what follows from them."""

    def __init__(self, dist: Any, seed: int) -> None:
        self.dist, self.rng = dist, as_rng(seed)
        self.tied = isinstance(dist, TiedRankings)

    @cached_property
    def ranks(self) -> IntArray:
        if self.tied:
            return self.dist.sample_ranks(DRAWS, self.rng)
        return order_to_ranks(self.dist.sample(DRAWS, self.rng))

    def rank_marginals(self) -> Estimates:
        return self._averaged(lambda part: places_drawn(part, "share"))

    def pairwise(self) -> Estimates:
        return self._averaged(lambda part: pairs_drawn(part, np.less))

    def expect(self, measure: Measure, labels: IntArray) -> Estimate:
        if self.tied:
            return mean_of(measured(measure, self.ranks, labels, self.rng))
        return mean_of(measure(ranks_to_order(self.ranks), labels))

    def _averaged(self, tables: Callable[[IntArray], tuple[Any, Any]]) -> Estimates:
        total, squares = np.zeros(()), np.zeros(())
        for a, b in row_blocks(DRAWS, self.ranks.shape[1] ** 2):
            first, second = tables(self.ranks[a:b])
            total, squares = total + first, squares + second
        return means_of(total, squares, DRAWS)


def _table(values: Any) -> dict[str, Any]:
    errors = getattr(values, "standard_error", None)
    return {
        "values": np.asarray(values).tolist(),
        "standard_error": 0.0 if errors is None else float(errors.max()),
        "draws": getattr(values, "draws", 0),
    }


def _expected(dist: Any, draws: _Draws, measure: Measure, setting: Setting) -> dict[str, Any]:
    labels = setting.labels
    if not measure.defined(labels):
        missing = dict.fromkeys(("value", "standard_error", "by_score"))
        return {"measure": measure.name, **missing, "draws": 0}
    if _is_quick(measure, setting):
        found = dist.expect(measure, labels, draws=DRAWS, rng=setting.seed)
    else:
        found = draws.expect(measure, labels)
    by_score = float(measure(order_by_scores(setting.scores), labels))
    return {"measure": measure.name, **_plain(found), "by_score": by_score}


def _is_quick(measure: Measure, setting: Setting) -> bool:
    """Check whether an expectation can be computed exactly at once."""
    family, labels, n = setting.family, setting.labels, len(setting.labels)
    if isinstance(measure, Composite):
        return all(_is_quick(part, setting) for part in measure.parts)
    if measure.positional(labels) is not None:
        return n <= family.marginals
    if isinstance(measure, AUC | KendallTau):
        return n <= family.pairwise
    if family.name in ("plackett-luce", "gaussian") and measure.additive:
        two_kinds = len(np.unique(labels)) == 2 and labels.min() == 0
        if measure.binary or two_kinds:
            return n <= family.marginals
    return n <= family.sums


def _entropy(dist: Any, setting: Setting) -> dict[str, Any] | None:
    family, n = setting.family, len(setting.scores)
    if family.name == "gaussian":  # the probability of one order takes milliseconds
        return None
    quick = n <= family.sums or family.name.startswith("mallows")
    found = dist.entropy(method="auto" if quick else "sample", draws=DRAWS, rng=setting.seed)
    return _plain(found)


def _plain(found: Estimate) -> dict[str, Any]:
    return {"value": float(found), "standard_error": found.standard_error, "draws": found.draws}


def _drawn(dist: Any, seed: int) -> list[list[list[int]]]:
    """Return a few draws, each as a list of buckets."""
    return [
        [list(bucket) for bucket in one.buckets]
        if isinstance(one, BucketOrder)
        else [[item] for item in one.tolist()]
        for one in dist.sample(SHOWN, seed)
    ]
