"""What is read from short texts: measures, learners with settings, kernels, spaces, distances."""

from __future__ import annotations

import functools
import json

import numpy as np

from fuzz.engine import expect, target
from permdist import GoodBad, measures, rankings
from permdist.comparison import read_entries
from permdist.measures.registry import kinds
from permdist.measures.registry import preset as find_preset
from permdist.models import all_learners
from permdist.samplers import run_chains
from permdist.samplers.kernels import KERNELS

MEASURES = [b"@10", b"[", b"]", b"=", b",", b":", b"empty=skip", b"gain=linear", b"discount=jk"]
MEASURES += [alias.encode() for kind in kinds() for alias in kind.aliases]
MEASURES += [f"{name}:".encode() for name in measures.PRESETS]
SETTINGS = [b"[", b"]", b"=", b"|", b",", b"C=1", b"C=0.1|1", b"measure=ap", b"none", b"true"]
SETTINGS += [kind.__name__.encode() for kind in all_learners()]
SETTINGS += [b"random_state=", b"max_iter=", b"normalize=", b"space=", b"'", b"(1,2)", b"-1"]


@target("measure", tokens=MEASURES, seeds=lambda: [m for m in MEASURES if m.isalnum()])
def measure(case: bytes) -> None:
    one = measures.parse(case.decode(errors="surrogateescape"))
    expect(measures.parse(one.name) == one, f"its name {one.name!r} is read back as itself")
    told = measures.trec_name(one)
    expect(measures.trec(told) == one, f"its name {told!r} as of trec_eval is no other measure's")
    expect(hash(one) == hash(measures.parse(one.name)), "equal measures have equal hashes")
    low, high = one.range
    values = one([[0, 1, 2], [2, 1, 0]], [0, 1, 2])
    inside = np.isnan(values) | ((values >= low - 1e-12) & (values <= high + 1e-12))
    expect(inside.all(), f"values within {low} and {high}, got {values}")


@target("learners", tokens=[*SETTINGS, *MEASURES[:4]], seeds=lambda: SETTINGS[10:])
def learners(case: bytes) -> None:
    entries = read_entries(case.decode(errors="surrogateescape"))
    expect(entries, "at least one entry")
    for entry in entries:
        many = 1
        for options in entry.settings.values():
            many *= len(options)
        if many < 1000:
            expect(
                len(entry.learners(judge="map", random_state=0)) <= many,
                "a learner per combination",
            )


@functools.cache
def pair_model() -> GoodBad:
    return GoodBad([0.5, 0.25, 0.0, -1.0], [1, 0, 1, 0])


@target("kernel", tokens=[b"+", b" ", b"0.5 ", b"auto", b"exact", *map(str.encode, KERNELS)])
def kernel(case: bytes) -> None:
    text = case.decode(errors="surrogateescape")
    chains = run_chains(pair_model(), 4, 2, chains=1, kernel=text, rng=0, n_jobs=1, thin=2)
    expect((np.sort(chains.orders, axis=-1) == np.arange(4)).all(), "draws are orders")


@target("space", tokens=[b"orders", b"interleavings", b"kendall", b"ulam", b"cayley"])
def space(case: bytes) -> None:
    text = case.decode(errors="surrogateescape")
    if len(case) % 2:
        model = GoodBad([1.0, 0.0], [1, 0], space=text)
        expect(model.space == text, "the space asked for")
    else:
        found = rankings.distance_matrix([[0, 1, 2], [2, 1, 0]], distance=text)
        expect(found.shape == (2, 2) and found[0, 0] == 0, "a matrix of distances")


@target("identity", tokens=[b"sum", b"marginals", b" ", b"-"], seconds=10.0)
def identity(case: bytes) -> None:
    from permdist.identities import check_all

    names = [text for text in case.decode(errors="surrogateescape").split("\n")[:2] if text]
    if names:
        check_all(names, max_examples=1, rng=0)


@target("preset", tokens=[name.encode() for name in measures.PRESETS])
def preset(case: bytes) -> None:
    text = case.decode(errors="surrogateescape")
    expect(find_preset(text).name == text, "the preset asked for")


@target("top-k", form="json", seeds=lambda: [b"[[2, 0], 4]", b"[[], 3]", b"[[[0], [1, 2]]]"])
def top_k(case: bytes) -> None:
    """Partial rankings as lists of items."""
    try:
        found = json.loads(case)
    except (ValueError, RecursionError):
        return
    if not isinstance(found, list):
        found = [found]
    if len(found) == 2:
        one = rankings.TopK(*found)
        expect(one.n_items >= len(one.items), "no more items than there are")
    else:
        expect(rankings.BucketOrder(*found[:1]).n_items >= 0, "a bucket order has items")
