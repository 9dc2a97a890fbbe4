"""Stores on disk: what is written is what was read, whole or not at all, and damage is named."""

import gzip
import json
import os
import shutil
import signal

import naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from faults.disks import small_disk
from hypothesis import given, settings
from hypothesis import strategies as st

from permdist import data, strategies
from permdist.data import Queries, is_store, open_store, write_store
from permdist.data import store as layout
from permdist.data.store_text import last_query
from permdist.models import MLE

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


@pytest.fixture
def small_pieces(monkeypatch):
    """Let a few lines be many pieces."""
    monkeypatch.setattr("permdist.data.store_text.PIECE", 50)
    monkeypatch.setattr("permdist.data.store_blocks.BLOCK", 24)
    monkeypatch.setattr("permdist.data.store_readers.BLOCK", 60)


def write(folder, text, name="file.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def bytes_of(folder):
    """Return the arrays of a store as bytes."""
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def nothing_left(folder):
    return not [path.name for path in folder.iterdir() if path.name.startswith((".", "out"))]


# ---- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_text_is_what_a_slow_reader_reads(tmp_path, small_pieces, n_jobs):
    queries = write_store(write(tmp_path, TEXT), tmp_path / "out", dtype="float64", n_jobs=n_jobs)
    X, y, qid = naive.letor_rows(TEXT, 3)
    assert np.array_equal(queries.X, X)
    assert queries.y.tolist() == y
    assert queries.qid.astype(str).tolist() == qid
    assert queries.doc_ids.tolist() == ["GX1", "GX22", "", "", "", ""]
    assert len(json.loads((tmp_path / "out/checksums.json").read_text())["pieces"]) > 2
    assert queries == data.load_letor(tmp_path / "file.txt")
    assert queries.store == tmp_path / "out"
    assert not queries.X.flags.writeable
    assert isinstance(queries.X.base, np.memmap)


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
    queries = data.make_letor(7, documents=5, n_features=4, n_constant=1, rng=0)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(queries.X, columns=names)
    frame.insert(0, "Label", queries.y)
    frame["query_id"] = queries.qid
    table = pa.Table.from_pandas(frame)
    pa.parquet.write_table(table.slice(0, 9), tmp_path / "p0.parquet", row_group_size=4)
    pa.parquet.write_table(table.slice(9), tmp_path / "p1.parquet")
    (tmp_path / "parts").mkdir()
    pa.parquet.write_table(table, tmp_path / "parts/all.parquet", row_group_size=7)
    pa.feather.write_feather(table, tmp_path / "t.feather")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    data.save_letor(queries, tmp_path / "q.txt")
    named = Queries(queries.X, queries.y, queries.qid, feature_names=names)
    # A query goes over the boundary between the two Parquet files, which is refused below.
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


# ---- interrupted, restarted ----------------------------------------------------------------------


def stop_after(number):
    calls = iter(range(1, 1000))

    def progress(done, total):
        if next(calls) == number:
            raise KeyboardInterrupt

    return progress


LONG = "".join(f"{k % 3} qid:{k // 2} 1:{k} 2:{k * k} 3:1 # docid = d{k}\n" for k in range(40))


def test_an_interrupted_conversion_goes_on(tmp_path, small_pieces, monkeypatch):
    file, out = write(tmp_path, LONG), tmp_path / "out"
    write_store(file, tmp_path / "expected")
    for number in (3, 4):
        with pytest.raises(KeyboardInterrupt):
            write_store(file, out, progress=stop_after(number))
        assert not out.exists()
    entries = (tmp_path / ".out.part/journal").read_text().splitlines()[1:]
    assert len(entries) == 7
    from permdist.data.store_text import TextFiles

    read = []
    before = TextFiles._read
    monkeypatch.setattr(
        TextFiles, "_read", lambda self, text, *rest: read.append(text) or before(self, text, *rest)
    )
    write_store(file, out)
    pieces = json.loads((out / "checksums.json").read_text())["pieces"]
    assert len(read) == len(pieces) - 7
    assert bytes_of(out) == bytes_of(tmp_path / "expected")
    assert not (tmp_path / ".out.part").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked child")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_conversion_goes_on(tmp_path, small_pieces):
    file, out = write(tmp_path, LONG), tmp_path / "out"
    write_store(file, tmp_path / "expected")
    child = os.fork()
    if child == 0:
        calls = iter(range(1000))
        kill = lambda *_: next(calls) < 5 or os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        write_store(file, out, progress=kill)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not out.exists()
    # The machine may also have stopped: bytes of the fourth block never came to the disk.
    with open(tmp_path / ".out.part/store/X.npy", "r+b") as X:
        X.truncate(128 + 3 * 24 + 5)
    with open(tmp_path / ".out.part/journal", "ab") as journal:
        journal.write(b'{"documents": 2, "quer')
    write_store(file, out)
    assert bytes_of(out) == bytes_of(tmp_path / "expected")
    open_store(out, verify=True)


def test_blocks_that_are_there_are_recognized(tmp_path, small_pieces):
    def blocks(shift):
        for k in range(8):
            X = np.full((2, 3), k + (shift if k > 3 else 0.0))
            yield Queries(X, [0, 1], [k, k])

    with pytest.raises(KeyboardInterrupt):
        write_store(blocks(0.0), tmp_path / "out", progress=stop_after(6))
    # The blocks from the fifth on are others now.
    queries = write_store(blocks(0.5), tmp_path / "out")
    assert queries == Queries.concatenate(blocks(0.5))
    with pytest.raises(KeyboardInterrupt):
        write_store(blocks(0.0), tmp_path / "short", progress=stop_after(6))
    assert len(write_store(list(blocks(0.0))[:2], tmp_path / "short")) == 2


def test_a_changed_source_begins_anew(tmp_path, small_pieces):
    with pytest.raises(KeyboardInterrupt):
        write_store(write(tmp_path, LONG), tmp_path / "out", progress=stop_after(3))
    write(tmp_path, LONG.replace("1:1 ", "1:7 "))
    assert write_store(tmp_path / "file.txt", tmp_path / "out").X[1, 0] == 7.0
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "label": [0, 1, 0, 1], "a": [1.0, 2, 3, 4]})
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=1)
    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path / "t.parquet", tmp_path / "p", progress=stop_after(1))
    assert write_store(tmp_path / "t.parquet", tmp_path / "p").X.ravel().tolist() == [1, 2, 3, 4]


