"""Simulated collections that resemble LETOR's, for examples, tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import as_rng, choice, count
from permdist._files import check_size
from permdist.data.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState

    Draw = Callable[
        [tuple[int, int], float, BoolArray, np.random.Generator], tuple[FloatArray, FloatArray]
    ]

FAMILIES = 4
# Chosen so that, as on MQ2008, the best single feature is nearly as good as a linear model.
MISMATCH = 1.1  # error of the match between words and quality, the same for all features
FEATURE_NOISE = 0.6  # error of a feature around the match
SPAM_MATCH = 2.5  # by how much spam matches better, in the features that it fools
SPAM_LAST = 1e6  # below any other document
PLAIN_QUALITY = (1.5, 0.7)  # the weights of the first plain features in quality
BENT_FEATURES = 6
BENT_WEIGHTS = (1.2, 1.2, 1.0, 0.4)  # of a hump, a product, an exclusive or, and a line
PLAIN_SPAM = (2.5, 0.0, 1.0)  # what spam adds to the first plain features


def make_letor(
    n_queries: int = 100,
    *,
    n_documents: tuple[int, int] = (8, 120),
    n_features: int = 25,
    n_constant: int = 2,
    max_grade: int = 2,
    relevant: float | tuple[int, int] = 0.2,
    empty: float = 0.1,
    noise: float = 1.0,
    strict: bool = False,
    missing: float = 0.0,
    spam: float = 0.0,
    features: str = "families",
    rng: RandomState = None,
) -> Queries:
    """Simulate a collection of queries about as difficult as LETOR's.

    Each document has a hidden quality, and what can be matched of it is quality plus an error that
    all features share. Features see the match through noise: they come in families that share
    much of it (as term counts of title, body and anchor do), half of them are skewed like counts,
    one in five sees nothing, one in five sees the match upside down or through a hump, and some
    are constant. Noise, length and the number of relevant documents vary from query to query.
    Labels are grades of hidden quality plus a judge's error, few of them above 0. Features are
    scaled to 0..1 within each query, as LETOR's are.

    With ``features="plain"`` a collection is as simple as can be: independent normal features,
    quality ``1.5 x0 + 0.7 x1`` plus normal noise, nothing scaled. With `spam` some documents look
    good and are not. A linear model cannot tell them from good ones and has to choose which
    queries, and which positions, to get wrong: then it matters which measure it optimizes.

    With ``features="bent"`` the features are as plain, but quality bends: it is a hump of x0, the
    product of x1 and x2, whether x3 and x4 have the same sign, and little of x5 itself. No linear
    model finds much of it.

    Parameters
    ----------
    n_queries : int
    n_documents : (int, int)
        The smallest and largest number of documents per query; most queries are short.
    n_features, n_constant : int
        The number of features, and how many of them are 0 everywhere.
    max_grade : int
        The highest grade; each grade is about half as frequent as the one below.
    relevant : float in (0, 1), or (int, int)
        The mean share of relevant documents; or the smallest and largest number of them per
        query, drawn uniformly.
    empty : float in [0, 1)
        The share of queries without a relevant document.
    noise : float
        How noisy features and judges are: 0 makes ranking easy, 1 is like LETOR's MQ2008.
    strict : bool
        Use strictly ordered labels instead: 0 (worst) to n - 1 within each query.
    missing : float in [0, 1)
        The share of values that are missing, NaN, at random.
    spam : float in [0, 1)
        The share of documents that are spam, at random: never relevant (the last, with `strict`),
        but half of the features see a match that is 2.5 standard deviations better. Of plain
        features, the first is larger by 2.5 and the third by 1.
    features : {"families", "plain", "bent"}
        What the features are like, and how quality depends on them; `n_constant` is for families
        only.
    rng : int, Generator or None

    Returns
    -------
    Queries

    Examples
    --------
    >>> make_letor(50, rng=0)
    Queries(50 queries, 1,160 documents, 25 features)
    >>> sorted(make_letor(1, n_documents=(5, 5), strict=True, rng=0).y.tolist())
    [0, 1, 2, 3, 4]

    The 5 best of 300 documents are relevant, and 8% of the documents are spam:

    >>> make_letor(
    ...     60, n_documents=(300, 300), n_features=6, features="plain", relevant=(5, 5),
    ...     max_grade=1, empty=0.0, spam=0.08, rng=0,
    ... )
    Queries(60 queries, 18,000 documents, 6 features)
    """
    n_queries = count("n_queries", n_queries)
    if np.shape(n_documents) != (2,):
        raise TypeError(f"n_documents: expected (least, most), got {n_documents!r}")
    low, high = (count("n_documents", value) for value in n_documents)
    n_features, max_grade = count("n_features", n_features), count("max_grade", max_grade)
    n_constant = count("n_constant", n_constant, minimum=0)
    if low > high:
        raise ValueError(f"n_documents: expected (least, most), got {n_documents}")
    plain = choice("features", features, ("families", "plain", "bent")) != "families"
    fewest = BENT_FEATURES if features == "bent" else len(PLAIN_SPAM)
    if plain and n_features < fewest:
        raise ValueError(f"n_features: expected at least {fewest} {features} ones")
    if not plain and n_constant >= n_features:
        raise ValueError(f"n_constant: expected fewer than n_features={n_features}")
    relevant = _check_relevant(relevant)
    if not 0.0 <= empty < 1.0:
        raise ValueError(f"empty: expected a share from 0 to below 1, got {empty}")
    if not 0.0 <= noise < np.inf:
        raise ValueError(f"noise: expected a finite non-negative number, got {noise}")
    if not 0.0 <= missing < 1.0:
        raise ValueError(f"missing: expected a share from 0 to below 1, got {missing}")
    if not 0.0 <= spam < 1.0:
        raise ValueError(f"spam: expected a share from 0 to below 1, got {spam}")
    size = 40.0 * n_queries * high * n_features
    check_size(f"n_queries, n_documents, n_features: up to {n_queries * high:,} documents", size)
    generator = as_rng(rng)
    draw: Draw = _bent_query if features == "bent" else _plain_query
    if not plain:
        draw = _Design(n_features, n_constant, generator, fooled=spam > 0.0).query
    parts, labels, sizes = [], [], []
    for _ in range(n_queries):
        spread = min(1.0, generator.lognormal(-2.2, 1.0))
        n = low + round(spread * (high - low))
        is_spam = generator.random(n) < spam if spam > 0.0 else np.zeros(n, dtype=bool)
        X, judged = draw((n, n_features), noise, is_spam, generator)
        parts.append(X)
        judged[is_spam] -= SPAM_LAST
        if strict:
            labels.append(np.argsort(np.argsort(judged)))
        else:
            able = int(n - is_spam.sum())
            labels.append(_grade(judged, able, relevant, empty, max_grade, generator))
        sizes.append(n)
    qid = np.repeat(np.arange(1, n_queries + 1), sizes)
    queries = Queries(np.concatenate(parts), np.concatenate(labels), qid)
    queries = queries if plain else queries.normalize()
    if missing == 0.0:
        return queries
    X = np.where(generator.random(queries.X.shape) < missing, np.nan, queries.X)
    return Queries(X, queries.y, queries.qid, missing="allow")


def _check_relevant(relevant: float | tuple[int, int]) -> float | tuple[int, int]:
    """Return a share, or the smallest and largest number."""
    if np.ndim(relevant) == 0:
        if not 0.0 < relevant < 1.0:  # type: ignore[operator]
            raise ValueError(
                f"relevant: expected a share between 0 and 1, or (least, most), got {relevant}"
            )
        return float(relevant)  # type: ignore[arg-type]
    if np.shape(relevant) != (2,):
        raise TypeError(f"relevant: expected a share, or (least, most), got {relevant!r}")
    least, most = (count("relevant", value) for value in relevant)  # type: ignore[union-attr]
    if least > most:
        raise ValueError(f"relevant: expected (least, most), got {relevant}")
    return least, most


def _plain_query(
    shape: tuple[int, int], noise: float, is_spam: BoolArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw independent features of one query's documents, and what judges see."""
    X = rng.standard_normal(shape)
    judged = X[:, : len(PLAIN_QUALITY)] @ PLAIN_QUALITY + noise * rng.standard_normal(shape[0])
    X[np.ix_(is_spam, np.arange(len(PLAIN_SPAM)))] += PLAIN_SPAM
    return X, judged


