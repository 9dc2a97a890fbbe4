"""Checkpoints and chains in files: whatever was edited is refused by name, and kept as it is."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from permdist import GaussianScores, GoodBad, PlackettLuce, diagnostics
from permdist.diagnostics.exchange import strip_checksum
from permdist.samplers import run_chains

TILTED = GoodBad(np.linspace(-0.2, 0.2, 8), [1, 0, 0, 1, 0, 0, 0, 0], tilt="ap", kappa=2.0)
OPTIONS = {"kernel": "adjacent", "rng": 3, "chains": 2, "thin": 5}


@pytest.mark.parametrize("keep", ["draws", "moments"])
def test_damage_is_refused_or_computed_again(tmp_path, keep):
    path, rng = tmp_path / "run", np.random.default_rng(0)

    def run(draws, **more):
        return run_chains(TILTED, draws, 20, keep=keep, **OPTIONS, **more)

    run(40, checkpoint=path)
    raw, whole = path.read_bytes(), run(80)
    refused = set()
    header = raw.index(b"\n", raw.index(b"\n") + 1)
    for at in [*rng.integers(header, size=6).tolist(), *rng.integers(len(raw), size=6).tolist()]:
        edited = bytearray(raw)
        edited[at] ^= 1 << int(rng.integers(8))
        for damaged in (bytes(edited), raw[:at]):
            path.write_bytes(damaged)
            found = None
            with contextlib.suppress(ValueError):
                found = run(80, checkpoint=path)
            refused.add(found is None)
            if found is None:
                assert path.read_bytes() == damaged
            else:
                np.testing.assert_array_equal(found.orders, whole.orders)
                np.testing.assert_array_equal(found.rank_marginals(), whole.rank_marginals())
    assert refused == {True, False}
    path.write_bytes(b"PK\x03\x04hello")
    with pytest.raises(ValueError, match="is something else"):
        run(80, checkpoint=path)


@pytest.mark.parametrize("keep", ["draws", "moments"])
@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_other_generators_and_exact_draws_go_on_to_the_bit(tmp_path, keep, bits):
    for number, (dist, kernel) in enumerate(
        ((TILTED, "adjacent+transposition"), (GaussianScores([0.0, 1.0, 2.0]), "exact"))
    ):
        options = {**OPTIONS, "kernel": kernel, "keep": keep}
        path = tmp_path / str(number)

        def run(draws, dist=dist, options=options, **more):
            options["rng"] = np.random.Generator(bits(5))
            return run_chains(dist, draws, 20, **options, **more)

        run(30, checkpoint=path)
        resumed, whole = run(90, checkpoint=path), run(90)
        np.testing.assert_array_equal(resumed.orders, whole.orders)
        np.testing.assert_array_equal(resumed.rank_marginals(), whole.rank_marginals())


def test_independent_draws_go_on_with_the_seed_they_began_with(tmp_path):
    dist = PlackettLuce([0.0, 1.0, 2.0])
    options = {"chains": 1, "kernel": "exact"}
    path = tmp_path / "run"
    run_chains(dist, 10, rng=5, checkpoint=path, **options)
    resumed = run_chains(dist, 50, checkpoint=path, **options)  # no seed: the run's own
    np.testing.assert_array_equal(resumed.orders, run_chains(dist, 50, rng=5, **options).orders)


# ---- netCDF files ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chains():
    return run_chains(TILTED, 30, 20, **OPTIONS)


def test_edited_netcdf_files_are_refused(chains, tmp_path):
    path = tmp_path / "chains.nc"
    chains.save(path)
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for number, at in enumerate(rng.choice(len(raw), 15, replace=False).tolist()):
        edited = bytearray(raw)
        edited[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw[:at] if number < 2 else edited)  # HDF5 is slow to refuse a part
        with pytest.raises(ValueError, match=r"chains\.nc: "):
            diagnostics.load(path)
    path.write_bytes(strip_checksum(raw))
    with pytest.raises(ValueError, match=r"chains\.nc: .*\(the checksum at its end is missing"):
        diagnostics.load(path)
