import bz2
import gzip
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from permdist import strategies
from permdist.data import (
    Queries,
    load_letor,
    load_letor_folds,
    load_scores,
    make_letor,
    save_letor,
)

GOOD = (
    "2 qid:10 1:0.5 2:1e-3 3:-7 #docid = GX1-2 inc = 1\n"
    "0 qid:10 1:0.25 2:0 3:.5 # docid = GX1-3\n"
    "# a line of its own\n"
    "\n"
    "1.0 qid:11 1:+3. 3:12345678901234567890 \t# no id here\r\n"
)


def write(tmp_path, text, name="file.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_everything_a_line_may_have(tmp_path):
    queries = load_letor(write(tmp_path, GOOD))
    assert queries.X.tolist() == [
        [0.5, 1e-3, -7.0],
        [0.25, 0.0, 0.5],
        [3.0, 0.0, 12345678901234567890.0],
    ]
    assert queries.y.tolist() == [2, 0, 1]
    assert queries.qid.tolist() == [10, 10, 11]
    assert queries.doc_ids.tolist() == ["GX1-2", "GX1-3", ""]


@given(queries=strategies.queries(), ending=st.sampled_from(["", ".gz", ".bz2"]))
def test_what_is_saved_is_read_back_to_the_bit(tmp_path_factory, queries, ending):
    path = tmp_path_factory.mktemp("letor") / f"q.txt{ending}"
    save_letor(queries, path)
    assert load_letor(path) == queries


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.decimals(allow_nan=False, allow_infinity=False, places=6).map(str),
        st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
        st.from_regex(r"\.[0-9]{1,20}", fullmatch=True),
    )
)
def test_numbers_are_rounded_as_python_rounds_them(tmp_path_factory, text):
    path = write(tmp_path_factory.mktemp("letor"), f"0 qid:1 1:{text}\n")
    assert load_letor(path).X.item() == float(text)


def test_many_long_numbers_are_rounded_as_python_rounds_them(tmp_path):
    rng = np.random.default_rng(0)
    digits = rng.integers(10**15, 10**18, 20_000).tolist()
    places = rng.integers(1, 23, 20_000).tolist()
    texts = [f"{d // 10**k}.{d % 10**k:0{k}d}" for d, k in zip(digits, places, strict=True)]
    texts += [repr(x) for x in rng.random(10_000).tolist()]
    # Halfway between two doubles, and next to it.
    texts += [f"9007199254740993.{k}" for k in (0, 1)] + [
        "9007199254740992.9",
        "4503599627370497.5",
    ]
    path = write(tmp_path, "".join(f"0 qid:1 1:{text}\n" for text in texts))
    assert load_letor(path).X.ravel().tolist() == [float(text) for text in texts]