def test_companions_go_on_too(tmp_path, small_pieces):
    names = ["a.txt", "b.txt"]
    for name in names:
        write(tmp_path, "1 1:1 2:2\n0 1:2 2:1\n2 1:3 2:3\n" * 4, name)
        write(tmp_path, "3\n" * 4, f"{name}.query")
    files = [tmp_path / name for name in names]
    write_store(files, tmp_path / "expected")
    for number in (2, 6):
        with pytest.raises(KeyboardInterrupt):
            write_store(files, tmp_path / f"out{number}", progress=stop_after(number))
        write_store(files, tmp_path / f"out{number}")
        assert bytes_of(tmp_path / f"out{number}") == bytes_of(tmp_path / "expected")


def test_two_conversions_to_one_place_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    queries = data.make_letor(3, rng=0)

    def blocks():
        yield queries
        with pytest.raises(OSError, match="out: another process is writing this store"):
            write_store(queries, tmp_path / "out")

    assert write_store(blocks(), tmp_path / "out") == write_store(queries, tmp_path / "again")


def test_what_is_there_is_kept(tmp_path):
    queries = data.make_letor(3, rng=0)
    write_store(queries, tmp_path / "out")
    with pytest.raises(FileExistsError, match="exists already; overwrite=True"):
        write_store(queries, tmp_path / "out")
    again = write_store(queries.where([1]), tmp_path / "out", overwrite=True)
    assert len(again) == len(open_store(tmp_path / "out")) == 1
    (tmp_path / "folder").mkdir()
    for place in ("folder", "out/X.npy"):
        with pytest.raises(FileExistsError, match="not a store: not replaced"):
            write_store(queries, tmp_path / place, overwrite=True)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        write_store(queries, tmp_path / "no/out")


