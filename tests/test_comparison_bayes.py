"""Probabilities that one learner is better than another."""

import numpy as np
import pytest
from scipy import stats

from permdist import data
from permdist.comparison import compare, compare_scores
from permdist.comparison.bayes import Probabilities, hierarchical, signed_rank

SAME = Probabilities(0.0, 1.0, 0.0, 0.0, 1.0, 0.0)


def naive_signed_rank(values, rope, strength, draws, seed):
    """All pairs of differences, one draw of weights after the other."""
    points = np.append(np.asarray(values, dtype=float), 0.0)
    sums = points[:, None] + points
    counts, rng = np.zeros(3), np.random.default_rng(seed)
    for _ in range(draws):
        w = rng.dirichlet([*np.ones(len(values)), strength])
        pairs = w[:, None] * w
        left, right = pairs[sums < -2 * rope].sum(), pairs[sums > 2 * rope].sum()
        counts[int(np.argmax([left, 1.0 - left - right, right]))] += 1
    return counts / draws


def naive_hierarchical(parts, rope, correlation):
    """All on grids: tau, mu with the common part of folds, and the variance of each fold."""
    sizes = np.array([len(part) for part in parts])
    means = np.array([np.mean(part) for part in parts])
    scales = np.array([np.var(part, ddof=1) for part in parts])
    unit, wide = np.sqrt(np.median(scales / sizes)), np.ptp(means)
    taus = np.geomspace(1e-5 * unit, 1e4 * (unit + wide), 70)
    middle = np.linspace(means.min() - 5.0 * unit, means.max() + 5.0 * unit, 901)
    tails = (5.0 * unit + wide) * np.geomspace(1e-2, 300.0, 60)
    grid = [middle[0] - tails[::-1], middle, middle[-1] + tails, [-rope, rope]]
    grid = np.sort(np.concatenate(grid))
    logs = np.zeros((len(taus), len(grid)))
    for mean, scale, size in zip(means, scales, sizes, strict=True):
        nu = size - 1
        x = np.linspace(*np.log(stats.chi2.ppf([1e-9, 1.0 - 1e-12], nu)), 90)
        shares = stats.chi2.pdf(np.exp(x), nu) * np.exp(x)
        for row, tau in enumerate(taus):
            spread = (1.0 - correlation) * tau**2 + scale * nu / np.exp(x) / size
            normal = stats.norm.pdf(mean, grid[:, None], np.sqrt(spread))
            logs[row] += np.log(normal @ shares + 1e-300)
    density = np.exp(logs - logs.max()) * np.gradient(grid)
    density *= (taus / (unit**2 + taus**2))[:, None]
    density /= density.sum()
    spread = np.sqrt(correlation) * taus[:, None] + 1e-12
    below, above = stats.norm.cdf((-rope - grid) / spread), stats.norm.sf((rope - grid) / spread)
    return (density * below).sum(), (density * above).sum()


def test_two_differences_have_known_probabilities():
    # The share w of the second is uniform: better if w^2 > 2 w (1 - w), so if w > 2/3.
    found = signed_rank([-1.0, 1.0], rope=0.1, strength=0.0, draws=100_000)
    assert np.allclose(found[:3], 1 / 3, atol=0.008)
    assert found[3:] == (0.5, 0.0, 0.5)
    # With the weight of one query at 0: w_2^2 > 1 - ... , by enumeration of a fine grid.
    found = signed_rank([1.0], rope=0.1, strength=1.0, draws=100_000)
    # Pairs of two zeros, or of 0 and 1 with mean 1/2: above the rope unless both are 0.
    assert found.better == pytest.approx(np.sqrt(0.5), abs=0.008)
    assert found[3:] == pytest.approx((0.0, 0.5, 0.5))


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
def test_signed_rank_equals_the_naive_one(rope):
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(0.01, 0.05, 12), 2)
    found = signed_rank(values, rope=rope)
    naive = naive_signed_rank(values, rope, 0.5, 4000, 0)
    assert np.allclose(found[:3], naive, atol=0.045)
    above = (values > rope).sum() / 12.5
    assert found.better_query == pytest.approx(above)


