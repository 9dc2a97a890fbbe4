"""Checkpoints and chains in files: whatever was edited is refused by name, and kept as it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from permdist import GaussianScores, GoodBad, PlackettLuce, diagnostics
from permdist.diagnostics.exchange import strip_checksum
from permdist.samplers import run_chains

TILTED = GoodBad(np.linspace(-0.2, 0.2, 8), [1, 0, 0, 1, 0, 0, 0, 0], tilt="ap", kappa=2.0)
OPTIONS = {"kernel": "adjacent", "rng": 3, "chains": 2, "thin": 5}


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(params=["draws", "moments"])
def run(request, tmp_path):
    """A finished run, and what goes on with it."""
    folder = tmp_path / "run"

    def again(draws=40, dist=TILTED, **more):
        options = {**OPTIONS, "keep": request.param, **more}
        return run_chains(dist, draws, 20, checkpoint=folder, **options)

    again()
    return folder, again


@pytest.mark.parametrize("name", ["run.json", "chain-0.state", "chain-0.orders", "chain-1.values"])
def test_every_byte_counts(run, name):
    folder, again = run
    if not (raw := (folder / name).read_bytes()):
        pytest.skip("nothing is kept there")
    rng = np.random.default_rng(0)
    tried = 0
    for at in rng.choice(len(raw), min(len(raw), 12), replace=False).tolist():
        edited = bytearray(raw)
        edited[at] ^= 1 << int(rng.integers(8))
        for damaged in (bytes(edited), raw[:at]):
            (folder / name).write_bytes(damaged)
            before = snapshot(folder)
            with pytest.raises(ValueError, match=f"checkpoint: .*{name} (is damaged|has format)"):
                again(80)
            assert snapshot(folder) == before
            tried += 1
    assert tried
    (folder / name).write_bytes(raw)
    assert again(80).n_draws == 80


def test_files_of_another_kind_are_refused(run):
    folder, again = run
    kept = (folder / "chain-0.state").read_bytes()
    for data, message in (
        (b"", "the checksum at its end is missing"),
        (b"PK\x03\x04hello", "the checksum at its end is missing"),
        ((folder / "chain-1.state").read_bytes(), "another run or to another chain"),
    ):
        (folder / "chain-0.state").write_bytes(data)
        with pytest.raises(ValueError, match=rf"chain-0\.state is damaged: .*({message})"):
            again(80)
    (folder / "chain-0.state").write_bytes(kept)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**header, "format": 1}))
    with pytest.raises(ValueError, match=r"has format 1, expected 3; start the run again in anoth"):
        again(80)


@pytest.mark.parametrize("keep", ["draws", "moments"])
@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_other_generators_and_exact_draws_go_on_to_the_bit(tmp_path, keep, bits):
    for number, (dist, kernel) in enumerate(
        ((TILTED, "adjacent+transposition"), (GaussianScores([0.0, 1.0, 2.0]), "exact"))
    ):
        options = {**OPTIONS, "kernel": kernel, "keep": keep}
        folder = tmp_path / str(number)

        def run(draws, dist=dist, options=options, **more):
            options["rng"] = np.random.Generator(bits(5))
            return run_chains(dist, draws, 20, **options, **more)

        run(30, checkpoint=folder)
        resumed, whole = run(90, checkpoint=folder), run(90)
        np.testing.assert_array_equal(resumed.orders, whole.orders)
        np.testing.assert_array_equal(resumed.rank_marginals(), whole.rank_marginals())


def test_independent_draws_go_on_with_the_seed_they_began_with(tmp_path):
    dist = PlackettLuce([0.0, 1.0, 2.0])
    options = {"chains": 1, "kernel": "exact"}
    run_chains(dist, 10, rng=5, checkpoint=tmp_path, **options)
    resumed = run_chains(dist, 50, checkpoint=tmp_path, **options)  # no seed: the run's own
    np.testing.assert_array_equal(resumed.orders, run_chains(dist, 50, rng=5, **options).orders)


def test_what_a_killed_writer_left_is_cleared_away(tmp_path):
    run_chains(TILTED, 40, 20, checkpoint=tmp_path, **OPTIONS)
    (tmp_path / ".chain-0.state.0123456789ab.tmp").write_bytes(b"half")
    run_chains(TILTED, 60, 20, checkpoint=tmp_path, **OPTIONS)
    assert not list(tmp_path.glob(".*"))


# ---- netCDF files ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chains():
    return run_chains(TILTED, 30, 20, **OPTIONS)


def test_edited_netcdf_files_are_refused(chains, tmp_path):
    path = tmp_path / "chains.nc"
    chains.save(path)
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for number, at in enumerate(rng.choice(len(raw), 60, replace=False).tolist()):
        edited = bytearray(raw)
        edited[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw[:at] if number < 4 else edited)  # HDF5 is slow to refuse a part
        with pytest.raises(ValueError, match=r"chains\.nc: "):
            diagnostics.load(path)
    path.write_bytes(strip_checksum(raw))
    with pytest.raises(ValueError, match=r"chains\.nc: .*\(the checksum at its end is missing"):
        diagnostics.load(path)