# ---- full disks ----------------------------------------------------------------------------------


def test_room_is_checked_before(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(
        OSError, match=r"expected about .* of free disk space, got 10 bytes"
    ) as told:
        write_store(data.make_letor(30, rng=0), tmp_path / "out")
    assert told.value.filename == str(tmp_path / "out")
    assert nothing_left(tmp_path)


def test_a_disk_that_fills_up(tmp_path):
    def blocks():
        for k in range(1000):
            yield Queries(np.random.default_rng(k).random((50, 40)), np.arange(50), np.full(50, k))

    place = tmp_path / "disk"
    with small_disk(place, 400) as mounted:
        if not mounted:
            pytest.skip("no small file system can be mounted here")
        with pytest.raises(OSError, match="No space left on device; nothing was written") as told:
            write_store(blocks(), place / "out")
        assert told.value.filename == str(place / "out")
        assert nothing_left(place)


# ---- mistakes ------------------------------------------------------------------------------------

GOOD = "2 qid:1 1:1 2:2\n0 qid:1 1:2 2:1\n1 qid:2 1:3 2:3\n"


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([GOOD, "0.5 qid:3 1:1 2:2\n"], {}, r"b.txt, line 1: expected a label: a non-negative"),
        ([GOOD + "# x\n1 qid:3 1:x\n"], {}, r"a.txt, line 5: a feature's value is not a number"),
        (
            [GOOD, "1 qid:2 1:1 2:2\n"],
            {},
            r"b.txt, line 1: query 2 is in \S*a.txt too; a query must",
        ),
        ([GOOD + "1 qid:1 1:1\n"], {}, r"a.txt, line 4: query 1 starts again after other queries"),
        (
            [GOOD, "1 qid:3 1:1\n"],
            {},
            r"b.txt: expected 2 features as in \S*a.txt, got 1; pass n_fea",
        ),
        ([GOOD, "1 qid:3 3:1\n"], {}, r"b.txt: expected 2 features as in \S*a.txt, got 3"),
        (
            [GOOD, "1 qid:3 3:1\n"],
            {"n_features": 2},
            r"b.txt: expected 2 features, found feature num",
        ),
        ([GOOD, "# nothing\n"], {}, r"b.txt: expected at least one document, the file has none"),
        ([GOOD + "1 qid:4 1:7"], {}, r"a.txt, line 4: the file is truncated: its last line has 1"),
        ([GOOD + "1 qid:4 1:1e39\n"], {}, r"a.txt, line 4: expected values that fit into float32"),
        ([GOOD + "1 qid:4 1:NULL\n"], {"null": "error"}, r"a.txt, line 4: a feature is NULL"),
        ([GOOD + "1 qid:4 0:1\n"], {}, r"a.txt, line 4: a feature number is below 1"),
        ([GOOD + "\x00\n"], {}, r"a.txt, line 4: binary data"),
        (["1 1:1\n", GOOD], {}, r"a.txt, line 1: expected qid:ID after the label, got none, and"),
        ([GOOD], {"query_file": "sizes"}, r"query_file: expected none, the lines of"),
        ([GOOD, GOOD], {"query_file": "sizes"}, r"query_file: only for a single file, got 2"),
        ([GOOD], {"qid": "q"}, r"qid: only for tables"),
        ([GOOD], {"dtype": "float16"}, r"dtype: expected one of float32, float64"),
        ([GOOD], {"n_jobs": 0}, r"n_jobs: expected a number of threads or -1, got 0"),
    ],
)
def test_text_with_mistakes(tmp_path, monkeypatch, small_pieces, texts, options, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "3\n", "sizes")
    files = [write(tmp_path, text, f"{'ab'[k]}.txt") for k, text in enumerate(texts)]
    with pytest.raises(ValueError, match=message) as told:
        write_store(files, tmp_path / "out", **options)
    assert "\n" not in str(told.value)
    assert nothing_left(tmp_path)