@pytest.mark.parametrize("correlation", [None, 0.0, 0.5])
def test_hierarchical_equals_the_naive_one(correlation):
    rng = np.random.default_rng(5)
    parts = [rng.normal(mean, 0.05, size) for mean, size in ((0.02, 12), (0.0, 20), (0.03, 9))]
    folds = np.repeat([7, 2, 9], [12, 20, 9])
    found = hierarchical(np.concatenate(parts), folds, rope=0.005, correlation=correlation)
    shared = 1 / 3 if correlation is None else correlation
    expected = naive_hierarchical(parts, 0.005, shared)
    assert (found.worse, found.better) == pytest.approx(expected, abs=2e-3)
    assert sum(found[:3]) == pytest.approx(1.0)
    assert sum(found[3:]) == pytest.approx(1.0)


@pytest.mark.parametrize("n_folds", [2, 10])
def test_few_queries_per_fold_are_integrated(n_folds):
    # Of variances that two queries tell, the mean is infinite: draws of them would not do.
    parts = np.random.default_rng(3).normal(0.01, 0.05, (n_folds, 2))
    found = hierarchical(parts.ravel(), np.repeat(np.arange(n_folds), 2), rope=0.005)
    expected = naive_hierarchical(list(parts), 0.005, 1.0 / n_folds)
    assert (found.worse, found.better) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("model", [signed_rank, hierarchical])
def test_exchange_order_and_units(model):
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0.01, 0.05, 31), 3)
    folds = np.arange(31) % 3
    extra = {} if model is signed_rank else {"folds": folds}
    found = model(values, **extra)
    assert model(-values, **extra) == found.exchanged()
    order = rng.permutation(31)
    if model is hierarchical:
        assert model(values[order], folds=2 - folds[order]) == found
    else:
        assert model(values[order]) == found
    assert model(values * 8.0, rope=0.04, **extra) == pytest.approx(found, abs=1e-9)
    mirror = model(np.append(values, -values), **({"folds": np.tile(folds, 2)} if extra else {}))
    assert mirror.worse == mirror.better
    assert model(np.zeros(9)) == SAME
    assert model(np.zeros(0)) == SAME
    assert model(np.full(9, 1e-14)) == SAME
    everywhere = model(np.full(40, 0.2), **({"folds": np.arange(40) % 2} if extra else {}))
    assert everywhere.better > 0.999


def test_one_fold_is_students_distribution():
    values = np.random.default_rng(1).normal(0.01, 0.1, 20)
    found = hierarchical(values, rope=0.02)
    error = values.std(ddof=1) / np.sqrt(20)
    assert found.better == pytest.approx(stats.t.sf((0.02 - values.mean()) / error, 19))
    assert found.worse == pytest.approx(stats.t.cdf((-0.02 - values.mean()) / error, 19))


def test_folds_without_a_variance_use_that_of_the_others():
    found = hierarchical([0.1, 0.3, 0.2, 0.0, 0.1], [0, 0, 0, 0, 1])
    assert 0.5 < found.better < 1.0
    # One query per fold, or folds of equal queries: the corrected t-test of the folds' means.
    alone = hierarchical([0.1, 0.3, 0.2], [0, 1, 2], rope=0.0)
    scale = 0.1 * np.sqrt(1 / 3 + 0.5)
    assert alone.better == pytest.approx(stats.t.sf(-0.2 / scale, 2))


def test_probabilities_are_calibrated():
    # The truth is drawn from a wide range: where p is said, it holds with a share of p.
    rng = np.random.default_rng(11)
    said, held = [], []
    for _ in range(80):
        mean, tau = rng.uniform(-0.1, 0.1), 0.02 * abs(rng.standard_cauchy())
        folds = np.repeat(np.arange(5), 8)
        common, own = np.sqrt([0.2, 0.8]) * tau
        means = mean + common * rng.normal() + own * rng.normal(size=5)
        values = means[folds] + rng.normal(0.0, 0.02 * np.sqrt(8), 40)
        found = hierarchical(values, folds, rope=0.01)
        said += [found.better, found.worse]
        held += [mean > 0.01, mean < -0.01]
    said, held = np.array(said), np.array(held, dtype=float)
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        some = (said >= low) & (said <= high)
        error = np.sqrt((said * (1 - said))[some].sum())
        assert abs((held - said)[some].sum()) < 4.5 * error + 1.5


