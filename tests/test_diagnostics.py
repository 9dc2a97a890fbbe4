"""Diagnostics: arviz's own numbers, constants and stuck chains in words, files that come back."""

from __future__ import annotations

import dataclasses

import arviz
import numpy as np
import pytest

from permdist import GoodBad, PlackettLuce, WeightedOrders, diagnostics, plots
from permdist.measures import AP
from permdist.rankings import kendall
from permdist.samplers import RestartSampler, run_chains

MODEL = GoodBad(
    [0.3, 0.1, -0.2, 0.0, 0.2], [1, 0, 0, 1, 0], names=["ale", "bun", "cod", "dill", "egg"]
)


@pytest.fixture(scope="module")
def chains():
    return run_chains(MODEL, 400, kernel="adjacent", thin=30, rng=0)


def test_dataset(chains):
    dataset = chains.to_dataset(["ap", "ndcg@3"])
    assert dict(dataset.sizes) == {"chain": 4, "draw": 400, "item": 5}
    assert list(dataset["item"].values) == list(MODEL.names)
    np.testing.assert_array_equal(dataset["rank"], chains.ranks)
    np.testing.assert_allclose(dataset["log_prob"], MODEL.log_prob(chains.orders))
    np.testing.assert_array_equal(dataset["distance_to_mode"], kendall(chains.orders, MODEL.mode()))
    np.testing.assert_allclose(dataset["ap"], AP()(chains.orders, MODEL.labels))
    assert dataset.attrs["kernel"] == "adjacent"
    assert dataset.attrs["normalized"] == 1
    other = chains.to_dataset(["ap"], labels=[0, 1, 0, 0, 0])
    assert not np.allclose(other["ap"], dataset["ap"])


def test_dataset_refusals(chains):
    plain = dataclasses.replace(chains, dist=None)
    with pytest.raises(TypeError, match="labels: pass the relevance labels of the items"):
        plain.to_dataset(["ap"])
    with pytest.raises(ValueError, match="labels: expected 5 labels"):
        chains.to_dataset(["ap"], labels=[1, 0])
    best = np.unravel_index(plain.log_weight.argmax(), plain.log_weight.shape)
    assert plain.to_dataset()["distance_to_mode"].values[best] == 0


def test_summary_gives_arviz_numbers(chains):
    table = chains.summary().table
    ranks = chains.to_dataset()[["rank", "log_prob"]].astype(float)
    for key, function, options in (
        ("r_hat", arviz.rhat, {}),
        ("ess_bulk", arviz.ess, {"method": "bulk"}),
        ("ess_tail", arviz.ess, {"method": "tail", "prob": (0.05, 0.95)}),
        ("mcse", arviz.mcse, {"method": "mean"}),
    ):
        found = function(ranks, **options)
        for number, name in enumerate(MODEL.names):
            expected = float(found["rank"][number])
            assert table.loc[f"rank[{name}]", key] == pytest.approx(expected, rel=1e-9)
        assert table.loc["log_prob", key] == pytest.approx(float(found["log_prob"]), rel=1e-9)
    assert table.loc["rank[ale]", "mean"] == pytest.approx(chains.ranks[..., 0].mean() + 1)
    assert (table["note"] == "").all()


def test_verdicts(chains):
    good = chains.summary()
    assert good.converged
    assert good.verdict.startswith("The chains agree: R-hat is at most 1.0")
    assert "effective draws per second" in str(good)
    few = dataclasses.replace(
        chains, orders=chains.orders[:, :60], log_weight=chains.log_weight[:, :60]
    ).summary()
    assert not few.converged
    fewer = run_chains(MODEL, 10, kernel="adjacent", rng=0).summary()
    assert "too few for diagnostics" in fewer.verdict
    assert not fewer.converged
    exact = run_chains(MODEL, 10, kernel="exact", rng=0).summary()
    assert "exact and independent" in exact.verdict
    assert exact.converged
    with pytest.raises(ValueError, match="at least 4 draws"):
        run_chains(MODEL, 3, kernel="adjacent", rng=0).summary()


def test_constant_items_are_said_to_be_constant():
    model = PlackettLuce([500.0, 0.0, 0.1, -500.0])
    found = run_chains(model, 300, kernel="adjacent", thin=5, tune=500, rng=0).summary()
    assert found.table.loc["rank[0]", "note"] == "constant"
    assert found.table.loc["rank[3]", "note"] == "constant"
    assert np.isnan(found.table.loc["rank[0]", "r_hat"])
    assert found.converged
    one = run_chains(PlackettLuce([0.0, 500.0]), 50, kernel="adjacent", tune=50, rng=0).summary()
    assert "Every draw is the same ranking" in one.verdict


def test_stuck_chains_are_found_out():
    # The order 0 1 2 3 4 and its reverse are far more probable than all that lies between.
    def two_modes(orders):
        up = (np.diff(orders, axis=1) > 0).sum(axis=1)
        return 12.0 * np.abs(up - 2.0)

    model = WeightedOrders(5, two_modes)
    start = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    chains = run_chains(model, 200, 0, chains=2, kernel="adjacent", thin=3, start=start, rng=0)
    found = chains.summary()
    assert not found.converged
    assert found.table.loc["whole ranking", "r_hat"] > 1.5
    assert "Do not use these draws" in found.verdict