def frame_of(**columns):
    return pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 2], "a": [1.0, 2.0, 3.0], **columns})


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"label": [0, 0.5, 1]}, {}, r"source, row 1: expected a label .* got 0.5"),
        ({"label": [0, -1, 1]}, {}, r"source, row 1: expected a label .* got -1"),
        ({"label": ["a", "b", "c"]}, {}, r"source, row 0: expected labels that are numbers"),
        ({"qid": [1, 2, 1]}, {}, r"source, row 2: query 1 starts again"),
        ({"qid": [1, 1.5, 2]}, {}, r"source, row 1: expected a query id, .* got 1.5"),
        ({"qid": ["a", None, "b"]}, {}, r"source, row 1: expected a query id, .* got (None|nan)"),
        ({"b": ["x", "y", "z"]}, {}, r"source, row 0: expected numbers in column 'b'"),
        ({"b": [1.0, np.inf, 2.0]}, {}, r"source, row 1: expected finite numbers"),
        ({"b": [1.0, np.nan, 2.0]}, {"null": "error"}, r"source, row 1: a feature is NULL"),
        ({}, {"label": "grade"}, r"source: expected a column 'grade' \(label\)"),
        (
            {},
            {"features": ["aa"]},
            r"source: expected a column 'aa' \(features\); did you mean 'a'",
        ),
        ({}, {"n_features": 3}, r"n_features: only for text files"),
    ],
)
def test_tables_with_mistakes(tmp_path, small_pieces, columns, options, message):
    with pytest.raises(ValueError, match=message):
        write_store(frame_of(**columns), tmp_path / "out", **options)
    assert nothing_left(tmp_path)


def test_files_of_tables_with_mistakes(tmp_path, monkeypatch):
    frame_of().to_csv(tmp_path / "a.csv", index=False)
    frame_of(b=1.0).to_csv(tmp_path / "b.csv", index=False)
    frame_of(qid=[3, 3, 4]).drop(columns="label").to_csv(tmp_path / "c.csv", index=False)
    frame_of(qid=[2, 3, 4]).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.parquet").write_bytes(b"PAR1 or not")
    (tmp_path / "empty").mkdir()
    write(tmp_path, GOOD, "f.txt")
    for names, message in {
        "a.csv b.csv": r"b.csv: column 4 is 'b', expected none",
        "a.csv c.csv": r"c.csv: expected a column 'label', got qid, a; name it with label=...",
        "a.csv d.csv": r"d.csv, line 2: query 2 is in \S*a.csv too",
        "a.csv f.txt": r"f.txt: expected a file of the same kind as \S*a.csv",
        "e.parquet": r"e.parquet: cannot be read",
        "empty": r"empty: expected a file, or a folder with .parquet files",
    }.items():
        with pytest.raises(ValueError, match=message):
            write_store([tmp_path / name for name in names.split()], tmp_path / "out")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"e.parquet: requires pyarrow; pip install 'permdist\[arr"
    ):
        write_store(tmp_path / "e.parquet", tmp_path / "out")
    assert nothing_left(tmp_path)


def test_other_mistakes(tmp_path):
    queries = data.make_letor(2, n_features=9, n_constant=0, rng=0)
    narrow = data.make_letor(2, n_features=8, n_constant=0, rng=0)
    for source, error, message in [
        ([queries, narrow], ValueError, "expected 9 features as at index 0, got 8 at index 1"),
        ([queries, queries], ValueError, r"source\[1\], document 0: query \S+ is in source\[0\]"),
        ([queries, 3], TypeError, "source: expected Queries, got int at index 1"),
        (3, TypeError, "source: expected files"),
        (np.eye(3), TypeError, "source: expected files"),
        ([], ValueError, "expected at least one document, the source has none"),
        (tmp_path / "none.txt", FileNotFoundError, "none.txt: no such file"),
    ]:
        with pytest.raises(error, match=message):
            write_store(source, tmp_path / "out")
        assert nothing_left(tmp_path)


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
        "version": r"header.json: the store has version 2 of the format, this permdist reads version 1",
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
