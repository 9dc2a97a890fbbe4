"""Stores on disk: what is written is what was read, and damage is named."""

import gzip
import json
import shutil

import naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import LONG, bytes_of, small_pieces, write

from permdist import data, strategies
from permdist.data import Queries, is_store, open_store, write_store
from permdist.data import store as layout
from permdist.data.store_sources import last_query
from permdist.models import MLE, blocks
from permdist.models.read_ahead import ReadAhead

__all__ = ["small_pieces"]

TEXT = (
    "2 qid:10 1:0.5 2:1e-3 3:-7 # docid = GX1\n"
    "0 qid:10 1:0.25 3:NULL # docid = GX22\n"
    "# a line of its own\n"
    "1 qid:11 1:+3. 3:12345678901234567890\n"
    "0 qid:7 2:4\n"
    "\n"
    "1 qid:7 1:NULL 2:0.1 3:0.7\n"
    "3 qid:8 1:1 2:2 3:3"
)


# ---- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_text_is_what_a_slow_reader_reads(tmp_path, small_pieces, n_jobs):
    queries = write_store(write(tmp_path, TEXT), tmp_path / "out", dtype="float64", n_jobs=n_jobs)
    X, y, qid = naive.letor_rows(TEXT, 3)
    assert np.array_equal(queries.X, X)
    assert queries.y.tolist() == y
    assert queries.qid.astype(str).tolist() == qid
    assert queries.doc_ids.tolist() == ["GX1", "GX22", "", "", "", ""]
    assert len(json.loads((tmp_path / "out/checksums.json").read_text())["pieces"]) > 1
    assert queries == data.load_letor(tmp_path / "file.txt")
    assert queries.store == tmp_path / "out"
    assert not queries.X.flags.writeable
    assert isinstance(queries.X.base.base, np.memmap)


def test_single_precision_is_the_default(tmp_path):
    queries = write_store(write(tmp_path, TEXT), tmp_path / "out")
    assert queries.X.dtype == np.float32
    assert np.array_equal(queries.X, naive.letor_rows(TEXT, 3)[0].astype(np.float32))


def test_several_files_compressed_or_not(tmp_path, small_pieces):
    lines = TEXT.splitlines(keepends=True)
    one = tmp_path / "a.txt.gz"
    one.write_bytes(gzip.compress("".join(lines[:3]).encode()))
    two = write(tmp_path, b"\xef\xbb\xbf" + "".join(lines[3:]).encode(), "b.txt")
    queries = write_store([one, two], tmp_path / "out", dtype="float64", n_features=3)
    assert queries == data.load_letor(write(tmp_path, TEXT))


def test_a_piece_may_be_wider_than_those_before(tmp_path, small_pieces):
    text = "".join(f"1 qid:{k} {k}:{k}\n0 qid:{k} 1:5\n" for k in range(1, 30))
    queries = write_store(write(tmp_path, text), tmp_path / "out", dtype="float64")
    assert queries == data.load_letor(tmp_path / "file.txt")
    open_store(tmp_path / "out", verify=True)


def test_ids_may_become_texts_later(tmp_path, small_pieces):
    text = "".join(f"1 qid:{q} 1:1 2:2 # d\n0 qid:{q} 1:2 2:1\n" for q in (5, 6, "x7", 8))
    queries = write_store(write(tmp_path, text), tmp_path / "out")
    assert queries.qids.tolist() == ["5", "6", "x7", "8"]
    open_store(tmp_path / "out", verify=True)


