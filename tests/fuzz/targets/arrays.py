"""Arrays as arguments: the distributions, rankings and measures, with whatever numpy can hold.

A case is JSON: a mapping of arguments. ``{"array": [...], "dtype": "int8"}`` is an array of that
type; lists stay lists.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.engine import expect, target
from fuzz.targets.readers import check_queries
from permdist import (
    Ballots,
    DavidsonLuce,
    GaussianScores,
    GoodBad,
    PlackettLuce,
    WeightedOrders,
    measures,
    rankings,
)
from permdist.data import Queries
from permdist.distributions import Distribution
from permdist.distributions.base import NotExactError

TOLERANCE = 1e-8


def arguments(case: bytes, *names: str) -> dict[str, Any]:
    """Read the named arguments of a case; whatever else it has is left out."""
    try:
        found = json.loads(case, object_hook=_array)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError("no such case") from error
    if not isinstance(found, dict):
        raise ValueError("no such case")
    return {name: found[name] for name in names if name in found}


def _array(value: dict[str, Any]) -> Any:
    if value.keys() == {"array", "dtype"}:
        with np.errstate(all="ignore"):
            return np.array(value["array"], dtype=value["dtype"])
    return value


def known(call: Callable[[], Any]) -> Any:
    """Ask for something exact; None where it says that it is not."""
    try:
        return call()
    except NotExactError:
        return None


def check_distribution(dist: Distribution) -> None:
    """State what holds for any distribution over orders, by enumeration where that is possible."""
    n = dist.n_items
    if n > 40:
        return
    drawn = dist.sample(3, rng=0) if known(dist.mode) is not None else np.arange(n)
    expect((np.sort(drawn, axis=-1) == np.arange(n)).all(), "draws are orders")
    entropy = known(dist.entropy)
    if entropy is not None:
        limit = math.lgamma(n + 1)
        slack = TOLERANCE * max(1.0, limit)
        expect(-slack <= entropy <= limit + slack, f"entropy in [0, log n!], got {entropy}")
    marginals, pairs = known(dist.rank_marginals), known(dist.pairwise)
    for name, table in (("rank_marginals", marginals), ("pairwise", pairs)):
        if table is not None:
            inside = (table >= -1e-12) & (table <= 1.0 + 1e-12)
            expect(inside.all(), f"{name}: probabilities, got {table.tolist()}")
    if marginals is not None:
        ones = np.concatenate([marginals.sum(axis=0), marginals.sum(axis=1)])
        expect(np.abs(ones - 1.0).max() < TOLERANCE, f"rank_marginals: sums are one, got {ones}")
    if pairs is not None and n > 1:
        both = (pairs + pairs.T)[~np.eye(n, dtype=bool)]
        expect(np.abs(both - 1.0).max() < TOLERANCE, f"pairwise: complementary, got {both}")
    if n > 5:
        return
    orders = np.array(list(itertools.permutations(range(n))))
    logs = known(lambda: dist.log_prob(orders))
    if logs is None:
        return
    expect(not np.isnan(logs).any() and logs.max() < TOLERANCE, f"log_prob: {logs.tolist()}")
    chances = np.exp(logs)
    expect(abs(chances.sum() - 1.0) < TOLERANCE, f"log_prob: the sum is one, got {chances.sum()}")
    if marginals is not None:
        counted = np.zeros((n, n))
        for order, chance in zip(orders, chances, strict=True):
            counted[order, np.arange(n)] += chance
        worst = np.abs(counted - marginals).max()
        expect(worst < TOLERANCE, f"rank_marginals agree with log_prob, got {worst} less or more")
    if entropy is not None:
        counted_entropy = -(chances * np.where(chances > 0, logs, 0.0)).sum()
        worst = abs(counted_entropy - entropy)
        expect(
            worst < TOLERANCE * max(1.0, entropy), f"entropy agrees with log_prob, off by {worst}"
        )


def seeds(*cases: dict[str, Any]) -> Callable[[], list[bytes]]:
    typed = {"array": [0.5, 1.5, 0.25], "dtype": "float32"}
    more = [{**cases[0], next(iter(cases[0])): typed}]
    return lambda: [json.dumps(case).encode() for case in (*cases, *more)]


SCORES = [1.0, 0.5, -0.25, 0.125]
LABELS = [2, 0, 1, 0]
ORDERS = [[0, 1, 2, 3], [3, 1, 0, 2], [1, 0, 3, 2]]


@target("plackett-luce", form="json", seeds=seeds({"scores": SCORES}, {"scores": [1e3, 0, -1e3]}))
def plackett_luce(case: bytes) -> None:
    check_distribution(PlackettLuce(**arguments(case, "scores", "names")))


@target(
    "gaussian-scores",
    form="json",
    seeds=seeds({"scores": SCORES, "scale": 0.5}, {"scores": [1e3, 0.0], "scale": 2.0}),
)
def gaussian_scores(case: bytes) -> None:
    check_distribution(GaussianScores(**arguments(case, "scores", "scale", "names")))


@target(
    "good-bad",
    form="json",
    seeds=seeds(
        {"scores": SCORES, "labels": LABELS, "space": "orders"},
        {"scores": SCORES, "labels": [1, 0, 1, 0], "space": "interleavings", "scale": 2.0},
        {"scores": SCORES, "labels": [1, 0, 0, 0], "tilt": "ap", "kappa": 3.0},
    ),
)
def good_bad(case: bytes) -> None:
    names = "scores", "labels", "space", "scale", "tilt", "kappa", "names"
    check_distribution(GoodBad(**arguments(case, *names)))


@target("from-pairs", form="json", seeds=seeds({"weights": [[0, 1.0, 0], [0, 0, 1], [2, 0, 0]]}))
def from_pairs(case: bytes) -> None:
    check_distribution(WeightedOrders.from_pairs(**arguments(case, "weights", "names")))


@target(
    "fit",
    form="json",
    seeds=seeds({"orders": ORDERS}, {"orders": [*ORDERS, ORDERS[0]], "weights": [1, 2, 3, 4]}),
)
def fit(case: bytes) -> None:
    chosen = arguments(case, "orders", "weights", "subset", "tol", "max_iter")
    found = PlackettLuce.fit(chosen.pop("orders", ORDERS), **chosen)
    expect(np.isfinite(found.scores).all(), "the estimate is finite")


VOTERS = ["ann", "bo", "ann", "cy", "bo", "di"]
CASTS = [[0, 1, 2], [[1, 0], 2], [2, 0], [0, 1, 2], [[1, 0], 2], [1, 2, 0]]


@target(
    "ballots",
    form="json",
    seeds=seeds(
        {"orders": CASTS, "weights": [1, 2, 3, 1, 0, 2], "clusters": VOTERS, "cut": 2},
        {"orders": CASTS, "weights": [0.5, 1, 1.37, 0.5, 2, 0.5], "cut": 4},
        {"orders": CASTS, "clusters": [7, 3, 7, 12, 3, -1], "cut": 3},
        {"orders": CASTS, "weights": [0.5, 2.5, 2, 2, 1, 1], "clusters": [1, 2, 0.5, 1, 2, 2]},
    ),
)
def ballots(case: bytes) -> None:
    chosen = arguments(case, "orders", "weights", "clusters")
    cut = arguments(case, "cut").get("cut", 1)
    every = Ballots.from_orders(chosen.pop("orders", CASTS), subset=True, **chosen)
    if every.n_items > 12 or every.n_ballots > 100:
        return
    counts, unit = every.units()
    expect((counts * unit == every.weights).all(), "weights are counts times unit weights")
    part = np.arange(every.n_ballots) < (cut if isinstance(cut, int) else 1)
    blocks = [every.take(each) for each in (part, ~part) if each.any()]
    both = blocks[0] if len(blocks) == 1 else blocks[0] + blocks[1]
    expect(both.names == every.names, "take and + keep the names")
    expect(both.to_frame().equals(every.to_frame()), "take and + keep ballots and weights")
    others = [both]
    if every.clusters is None:
        merged = every.merged()
        others += [merged, Ballots.from_blocks(blocks), Ballots.from_blocks([merged])]
        for other in others:
            expect(units_of(other) == units_of(every), "equal ballots stay as many, and as heavy")
    else:
        numbers = every.cluster_numbers
        expect((both.cluster_numbers == numbers).all(), "take and + keep the clusters")
        for block in blocks:
            used = np.unique(block.cluster_numbers)
            expect((used == np.arange(len(used))).all(), "take leaves no cluster without ballots")
        if every.clusters.dtype.kind in "iu":
            texts = Ballots.of(every, clusters=every.clusters.astype(str))
            expect((texts.cluster_numbers == numbers).all(), "numbers and texts are the same")
            mixed = blocks[0] + texts if len(blocks) > 1 else texts
            again = Ballots.of(mixed, clusters=mixed.clusters.astype(str))
            expect(
                (mixed.cluster_numbers == again.cluster_numbers).all(), "also in a sum of the two"
            )
            others.append(texts)
    if every.weights.max() < 1e6 and every.weights.max() < 1e6 * every.weights[counts > 0].min():
        errors = sandwich(every)
        for other in others:
            expect(np.allclose(sandwich(other), errors, rtol=1e-6), "errors agree")


def units_of(ballots: Ballots) -> dict[tuple[str, float], int]:
    """Count the ballots that were cast, by what they say and weigh."""
    result: Counter[tuple[str, float]] = Counter()
    counts, unit = ballots.units()
    told = [_sorted_ties(text) for text in ballots.to_frame()["ballot"]]
    for text, weight, count in zip(told, unit.tolist(), counts.tolist(), strict=True):
        result[text, weight] += count
    return {key: count for key, count in result.items() if count}


def _sorted_ties(text: str) -> str:
    return " > ".join(" = ".join(sorted(tie.split(" = "))) for tie in text.split(" > "))


def sandwich(ballots: Ballots) -> Any:
    """Return errors of the kind "sandwich"; nothing where these say that there are none."""
    fit = DavidsonLuce.fit(ballots, prior=1.0).fit_result
    try:
        return fit.standard_errors("sandwich")
    except ValueError:  # one cluster only
        return np.zeros(0)


@target(
    "rankings",
    form="json",
    seeds=lambda: [
        json.dumps({"call": name, "a": ORDERS, "b": ORDERS[1]}).encode()
        for name in (*rankings.DISTANCES, "inverse", "order_by_scores", "ranks_to_order")
    ],
)
def rank(case: bytes) -> None:
    chosen = arguments(case, "call", "a", "b", "penalty", "normalize")
    name, first = chosen.pop("call", ""), chosen.pop("a", ORDERS)
    if name in rankings.DISTANCES:
        second = chosen.pop("b", ORDERS[1])
        found = getattr(rankings, name)(first, second, **chosen)
        expect(np.isfinite(found).all() and np.min(found, initial=0) >= 0, "distances")
        back = getattr(rankings, name)(second, first, **chosen)
        expect(np.allclose(found, back), "distances are symmetric")
    elif name in ("inverse", "order_by_scores", "ranks_to_order", "ranks_by_scores"):
        found = getattr(rankings, name)(first)
        n = found.shape[-1]
        expect((np.sort(found, axis=-1) == np.arange(n)).all(), "orders")
    else:
        rankings.check_orders(first, *[chosen["b"]] if "b" in chosen else [])


@target(
    "evaluate",
    form="json",
    seeds=seeds(
        {"scores": SCORES, "y": LABELS, "qid": [1, 1, 2, 2], "measures": ["map", "ndcg@2"]},
        {"scores": SCORES, "y": [0, 0, 0, 1], "qid": ["a", "a", "b", "b"], "measures": "err@10"},
        *({"scores": SCORES, "y": LABELS, "qid": [1] * 4, "measures": m} for m in ("p@2", "auc")),
    ),
)
def evaluate(case: bytes) -> None:
    chosen = arguments(case, "scores", "y", "qid", "measures")
    found = measures.evaluate(**chosen)
    for name in found:
        low, high = measures.parse(name).range
        values = np.asarray(found[name])
        inside = np.isnan(values) | ((values >= low - 1e-9) & (values <= high + 1e-9))
        expect(inside.all(), f"{name} within {low} and {high}, got {values}")


@target(
    "measure-orders",
    form="json",
    seeds=lambda: [
        json.dumps({"measure": name, "orders": ORDERS, "labels": LABELS}).encode()
        for name in ("ap", "ndcg@3", "rr", "auc", "wta", "p@2", "err", "kendall", "persistence@2")
    ],
)
def measure_orders(case: bytes) -> None:
    chosen = arguments(case, "measure", "orders", "labels")
    one = measures.parse(chosen.get("measure", "ap"))
    values = np.asarray(one(chosen.get("orders", ORDERS), chosen.get("labels", LABELS)))
    low, high = one.range
    inside = np.isnan(values) | ((values >= low - 1e-9) & (values <= high + 1e-9))
    expect(inside.all(), f"{one.name} within {low} and {high}, got {values}")


@target(
    "queries",
    form="json",
    seeds=seeds(
        {"X": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1], "qid": [7, 7]},
        {"X": [[1.0], [3.0], [5.0]], "y": [0, 1, 2], "qid": ["a", "b", "a"], "regroup": True},
    ),
)
def queries(case: bytes) -> None:
    check_queries(Queries(**arguments(case, "X", "y", "qid", "doc_ids", "regroup")))
