"""Published results on LETOR collections, with their sources; recognizing a collection.

Results on cleaned data, or by conventions that the paper does not state, are left out, since they
are not comparable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from permdist._check import choice
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from permdist.data import Queries


class Size(NamedTuple):
    """The size of a collection, by which it is recognized."""

    queries: int
    documents: int
    features: int


class Published(NamedTuple):
    """A published result: the mean over the test queries of all folds.

    Examples
    --------
    >>> best = published("MQ2008", "map")[0]
    >>> best.learner, best.value, best.measure
    ('AdaRank-NDCG', 0.4824, 'letor4:map')
    """

    collection: str
    learner: str
    measure: str
    value: float
    source: str


# MQ2007, MQ2008 and their lists: as the library ptranking counted them. OHSUMED: Qin et al.,
# section 6.1, and LETOR 3.0. The seven of LETOR 3.0 add up to the 583,850 documents that Cormack,
# Clarke and Buettcher (SIGIR 2009) give in their Table 3.
COLLECTIONS: Mapping[str, Size] = {
    "MQ2007": Size(1_692, 69_623, 46),
    "MQ2008": Size(784, 15_211, 46),
    "MQ2007-list": Size(1_692, 1_231_351, 46),
    "MQ2008-list": Size(784, 902_220, 46),
    "OHSUMED, LETOR 2.0": Size(106, 16_140, 25),
    "OHSUMED, LETOR 3.0": Size(106, 16_140, 45),
    "TD2003, LETOR 3.0": Size(50, 49_058, 64),
    "TD2004, LETOR 3.0": Size(75, 74_146, 64),
    "NP2003, LETOR 3.0": Size(150, 148_657, 64),
    "NP2004, LETOR 3.0": Size(75, 73_834, 64),
    "HP2003, LETOR 3.0": Size(150, 147_606, 64),
    "HP2004, LETOR 3.0": Size(75, 74_409, 64),
}

_SOURCES = {
    "LETOR3": "LETOR 3.0, baselines",
    "LETOR4": "LETOR 4.0, baselines of supervised ranking",
    "XU": "Xu, Li, Liu, Peng, Lu, Ma: Direct Optimization of Evaluation Measures in Learning to "
    "Rank, Tables 2 and 3",
    "QIN": "Qin, Liu, Li: A General Approximation Framework for Direct Optimization of IR Measures",
    "WANG": "Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, "
    "Table 1",
    "DUBEY": "Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, Figure 3, "
    "after Volkovs and Zemel (2009)",
    "LIU": "Liu: Learning to Rank for Information Retrieval (2011)",
}

# One block per printed table: collection | source | place in it | measures; then the learners.
# - MQ2008-list: printed as Kendall distances 0.180, 0.196, ...; tau is 1 - 2 distance.
# - QIN, sections 6.4 and 6.5: NDCG of whole rankings by equation (5), with gain 2^label - 1 and
#   discount log2(1 + k).
# - XU, TD2003 and TD2004: without SVMmap; Qin et al., footnote 9, report an error in an earlier
#   printing of these tables.
_TABLES = """
MQ2008 | LETOR4 | | letor4:map
RankSVM-Struct 0.4696
RankBoost 0.4775
ListNet 0.4775
AdaRank-MAP 0.4764
AdaRank-NDCG 0.4824

MQ2007 | LIU | Table 11.9 | letor4:ndcg@1 letor4:ndcg@3 letor4:ndcg@10 letor4:p@1 letor4:p@3 \
letor4:p@10 letor4:map
RankSVM 0.410 0.406 0.444 0.475 0.432 0.383 0.464
RankBoost 0.413 0.407 0.446 0.482 0.435 0.386 0.466
ListNet 0.400 0.409 0.444 0.464 0.433 0.380 0.465
AdaRank 0.382 0.398 0.434 0.439 0.423 0.374 0.458

MQ2008-list | WANG | | tau persistence@10
DiffRank 0.640 0.337
BL-FeatureRank 0.608 0.322
FeatureRank 0.584 0.322
ListMLE 0.412 0.099
SVMmap 0.592 0.207
RankCosine 0.104 0.014

OHSUMED, LETOR 3.0 | LETOR3 | | letor3:ndcg@1 letor3:ndcg@3 letor3:ndcg@5 letor3:ndcg@10 \
letor3:p@10 letor3:map
RankSVM 0.4958 0.4207 0.4164 0.4140 0.4864 0.4334
RankBoost 0.4632 0.4555 0.4494 0.4302 0.4966 0.4411
ListNet 0.5326 0.4732 0.4432 0.4410 0.4975 0.4457
AdaRank-MAP 0.5388 0.4682 0.4613 0.4429 0.4976 0.4487

OHSUMED, LETOR 3.0 | DUBEY | | letor3:ndcg@1 letor3:ndcg@5 letor3:map
BoltzRank 0.568 0.491 0.460

