"""Claims about bounds of the loss: the two ranking functions, both types of bounds, AdaRank."""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist.identities.catalogue import claims_of, excess, history_of, relative
from permdist.measures import parse

_claim = claims_of("Xu et al., Direct Optimization")
MEASURES = ("ap", "ndcg", "auc", "ndcg@3", "rr")
BOUNDS = ("indicator", "exponential", "logistic", "hinge", "margin")


def _queries() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    query = strategies.labelled_queries(min_items=2, max_items=5, min_relevant=1, min_irrelevant=1)
    return st.fixed_dictionaries({"query": query, "measure": st.sampled_from(MEASURES)})


def _with_bounds() -> Any:
    from hypothesis import strategies as st

    bounds = st.fixed_dictionaries(
        {"kind": st.sampled_from(BOUNDS), "pairs": st.sampled_from(["all", "good-bad"])}
    )
    return st.tuples(_queries(), bounds).map(lambda both: both[0] | both[1])


def _far_apart() -> Any:
    """Premises of Theorem 3: classes so far apart that condition (9) holds."""
    from hypothesis import strategies as st

    from permdist import strategies

    def spread(query: Any) -> Any:
        scores, labels = query
        n = len(scores)
        wide = float(np.ptp(scores)) + 1.0
        # A gap g between neighboring labels lifts F by 2 g / (n (n - 1)) or more for each pair;
        # the order inside the labels can take back n^2 / 4 pairs of the former spread.
        return scores + labels * (n * (n - 1.0) + n * n * wide), labels

    query = strategies.labelled_queries(
        min_items=2, max_items=5, min_relevant=1, min_irrelevant=1, max_grade=1
    ).map(spread)
    return st.fixed_dictionaries(
        {"query": query, "kind": st.sampled_from(["exponential", "logistic"])}
    )


@_claim("the permutation of largest F is the one sorted by f", "Theorem 1", _queries)
def two_ranking_functions(query: Any, measure: str) -> float:
    """Compare F of the ranking by score with the largest F of all permutations."""
    from itertools import permutations

    from permdist.models.bounds import QueryInterleavings

    scores, labels = query
    query = QueryInterleavings(scores, labels, parse(measure), "all")
    every = np.array(list(permutations(range(len(scores)))))
    by_score = np.argsort(-scores, kind="stable")
    return relative(query.exponents(by_score[None, :])[0], query.exponents(every).max())


@_claim(
    "1 - E of the ranking by score is below every type-two bound, which is below its sum",
    "Theorem 2",
    _with_bounds,
)
def type_two_above_basic(query: Any, measure: str, kind: str, pairs: str) -> float:
    """Check the basic loss, the worst pair and the sum over pairs, one above the other."""
    from permdist.models.bounds import BasicLoss, TypeTwo

    scores, labels = query
    basic = BasicLoss(measure).value(scores, labels)
    worst = TypeTwo(measure, kind=kind, pairs=pairs).value(scores, labels)
    total = TypeTwo(measure, kind=kind, pairs=pairs, over="sum").value(scores, labels)
    return max(excess(basic, worst), excess(worst, total))


@_claim(
    "where all margins are at least E (condition 9), type two is below type one",
    "Theorem 3",
    _far_apart,
)
def type_two_below_type_one(query: Any, kind: str) -> float:
    """Check the premise, then the two bounds, for AP."""
    from permdist.models.bounds import TypeOne, TypeTwo

    scores, labels = query
    bound = TypeTwo("ap", kind=kind)
    measured = float(parse("ap").from_scores(scores, labels))
    if bound.margin(scores, labels) < measured:
        return np.inf  # the instances are made so that it holds
    return excess(bound.value(scores, labels), TypeOne("ap", kind=kind).value(scores, labels))


def _collections() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    queries = strategies.queries(max_queries=4)
    useful = queries.filter(lambda found: any(len(np.unique(query.y)) > 1 for query in found))
    return st.fixed_dictionaries(
        {
            "queries": useful,
            "measure": st.sampled_from(MEASURES),
            "accept": st.sampled_from(["better", "all"]),
        }
    )


@_claim(
    "AdaRank's training measure is at least 1 - prod exp(-delta) sqrt(1 - phi^2)",
    "Theorem 4",
    _collections,
)
def adarank_guarantee(queries: Any, measure: str, accept: str) -> float:
    """Check the guarantee after every round."""
    from permdist.models import AdaRank

    history = history_of(AdaRank(measure, accept=accept, max_iter=8), queries)
    rounds = zip(history.get("guarantee", []), history.get("train", []), strict=True)
    return max((excess(guarantee, train) for guarantee, train in rounds), default=0.0)
