"""Claims about smooth positions, the measures made of them, and feature rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist.identities.catalogue import claims_of, excess, history_of, relative
from permdist.measures import parse

_qin = claims_of("Qin et al. 2008")
_wang = claims_of("Wang et al.")


def _apart() -> Any:
    """Generate queries without equal scores, and how steep the sigmoids are."""
    from hypothesis import strategies as st

    from permdist import strategies

    query = strategies.labelled_queries(
        min_items=2, max_items=7, min_relevant=1, min_irrelevant=1, ties=False
    )
    steepness = st.floats(0.5, 200.0)
    return st.fixed_dictionaries({"query": query, "alpha": steepness, "beta": steepness})


def _positions(scores: Any, alpha: float) -> tuple[Any, Any, Any]:
    """Return smooth and true positions, and the distance to the nearest other score."""
    from permdist.models.smooth_positions import smooth_positions

    gaps = np.abs(scores[:, None] - scores[None, :])
    np.fill_diagonal(gaps, np.inf)
    true = 1 + (scores[None, :] > scores[:, None]).sum(axis=1)
    return smooth_positions(scores, alpha), true, gaps.min(axis=1)


def _smooth_error(query: Any, measure: str, alpha: float, beta: float) -> tuple[float, float]:
    """Return the largest error of a position, and that of the smooth measure."""
    from permdist.objectives import SmoothMeasure

    scores, labels = query
    smooth, true, _ = _positions(scores, alpha)
    value = 1.0 - SmoothMeasure(measure, alpha=alpha, beta=beta)(scores, labels)[0]
    exact = float(parse(measure).from_scores(scores, labels))
    return float(np.abs(smooth - true).max()), abs(value - exact)


@_qin(
    "smooth positions are off by at most (n - 1) / (exp(alpha gap) + 1)",
    "Theorem 3 (attained at n = 2)",
    lambda: _apart().map(lambda one: {"query": one["query"], "alpha": one["alpha"]}),
    name="smooth-positions",
)
def smooth_position_error(query: Any, alpha: float) -> float:
    """Check the bound for every document."""
    scores, _ = query
    smooth, true, gap = _positions(scores, alpha)
    bound = (len(scores) - 1) / (np.exp(np.minimum(alpha * gap, 700.0)) + 1.0)
    return max(excess(e, b) for e, b in zip(np.abs(smooth - true), bound, strict=True))


@_qin(
    "Table 1: positions 2.00118, 4, 1, 5 and 2.99882 of five scores at alpha = 100",
    "Table 1",
    lambda: _arrangements(),
    tolerance=5e-6,
)
def smooth_positions_table(order: Any) -> float:
    """Compare with the paper's five decimals, whatever order the documents stand in."""
    from permdist.models.smooth_positions import smooth_positions

    scores = np.array([4.20074, 3.12378, 4.40918, 1.55258, 4.13330])
    expected = np.array([2.00118, 4.0, 1.0, 5.0, 2.99882])
    return float(np.abs(smooth_positions(scores[order], 100.0) - expected[order]).max())


def _arrangements() -> Any:
    from hypothesis import strategies as st

    return st.fixed_dictionaries({"order": st.permutations(range(5))})


@_qin(
    "where positions are off by e < 1/2, smooth AP is off by less than the bound of Theorem 5",
    "Theorem 5",
    _apart,
    name="smooth-ap",
)
def smooth_ap_error(query: Any, alpha: float, beta: float) -> float:
    """Check the bound where its premise holds."""
    e, error = _smooth_error(query, "ap", alpha, beta)
    if e >= 0.5:
        return 0.0
    places = np.arange(1, int((query[1] > 0).sum()) + 1)
    first = (1.0 / (places - e)).sum() / (1.0 + np.exp(min(beta * (1.0 - 2.0 * e), 700.0)))
    bound = first + 2.0 * e * (1.0 / (places * (places - e))).sum()
    return excess(error, bound)


@_qin(
    "where positions are off by e, smooth NDCG is off by at most e / (2 log 2)",
    "Theorem 6",
    _apart,
    name="smooth-ndcg",
)
def smooth_ndcg_error(query: Any, alpha: float, beta: float) -> float:
    """Check the bound."""
    e, error = _smooth_error(query, "ndcg", alpha, beta)
    return excess(error, e / (2.0 * np.log(2.0)))


def _collections() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    queries = strategies.queries(max_queries=3, max_items=6, max_grade=4)
    useful = queries.filter(lambda found: any(len(np.unique(query.y)) > 1 for query in found))
    return st.fixed_dictionaries({"queries": useful, "cycles": st.integers(1, 3)})


@_wang(
    "DiffRank's share of wrong pairs is at most the product of its normalizers, round by round",
    "Lemma 3",
    _collections,
)
def practical_ranking_error(queries: Any, cycles: int) -> float:
    """Check the bound after every addition."""
    history = _history(queries, cycles)
    products = np.cumprod(history["z"])
    return max(excess(e, b) for e, b in zip(history["error"], products, strict=True))


@_wang(
    "DiffRank's weight makes Z at most sqrt(1 - r^2), the smallest value of its bound",
    "Lemma 4",
    _collections,
)
def difference_weight(queries: Any, cycles: int) -> float:
    """Check Z, and that the weight is where the bound on it has its minimum."""
    history = _history(queries, cycles)
    worst = 0.0
    for z, weight in zip(history["z"], history["weight"], strict=True):
        r = np.tanh(weight)
        least = np.sqrt(1.0 - r * r)
        bound = 0.5 * (1.0 + r) * np.exp(-weight) + 0.5 * (1.0 - r) * np.exp(weight)
        worst = max(worst, excess(z, least), relative(bound, least))
    return worst


def _history(queries: Any, cycles: int) -> dict[str, list[float]]:
    from permdist.models import DiffRank

    return history_of(DiffRank(cycles=cycles, intervals=3), queries)
