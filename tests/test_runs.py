"""Runs and judgements: files of them, and the objects."""

import contextlib
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist.data import (
    Qrels,
    Queries,
    Run,
    file_kind,
    load_qrels,
    load_run,
    save_run,
)

RUN = "1 Q0 a 1 0.5 me\n1 Q0 b 2 0.75 me\n2 Q0 a 1 -1e-3 me\n"
QRELS = "1 0 a 1\n1 0 c 2\n2 0 a 0\n2 0 z -1\n"


@pytest.fixture
def write(tmp_path):
    def writer(text, name="file.txt"):
        path = tmp_path / name
        raw = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return writer


def test_a_run_is_ranked_by_score_not_by_rank(write):
    run = load_run(write(RUN))
    assert run.qids == ["1", "2"]
    assert run.documents("1") == ["b", "a"]
    assert run.scores.tolist() == [0.75, 0.5, -1e-3]
    assert run.ptr.tolist() == [0, 2, 3]
    assert (run.n_queries, run.n_documents, run.n_merged) == (2, 3, 0)
    with pytest.raises(KeyError, match="'3' is not a query of this run"):
        run.documents("3")


def test_judgements_are_read(write):
    qrels = load_qrels(write(QRELS))
    assert qrels.qids == ["1", "2"]
    assert qrels.grades.tolist() == [1, 2, 0, -1]
    assert qrels.grade("1", "c") == 2
    assert qrels.grade("2", "c") is None
    assert (qrels.n_queries, qrels.n_judgements) == (2, 4)


@pytest.mark.parametrize("name", ["x.gz", "x.txt"])
def test_other_ways_to_write_the_same_file(write, name):
    odd = "\ufeff" + RUN.replace(" ", "\t  ").replace("\n", "\r\n") + "\r\n\r\n"
    run = load_run(write(odd, name))
    assert run.qids == ["1", "2"]
    assert run.documents("1") == ["b", "a"]
    assert load_run(write(RUN.rstrip("\n"), name)).scores.tolist() == run.scores.tolist()


def test_lines_of_a_query_need_not_stand_together(write):
    lines = [f"q{q} Q0 d{d} 0 {(7 * q + 3 * d) % 11} me\n" for d in range(9) for q in range(5)]
    mixed = load_run(write("".join(lines)))
    ordered = load_run(write("".join(sorted(lines))))
    assert mixed.qids == ordered.qids
    for qid in mixed.qids:
        assert mixed.documents(qid) == ordered.documents(qid)
    judged = "".join(f"q{q} 0 d{d} {d % 3}\n" for d in range(9) for q in range(5))
    qrels = load_qrels(write(judged))
    assert qrels.grade("q3", "d8") == 2
    assert qrels.ptr.tolist() == [0, 9, 18, 27, 36, 45]


def test_ids_may_have_any_characters_but_blanks(write):
    run = load_run(write("q#1 Q0 d:ü/#1 1 3 me\nq#1 Q0 \xa0x 1 2 me\n"))
    assert run.qids == ["q#1"]
    assert run.documents("q#1") == ["d:ü/#1", "\xa0x"]
    # Bytes that are no UTF-8 still tell documents apart.
    odd = load_run(write(b"q Q0 \xff\xfe 1 2 me\nq Q0 \xfe\xff 1 1 me\n"))
    assert odd.n_documents == 2


def test_numbers_are_read_as_python_reads_them(write):
    texts = [
        "1e-300",
        "0.1234567890123456789",
        "-17",
        "+3.5",
        ".5",
        "5.",
        "1E5",
        "123456789012345678",
    ]
    lines = [f"q Q0 d{i} 0 {text} me\n" for i, text in enumerate(texts)]
    run = load_run(write("".join(lines)), precision="double")
    assert sorted(run.scores.tolist()) == sorted(map(float, texts))


@pytest.mark.parametrize(
    ("load", "text", "message"),
    [
        (load_run, "1 Q0 a 1 0.5\n", "line 1: expected .* got 5 fields"),
        (load_run, RUN + "1 Q0 c 1 0.5 me too\n", "line 4: expected .* got 7 fields"),
        (load_run, "1 Q0 a 1 nan me\n", "line 1: expected a finite number"),
        (load_run, "\n1 Q0 a 1 1e999 me\n", "line 2: expected a finite number"),
        (load_run, "1 Q0 a 1 1_0 me\n", "line 1: expected a finite number"),
        (load_run, RUN + "\n1 Q0 a 9 0.1 me\n", "line 5: document 'a' of query 1 comes twice"),
        (load_run, "1 Q0 a 1 0.5 \x00\n", "line 1: binary data"),
        (load_run, "\n  \n", "the file has none"),
        (load_run, "", "the file is empty"),
        (load_qrels, "1 0 a\n", "line 1: expected .* got 3 fields"),
        (load_qrels, "1 0 a 1\n1 0 b 0.5\n", "line 2: expected a grade"),
        (load_qrels, "1 0 a 99999999999999999999\n", "line 1: expected a grade"),
        (load_qrels, "1 0 a 1\n2 0 a 1\n1 0 a 1\n", "line 3: document 'a' of query 1 is judged"),
    ],
)
def test_files_that_cannot_be_read(write, load, text, message):
    with pytest.raises(ValueError, match=rf"file.txt.*{message}"):
        load(write(text))


