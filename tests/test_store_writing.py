"""Conversions to stores that are interrupted, run out of disk or meet mistakes: all or nothing."""

import bz2
import gzip
import json
import os
import shutil
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from faults.disks import small_disk
from stores import LONG, bytes_of, nothing_left, small_pieces, write

from permdist import data
from permdist.data import Queries, open_store, write_store

__all__ = ["small_pieces"]


# ---- interrupted, restarted ----------------------------------------------------------------------


def stop_after(number):
    calls = iter(range(1, 1000))

    def progress(done, total):
        if next(calls) == number:
            raise KeyboardInterrupt

    return progress


def same_store(one, two):
    sums = [json.loads((folder / "checksums.json").read_text()) for folder in (one, two)]
    return sums[0] == sums[1] and bytes_of(one) == bytes_of(two)


@pytest.mark.parametrize(
    "name", ["file.txt", "file.txt.gz", "file.txt.bz2", "file.parquet", "file.csv"]
)
def test_a_continued_conversion_has_the_same_pieces(tmp_path, small_pieces, name):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), rng.integers(1, 7, 30))
    frame = pd.DataFrame({"qid": qid, "label": qid % 2, "x": rng.integers(0, 10**6, len(qid))})
    source = tmp_path / name
    if name.endswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pandas(frame), source, row_group_size=7)
    elif name.endswith(".csv"):
        frame.to_csv(source, index=False)
    else:
        text = "".join(f"{q % 2} qid:{q} 1:{'1' * rng.integers(1, 30)}\n" for q in qid)
        opener = {".gz": gzip.open, ".bz2": bz2.open}.get(source.suffix, open)
        with opener(source, "wb") as file:
            file.write(b"\xef\xbb\xbf" + text.encode())
    write_store(source, tmp_path / "expected")
    pieces = json.loads((tmp_path / "expected/checksums.json").read_text())["pieces"]
    assert len(pieces) > 8
    for number in range(1, len(pieces) + 1):
        out = tmp_path / f"out{number}"
        with pytest.raises(KeyboardInterrupt):
            write_store(source, out, progress=stop_after(number))
        write_store(source, out)
        assert same_store(out, tmp_path / "expected"), number


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
    with open(tmp_path / ".out.part/blocks", "ab") as journal:
        journal.write(b"\x20\0\0\0 torn")
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
    with pytest.raises(OSError, match=r"expected about .* of free disk space, got 10") as told:
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
        ([GOOD, "0.5 qid:3 1:1 2:2\n"], {}, "b.txt, line 1: expected a label"),
        ([GOOD + "# x\n1 qid:3 1:x\n"], {}, "a.txt, line 5: a feature's value is not a number"),
        ([GOOD, "1 qid:2 1:1 2:2\n"], {}, r"b.txt, line 1: query 2 is in \S*a.txt too"),
        ([GOOD + "1 qid:1 1:1\n"], {}, "a.txt, line 4: query 1 starts again"),
        ([GOOD, "1 qid:3 1:1\n"], {}, "b.txt: expected 2 features"),
        ([GOOD, "1 qid:3 3:1\n"], {"n_features": 2}, "b.txt: expected 2 features, found"),
        ([GOOD, "# nothing\n"], {}, "b.txt: expected at least one document"),
        ([GOOD + "1 qid:4 1:7"], {}, "a.txt, line 4: the file is truncated"),
        ([GOOD + "1 qid:4 1:1e39\n"], {}, "a.txt, line 4: expected values that fit"),
        ([GOOD + "1 qid:4 1:NULL\n"], {"null": "error"}, "a.txt, line 4: a feature is NULL"),
        ([GOOD + "1 qid:4 0:1\n"], {}, "a.txt, line 4: a feature number is below 1"),
        ([GOOD + "\x00\n"], {}, "a.txt, line 4: binary data"),
        (["1 1:1\n", GOOD], {}, "a.txt, line 1: expected qid:ID"),
        ([GOOD], {"query_file": "sizes"}, "query_file: expected none"),
        ([GOOD], {"qid": "q"}, "qid: only for tables"),
        ([GOOD], {"dtype": "float16"}, "dtype: "),
        ([GOOD], {"n_jobs": 0}, "n_jobs: "),
    ],
)
def test_text_with_mistakes(tmp_path, monkeypatch, small_pieces, texts, options, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "3\n", "sizes")
    files = [write(tmp_path, text, f"{'ab'[k]}.txt") for k, text in enumerate(texts)]
    with pytest.raises(ValueError, match=message):
        write_store(files, tmp_path / "out", **options)
    assert nothing_left(tmp_path)