def test_agrees_with_scikit_learn(tmp_path):
    collection = make_letor(12, rng=0)
    save_letor(collection, tmp_path / "ours.txt")
    X, y, qid = load_svmlight_file(str(tmp_path / "ours.txt"), query_id=True)
    assert (X.toarray() == collection.X).all()
    assert (y == collection.y).all()
    assert (qid == collection.qid).all()
    theirs = str(tmp_path / "theirs.txt")
    dump_svmlight_file(
        collection.X, collection.y, theirs, query_id=collection.qid, zero_based=False
    )
    read = load_letor(theirs, n_features=collection.n_features)
    assert np.allclose(read.X, collection.X, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 qid:1 1:0.5\nx qid:1 1:0.5\n",
            "line 2: expected a label: a non-negative integer: 'x q",
        ),
        ("0 qid:1 1:0.5\n0.5 qid:1 1:0.5\n", "line 2: expected a label: a non-negative integer"),
        ("0 qid:1 1:1\n\n-1 qid:1 1:0.5\n", "line 3: the label is negative: '-1 qid:1 1:0.5'"),
        ("0 1:0.5\n", "line 1: expected qid:ID after the label, got none"),
        ("0 qid:1 1:0.5 7\n", "line 1: expected index:value"),
        ("0 qid:1 a:0.5\n", "line 1: expected index:value"),
        ("0 qid:1 0:0.5\n", "line 1: a feature number is below 1"),
        ("0 qid:1 1:0.5 1:0.6\n", "line 1: a feature is given twice"),
        ("0 qid:1 1:0.5 2:\n", "line 1: a feature's value is not a number"),
        ("0 qid:1 1:abc\n", "line 1: a feature's value is not a number"),
        ("0 qid:1 1:1e+x\n", "line 1: a feature's value is not a number"),
        ("0 qid:1 1:nan\n", "line 1: a feature's value is not finite"),
        ("0 qid:1 1:inf\n", "line 1: a feature's value is not finite"),
        ("0 qid:1 1:1e999\n", "line 1: expected a finite number, got '1e999'"),
        ("0 qid:1 1:0.5\n0 qid:1 1:\0\n", "line 2: binary data: this is not a text file"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "line 2: binary data: this is not a text file"),
        ("", "the file is empty"),
        ("# nothing\n\n", "expected at least one document, the file has none"),
        (
            "0 qid:1 99999999:1\n",
            "expected feature numbers up to 1,000,000, got 99,999,999; pass n_features",
        ),
        (
            "0 qid:1 1:1\n0 qid:2 1:1\n# aside\n1 qid:1 1:1\n",
            "line 4: query 1 starts again after other queries (it began in line 1); regroup=True",
        ),
        (
            "0 qid:1 1:1 2:1 3:1\n0 qid:1 1:1 2:1 3:1\n0 qid:1 1:1 2:1",
            "line 3: the file is truncated: its last line has 2 of 3 features and no end",
        ),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        load_letor(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_line_far_down_is_named(tmp_path):
    lines = [f"{i % 2} qid:{i // 10} 1:{i}.5" for i in range(5000)]
    lines[4321] = "1 qid:432 1:?"
    with pytest.raises(
        ValueError, match="line 4322: a feature's value is not a number: '1 qid:432"
    ):
        load_letor(write(tmp_path, "\n".join(lines)))


def test_query_ids_keep_their_form(tmp_path):
    names = load_letor(write(tmp_path, "0 qid:a-1 1:1\n1 qid:b 1:1\n"))
    assert names.qid.tolist() == ["a-1", "b"]
    zeros = load_letor(write(tmp_path, "0 qid:007 1:1\n1 qid:7 1:1\n"))
    assert zeros.qid.tolist() == ["007", "7"]
    long = load_letor(write(tmp_path, "0 qid:123456789012345678901 1:1\n"))
    assert long.qid.tolist() == ["123456789012345678901"]
    plain = load_letor(write(tmp_path, "0 qid:0 1:1\n"))
    assert plain.qid.dtype == np.int64
    assert plain.doc_ids is None


def test_scattered_queries_can_be_gathered(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1\n0 qid:2 1:2\n1 qid:1 1:3\n")
    assert load_letor(path, regroup=True).X.ravel().tolist() == [1, 3, 2]


def test_null_features(tmp_path):
    path = write(
        tmp_path, "0 qid:1 1:NULL 2:null\n0 qid:1 1:3 2:NULL\n1 qid:2 1:2 2:5\n1 qid:1 1:2\n"
    )
    with pytest.raises(ValueError, match="query 1 starts again"):
        load_letor(path)
    lowest = load_letor(path, regroup=True)
    assert lowest.X.tolist() == [[2, 0], [3, 0], [2, 0], [2, 5]]
    path = write(tmp_path, "0 qid:1 1:NULL\n0 qid:1 1:-3\n")
    assert load_letor(path).X.ravel().tolist() == [-3, -3]
    assert load_letor(path, null="zero").X.ravel().tolist() == [0, -3]
    with pytest.raises(ValueError, match="line 1: a feature is NULL"):
        load_letor(path, null="error")
    with pytest.raises(ValueError, match="null: expected one of min, zero, error"):
        load_letor(path, null="mean")


def test_the_number_of_features_can_be_given(tmp_path):
    path = write(tmp_path, "0 qid:1 2:1\n")
    assert load_letor(path, n_features=4).X.tolist() == [[0, 1, 0, 0]]
    with pytest.raises(ValueError, match="expected 1 features, found feature number 2"):
        load_letor(path, n_features=1)


def test_damaged_archives(tmp_path):
    text = GOOD.encode() * 200
    for compress, ending in ((gzip.compress, ".gz"), (bz2.compress, ".bz2")):
        packed = compress(text)
        assert len(load_letor(write(tmp_path, compress(GOOD.encode()), f"a.txt{ending}"))) == 2
        for damaged, message in (
            (packed[: len(packed) // 2], "truncated"),
            (b"not an archive", "cannot be read"),
        ):
            path = write(tmp_path, damaged, f"b.txt{ending}")
            with pytest.raises(ValueError, match=message):
                load_letor(path)
    middle = bytearray(gzip.compress(os.urandom(4000)))
    middle[1000:1020] = bytes(20)
    with pytest.raises(ValueError, match=r"damaged|cannot be read|truncated"):
        load_letor(write(tmp_path, bytes(middle), "c.txt.gz"))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt: no such file"):
        load_letor(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError, match="expected a file, this is a directory"):
        load_letor(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        save_letor(make_letor(2, rng=0), tmp_path / "no" / "where.txt")


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    path = write(tmp_path, GOOD)
    queries = make_letor(3, rng=0)

    class Interrupted:
        n_documents, y, qid, qids, doc_ids = 5, queries.y, queries.qid, queries.qids, None

        @property
        def X(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_letor(Interrupted(), path)
    assert path.read_text() == GOOD.replace("\r\n", "\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]
    save_letor(queries, path)
    assert load_letor(path) == queries
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_folds_in_a_tree(tmp_path):
    parts = [make_letor(4, n_features=3, n_constant=0, rng=seed) for seed in range(6)]
    for fold in (1, 2, 10):
        folder = tmp_path / f"Fold{fold}"
        folder.mkdir()
        for name, part in zip(("train", "vali", "test"), parts, strict=False):
            save_letor(part, folder / f"{name}.txt{'.gz' if fold == 2 else ''}")
    folds = load_letor_folds(tmp_path)
    assert len(folds) == 3
    assert folds[1].train == parts[0]
    assert folds[2].test == parts[2]
    (tmp_path / "Fold1" / "vali.txt").unlink()
    with pytest.raises(ValueError, match=r"vali\.txt: no such file"):
        load_letor_folds(tmp_path)


def test_folds_from_five_parts(tmp_path):
    whole = make_letor(10, n_features=4, n_constant=0, rng=0)
    for number in range(5):
        part = whole.where([2 * number, 2 * number + 1])
        if number == 3:  # a part whose last feature is missing everywhere
            part = Queries(part.X[:, :3], part.y, part.qid)
        save_letor(part, tmp_path / f"S{number + 1}.txt.gz")
    folds = load_letor_folds(tmp_path)
    assert [fold.test.qids.tolist() for fold in folds] == [[9, 10], [1, 2], [3, 4], [5, 6], [7, 8]]
    validated = [fold.validation.qids.tolist() for fold in folds]
    assert validated == [[7, 8], [9, 10], [1, 2], [3, 4], [5, 6]]
    assert folds[1].train.qids.tolist() == [3, 4, 5, 6, 7, 8]
    assert {part.n_features for fold in folds for part in fold} == {4}
    with pytest.raises(ValueError, match=r"expected Fold1, Fold2, \.\.\. or S1\.txt to S5\.txt"):
        load_letor_folds(tmp_path.parent)
    with pytest.raises(ValueError, match="expected a directory with the folds"):
        load_letor_folds(tmp_path / "S1.txt.gz")


def test_scores(tmp_path):
    path = write(tmp_path, "0.5\n-1e3\n 2 \n\n")
    assert load_scores(path).tolist() == [0.5, -1000.0, 2.0]
    with pytest.raises(ValueError, match="expected 2 scores, one for each document, got 3"):
        load_scores(path, n_documents=2)
    for bad in ("0.5\nx\n", "1\nnan\n", "1\n\n2\n"):
        with pytest.raises(ValueError, match="line 2: expected a finite number"):
            load_scores(write(tmp_path, bad))


def test_whole_files_without_a_final_line_end(tmp_path):
    for text in (
        "1 qid:1 1:1 2:1\n0 qid:1 1:0\n# end",
        "1 qid:1 1:1 2:1\n0 qid:1 1:0 2:0\n0 qid:1 1:0 # docid = A",
        "1 qid:1 1:1 2:1\n0 qid:1 1:0",
    ):
        assert load_letor(write(tmp_path, text)).n_features == 2


def test_odd_bytes(tmp_path):
    assert load_letor(write(tmp_path, b"\xef\xbb\xbf1 qid:1 1:1\n")).y.tolist() == [1]
    assert load_letor(write(tmp_path, b"1 qid:\xff 1:1\n")).qid.tolist() == ["\ufffd"]
    assert load_letor(write(tmp_path, "1 qid:-12 1:1\n")).qid.tolist() == [-12]
    assert load_letor(write(tmp_path, "1 qid:-0 1:1\n")).qid.tolist() == ["-0"]
    for bad in ("123456789012345677 qid:1 1:1\n", "9007199254740994 qid:1 1:1\n"):
        with pytest.raises(ValueError, match="line 1: expected a label"):
            load_letor(write(tmp_path, bad))
    with pytest.raises(ValueError, match="n_features: expected at least 1"):
        load_letor(write(tmp_path, GOOD), n_features=-1)
    with pytest.raises(ValueError, match="expected one score per line, the file has none"):
        load_scores(write(tmp_path, "\n\n"))


@pytest.mark.parametrize("bad", ["a b", "a#b", "", "a\nb"])
def test_ids_that_cannot_be_written_are_refused(tmp_path, bad):
    with pytest.raises(ValueError, match="qid: cannot be written to a LETOR file"):
        save_letor(Queries([[1.0]], [0], [bad]), tmp_path / "q.txt")
    if bad:
        with pytest.raises(ValueError, match="doc_ids: cannot be written"):
            save_letor(Queries([[1.0]], [0], doc_ids=[bad]), tmp_path / "q.txt")
    assert not list(tmp_path.iterdir())


LINES = "2 1:0.5 3:1\n0 1:0.25\n1 2:4 # docid = A\n"
SAME = "2 qid:1 1:0.5 3:1\n0 qid:1 1:0.25\n1 qid:2 2:4 # docid = A\n"


@pytest.mark.parametrize("name", ["file.txt.query", "file.txt.group", "file.txt.query.gz"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_sizes_of_queries_in_a_companion(tmp_path, name, ending):
    def put(place, text):
        raw = text.encode()
        place.write_bytes(gzip.compress(raw) if place.suffix == ".gz" else raw)

    put(tmp_path / f"file.txt{ending}", LINES)
    put(tmp_path / name, "2\n1\n")
    (tmp_path / "same.txt").write_text(SAME)
    found = load_letor(tmp_path / f"file.txt{ending}")
    assert found == load_letor(tmp_path / "same.txt")
    save_letor(found, tmp_path / "again.txt")
    assert load_letor(tmp_path / "again.txt") == found


def test_a_companion_by_name_and_what_can_be_wrong_with_it(tmp_path):
    path, sizes = write(tmp_path, LINES), tmp_path / "sizes"
    sizes.write_text("1 2\r\n")
    assert load_letor(path, query_file=sizes).sizes.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"line 1: .* none, .* file.txt.query or file.txt.group"):
        load_letor(path)
    for text, message in (
        ("2\n2\n", "sizes: expected sizes of queries that add up to the 3 documents"),
        ("2\n0\n1\n", "sizes, line 2: expected the number of documents of a query, got '0'"),
        ("9" * 5000, "line 1: expected the number of documents of a query"),
        ("", "sizes: the file is empty"),
    ):
        sizes.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_letor(path, query_file=sizes)
    sizes.write_text("3\n")
    with_ids = tmp_path / "same.txt"
    with_ids.write_text(SAME)
    with pytest.raises(ValueError, match=r"query_file: expected none, .* query ids of their own"):
        load_letor(with_ids, query_file=sizes)
    (tmp_path / "same.txt.query").write_text("1\n2\n")
    assert load_letor(with_ids).sizes.tolist() == [2, 1]
    for kind in ("query", "group"):
        (tmp_path / f"file.txt.{kind}").write_text("3\n")
    with pytest.raises(ValueError, match=r"expected one companion .* got file.txt.query, file.txt"):
        load_letor(path)


def test_features_that_count_from_0(tmp_path):
    long = "0.123456789012345678901"
    path = write(tmp_path, f"1 qid:1 0:{long} 2:3\n0 qid:1 1:2\n")
    with pytest.raises(ValueError, match=r"line 1: a feature number is below 1.*--zero-based"):
        load_letor(path)
    found = load_letor(path, zero_based=True)
    assert found.X.tolist() == [[float(long), 0.0, 3.0], [0.0, 2.0, 0.0]]
    save_letor(found, tmp_path / "again.txt")
    assert load_letor(tmp_path / "again.txt") == found
    assert load_letor(path, zero_based=True, n_features=4).n_features == 4
    with pytest.raises(ValueError, match="expected 2 features, found feature number 2"):
        load_letor(path, zero_based=True, n_features=2)
    with pytest.raises(ValueError, match="line 1: a feature number is below 0"):
        load_letor(write(tmp_path, "1 qid:1 -1:2\n"), zero_based=True)
    assert load_letor(write(tmp_path, "1 qid:1\n"), zero_based=True).n_features == 0
    one = load_letor(write(tmp_path, "1 qid:1 0:7\n"), zero_based=True)
    assert one.X.tolist() == [[7.0]]
