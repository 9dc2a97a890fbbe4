"""``permdist evaluate``: runs against judgements, and against LETOR files."""

import json

import pytest
from test_cli import permdist

from permdist import data, measures

QRELS = "q1 0 a 1\nq1 0 b 1\nq1 0 c 0\nq2 0 a 2\nq3 0 a 1\n"
RUN = "q1 Q0 a 1 2.0 me\nq1 Q0 z 2 1.5 me\nq2 Q0 b 1 1.0 me\nq2 Q0 a 2 1.0 me\nq9 Q0 a 1 1 me\n"
LETOR = (
    "1 qid:1 1:0.9 # docid = a\n1 qid:1 1:0.5 # docid = b\n0 qid:1 1:0.1 # docid = c\n"
    "1 qid:2 1:0.9 # docid = a\n0 qid:2 1:0.5 # docid = d\n"
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "data.txt").write_text(LETOR)
    return tmp_path


def test_a_run_against_judgements(files):
    text = permdist("evaluate", "run.txt", "qrels.txt", "-m", "trec:map,judged@2", cwd=files)
    assert text.splitlines() == [
        "measure     mean  std.err.  queries",
        "ap        0.5000    0.0000        2",
        "judged@2  0.5000    0.0000        2",
        "",
        "retrieved documents without a judgement, taken as not relevant: 2 of 4 (50.0%).",
        "relevant documents not retrieved, which earn nothing: 1.",
        "judged queries that the run lacks, left out: 1.",
        "queries of the run without judgements, left out: 1.",
    ]
    for name in measures.DEFAULT_RUN:
        assert measures.parse(name).name in permdist("evaluate", "run.txt", "qrels.txt", cwd=files)