def test_a_file_is_told_by_its_first_line(write):
    for text, kind in [
        (RUN, "run"),
        ("\n\n" + QRELS, "qrels"),
        ("1 qid:1 1:0.5 2:1 3:2 4:1\n", "letor"),
        ("1 qid:1 1:0.5 2:1\n", "letor"),
        ("1 1:0.5 2:1 3:7\n", "letor"),
        ("0.5\n0.25\n", "scores"),
        ("a b\n", "unknown"),
        ("1 0 a x\n", "unknown"),
        (" \n", "unknown"),
    ]:
        assert file_kind(write(text)) == kind, text


# ---- objects -------------------------------------------------------------------------------------


def test_from_dictionaries_arrays_and_collections(write, tmp_path):
    by_dict = Run.from_dict({"1": {"a": 0.5, "b": 0.75}, "2": {"a": -1e-3}})
    by_array = Run(np.array([1, 1, 2]), np.array(["a", "b", "a"]), [0.5, 0.75, -1e-3])
    for run in (by_dict, by_array):
        assert run.qids == ["1", "2"]
        assert run.documents("1") == ["b", "a"]
    queries = Queries([[0.0]] * 3, [0, 1, 2], [1, 1, 2], doc_ids=["a", "b", "a"])
    assert Run.from_queries(queries, [0.5, 0.75, 1.0]).documents("1") == ["b", "a"]
    assert Qrels.from_queries(queries).grade("2", "a") == 2
    plain = Queries([[0.0]] * 3, [0, 1, 2], [1, 1, 2])
    assert Qrels.from_queries(plain).grade("1", "2") == 1
    save_run(plain, [3.0, 1.0, 2.0], tmp_path / "run.txt")
    assert load_run(tmp_path / "run.txt").documents("1") == ["1", "2"]


@pytest.mark.parametrize(
    ("make", "error", "argument"),
    [
        (lambda: Run(["q"], ["a", "b"], [1.0, 2.0]), ValueError, "qid: "),
        (lambda: Run(["q", "q"], ["a"], [1.0, 2.0]), ValueError, "doc_ids: "),
        (lambda: Run(["q", "q"], ["a", "a"], [1.0, 2.0]), ValueError, "comes twice"),
        (lambda: Run(["q"], ["a"], [np.nan]), ValueError, "scores: "),
        (lambda: Run([0.5], ["a"], [1.0]), TypeError, "qid: "),
        (lambda: Run(["q"], ["a"], [1.0], precision="half"), ValueError, "precision: "),
        (lambda: Qrels(["q"], ["a"], [0.5]), TypeError, "grades: "),
        (lambda: Qrels(["q", "q"], ["a", "a"], [1, 1]), ValueError, "is judged twice"),
        (lambda: Qrels.from_dict({}), ValueError, "qid: "),
    ],
)
def test_refusals(make, error, argument):
    with pytest.raises(error, match=argument):
        make()


names = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0\xad"),
    min_size=1,
    max_size=4,
)


@given(st.dictionaries(st.tuples(names, names), st.integers(-3, 3), min_size=1, max_size=30))
def test_what_is_written_is_read_back_and_judged(table):
    run, qrels = {}, {}
    for (qid, doc), number in table.items():
        run.setdefault(qid, {})[doc] = number / 2
        if number % 2:
            qrels.setdefault(qid, {})[doc] = number
    ranked = Run.from_dict(run)
    for qid, scores in run.items():
        order = sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)
        assert ranked.documents(qid) == order
    if qrels:
        judged = Qrels.from_dict(qrels).judge(ranked)
        assert judged.qids == list(qrels)
        found = iter(judged.judgement.tolist())
        for qid in qrels:
            for doc in ranked.documents(qid):
                grade = qrels[qid].get(doc)
                assert next(found) == (-1 if grade is None else -2 if grade < 0 else grade)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_run_or_a_clear_error(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("any") / "file.txt"
    for text in (raw, b"1 Q0 a 1 0.5 me\n" + raw, raw + b"\n1 0 a 1\n"):
        path.write_bytes(text)
        for load in (load_run, load_qrels, file_kind):
            with contextlib.suppress(ValueError):
                load(path)
