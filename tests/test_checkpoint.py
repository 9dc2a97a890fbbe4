"""Checkpoints and chains in files: whatever was edited is refused by name, and kept as it is."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from permdist import GaussianScores, GoodBad, PlackettLuce, diagnostics
from permdist._seals import seal, unseal
from permdist.samplers import checkpoint as module
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


def unpack(folder, chain=0):
    line, _, body = unseal((folder / f"chain-{chain}.state").read_bytes()).partition(b"\n")
    head, arrays, at = json.loads(line), {}, 0
    for name, (dtype, shape) in head["arrays"].items():
        size = int(np.prod(shape, dtype=int))
        arrays[name] = np.frombuffer(body, dtype, size, at).reshape(shape).copy()
        at += arrays[name].nbytes
    return head["meta"], arrays


def forge(folder, meta, arrays, chain=0):
    """Write a state with a right checksum, as somebody could who knows the format."""
    (folder / f"chain-{chain}.state").write_bytes(module._pack(meta, arrays))


def test_what_is_unpacked_and_packed_again_goes_on(run):
    folder, again = run
    forge(folder, *unpack(folder))
    longer = again(80)
    assert longer.n_draws == 80


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
        (seal(b"hello\n"), "Expecting value"),
        (seal(b"[" * 100_000), "recursion|Expecting value"),
        (seal(b"{}\n"), "its arrays are not those of this run"),
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


def edit(name, change):
    def apply(meta, arrays):
        if name in meta:
            meta[name] = change(meta[name])
        else:
            arrays[name] = change(arrays[name])

    return apply


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


FORGED = {
    "zeros for an order": (edit("state order", np.zeros_like), "expected orders of 8 items"),
    "an item far out": (edit("state order", put(2, 10**12)), "expected orders of 8 items"),
    "a negative item": (edit("state order", put(0, -1)), "expected orders of 8 items"),
    "places in the table": (edit("state integers", put(3, 10**9)), "do not follow from its order"),
    "no log-weight": (edit("state value", put(0, np.nan)), "finite or -inf"),
    "another type": (edit("state order", lambda a: a.astype(np.int32)), "arrays are not those"),
    "another shape": (edit("state order", lambda a: a[:-1]), "arrays are not those"),
    "an object": (edit("rng", lambda _: None), "rng: expected the state of a PCG64"),
    "another generator": (
        edit("rng", lambda r: {**r, "bit_generator": "MT19937"}),
        "expected 'PCG64', got 'MT19937'",
    ),
    "a generator's flag": (edit("rng", lambda r: {**r, "has_uint32": 7}), "at most 1, got 7"),
    "a generator's number": (
        edit("rng", lambda r: {**r, "state": {**r["state"], "state": -1}}),
        "state: expected a whole number",
    ),
    "more draws": (edit("done", lambda done: done + 1), "to be kept|steps and no more"),
    "fewer draws": (edit("done", lambda done: done - 30), "to be kept|steps and no more"),
    "a negative count": (edit("done", lambda _: -5), "done: expected a whole number"),
    "a count that is none": (edit("done", lambda _: True), "done: expected a whole number"),
    "a huge count": (edit("done", lambda _: 2**70), "to be kept|steps and no more"),
    "time": (edit("seconds", lambda _: -1.0), "seconds: expected a non-negative number"),
    "time without end": (edit("seconds", lambda _: float("inf")), "seconds: expected"),
    "sizes": (edit("orders", lambda size: size + 32), "expected .* bytes, got"),
    "sizes below zero": (edit("values", lambda _: -8), "values: expected a whole number"),
    "moves": (edit("moved", lambda a: -a), "steps and no more moves"),
    "steps": (edit("tuned", put((0, 0), 10**6)), "steps and no more moves"),
    "another run": (edit("run", lambda _: "mine"), "another run or to another chain"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_no_run_can_have_written_is_refused_with_a_right_checksum(run, name):
    folder, again = run
    apply, message = FORGED[name]
    meta, arrays = unpack(folder)
    apply(meta, arrays)
    forge(folder, meta, arrays)
    before = snapshot(folder)
    with pytest.raises(ValueError, match=rf"checkpoint: .*chain-0\..*is damaged: .*({message})"):
        again(80)
    assert snapshot(folder) == before


MOMENTS = {
    "draws": ("progress", put(0, 7), "expected 40 draws, got 7"),
    "blocks that overflow": ("progress", put(1, 0), "in blocks of 0"),
    "counts": ("counts", put((0, 0), 10**6), "do not sum to the draws"),
    "sums": ("blocks", put((0, 0), np.nan), "expected finite sums"),
    "positions": ("blocks", put((0, 0), 1e6), "do not follow from their counts"),
    "squares": ("squares", put(1, np.inf), "expected finite sums"),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_that_no_run_can_have_are_refused(tmp_path, name):
    options = {**OPTIONS, "keep": "moments", "checkpoint": tmp_path}
    run_chains(TILTED, 40, 20, **options)
    array, change, message = MOMENTS[name]
    meta, arrays = unpack(tmp_path)
    edit(f"moments {array}", change)(meta, arrays)
    forge(tmp_path, meta, arrays)
    with pytest.raises(ValueError, match=rf"chain-0\.state is damaged: moments: .*{message}"):
        run_chains(TILTED, 80, 20, **options)


def test_draws_that_are_no_orders_are_refused_with_a_right_checksum(tmp_path):
    run_chains(TILTED, 40, 20, checkpoint=tmp_path, **OPTIONS)
    file = tmp_path / "chain-0.orders"
    for edited, message in (
        (np.zeros_like, r"expected orders of 8 items, got \[0, 0, 0, 0, 0, 0, 0, 0\] at index 0"),
        (lambda a: a[::-1], "its last draw is not the state of its chain"),
    ):
        orders = np.frombuffer(file.read_bytes(), np.int32).reshape(-1, 8)
        raw = np.ascontiguousarray(edited(orders)).tobytes()
        file.write_bytes(raw)
        meta, arrays = unpack(tmp_path)
        meta["orders check"] = module.zlib.crc32(raw)
        forge(tmp_path, meta, arrays)
        with pytest.raises(ValueError, match=message):
            run_chains(TILTED, 80, 20, checkpoint=tmp_path, **OPTIONS)
        file.write_bytes(orders.tobytes())


def test_a_header_that_no_run_can_have_written_is_refused(tmp_path):
    run_chains(TILTED, 40, 20, checkpoint=tmp_path, **OPTIONS)
    header = json.loads((tmp_path / "run.json").read_text())
    options = {**OPTIONS, "kernel": "auto", "thin": None}
    for changed, message in (
        ({"thin": "many"}, "thin: expected a whole number"),
        ({"thin": 0}, "thin: expected a whole number"),
        ({"tune": -1}, "tune: expected a whole number"),
        ({"kernel": ["adjacent"]}, "kernel: expected a text"),
        ({"kernel": "gibbs"}, "kernel: expected one of"),
    ):
        facts = {key: value for key, value in (header | changed).items() if key != "checksum"}
        text = json.dumps({**facts, "checksum": module._digest(facts)})
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            run_chains(TILTED, 80, checkpoint=tmp_path, **options)


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
    path.write_bytes(unseal(raw))
    with pytest.raises(ValueError, match=r"chains\.nc: not valid chains \(the checksum"):
        diagnostics.load(path)


def rewrite(path, change):
    """Edit the data of a file, and make its checksum right again."""
    import h5netcdf
    import xarray
    from xarray.backends import H5NetCDFStore

    with xarray.open_dataset(io.BytesIO(unseal(path.read_bytes())), engine="h5netcdf") as opened:
        dataset = opened.load()
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        change(dataset).dump_to_store(H5NetCDFStore(file))
    path.write_bytes(seal(buffer.getvalue()))


def test_what_files_hold_is_checked(chains, tmp_path):
    path = tmp_path / "chains.nc"
    chains.save(path)
    raw = path.read_bytes()
    rewrite(path, lambda dataset: dataset)
    np.testing.assert_array_equal(diagnostics.load(path).orders, chains.orders)
    for change, message in (
        (lambda d: d.assign(order=d["order"] * 0), "order: "),
        (lambda d: d.assign(order=d["order"] * 1.0), "expected three dimensions of integers"),
        (lambda d: d.assign(log_weight=d["log_weight"] + np.inf), "log_weight: expected numbers"),
        (lambda d: d.assign(accept_rate=d["accept_rate"] + 2), "accept_rate: expected 2 numbers"),
        (lambda d: d.drop_vars("log_weight"), "'log_weight' is missing|No variable named"),
        (lambda d: d.assign_attrs(thin=0), "thin, tune, seconds: got 0"),
        (lambda d: d.assign_attrs(seconds=np.nan), "thin, tune, seconds"),
        (lambda d: d.assign_attrs(normalizer="Infinity"), "normalizer: expected a finite number"),
        (lambda d: d.assign_attrs(normalizer="["), "Expecting value"),
        (lambda d: d.assign_coords(item=["x"] * 8), "item: expected 8 different names, got 1"),
        (lambda d: d.isel(position=slice(0, 3)), "item: expected 3 different names, got 8"),
    ):
        path.write_bytes(raw)
        rewrite(path, change)
        with pytest.raises(ValueError, match=rf"chains\.nc: not valid chains \(.*({message})"):
            diagnostics.load(path)