def test_the_exact_case_of_a_run_that_leaves_a_relevant_document_out(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.0 me\n")
    facts = json.loads(
        permdist(
            "evaluate", "run", "qrels", "-m", "map", "--preset", "trec", "--json", cwd=tmp_path
        )
    )
    assert facts["mean"]["ap"] == 0.5
    assert facts["left_out"]["relevant_not_retrieved"] == 1


def test_json_has_what_was_left_out_and_every_query(files):
    arguments = ("evaluate", "run.txt", "qrels.txt", "-m", "map", "--json", "--per-query")
    facts = json.loads(permdist(*arguments, cwd=files))
    assert facts["mean"] == {"ap": 0.5}
    assert facts["per_query"] == {"q1": {"ap": 0.5}, "q2": {"ap": 0.5}}
    assert facts["left_out"] == {
        "unjudged_retrieved": 2,
        "relevant_not_retrieved": 1,
        "queries_not_in_run": 1,
        "queries_without_judgements": 1,
        "queries_not_in_run_counted": False,
    }
    whole = json.loads(permdist(*arguments, "--complete", cwd=files))
    assert whole["mean"]["ap"] == pytest.approx(1 / 3)
    assert whole["left_out"]["queries_not_in_run_counted"]


def test_options_of_trec_eval(files):
    def mean(*options):
        arguments = ("evaluate", "run.txt", "qrels.txt", "--json", "-m", "rr", *options)
        return json.loads(permdist(*arguments, cwd=files))["mean"]

    assert mean()["rr"] == 0.75
    assert mean("--ties", "average")["rr[ties=average]"] == pytest.approx((1 + 0.75) / 2)
    assert mean("--level", "2")["rr"] == 0.25
    assert mean("--judged-only")["rr"] == 1.0
    (files / "close.txt").write_text("q2 Q0 b 1 1.0 me\nq2 Q0 a 2 1.00000001 me\n")
    arguments = ("evaluate", "close.txt", "qrels.txt", "-m", "rr")
    single = permdist(*arguments, cwd=files)
    assert "0.5000" in single
    assert "documents that tie only in single precision, as in trec_eval: 1." in single
    assert "1.0000" in permdist(*arguments, "--precision", "double", cwd=files)


def test_output_as_of_trec_eval(files):
    arguments = ("evaluate", "run.txt", "qrels.txt", "--format", "trec")
    lines = permdist(*arguments, "-m", "map,ndcg_cut_10,num_ret,num_q,gm_map", cwd=files)
    assert lines.splitlines()[0] == "map                   \tall\t0.5000"
    ours = permdist(*arguments, "-m", "ndcg,trec:ndcg,0.5*map+0.5*ndcg", cwd=files).splitlines()
    assert [line.split("\t")[0].strip() for line in ours] == [
        *("ndcg[gain=exp2]", "ndcg", "0.5 * ap + 0.5 * ndcg[gain=exp2]"),
    ]
    assert lines.splitlines()[2:4] == [
        "num_ret               \tall\t4",
        "num_q                 \tall\t2",
    ]
    each = permdist(*arguments, "-q", "-m", "map,num_ret,num_q,gm_map", cwd=files).splitlines()
    assert each[:3] == [
        "map                   \tq1\t0.5000",
        "num_ret               \tq1\t2",
        "map                   \tq2\t0.5000",
    ]
    usual = [line.split("\t")[0].strip() for line in permdist(*arguments, cwd=files).splitlines()]
    assert usual[:9] == [
        *("num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref"),
        "recip_rank",
    ]
    assert usual[9:11] == ["iprec_at_recall_0.00", "iprec_at_recall_0.10"]
    assert usual[-1] == "P_1000"


def test_the_overlap_with_another_run(files):
    arguments = ("evaluate", "run.txt", "qrels.txt", "-m", "map", "--against", "run.txt")
    run = data.load_run(files / "run.txt")
    expected = measures.compare_runs(run, run, p=0.5).mean()
    facts = json.loads(permdist(*arguments, "--persistence", "0.5", "--json", cwd=files))
    assert facts["rbo"]["value"] == expected.value
    assert facts["rbo"]["queries"] == 3
    assert "rbo[p=0.9,ties=a]" in permdist(*arguments, cwd=files)


def test_a_run_against_a_letor_file(files):
    # Query 1: one of two relevant documents, below one that is not in the file; query 2: nothing.
    (files / "short.txt").write_text("1 Q0 new 1 9 me\n1 Q0 a 2 8 me\n")
    facts = json.loads(permdist("evaluate", "short.txt", "data.txt", "--json", cwd=files))
    assert facts["mean"]["ap"] == pytest.approx((1 / 2 / 2 + 0) / 2)
    assert facts["left_out"]["unjudged_retrieved"] == 1
    assert facts["left_out"]["queries_not_in_run_counted"]
    with_auc = permdist("evaluate", "short.txt", "data.txt", "-m", "auc", cwd=files, code=2)
    assert "auc: compares complete rankings only" in with_auc


def test_ties_go_by_document_id_under_trec_only(files):
    (files / "scores.txt").write_text("1\n1\n1\n1\n1\n")
    arguments = ("evaluate", "scores.txt", "data.txt", "-m", "rr", "--json")
    assert json.loads(permdist(*arguments, cwd=files))["mean"]["rr"] == 1.0
    by_id = json.loads(permdist(*arguments, "--preset", "trec", cwd=files))["mean"]["rr"]
    assert by_id == 0.5  # c before b before a, d before a
    (files / "same.txt").write_text(LETOR.replace("= b", "= a"))
    arguments = ("evaluate", "scores.txt", "same.txt", "-m", "rr", "--preset", "trec", "--json")
    assert json.loads(permdist(*arguments, cwd=files))["mean"]["rr"] == 1.0  # ids tell nothing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run.txt", "qrels.txt", "--format", "xml"), "--format: expected one of table, trec"),
        (("run.txt", "qrels.txt", "--labels", "xml"), "--labels: expected one of auto, letor"),
        (("run.txt", "qrels.txt", "--ties", "no"), "ties: expected one of index, average"),
        (("run.txt", "qrels.txt", "--precision", "half"), "precision: expected one of single"),
        (("run.txt", "qrels.txt", "-m", "iprec", "--ties", "average"), "no average over ties"),
        (("scores.txt", "qrels.txt"), "line 1: expected 'qid Q0 document rank score name'"),
        (("scores.txt", "data.txt", "--level", "2"), "--level: expected a TREC run"),
        (("scores.txt", "data.txt", "--against", "run.txt"), "--against: expected a TREC run"),
        (("scores.txt", "data.txt", "-m", "bpref"), "bpref: measures a run against judgements"),
        (("run.txt", "bad.txt", "--labels", "qrels"), "line 1: expected a grade"),
        (("qrels.txt", "qrels.txt"), "expected 'qid Q0 document rank score name', got 4 fields"),
    ],
)
def test_mistakes_are_one_line(files, arguments, message):
    (files / "scores.txt").write_text("1\n2\n3\n4\n5\n")
    (files / "bad.txt").write_text("q1 0 a yes\n")
    said = permdist("evaluate", *arguments, cwd=files, code=2)
    assert message in said
    assert said.count("\n") == 1