TD2003, LETOR 3.0 | LIU | Table 11.1 | letor3:ndcg@1 letor3:ndcg@3 letor3:ndcg@10 letor3:p@1 \
letor3:p@3 letor3:p@10 letor3:map
Regression 0.320 0.307 0.326 0.320 0.260 0.178 0.241
RankSVM 0.320 0.344 0.346 0.320 0.293 0.188 0.263
RankBoost 0.280 0.325 0.312 0.280 0.280 0.170 0.227
FRank 0.300 0.267 0.269 0.300 0.233 0.152 0.203
ListNet 0.400 0.337 0.348 0.400 0.293 0.200 0.275
AdaRank 0.260 0.307 0.306 0.260 0.260 0.158 0.228
SVMmap 0.320 0.320 0.328 0.320 0.253 0.170 0.245

TD2004, LETOR 3.0 | DUBEY | | letor3:ndcg@1 letor3:ndcg@5 letor3:map
ListNet 0.360 0.332 0.223
BoltzRank 0.478 0.363 0.239

OHSUMED, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
SVMmap 0.4456 0.4669
AdaRank 0.4419 0.4803
PermuRank 0.4495 0.4764
RankSVM 0.4469 0.4649
RankBoost 0.4403 0.4726

OHSUMED, LETOR 2.0 | QIN | sections 6.4 and 6.5 | ndcg
SoftRank 0.6680
AdaRank-NDCG 0.6589
ApproxNDCG 0.6698
ApproxAP 0.6693

TD2003, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
AdaRank 0.1373 0.2912
PermuRank 0.2768 0.3823
RankSVM 0.2564 0.3787
RankBoost 0.2125 0.2704

TD2003, LETOR 2.0 | QIN | Tables 2 and 3 | letor3:map
AdaRank-MAP 0.137
SVMmap 0.198
ApproxAP 0.233
ApproxNDCG 0.238

TD2004, LETOR 2.0 | XU | | letor3:map letor3:ndcg@3
AdaRank 0.3308 0.4017
PermuRank 0.3636 0.4467
RankSVM 0.3505 0.4092
RankBoost 0.3835 0.4640

TD2004, LETOR 2.0 | QIN | Tables 2 and 3 | letor3:map
AdaRank-MAP 0.331
SVMmap 0.304
ApproxAP 0.350
ApproxNDCG 0.318
"""


def _read(block: str) -> Iterator[Published]:
    head, *rows = block.splitlines()
    collection, source, place, measures = map(str.strip, head.split("|"))
    source = ", ".join(filter(None, (_SOURCES[source], place)))
    for learner, *values in map(str.split, rows):
        for measure, value in zip(measures.split(), values, strict=True):
            yield Published(collection, learner, measure, float(value), source)


PUBLISHED: tuple[Published, ...] = tuple(
    one for block in _TABLES.replace("\\\n", "").strip().split("\n\n") for one in _read(block)
)


def recognize(folds: Iterable[tuple[Queries, Queries, Queries]]) -> str | None:
    """Return the name of the collection that folds belong to, by the size of their test parts.

    The test parts of LETOR's folds are disjoint and together make up the collection.

    Parameters
    ----------
    folds : iterable of (train, validation, test)
        For instance `permdist.data.load_letor_folds`.

    Returns
    -------
    str or None
        A name of `COLLECTIONS`, or None if the size matches none of them.

    Examples
    --------
    >>> from permdist import data
    >>> parts = [data.make_letor(20, rng=seed) for seed in range(3)]
    >>> recognize([parts]) is None
    True
    """
    tests = [test for _, _, test in folds]
    if not tests:
        return None
    size = Size(
        sum(test.n_queries for test in tests),
        sum(test.n_documents for test in tests),
        max(test.n_features for test in tests),
    )
    return next((name for name, known in COLLECTIONS.items() if known == size), None)


def published(collection: str | None, measure: str | Measure) -> list[Published]:
    """Return the published results for a collection and a measure, best first.

    LETOR's own results are means over folds. Since its folds are of nearly equal size, the means
    over all test queries differ little.

    Parameters
    ----------
    collection : str or None
        A name of `COLLECTIONS`, or one of the collections of `PUBLISHED`; for None, as returned by
        `recognize` for an unknown collection, the result is empty.
    measure : str or Measure
        In any spelling: "map" also finds "letor4:map", which is the same measure. Measures that
        differ by convention are different: "ndcg@10" is not "letor4:ndcg@10".

    Returns
    -------
    list of Published

    Examples
    --------
    >>> for row in published("MQ2007", "letor4:ndcg@10"):
    ...     print(f"{row.learner:<9} {row.value}")
    RankBoost 0.446
    ListNet   0.444
    RankSVM   0.444
    AdaRank   0.434
    >>> published("MQ2007", "ndcg@10")
    []
    """
    wanted = parse(measure)
    if collection is None:
        return []
    choice(
        "collection", collection, dict.fromkeys([*COLLECTIONS, *(r.collection for r in PUBLISHED)])
    )
    found = [r for r in PUBLISHED if r.collection == collection and parse(r.measure) == wanted]
    return sorted(found, key=lambda row: (-row.value, row.learner))