def test_comparison(chains):
    found = diagnostics.compare_to_exact(chains)
    np.testing.assert_allclose(found.exact, MODEL.rank_marginals())
    np.testing.assert_allclose(found.estimated, chains.rank_marginals())
    assert found.worst_error == np.abs(found.exact - found.estimated).max()
    assert found.worst_score < 5
    assert found.total_variation < 3 * found.expected_total_variation
    assert "standard errors" in str(found)
    wrong = GoodBad([-0.3, 0.1, 0.2, 0.0, 0.2], [1, 0, 0, 1, 0])
    assert diagnostics.compare_to_exact(chains, wrong).worst_score > 5
    with pytest.raises(ValueError, match="expected 5 items, got 2"):
        diagnostics.compare_to_exact(chains, PlackettLuce([0.0, 1.0]))
    with pytest.raises(ValueError, match="loaded without their distribution"):
        diagnostics.compare_to_exact(dataclasses.replace(chains, dist=None))


def test_files(chains, tmp_path):
    path = tmp_path / "chains.nc"
    chains.save(path)
    found = diagnostics.load(path, MODEL)
    np.testing.assert_array_equal(found.orders, chains.orders)
    np.testing.assert_array_equal(found.log_prob, chains.log_prob)
    assert (found.names, found.kernel, found.thin) == (chains.names, chains.kernel, chains.thin)
    assert found.summary().verdict == chains.summary().verdict
    copy = tmp_path / "copy.nc"  # which arviz leaves open
    copy.write_bytes(path.read_bytes())
    theirs = arviz.from_netcdf(copy, engine="h5netcdf")["posterior"]
    np.testing.assert_array_equal(theirs["rank"], chains.ranks)
    assert theirs["item"].values.tolist() == list(chains.names)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 3])
    with pytest.raises(ValueError, match="not a netCDF file, or a damaged one"):
        diagnostics.load(path)
    path.write_text("hello")
    with pytest.raises(ValueError, match="not a netCDF file, or a damaged one"):
        diagnostics.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        diagnostics.load(tmp_path / "none.nc")
    with pytest.raises(FileNotFoundError, match="no such directory"):
        chains.save(tmp_path / "none" / "chains.nc")
    chains.to_dataset().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="not a netCDF file, or a damaged one"):
        diagnostics.load(tmp_path / "other.nc")


def test_pictures(chains, tmp_path):
    import matplotlib.pyplot as plt

    for name, figure in {
        "trace": plots.trace(chains),
        "some": plots.trace(chains, items=["ale", "egg"]),
        "rank": plots.rank_plot(chains),
        "autocorrelation": plots.autocorrelation(chains, 20).figure,
        "estimated": plots.estimated(diagnostics.compare_to_exact(chains)).figure,
        "smear": plots.smear(
            RestartSampler("ap", rungs=3, skew=0.0).sample([1, 0, 0, 1, 0], 90, rng=0)
        ).figure,
        "mixing": plots.mixing([5, 10, 20], {"adjacent": [1, 8, 60]}).figure,
    }.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    plt.close("all")
    with pytest.raises(ValueError, match="no item is named 'fig'"):
        plots.trace(chains, items=["fig"])


def test_one_chain_is_compared_with_itself(caplog):
    chains = run_chains(MODEL, 500, chains=1, kernel="adjacent", thin=60, rng=0)
    found = chains.summary()
    assert np.isfinite(found.table["r_hat"]).all()
    assert found.converged
    by_first = np.argsort(chains.ranks[0, :, 0], kind="stable")
    drifting = dataclasses.replace(chains, orders=chains.orders[:, by_first])
    assert not drifting.summary().converged
    few = run_chains(MODEL, 4, chains=1, kernel="adjacent", rng=0).summary()
    assert not few.converged
    moments = run_chains(MODEL, 500, chains=1, kernel="adjacent", thin=10, rng=0, keep="moments")
    assert np.isfinite(moments.summary().table["r_hat"]).all()
    assert not caplog.records


def test_a_chain_that_never_moves_is_named(chains):
    frozen = chains.orders.copy()
    frozen[2] = frozen[2, 0]
    found = dataclasses.replace(chains, orders=frozen).summary()
    assert (found.table["note"][2:] == "constant in chain 2").all()
    assert not found.converged


def test_moments_see_the_autocorrelation():
    model = PlackettLuce(np.zeros(12))
    options = {"kernel": "adjacent", "thin": 11, "rng": 0}
    draws = run_chains(model, 2000, **options).summary().table
    moments = run_chains(model, 2000, keep="moments", **options).summary().table
    ratio = moments["mcse"] / draws.loc[moments.index, "mcse"]
    assert (ratio.iloc[1:] > 0.4).all()
    assert (ratio.iloc[1:] < 2.5).all()


def test_files_know_their_number_of_items(chains, tmp_path):
    chains.save(tmp_path / "chains.nc")
    with pytest.raises(ValueError, match="dist: expected 5 items"):
        diagnostics.load(tmp_path / "chains.nc", PlackettLuce([0.0, 1.0]))
