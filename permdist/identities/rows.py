"""Claims about the good-bad pair model over sign vectors, for measures that are sums over rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from permdist.identities.catalogue import claims_of, excess, max_of, relative
from permdist.measures import Measure, parse

_claim = claims_of("")
_PLACE = "Dubey et al. 2009, over the sign vectors of section 2.3"
_LABELS = np.array([0, 1])


def _queries(*, second: bool = False) -> Any:
    from hypothesis import strategies as st

    def numbers(n: int) -> Any:
        # Goods must not tie: those on a par share their steps, which no single order has.
        places = st.integers(-40, 40)
        return st.lists(places, min_size=n, max_size=n, unique=True).map(lambda x: np.array(x) / 8)

    @st.composite
    def instances(draw: Any) -> dict[str, Any]:
        p = draw(st.integers(1, 3))
        m = draw(st.integers(1, 4 if p < 3 else 2))
        found = {
            "goods": draw(numbers(p)),
            "bads": draw(numbers(m)),
            "measure": draw(st.sampled_from(["ap", "ndcg", "ndcg@2", "p@2", "rr"])),
            "kappa": draw(st.floats(0.0, 40.0)),
        }
        return found | ({"others": draw(numbers(p + m))} if second else {})

    return instances()


@_claim("the sum over rows = the sum over all sign vectors", _PLACE, _queries)
def rows_by_enumeration(goods: Any, bads: Any, measure: str, kappa: float) -> float:
    """Compare the convex loss over rows, and the expected measure, with all sign vectors."""
    logs, losses = _sign_vectors(goods, bads, parse(measure))
    chances = np.exp(logs - np.logaddexp.reduce(logs))
    sums = _sums(goods, bads, measure)
    scores = np.concatenate([goods, bads])
    return max_of(
        relative(sums.log_sums(scores, kappa)[0][0], np.logaddexp.reduce(logs + kappa * losses)),
        relative(sums.mean_gains(scores)[0][0], 1.0 - chances @ losses),
    )


@_claim("with kappa = 0 the rows are the closed form of the pairs", _PLACE, _queries)
def rows_without_loss(goods: Any, bads: Any, measure: str, kappa: float) -> float:  # noqa: ARG001
    """Compare the convex loss without the loss with a sum over pairs."""
    gaps = np.subtract.outer(goods, bads)
    scores = np.concatenate([goods, bads])
    ours = _sums(goods, bads, measure).log_sums(scores, 0.0)[0][0]
    return relative(ours, np.logaddexp(0.0, -2.0 * gaps).sum())


@_claim("L1 + kappa L2 <= L over rows", f"{_PLACE}; section 3", _queries)
def convex_loss_bound_rows(goods: Any, bads: Any, measure: str, kappa: float) -> float:
    """Check Jensen's inequality for any weight of the loss."""
    sums, scores = _sums(goods, bads, measure), np.concatenate([goods, bads])
    lower = sums.log_sums(scores, 0.0)[0] + kappa * (1.0 - sums.mean_gains(scores)[0])
    return excess(lower, sums.log_sums(scores, kappa)[0])


@_claim(
    "the convex loss over rows is convex along segments, the order of the goods being fixed",
    f"{_PLACE}; section 3",
    lambda: _queries(second=True),
)
def convex_rows(goods: Any, bads: Any, measure: str, kappa: float, others: Any) -> float:
    """Compare the loss between two vectors of scores with the mean of the ends."""
    sums, scores = _sums(goods, bads, measure), np.concatenate([goods, bads])
    ends = [sums.log_sums(one, kappa)[0] for one in (scores, others)]
    worst = 0.0
    for share in (0.1, 0.5, 0.8):
        between = sums.log_sums((1.0 - share) * scores + share * others, kappa)[0]
        worst = max_of(worst, excess(between, (1.0 - share) * ends[0] + share * ends[1]))
    return worst


@_claim(
    "L / kappa at kappa w is above the structured hinge at w by pairs log(2) / kappa at most",
    f"{_PLACE}; equations (1) and (14)",
    _queries,
)
def rows_and_hinge(goods: Any, bads: Any, measure: str, kappa: float) -> float:
    """Compare the convex loss of multiplied scores with the worst sign vector."""
    kappa = 1.0 + kappa
    logs, losses = _sign_vectors(goods, bads, parse(measure))
    hinge = float(np.max(logs + losses))
    scores = kappa * np.concatenate([goods, bads])
    ours = _sums(goods, bads, measure).log_sums(scores, kappa)[0][0] / kappa
    widest = len(goods) * len(bads) * np.log(2.0) / kappa
    return max_of(excess(hinge, ours), excess(ours, hinge + widest))


def _sums(goods: Any, bads: Any, measure: str) -> Any:
    """Make the rows of one query ready, with the goods in the order of their scores."""
    from permdist.models.batch import Batch
    from permdist.models.spaces import Rows

    p, m = len(goods), len(bads)
    labels = np.repeat([1, 0], [p, m])
    sums = Rows().sums(Batch(labels, np.array([0, p + m]), np.ones(1)), parse(measure))
    sums.resort(np.concatenate([goods, bads]))
    return sums


def _sign_vectors(goods: Any, bads: Any, measure: Measure) -> tuple[Any, Any]:
    """List ``F(y) - F(best)`` and the loss of all sign vectors, goods by descending score."""
    goods = np.sort(goods)[::-1]
    p, m = len(goods), len(bads)
    totals, gaps = np.array([m, p]), np.subtract.outer(goods, bads)
    logs, losses = [], []
    for bits in itertools.product((False, True), repeat=p * m):
        turned = np.reshape(bits, (p, m))  # whether the bad is above
        above = np.stack([turned.sum(axis=1), np.arange(p)], axis=-1)
        steps = measure.step(_LABELS, totals, 1, above)
        logs.append(-2.0 * float(gaps[turned].sum()))
        losses.append(1.0 - measure.offset(_LABELS, totals) - float(np.sum(steps)))
    return np.array(logs), np.array(losses)
