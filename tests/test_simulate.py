import numpy as np
import pytest

from permdist import measures
from permdist.data import make_letor


def test_the_same_seed_gives_the_same_collection():
    assert make_letor(5, rng=3) == make_letor(5, rng=np.random.default_rng(3))
    assert make_letor(5, rng=3) != make_letor(5, rng=4)


def test_it_looks_like_letor():
    collection = make_letor(400, rng=0)
    description = collection.describe()
    assert description.n_queries == 400
    assert set(description.label_counts) == {0, 1, 2}
    counts = [description.label_counts[grade] for grade in (0, 1, 2)]
    assert counts[0] > 3 * counts[1] > 3 * counts[2] > 0
    assert 0.1 < 1 - counts[0] / sum(counts) < 0.25
    assert 20 < description.queries_without_relevant < 65
    assert len(description.constant_features) == 2
    least, median, most = description.documents_per_query
    assert 8 <= least < median < 40 < most <= 120
    assert collection.X.min() == 0.0
    assert collection.X.max() == 1.0
    varying = collection.X[:, collection.X.std(axis=0) > 0]
    correlation = np.abs(np.corrcoef(varying.T)[np.triu_indices(varying.shape[1], 1)])
    assert np.quantile(correlation, 0.9) > 0.5  # families of features say nearly the same


def test_it_is_as_hard_as_letor():
    collection = make_letor(400, rng=1)
    single = [
        measures.evaluate(column, collection.y, collection.qid, "auc[empty=skip]").table
        for column in collection.X.T
    ]
    means = np.sort([np.nanmean(values) for values in single])
    assert 0.65 < means[-1] < 0.85  # the best feature
    assert means[0] < 0.45  # some see quality upside down
    easy = make_letor(100, noise=0.0, rng=1)
    best = max(
        measures.evaluate(column, easy.y, easy.qid, "auc[empty=skip]").mean("auc[empty=skip]")
        for column in easy.X.T
    )
    assert best > 0.999


def test_strict_orders():
    for query in make_letor(10, strict=True, rng=0):
        assert sorted(query.y) == list(range(len(query.y)))


def test_single_documents_and_grades():
    lonely = make_letor(20, n_documents=(1, 1), rng=0)
    assert lonely.n_documents == 20
    assert lonely.y.max() == 0
    assert make_letor(200, max_grade=4, rng=0).y.max() == 4
    assert (make_letor(50, empty=0.0, n_documents=(2, 20), rng=0).n_relevant > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_queries": 0}, "n_queries: expected at least 1"),
        ({"n_documents": (5, 3)}, r"n_documents: expected \(least, most\)"),
        ({"n_features": 2, "n_constant": 2}, "n_constant: expected fewer than n_features=2"),
        ({"relevant": 0.0}, "relevant: expected a share"),
        ({"empty": -0.1}, "empty: expected a share"),
        ({"noise": -1.0}, "noise: expected a finite non-negative number"),
        ({"relevant": (3, 2)}, r"relevant: expected \(least, most\)"),
        ({"spam": 1.0}, "spam: expected a share from 0 to below 1"),
        ({"features": "plain", "n_features": 2}, "n_features: expected at least 3 plain ones"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make_letor(**options)


def test_values_may_be_missing():
    whole, holes = (make_letor(40, missing=share, rng=1) for share in (0.0, 0.3))
    missing = np.isnan(holes.X)
    assert holes.has_missing
    assert abs(missing.mean() - 0.3) < 0.02
    assert (holes.X[~missing] == whole.X[~missing]).all()
    assert (holes.y == whole.y).all()
    with pytest.raises(ValueError, match="missing: expected a share from 0 to below 1, got 1"):
        make_letor(3, missing=1)


PLAIN = {
    "n_documents": (300, 300),
    "n_features": 6,
    "features": "plain",
    "relevant": (5, 5),
    "max_grade": 1,
    "empty": 0.0,
}


def test_plain_features_and_spam():
    whole = make_letor(40, **PLAIN, spam=0.08, rng=0)
    assert (whole.n_relevant == 5).all()
    bad = whole.X[whole.y == 0]
    # A mixture: x0 of spam is normal around 2.5, x1 and what comes after x2 are as of the others.
    assert np.abs(bad.mean(axis=0) - np.array([2.5, 0.0, 1.0, 0.0, 0.0, 0.0]) * 0.08).max() < 0.05
    good = whole.X[whole.y == 1].mean(axis=0)
    assert good[0] > 1.5
    assert good[1] > 0.5
    assert np.abs(good[2:]).max() < 0.2  # so that x2 tells spam from good documents
    clean = make_letor(40, **PLAIN, rng=0)
    assert abs(clean.X.mean()) < 0.02


def test_spam_among_families_is_never_relevant():
    options = {"n_documents": (30, 60), "rng": 2, "noise": 0.2}
    clean, spam = make_letor(60, **options), make_letor(60, spam=0.2, **options)
    best = [
        max(measures.evaluate(column, one.y, one.qid, "ap").mean("ap") for column in one.X.T)
        for one in (clean, spam)
    ]
    assert best[0] > 0.75 > best[1] + 0.05
    flooded = make_letor(20, spam=0.9, n_documents=(3, 9), empty=0.0, rng=0)
    assert (flooded.n_relevant <= 3).all()
    assert (flooded.n_relevant == 0).any()
    for query in make_letor(5, spam=0.3, strict=True, rng=0):
        assert sorted(query.y) == list(range(len(query.y)))


def test_numbers_of_relevant_documents():
    whole = make_letor(50, n_documents=(60, 80), relevant=(1, 8), empty=0.0, rng=0)
    assert whole.n_relevant.min() == 1
    assert whole.n_relevant.max() == 8
    with pytest.raises(TypeError, match=r"relevant: expected a share, or \(least, most\)"):
        make_letor(3, relevant=(1, 2, 3))


def test_bent_features_need_six():
    with pytest.raises(ValueError, match="n_features: expected at least 6 bent ones"):
        make_letor(3, n_features=5, features="bent")
    queries = make_letor(200, n_features=6, features="bent", noise=0.0, empty=0.0, rng=0)
    good = queries.y > 0
    hump, product = np.exp(-(queries.X[:, 0] ** 2)), queries.X[:, 1] * queries.X[:, 2]
    assert hump[good].mean() > hump[~good].mean() + 0.1
    assert product[good].mean() > product[~good].mean() + 0.5
    assert np.abs(queries.X[good, :5].mean(axis=0)).max() < 0.15  # nothing for a line