def frame_of(**columns):
    return pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 2], "a": [1.0, 2.0, 3.0], **columns})


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"label": [0, 0.5, 1]}, {}, "row 1: expected a label"),
        ({"label": ["a", "b", "c"]}, {}, "row 0: expected labels that are numbers"),
        ({"qid": [1, 2, 1]}, {}, "row 2: query 1 starts again"),
        ({"qid": ["a", None, "b"]}, {}, "row 1: expected a query id"),
        ({"b": ["x", "y", "z"]}, {}, "row 0: expected numbers in column 'b'"),
        ({"b": [1.0, np.inf, 2.0]}, {}, "row 1: expected finite numbers"),
        ({"b": [1.0, np.nan, 2.0]}, {"null": "error"}, "row 1: a feature is NULL"),
        ({}, {"label": "grade"}, "expected a column 'grade'"),
        ({}, {"n_features": 3}, "n_features: only for text files"),
    ],
)
def test_tables_with_mistakes(tmp_path, small_pieces, columns, options, message):
    with pytest.raises(ValueError, match=message):
        write_store(frame_of(**columns), tmp_path / "out", **options)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a.csv b.csv", "b.csv: column 4 is 'b', expected none"),
        ("a.csv c.csv", "c.csv: expected a column 'label'"),
        ("a.csv d.csv", r"d.csv, line 2: query 2 is in \S*a.csv too"),
        ("a.csv f.txt", "f.txt: expected a file of the same kind"),
        ("e.parquet", "e.parquet: cannot be read"),
        ("empty", "empty: expected a file, or a folder with .parquet files"),
    ],
)
def test_files_of_tables_with_mistakes(tmp_path, names, message):
    frame_of().to_csv(tmp_path / "a.csv", index=False)
    frame_of(b=1.0).to_csv(tmp_path / "b.csv", index=False)
    frame_of(qid=[3, 3, 4]).drop(columns="label").to_csv(tmp_path / "c.csv", index=False)
    frame_of(qid=[2, 3, 4]).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "e.parquet").write_bytes(b"PAR1 or not")
    (tmp_path / "empty").mkdir()
    write(tmp_path, GOOD, "f.txt")
    with pytest.raises(ValueError, match=message):
        write_store([tmp_path / name for name in names.split()], tmp_path / "out")
    assert nothing_left(tmp_path)


QUERIES, NARROW = (data.make_letor(2, n_features=n, n_constant=0, rng=0) for n in (9, 8))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([QUERIES, NARROW], ValueError, "expected 9 features as at index 0, got 8 at index 1"),
        ([QUERIES, QUERIES], ValueError, r"source\[1\], document 0: query \S+ is in source\[0\]"),
        ([QUERIES, 3], TypeError, "source: expected Queries, got int at index 1"),
        (np.eye(3), TypeError, "source: expected files"),
        ([], ValueError, "expected at least one document"),
        ("none.txt", FileNotFoundError, "none.txt: no such file"),
    ],
)
def test_other_mistakes(tmp_path, source, error, message):
    with pytest.raises(error, match=message):
        write_store(source, tmp_path / "out")
    assert nothing_left(tmp_path)
