"""Published figures of LETOR collections, with their sources, and how a collection is recognized.

Facts only, as they were printed. Figures that were measured on cleaned data, or by conventions that
their paper does not state, are left out: they would not compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from permdist._check import choice
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from permdist.data import Queries


class Size(NamedTuple):
    """What a collection is recognized by: its queries, documents and features."""

    queries: int
    documents: int
    features: int


class Published(NamedTuple):
    """One figure as it was printed: the mean over the test queries of all folds.

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

_XU = "Xu, Li, Liu, Peng, Lu, Ma: Direct Optimization of Evaluation Measures in Learning to Rank"
_QIN = "Qin, Liu, Li: A General Approximation Framework for Direct Optimization of IR Measures"
_WANG = "Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery"
_DUBEY = "Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions"
_LIU = "Liu: Learning to Rank for Information Retrieval (2011)"


def _table(
    collection: str, source: str, measures: str, rows: Mapping[str, tuple[float, ...]]
) -> list[Published]:
    """Read a printed table: one learner a row, one measure a column."""
    return [
        Published(collection, learner, measure, value, source)
        for learner, values in rows.items()
        for measure, value in zip(measures.split(), values, strict=True)
    ]


PUBLISHED: tuple[Published, ...] = (
    *_table(
        "MQ2008",
        "LETOR 4.0, baselines of supervised ranking",
        "letor4:map",
        {
            "RankSVM-Struct": (0.4696,),
            "RankBoost": (0.4775,),
            "ListNet": (0.4775,),
            "AdaRank-MAP": (0.4764,),
            "AdaRank-NDCG": (0.4824,),
        },
    ),
    *_table(
        "MQ2007",
        f"{_LIU}, Table 11.9",
        "letor4:ndcg@1 letor4:ndcg@3 letor4:ndcg@10 letor4:p@1 letor4:p@3 letor4:p@10 letor4:map",
        {
            "RankSVM": (0.410, 0.406, 0.444, 0.475, 0.432, 0.383, 0.464),
            "RankBoost": (0.413, 0.407, 0.446, 0.482, 0.435, 0.386, 0.466),
            "ListNet": (0.400, 0.409, 0.444, 0.464, 0.433, 0.380, 0.465),
            "AdaRank": (0.382, 0.398, 0.434, 0.439, 0.423, 0.374, 0.458),
        },
    ),
    # Printed as Kendall distances 0.180, 0.196, 0.208, 0.294, 0.204, 0.448: tau is 1 - 2 distance.
    *_table(
        "MQ2008-list",
        f"{_WANG}, Table 1",
        "tau persistence@10",
        {
            "DiffRank": (0.640, 0.337),
            "BL-FeatureRank": (0.608, 0.322),
            "FeatureRank": (0.584, 0.322),
            "ListMLE": (0.412, 0.099),
            "SVMmap": (0.592, 0.207),
            "RankCosine": (0.104, 0.014),
        },
    ),
    *_table(
        "OHSUMED, LETOR 3.0",
        "LETOR 3.0, baselines",
        "letor3:ndcg@1 letor3:ndcg@3 letor3:ndcg@5 letor3:ndcg@10 letor3:p@10 letor3:map",
        {
            "RankSVM": (0.4958, 0.4207, 0.4164, 0.4140, 0.4864, 0.4334),
            "RankBoost": (0.4632, 0.4555, 0.4494, 0.4302, 0.4966, 0.4411),
            "ListNet": (0.5326, 0.4732, 0.4432, 0.4410, 0.4975, 0.4457),
            "AdaRank-MAP": (0.5388, 0.4682, 0.4613, 0.4429, 0.4976, 0.4487),
        },
    ),
    *_table(
        "OHSUMED, LETOR 3.0",
        f"{_DUBEY}, Figure 3, after Volkovs and Zemel (2009)",
        "letor3:ndcg@1 letor3:ndcg@5 letor3:map",
        {"BoltzRank": (0.568, 0.491, 0.460)},
    ),
    *_table(
        "TD2003, LETOR 3.0",
        f"{_LIU}, Table 11.1",
        "letor3:ndcg@1 letor3:ndcg@3 letor3:ndcg@10 letor3:p@1 letor3:p@3 letor3:p@10 letor3:map",
        {
            "Regression": (0.320, 0.307, 0.326, 0.320, 0.260, 0.178, 0.241),
            "RankSVM": (0.320, 0.344, 0.346, 0.320, 0.293, 0.188, 0.263),
            "RankBoost": (0.280, 0.325, 0.312, 0.280, 0.280, 0.170, 0.227),
            "FRank": (0.300, 0.267, 0.269, 0.300, 0.233, 0.152, 0.203),
            "ListNet": (0.400, 0.337, 0.348, 0.400, 0.293, 0.200, 0.275),
            "AdaRank": (0.260, 0.307, 0.306, 0.260, 0.260, 0.158, 0.228),
            "SVMmap": (0.320, 0.320, 0.328, 0.320, 0.253, 0.170, 0.245),
        },
    ),
    *_table(
        "TD2004, LETOR 3.0",
        f"{_DUBEY}, Figure 3, after Volkovs and Zemel (2009)",
        "letor3:ndcg@1 letor3:ndcg@5 letor3:map",
        {"ListNet": (0.360, 0.332, 0.223), "BoltzRank": (0.478, 0.363, 0.239)},
    ),
    *_table(
        "OHSUMED, LETOR 2.0",
        f"{_XU}, Tables 2 and 3",
        "letor3:map letor3:ndcg@3",
        {
            "SVMmap": (0.4456, 0.4669),
            "AdaRank": (0.4419, 0.4803),
            "PermuRank": (0.4495, 0.4764),
            "RankSVM": (0.4469, 0.4649),
            "RankBoost": (0.4403, 0.4726),
        },
    ),
    # NDCG of whole rankings, by the paper's equation (5): gain 2^label - 1, discount log2(1 + k).
    *_table(
        "OHSUMED, LETOR 2.0",
        f"{_QIN}, sections 6.4 and 6.5",
        "ndcg",
        {
            "SoftRank": (0.6680,),
            "AdaRank-NDCG": (0.6589,),
            "ApproxNDCG": (0.6698,),
            "ApproxAP": (0.6693,),
        },
    ),
    # Not SVMmap's: Qin et al., footnote 9, report an error in an earlier printing of these tables.
    *_table(
        "TD2003, LETOR 2.0",
        f"{_XU}, Tables 2 and 3",
        "letor3:map letor3:ndcg@3",
        {
            "AdaRank": (0.1373, 0.2912),
            "PermuRank": (0.2768, 0.3823),
            "RankSVM": (0.2564, 0.3787),
            "RankBoost": (0.2125, 0.2704),
        },
    ),
    *_table(
        "TD2003, LETOR 2.0",
        f"{_QIN}, Tables 2 and 3",
        "letor3:map",
        {"AdaRank-MAP": (0.137,), "SVMmap": (0.198,), "ApproxAP": (0.233,), "ApproxNDCG": (0.238,)},
    ),
    *_table(
        "TD2004, LETOR 2.0",
        f"{_XU}, Tables 2 and 3",
        "letor3:map letor3:ndcg@3",
        {
            "AdaRank": (0.3308, 0.4017),
            "PermuRank": (0.3636, 0.4467),
            "RankSVM": (0.3505, 0.4092),
            "RankBoost": (0.3835, 0.4640),
        },
    ),
    *_table(
        "TD2004, LETOR 2.0",
        f"{_QIN}, Tables 2 and 3",
        "letor3:map",
        {"AdaRank-MAP": (0.331,), "SVMmap": (0.304,), "ApproxAP": (0.350,), "ApproxNDCG": (0.318,)},
    ),
)


def recognize(folds: Iterable[tuple[Queries, Queries, Queries]]) -> str | None:
    """Name the collection that folds were made of, by the size of their test parts together.

    The test parts of LETOR's folds share no query and make up the collection.

    Parameters
    ----------
    folds : iterable of (train, validation, test)
        For instance `permdist.data.load_letor_folds`.

    Returns
    -------
    str or None
        A name of `COLLECTIONS`; None where queries, documents and features fit none of them.

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
    """Find the published figures of a collection and a measure, the best first.

    LETOR's own figures are means of the folds' means. Its folds are nearly equal in size, so that
    the mean over all test queries differs by little.

    Parameters
    ----------
    collection : str or None
        A name of `COLLECTIONS`, or one of the collections of `PUBLISHED`; for None, as `recognize`
        gives where it knows nothing, there are no figures.
    measure : str or Measure
        However it is spelled: "map" finds what was measured as "letor4:map", which is the same.
        Conventions do count: "ndcg@10" is not "letor4:ndcg@10".

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