def _bent_query(
    shape: tuple[int, int], noise: float, is_spam: BoolArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw independent features, and a quality that is no line through them."""
    X = rng.standard_normal(shape)
    parts = (np.exp(-(X[:, 0] ** 2)), X[:, 1] * X[:, 2], np.sign(X[:, 3] * X[:, 4]), X[:, 5])
    judged = np.stack(parts, axis=1) @ BENT_WEIGHTS + noise * rng.standard_normal(shape[0])
    X[np.ix_(is_spam, np.arange(len(PLAIN_SPAM)))] += PLAIN_SPAM
    return X, judged


class _Design:
    """How each feature sees quality; drawn once for the whole collection."""

    def __init__(
        self, n_features: int, n_constant: int, rng: np.random.Generator, *, fooled: bool = False
    ) -> None:
        self.signal = rng.uniform(0.1, 1.0, n_features)
        self.family = rng.integers(FAMILIES, size=n_features)
        self.shared = rng.uniform(0.6, 0.98, n_features)
        self.skewed = rng.random(n_features) < 0.5
        fate = rng.random(n_features)
        self.signal[fate < 0.2] = 0.0
        self.signal[(fate >= 0.2) & (fate < 0.3)] *= -1.0
        self.humped = (fate >= 0.3) & (fate < 0.4)
        self.constant = np.zeros(n_features, dtype=bool)
        self.constant[rng.permutation(n_features)[:n_constant]] = True
        self.fooled = rng.random(n_features) < 0.5 if fooled else np.zeros(n_features, dtype=bool)

    def query(
        self, shape: tuple[int, int], noise: float, is_spam: BoolArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw the features of one query's documents, and what judges see."""
        quality = rng.standard_normal(shape[0])
        level = noise * rng.lognormal(0.0, 0.4)
        X = self._features(quality, level, is_spam, rng)
        return X, quality + 0.5 * level * rng.standard_normal(shape[0])

    def _features(
        self, quality: FloatArray, level: float, is_spam: BoolArray, rng: np.random.Generator
    ) -> FloatArray:
        n = len(quality)
        match = (quality + MISMATCH * level * rng.standard_normal(n))[:, None]
        match = match + SPAM_MATCH * (is_spam[:, None] & self.fooled)
        seen = np.where(self.humped, -((match - 1.0) ** 2) / 2, match)
        common = rng.standard_normal((n, FAMILIES))[:, self.family]
        own = rng.standard_normal((n, len(self.signal)))
        error = self.shared * common + np.sqrt(1.0 - self.shared**2) * own
        X = self.signal * seen + FEATURE_NOISE * level * error
        X = np.where(self.skewed, np.exp(X), X)
        # Query-dependent shift and stretch: raw values do not compare across queries.
        X = X * rng.lognormal(0.0, 0.5, len(self.signal)) + rng.standard_normal(len(self.signal))
        X[:, self.constant] = 0.0
        return X


def _grade(
    judged: FloatArray,
    able: int,
    relevant: float | tuple[int, int],
    empty: float,
    max_grade: int,
    rng: np.random.Generator,
) -> IntArray:
    """Turn judged quality into grades: the best few are relevant, the best of them highly.

    At most `able` documents are, and not all of a query.
    """
    n = len(judged)
    labels = np.zeros(n, dtype=np.int64)
    if isinstance(relevant, float):
        wanted = max(1, round(rng.beta(2.0, 2.0 / relevant - 2.0) * n))
    else:
        wanted = int(rng.integers(relevant[0], relevant[1] + 1))
    barren = rng.random() < empty
    p = 0 if barren or n == 1 else min(n - 1, able, wanted)
    best = np.argsort(-judged)[:p]
    weights = 0.5 ** np.arange(max_grade)
    at_least = np.cumsum(weights[::-1])[::-1] / weights.sum()  # the share of each grade and above
    for grade, part in enumerate(at_least, 1):
        labels[best[: round(p * part)]] = grade
    return labels
