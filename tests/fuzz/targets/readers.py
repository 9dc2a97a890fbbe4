"""Every reader of files: LETOR, folds, PrefLib, scores, TREC runs and judgements."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np

from fuzz.engine import expect, target
from fuzz.mutate import pack, unpack
from permdist import data
from permdist.data.store import checksum_of

LETOR = [b"qid:", b" 1:", b" 2:0.5", b"0 qid:1 1:1\n", b"# docid = A", b"#", b"NULL", b"1 qid:2"]
LETOR += [b" 1000000:1", b" 999999999:1", b" 65536:1e-320", b"2 qid:\xc3\xa9 ", b":", b"qid:1"]
PREFLIB = [b"# NUMBER ALTERNATIVES: ", b"# NUMBER VOTERS: ", b"# DATA TYPE: ", b"soc", b"toi"]
PREFLIB += [b"# ALTERNATIVE NAME 1: ", b"# TITLE: ", b"{1,2}", b"{", b"}", b"1: 1,2,3\n", b": "]
RUN = [b" Q0 ", b"1 Q0 1 1 0.5 x\n", b" 0.5 ", b"q2", b"A", b"B", b"1 0 A 1\n", b" 0 "]


def write(case: bytes, stem: str = "case", ending: str = ".txt") -> Path:
    """Write a case to a file whose name says how it is compressed."""
    magic = {b"\x1f\x8b": ".gz", b"BZ": ".bz2"}.get(case[:2], "")
    path = Path(f"{stem}{ending}{magic}")
    path.write_bytes(case)
    return path


def check_queries(queries: data.Queries) -> None:
    """State what holds for any collection."""
    expect(np.isfinite(queries.X).all(), "features are finite")
    expect(queries.y.min() >= 0, "labels are not negative")
    expect(queries.X.shape == (queries.n_documents, queries.n_features), "the shape of X")
    expect(queries.ptr[0] == 0 and queries.ptr[-1] == queries.n_documents, "queries cover all")
    expect((queries.sizes > 0).all(), "no query is empty")
    expect(len(set(queries.qids.tolist())) == len(queries), "queries have different ids")
    expect(sorted(queries.rows.tolist()) == list(range(queries.n_documents)), "rows are a shuffle")
    expect(str(queries.describe()), "it can be described")


@target("letor", tokens=LETOR, says="case.txt")
def letor(case: bytes) -> None:
    path = write(case)
    queries = data.load_letor(path, regroup=len(case) % 2 == 0)
    check_queries(queries)
    if queries.X.size < 10_000:
        check_round_trip(queries)


def check_round_trip(queries: data.Queries) -> None:
    """State that what can be written is read back as it was."""
    copy = Path("case.txt-copy.txt")
    try:
        data.save_letor(queries, copy)
    except ValueError as error:
        expect("cannot be written" in str(error), f"only ids can be refused: {error}")
        return
    again = data.load_letor(copy, n_features=queries.n_features or None)
    expect(np.array_equal(again.X, queries.X), "features survive writing and reading")
    expect(np.array_equal(again.y, queries.y), "labels survive writing and reading")
    expect(np.array_equal(again.ptr, queries.ptr), "queries survive writing and reading")


@target("folds", form="bundle", tokens=LETOR)
def folds(case: bytes) -> None:
    for name, text in unpack(case).items():
        path = Path("folds", name)
        if path.parent.is_file() or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    Path("folds").mkdir(exist_ok=True)
    found = data.load_letor_folds("folds", regroup=True)
    expect(found, "at least one fold")
    expect(len({part.n_features for fold in found for part in fold}) == 1, "one number of features")
    for fold in found:
        for part in fold:
            check_queries(part)


@functools.cache
def store_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        data.write_store(collection(), Path(folder, "store"))
        return {path.name: path.read_bytes() for path in sorted(Path(folder, "store").iterdir())}


def store_seeds() -> list[bytes]:
    return [pack(store_files())]


def seal_store(case: bytes) -> bytes:
    """Let the header be trusted, whatever it says."""
    files = unpack(case)
    try:
        header = json.loads(files["header.json"])
        header.pop("checksum", None)
        header["checksums"] = hashlib.sha256(files["checksums.json"]).hexdigest()
        header["checksum"] = checksum_of(header)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return case
    return pack({**files, "header.json": json.dumps(header).encode()})


@target("store", form="bundle", seeds=store_seeds, says="store", seal=seal_store)
def store(case: bytes) -> None:
    folder = Path("store")
    folder.mkdir()
    for name, content in unpack(case).items():
        Path(folder, name.replace("/", "_")).write_bytes(content)
    data.open_store(folder)
    opened = data.open_store(folder, verify=True)
    expect(opened.X.shape == (opened.n_documents, opened.n_features), "the shape of X")
    expect(opened.ptr[-1] == opened.n_documents, "queries cover all")


@target("preflib", tokens=PREFLIB, says="case.")
def preflib(case: bytes) -> None:
    votes = data.load_preflib(write(case, ending=(".soc", ".toi", ".txt")[len(case) % 3]))
    n = votes.n_items
    expect(len(votes.ballots) == len(votes.counts), "a count for each ballot")
    expect(votes.n_voters == sum(map(int, votes.counts)) > 0, "the number of voters is right")
    expect(votes.counts.min() > 0, "counts are positive")
    for ballot in votes.ballots:
        items = [item for bucket in ballot for item in bucket]
        expect(len(set(items)) == len(items), "no item twice on a ballot")
        expect(all(0 <= item < n for item in items), "items are those of the file")
    expect(votes.describe(), "it can be described")
    if n * len(votes.ballots) < 10_000:
        orders = votes.bucket_orders()
        expect(all(order.n_items == n for order in orders), "every item has a place")


@target("scores", tokens=[b"\n", b"0.5\n", b"1e3", b"-"], says="case.txt")
def scores(case: bytes) -> None:
    values = data.load_scores(write(case))
    expect(values.ndim == 1 and values.size and np.isfinite(values).all(), "finite scores")
    data.save_scores(values, "copy.txt")
    expect(np.array_equal(data.load_scores("copy.txt"), values), "they survive writing and reading")


@functools.cache
def collection() -> data.Queries:
    X = np.arange(10.0).reshape(5, 2)
    return data.Queries(X, [0, 1, 2, 0, 1], [1, 1, 1, 2, 2], doc_ids=["A", "B", "é", "A", "B"])


@target("run", tokens=RUN, says="case.txt")
def run(case: bytes) -> None:
    """A run of documents that are known."""
    path = write(case)
    data.is_run(path)
    values = data.load_run(path, collection())
    expect(values.shape == (5,) and np.isfinite(values).all(), "a finite score for each document")


if hasattr(data, "load_qrels"):

    @target("run-alone", tokens=RUN, says="case.txt")
    def run_alone(case: bytes) -> None:
        expect(repr(data.load_run(write(case))), "it can be shown")

    @target("qrels", tokens=RUN, says="case.txt")
    def qrels(case: bytes) -> None:
        expect(repr(data.load_qrels(write(case))), "it can be shown")