def test_signed_rank_of_symmetric_differences_is_calibrated():
    rng = np.random.default_rng(2)
    said, held = [], []
    for _ in range(100):
        center = rng.uniform(-0.2, 0.2)
        found = signed_rank(center + rng.normal(0.0, 0.3, 25), rope=0.0, strength=0.0, draws=500)
        said.append(found.better)
        held.append(center > 0.0)
    said, held = np.array(said), np.array(held, dtype=float)
    error = np.sqrt((said * (1 - said)).sum())
    assert abs((held - said).sum()) < 4.5 * error
    confident = np.abs(said - 0.5) > 0.45
    assert (held[confident] == (said[confident] > 0.5)).mean() > 0.93


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="rope: expected a non-negative"):
        signed_rank([0.1], rope=-1.0)
    with pytest.raises(ValueError, match="folds: expected 2 fold numbers"):
        hierarchical([0.1, 0.2], [0])
    with pytest.raises(ValueError, match="correlation: expected"):
        hierarchical([0.1, 0.2], [0, 1], correlation=1.0)
    with pytest.raises(ValueError, match="strength"):
        signed_rank([0.1], strength=-1.0)


@pytest.fixture(scope="module")
def found():
    folds = data.make_folds(data.make_letor(60, rng=0), 3, rng=0)
    first = [fold.test.X[:, 0] for fold in folds]
    noise = [np.random.default_rng(0).normal(size=fold.test.n_documents) for fold in folds]
    scores = {"x0": first, "again": first, "noise": noise}
    return compare(folds, None, scores=scores, measures="map", rope=0.01, baseline="x0"), folds


def test_tables_show_probabilities_beside_p_values(found):
    comparison, _ = found
    frame = comparison.to_frame("map")
    for model in ("signed_rank", "hierarchical"):
        columns = [f"{model}_{region}" for region in ("worse", "rope", "better")]
        assert frame.loc["again", columns].tolist() == [0.0, 1.0, 0.0]
        assert frame.loc["x0", columns].isna().all()
        assert frame.loc["noise", columns].sum() == pytest.approx(1.0)
        table = comparison.bayes("map", rope=0.01, model=model.replace("_", "-"))
        assert table.loc["noise", ["worse", "rope", "better"]].tolist() == pytest.approx(
            frame.loc["noise", columns].tolist()
        )
    assert "with differences up to 0.01 equivalent" in comparison.to_text()
    saved = comparison.to_dict()
    assert saved["rope"] == 0.01
    assert saved["tables"]["ap"]["again"]["signed_rank_rope"] == 1.0
    exchanged = comparison.bayes("map", rope=0.01, baseline="noise").loc["x0"]
    assert exchanged["better"] == comparison.bayes("map", rope=0.01).loc["noise", "worse"]
    with pytest.raises(ValueError, match="model: expected"):
        comparison.bayes(model="t")


def test_without_a_rope_nothing_changes():
    y, qid = [0, 1] * 6, np.repeat(np.arange(6), 2)
    plain = compare_scores({"a": y, "b": 1 - np.array(y)}, y, qid, measures="map")
    assert "Pr (" not in plain.to_text()
    assert not [name for name in plain.to_frame() if "signed" in name]
    with pytest.raises(ValueError, match="rope: expected a non-negative"):
        compare_scores({"a": y}, y, qid, rope=-0.1)


def test_the_command_shows_them(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from permdist.cli import app

    monkeypatch.chdir(tmp_path)
    queries = data.make_letor(30, rng=0)
    data.save_letor(queries, tmp_path / "q.txt")
    for name, column in (("a", 0), ("b", 1)):
        np.save(tmp_path / f"{name}.npy", queries.X[:, column])
    options = ["--scores", "a=a.npy", "--scores", "b=b.npy", "--bayes"]
    result = CliRunner().invoke(app, ["compare", "q.txt", *options, "--identities", "0"])
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "with differences up to 0.005 equivalent" in told
