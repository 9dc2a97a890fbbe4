"""Claims about smooth positions, the measures made of them, and feature rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist.identities.catalogue import add, excess, history_of, relative
from permdist.measures import parse

QIN = "Qin et al. 2008"
WANG = "Wang et al."


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
    """Give smooth and true positions, and the distance to the nearest other score."""
    from permdist.models.smooth_positions import smooth_positions

    gaps = np.abs(scores[:, None] - scores[None, :])
    np.fill_diagonal(gaps, np.inf)
    true = 1 + (scores[None, :] > scores[:, None]).sum(axis=1)
    return smooth_positions(scores, alpha), true, gaps.min(axis=1)


def _smooth(query: Any, measure: str, alpha: float, beta: float) -> float:
    from permdist.objectives import SmoothMeasure

    return 1.0 - SmoothMeasure(measure, alpha=alpha, beta=beta)(*query)[0]


def _largest_error(scores: Any, alpha: float) -> float:
    smooth, true, _ = _positions(scores, alpha)
    return float(np.abs(smooth - true).max())


@add(
    "smooth-positions",
    "smooth positions are off by at most (n - 1) / (exp(alpha gap) + 1)",
    QIN + ", Theorem 3 (attained at n = 2)",
    _apart,
)
def smooth_position_error(query: Any, alpha: float, beta: float) -> float:
    """Check the bound for every document."""
    scores, _ = query
    smooth, true, gap = _positions(scores, alpha)
    bound = (len(scores) - 1) / (np.exp(np.minimum(alpha * gap, 700.0)) + 1.0)
    return max(excess(e, b) for e, b in zip(np.abs(smooth - true), bound, strict=True))


@add(
    "smooth-positions-table",
    "Table 1: positions 2.00118, 4, 1, 5 and 2.99882 of five scores at alpha = 100",
    QIN + ", Table 1",
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


@add(
    "smooth-ap",
    "where positions are off by e < 1/2, smooth AP is off by less than the bound of Theorem 5",
    QIN + ", Theorem 5",
    _apart,
)
def smooth_ap_error(query: Any, alpha: float, beta: float) -> float:
    """Check the bound where its premise holds."""
    scores, labels = query
    e = _largest_error(scores, alpha)
    if e >= 0.5:
        return 0.0
    places = np.arange(1, int((labels > 0).sum()) + 1)
    first = (1.0 / (places - e)).sum() / (1.0 + np.exp(min(beta * (1.0 - 2.0 * e), 700.0)))
    bound = first + 2.0 * e * (1.0 / (places * (places - e))).sum()
    exact = float(parse("ap").from_scores(scores, labels))
    return excess(abs(_smooth(query, "ap", alpha, beta) - exact), bound)


@add(
    "smooth-ndcg",
    "where positions are off by e, smooth NDCG is off by at most e / (2 log 2)",
    QIN + ", Theorem 6",
    _apart,
)
def smooth_ndcg_error(query: Any, alpha: float, beta: float) -> float:
    """Check the bound."""
    scores, labels = query
    e = _largest_error(scores, alpha)
    exact = float(parse("ndcg").from_scores(scores, labels))
    error = abs(_smooth(query, "ndcg", alpha, beta) - exact)
    return excess(error, e / (2.0 * np.log(2.0)))


def _collections() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    queries = strategies.queries(max_queries=3, max_items=6, max_grade=4)
    useful = queries.filter(lambda found: any(len(np.unique(query.y)) > 1 for query in found))
    return st.fixed_dictionaries({"queries": useful, "cycles": st.integers(1, 3)})


@add(
    "practical-ranking-error",
    "DiffRank's share of wrong pairs is at most the product of its normalizers, round by round",
    WANG + ", Lemma 3",
    _collections,
)
def practical_ranking_error(queries: Any, cycles: int) -> float:
    """Check the bound after every addition."""
    history = _history(queries, cycles)
    products = np.cumprod(history["z"])
    return max(excess(e, b) for e, b in zip(history["error"], products, strict=True))


@add(
    "difference-weight",
    "DiffRank's weight makes Z at most sqrt(1 - r^2), the smallest value of its bound",
    WANG + ", Lemma 4",
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