def test_companions(tmp_path, small_pieces):
    for name in ("a.txt", "b.txt"):
        write(tmp_path, "1 1:1 2:2\n0 1:2 2:1\n2 1:3 2:3\n", name)
        write(tmp_path, "2\n1\n", f"{name}.query")
    queries = write_store([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "out")
    assert queries.qids.tolist() == [1, 2, 3, 4]
    assert queries.sizes.tolist() == [2, 1, 2, 1]


def test_every_source_makes_the_same_store(tmp_path, small_pieces):
    queries = data.make_letor(7, n_features=4, n_constant=1, rng=0)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(queries.X, columns=names)
    frame.insert(0, "Label", queries.y)
    frame["query_id"] = queries.qid
    table = pa.Table.from_pandas(frame)
    (tmp_path / "parts").mkdir()
    pa.parquet.write_table(table, tmp_path / "parts/all.parquet", row_group_size=7)
    pa.feather.write_feather(table, tmp_path / "t.feather")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    data.save_letor(queries, tmp_path / "q.txt")
    named = Queries(queries.X, queries.y, queries.qid, feature_names=names)
    cut = int(queries.ptr[2])
    pa.parquet.write_table(table.slice(0, cut), tmp_path / "p0.parquet", row_group_size=4)
    pa.parquet.write_table(table.slice(cut), tmp_path / "p1.parquet")
    sources = {
        "queries": queries,
        "named": named,
        "arrays": (queries.X, queries.y, queries.qid),
        "blocks": (queries.where([k]) for k in range(7)),
        "text": tmp_path / "q.txt",
        "frame": frame,
        "arrow": table,
        "reader": table.to_reader(),
        "parquet": [tmp_path / "p0.parquet", str(tmp_path / "p1.parquet")],
        "folder": tmp_path / "parts",
        "feather": tmp_path / "t.feather",
        "csv": tmp_path / "t.csv.gz",
    }
    write_store(queries, tmp_path / "expected", dtype="float64")
    expected = bytes_of(tmp_path / "expected")
    for name, source in sources.items():
        made = write_store(source, tmp_path / name, dtype="float64")
        assert bytes_of(tmp_path / name) == expected, name
        has_names = name in ("named", "frame", "arrow", "reader", "parquet", "folder")
        has_names |= name in ("feather", "csv")
        assert made.feature_names == (tuple(names) if has_names else None)
        open_store(tmp_path / name, verify=True)


@settings(max_examples=20)
@given(queries=strategies.queries())
def test_collections_survive(tmp_path_factory, queries):
    folder = tmp_path_factory.mktemp("store") / "out"
    assert write_store(queries, folder, dtype="float64") == queries
    opened = open_store(folder, verify=True)
    assert opened == queries
    assert opened.describe() == queries.describe()


@given(
    st.lists(
        st.sampled_from([b"1 qid:1 1:2\n", b"0 qid:2\n", b" 3 qid:33 # x\n", b"# x\n", b"\n"])
    ),
    st.sampled_from([b"", b"1 q"]),
)
def test_the_last_query_is_found(lines, rest):
    text = b"".join(lines) + rest
    assert last_query(text) == naive.last_query_start(text)


def test_columns_may_be_named(tmp_path):
    frame = pd.DataFrame(
        {"u": ["x", "x", "y"], "v": [1.0, 0, 2], "w": [3, 4, 5], "n": [None, 1, 2]}
    )
    frame["name"] = ["d1", None, "d3"]
    chosen = {"qid": "u", "label": "v", "doc_id": "name", "features": ["n", "w"]}
    queries = write_store(frame, tmp_path / "out", **chosen, null="missing")
    assert queries.feature_names == ("n", "w")
    assert queries.has_missing
    assert queries.doc_ids.tolist() == ["d1", "", "d3"]
    assert queries.qids.tolist() == ["x", "y"]
    assert queries.describe().missing_values == 1
    filled = write_store(frame, tmp_path / "filled", **chosen)
    assert filled.X.tolist() == [[1.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_descriptions_are_made_piece_by_piece(tmp_path, monkeypatch):
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [1.0, 2.0]])
    queries = Queries(X, [0, 1, 0, 2, 1], [1, 1, 2, 3, 3])
    whole = queries.describe()
    monkeypatch.setattr("permdist.data.description.PIECE", 2)
    assert write_store(queries, tmp_path / "out").describe() == whole == queries.describe()
    assert whole.conflicting_documents == 4
    assert whole.constant_features == (1,)


# ---- opening -------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path, small_pieces):
    write_store(write(tmp_path, LONG), tmp_path / "out")
    return tmp_path / "out"


def edit(file, **changes):
    """Change the header of a store, with the right checksum."""
    header = json.loads(file.read_text())
    header.update(changes)
    header.pop("checksum")
    header["checksum"] = layout.checksum_of(header)
    file.write_text(json.dumps(header))


def test_damage_is_named_with_its_piece(made):
    open_store(made, verify=True)
    for name, where in (
        ("X", 128 + 12 * 11),
        ("y", 128 + 8 * 11),
        ("qids", -8 * 14),
        ("ptr", -112),
    ):
        raw = bytearray((made / f"{name}.npy").read_bytes())
        raw[where] ^= 1
        changed = made.parent / f"changed-{name}"
        shutil.copytree(made, changed)
        (changed / f"{name}.npy").write_bytes(raw)
        if name != "ptr":
            open_store(changed)
        with pytest.raises(ValueError, match=rf"{name}.npy: damaged") as told:
            open_store(changed, verify=True)
        if name != "ptr":
            documents = (10, 11) if name in "Xy" else (12, 13)
            assert "documents {} to {} (queries number".format(*documents) in str(told.value)


def test_what_is_no_whole_store_is_refused(made, tmp_path):
    header = made / "header.json"
    good = header.read_text()
    for change, message in {
        "version": r"header.json: the store has version 2 of the format, this permdist reads",
        "format": r"header.json: expected the header of a store",
        "n_documents": r"X.npy: expected shape \(41, 3\) as header.json says, got \(40, 3\)",
        "has_missing": r"header.json: expected an entry for has_missing",
    }.items():
        edit(header, **{change: {"version": 2, "n_documents": 41}.get(change, "x")})
        with pytest.raises(ValueError, match=message):
            open_store(made)
        header.write_text(good)
    for text, message in {
        good.replace('"n_documents": 40', '"n_documents": 41'): "do not match their checksum",
        good[:-10]: "header.json: damaged: expected JSON",
        "[]": "header.json: damaged: expected a JSON object",
    }.items():
        header.write_text(text)
        with pytest.raises(ValueError, match=message):
            open_store(made)
    header.write_text(good)
    raw = (made / "X.npy").read_bytes()
    for content, message in {
        raw[:-1]: r"X.npy: truncated: expected 608 bytes, got 607",
        raw + b"x": r"X.npy: damaged: expected 608 bytes, got 609",
        b"x" * 608: r"X.npy: damaged: it has no header of a .npy file",
        raw.replace(b"<f4", b"<i4"): r"X.npy: expected dtype <f4 as header.json says, got <i4",
        raw.replace(b"False", b"True "): r"X.npy: expected C order, got Fortran order",
    }.items():
        (made / "X.npy").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            open_store(made)
    (made / "X.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"X.npy: this file of the store is missing"):
        open_store(made)
    (made / "X.npy").write_bytes(raw)
    (made / "checksums.json").write_text("{}")
    with pytest.raises(ValueError, match=r"checksums.json: the contents do not match"):
        open_store(made, verify=True)
    (made / "checksums.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"checksums.json: this file of the store is miss"):
        open_store(made, verify=True)
    with pytest.raises(ValueError, match=r"expected a store, a folder with header.json"):
        open_store(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none: no such folder"):
        open_store(tmp_path / "none")
    assert is_store(made)
    assert not is_store(tmp_path)


def test_a_store_is_used_as_queries_are(made):
    opened, read = open_store(made), data.load_letor(made.parent / "file.txt")
    single = Queries(read.X.astype(np.float32), read.y, read.qid, doc_ids=read.doc_ids)
    assert opened.where([2, 0]) == single.where([2, 0])
    assert [query.qid for query in opened] == [query.qid for query in read]
    assert opened.normalize().X.tolist() == single.normalize().X.tolist()
    one, two = MLE().fit(opened), MLE().fit(single)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.predict(opened), two.predict(single))
    assert one.score(opened) == two.score(single)
    assert opened.where([1]).store is None


def test_blocks_of_a_store_are_read_ahead(tmp_path, monkeypatch):
    queries = data.make_letor(40, n_documents=(10, 10), n_features=3, rng=0)
    store = data.write_store(queries, tmp_path / "store")
    asked = []
    monkeypatch.setattr(blocks, "block_documents", lambda _: 20)
    monkeypatch.setattr(
        ReadAhead, "__call__", lambda self, first, last: asked.append((first, last))
    )
    table = blocks.Table(store, keep=np.arange(40) != 5)
    np.testing.assert_allclose(
        table.scores(np.ones(3)), np.delete(store.X, slice(50, 60), 0).sum(1)
    )
    rows = np.concatenate([np.arange(*one) for one in asked])
    wanted = np.delete(np.arange(400), slice(50, 60))[20:]  # the first block is read at once
    np.testing.assert_array_equal(np.sort(rows), wanted)
    asked.clear()
    blocks.Table(queries).scores(np.ones(3))  # in memory
    assert not asked


def test_what_is_asked_for_lies_in_the_file(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(30_000.0).reshape(-1, 3))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for X in (mapped, np.asarray(mapped), mapped[7:]):
        ahead = ReadAhead(X)
        assert ahead
        ahead(0, len(X))  # an address outside the file is an error
        ahead(len(X) - 1, len(X))
        ahead(5, 5)
    assert not ReadAhead(np.array(mapped))
    assert not ReadAhead(mapped[:, 1:])
