"""Measures of runs with judgements: by hand, by enumeration, and against trec_eval."""

import contextlib
import math
from itertools import permutations

import naive_trec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import PlackettLuce, measures
from permdist.data import Qrels, Run
from permdist.distributions.base import NotExactError
from permdist.measures import evaluate_run, parse
from permdist.measures.base import MEASURES

ONE = Qrels.from_dict({"q": {"a": 1, "b": 1}})


def value(run, qrels, name, **options):
    """Evaluate a run of one query."""
    result = evaluate_run(Run.from_dict(run), Qrels.from_dict(qrels), name, **options)
    return result.table.item()


# ---- by hand -------------------------------------------------------------------------------------


def test_a_run_that_leaves_out_relevant_documents_does_not_score_high():
    # Two relevant documents, one retrieved at the top: trec_eval has 0.5.
    result = evaluate_run(Run.from_dict({"q": {"a": 1.0}}), ONE, ["trec:map", "recall@10", "rprec"])
    assert result.mean("trec:map") == 0.5
    assert result.mean("recall@10") == 0.5
    assert result.mean("rprec") == 0.5
    assert result.judged.n_left_out == 1


def test_unjudged_documents_are_not_relevant():
    result = evaluate_run(Run.from_dict({"q": {"x": 2.0, "a": 1.0}}), ONE, ["map", "judged@1"])
    assert result.mean("map") == 0.25
    assert result.mean("judged@1") == 0.0
    assert result.judged.n_unjudged == 1


QRELS = {"q": {"a": 2, "b": 1, "c": 1, "n": 0, "m": 0, "o": 0, "u": -1}}
RUN = {"q": {"a": 9, "n": 8, "x": 7, "b": 6, "u": 5, "m": 4}}  # good, bad, unknown, good, pool, bad
LOG3, LOG5 = math.log2(3), math.log2(5)
HAND = [
    ("map", (1 + 2 / 4) / 3),
    ("ap@3", 1 / 3),
    ("rr", 1.0),
    ("p@5", 2 / 5),
    ("recall@1", 1 / 3),
    ("recall@10", 2 / 3),
    ("rprec", 1 / 3),
    ("success@1", 1.0),
    ("relative_p@2", 1 / 2),
    ("trec:ndcg", (2 + 1 / LOG5) / (2 + 1 / LOG3 + 1 / 2)),
    ("trec:ndcg@2", 2 / (2 + 1 / LOG3)),
    ("bpref", (1 + (1 - 1 / 3)) / 3),
    # rank 4: one of the three above is not in the pool; of two judged, one is good
    ("infap", (1 + (1 + 2 * 1.00001 / 2.00002) / 4) / 3),
    ("iprec[recall=0.4]", 2 / 4),
    ("iprec[recall=0.8]", 0.0),
    ("11pt", (4 + 4 / 2) / 11),  # floor(3 recall + 0.9): 1 up to 0.3, 2 up to 0.7, 3 beyond
    ("set_p", 2 / 6),
    ("set_recall", 2 / 3),
    ("set_f", 4 / 9),
    ("set_map", 4 / 18),
    ("set_relative_p", 2 / 3),
    ("utility", 2 - 4),
    ("rbp[p=0.5]", 0.5 * (1 + 1 / 8)),
    ("rbp_residual[p=0.5]", 0.5 * (1 / 4 + 1 / 16) + 1 / 64),
    ("err[max_grade=2]", 3 / 4 + 1 / 4 * 1 / 4 / 4),
    ("judged@3", 2 / 3),
    ("judged", 4 / 6),
    ("judged@100", 4 / 6),
    ("bing", (1 + 1 / math.log2(4)) / 3),
    ("num_ret", 6),
    ("num_rel", 3),
    ("num_rel_ret", 2),
    ("num_nonrel_judged_ret", 2),
    ("num_q", 1),
    # gains 2, 0, 0, 1 of at best 2, 1, 1 and then a cost of 1
    ("g", (2 / math.log2(2) + 1 / math.log2(2 + 5 - 3)) / 4),
]


@pytest.mark.parametrize(("name", "expected"), HAND)
def test_by_hand(name, expected):
    assert value(RUN, QRELS, name) == pytest.approx(expected, abs=1e-15)


def test_a_level_makes_binary_measures_stricter_and_leaves_gains_alone():
    assert value(RUN, QRELS, "map", level=2) == 1.0
    assert value(RUN, QRELS, "num_rel", level=2) == 1
    assert value(RUN, QRELS, "bpref", level=2) == 1.0
    assert value(RUN, QRELS, "trec:ndcg", level=2) == value(RUN, QRELS, "trec:ndcg")
    assert value(RUN, QRELS, "map", level=3) == 0.0


def test_queries_on_one_side_only():
    qrels = Qrels.from_dict({"p": {"a": 1}, "q": {"a": 1}})
    run = Run.from_dict({"q": {"a": 1.0}, "z": {"a": 1.0}})
    result = evaluate_run(run, qrels, ["map", "num_q", "judged@10"])
    assert result.qids.tolist() == ["q"]
    assert result.mean("map") == 1.0
    assert result.judged.missing == ("p",)
    assert result.judged.unknown == ("z",)
    whole = evaluate_run(run, qrels, ["map", "num_q", "judged@10", "rbp_residual"], complete=True)
    assert whole.qids.tolist() == ["p", "q"]
    assert whole.table.tolist() == [[0, 1, 0, 1], [1, 1, 1, pytest.approx(0.8)]]
    assert whole.mean("num_q") == 2
    assert any("counted as if nothing had been retrieved: 1" in note for note in whole.notes())
    with pytest.raises(ValueError, match="none of its 1 queries has judgements, such as 'x'"):
        evaluate_run(Run.from_dict({"x": {"a": 1}}), qrels)


def test_geometric_means_have_a_floor_and_counts_are_added():
    qrels = Qrels.from_dict({"p": {"a": 1, "n": 0}, "q": {"a": 1, "n": 0}})
    run = Run.from_dict({"p": {"a": 2.0, "n": 1.0}, "q": {"n": 1.0}})
    result = evaluate_run(run, qrels, ["gmap", "gm_bpref", "num_ret"])
    assert result["gmap"].tolist() == [1.0, 0.0]
    assert result.mean("gmap") == pytest.approx(1e-5**0.5)
    assert result.mean("gm_bpref") == pytest.approx(1e-5**0.5)
    assert result.mean("num_ret") == 3
    logs = np.array([0.0, math.log(1e-5)])
    expected = 1e-5**0.5 * logs.std(ddof=1) / 2**0.5
    assert result.standard_error("gmap") == pytest.approx(expected)
    assert math.isnan(result.standard_error("num_ret"))


def test_queries_without_relevant_documents_follow_the_rule():
    qrels, run = {"q": {"n": 0, "a": -1}}, {"q": {"n": 1.0, "x": 2.0}}
    for kind in (*measures.kinds(), *measures.kinds(runs=True)):
        if not kind.__module__.startswith("permdist."):  # another test's own
            continue
        name = kind.aliases[0] + ("@5" if "k" in kind.__dataclass_fields__ else "")
        if kind in (measures.AUC, measures.KendallTau, measures.TopKPersistence):
            continue
        found = value(run, qrels, name)
        if issubclass(kind, measures.Count | measures.Utility) or name[:3] in ("jud", "rbp"):
            assert np.isfinite(found)
        else:
            assert found == 0.0, name
            assert value(run, qrels, f"{name}[empty=one]") == pytest.approx(1.0), name


def test_measures_of_complete_rankings_refuse_incomplete_runs():
    complete = {"q": {"a": 1.0, "n": 2.0}}
    qrels = {"q": {"a": 1, "n": 0}}
    assert value(complete, qrels, "auc") == 0.0
    assert value(complete, qrels, "tau") == -1.0
    for run in ({"q": {"a": 1.0}}, {"q": {"a": 1.0, "n": 2.0, "x": 3.0}}):
        with pytest.raises(ValueError, match="auc: compares complete rankings only"):
            value(run, qrels, "auc")


def test_measures_of_runs_refuse_plain_labels():
    assert "bpref" not in [kind.aliases[0] for kind in measures.kinds()]
    for kind in measures.kinds(runs=True):
        measure = kind()
        for call in (
            lambda m=measure: m([0, 1], [1, 0]),
            lambda m=measure: measures.evaluate([1.0, 0.0], [1, 0], None, m),
            lambda m=measure: m.step_table(1, 1),
            lambda m=measure: PlackettLuce([1.0, 0.0]).expect(m, [1, 0]),
        ):
            with pytest.raises(ValueError, match=r"measures a run.*use measures.evaluate_run"):
                call()


def test_measures_that_are_no_sum_have_expectations_by_listing_and_by_draws():
    dist, labels = PlackettLuce([0.3, 0.0, -0.5, 0.1]), [0, 1, 0, 1]
    for name in ("iprec[recall=0.5]", "11pt", "rbp", "recall@2", "success@2", "bing"):
        exact = dist.expect(name, labels, method="exact")
        sampled = dist.expect(name, labels, method="sample", draws=2000, rng=0)
        orders = permutations(range(4))
        listed = sum(
            math.exp(dist.log_prob(list(order))) * parse(name)(list(order), labels)
            for order in orders
        )
        assert float(exact) == pytest.approx(listed, abs=1e-12)
        assert abs(exact - sampled) < 5 * sampled.standard_error


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate_run({"q": {"a": 1.0}}, ONE), TypeError, "expected a Run and Qrels"),
        (lambda: value(RUN, QRELS, "map", level=0), ValueError, "level: "),
        (lambda: measures.SetF(x=-1.0), ValueError, "x: "),
        (lambda: measures.RNDCG(ties="average"), ValueError, "ties"),
        (
            lambda: PlackettLuce(np.zeros(9)).expect("11pt", [1] * 9, method="exact"),
            NotExactError,
            "exact up to 8 items",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_users_measure_must_say_that_it_bears_missing_documents():
    from dataclasses import dataclass

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Top(measures.Measure):
        aliases = ("top_of_the_run",)

        def _values(self, placed):
            return measures.Precision(1)._values(placed)

        def step(self, grades, totals, level, above):
            return measures.Precision(1).step(grades, totals, level, above)

    try:
        with pytest.raises(ValueError, match="compares complete rankings only"):
            evaluate_run(Run.from_dict({"q": {"a": 1.0}}), ONE, Top())
        Top.partial = True
        assert evaluate_run(Run.from_dict({"q": {"a": 1.0}}), ONE, Top()).mean(Top()) == 1.0
    finally:
        Top.aliases = ()


# ---- ties ----------------------------------------------------------------------------------------


def test_ties_go_by_document_id_the_last_first():
    qrels = {"q": {"a": 1, "b": 0}}
    assert value({"q": {"a": 1.0, "b": 1.0}}, qrels, "rr") == 0.5
    assert value({"q": {"b": 1.0, "a": 1.0}}, qrels, "rr") == 0.5
    assert value({"q": {"a": 1.0, "b": 1.0}}, qrels, "rr[ties=average]") == 0.75
    # by bytes: "é" is beyond "z", and a longer id beyond its beginning
    assert value({"q": {"é": 1.0, "z": 1.0}}, {"q": {"é": 1}}, "rr") == 1.0
    assert value({"q": {"d1": 1.0, "d10": 1.0, "d2": 1.0}}, {"q": {"d10": 1}}, "rr") == 0.5


def test_scores_tie_in_single_precision_unless_told_otherwise():
    scores, qrels = {"q": {"a": 1.0 + 1e-9, "b": 1.0}}, Qrels.from_dict({"q": {"a": 1}})
    single = evaluate_run(Run.from_dict(scores), qrels, "rr")
    assert single.mean("rr") == 0.5  # as trec_eval and pytrec_eval have it
    assert single.judged.merged == 1
    double = evaluate_run(Run.from_dict(scores, precision="double"), qrels, "rr")
    assert double.mean("rr") == 1.0
    assert double.judged.merged == 0


documents = st.sampled_from([f"d{i}" for i in range(8)])
small_runs = st.dictionaries(documents, st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=6)
small_qrels = st.dictionaries(documents, st.integers(-2, 3), min_size=1, max_size=8)
NAIVE = {
    "bpref": naive_trec.bpref,
    "infap": naive_trec.inferred_ap,
    "judged@3": lambda *args: naive_trec.judged_share(*args, k=3),
    "rbp_residual": naive_trec.rbp_residual,
    "map": naive_trec.average_precision,
    "trec:ndcg@3": lambda *args: naive_trec.ndcg(*args, k=3),
}


@given(small_runs, small_qrels, st.integers(1, 3))
def test_values_equal_the_naive_ones(run, qrels, level):
    result = evaluate_run(
        Run.from_dict({"q": run}), Qrels.from_dict({"q": qrels}), list(NAIVE), level=level
    )
    judged, left = naive_trec.ranked(run, qrels)
    for name, function in NAIVE.items():
        grade = 1 if "ndcg" in name else level
        assert result.mean(name) == pytest.approx(function(judged, left, grade), abs=1e-13), name


@given(small_runs, small_qrels, st.integers(1, 2))
def test_averaged_ties_equal_the_mean_over_all_ways_to_break_them(run, qrels, level):
    names = [f"{name}[ties=average]" for name in NAIVE]
    result = evaluate_run(
        Run.from_dict({"q": run}), Qrels.from_dict({"q": qrels}), names, level=level
    )
    left = naive_trec.rest(run, qrels)
    rankings = list(naive_trec.all_rankings(run, qrels))
    for name, function in zip(names, NAIVE.values(), strict=True):
        grade = 1 if "ndcg" in name else level
        mean = sum(function(judged, left, grade) for judged in rankings) / len(rankings)
        assert result.mean(name) == pytest.approx(mean, abs=1e-12), name


def test_large_ties_are_averaged_exactly():
    # 300 documents in one tie, all judged: any of the ways to break it is as likely.
    rng = np.random.default_rng(0)
    grades = (rng.random(300) < 0.3).astype(int)
    qrels = Qrels.from_dict({"q": {f"d{i}": int(g) for i, g in enumerate(grades)}})
    tied = Run.from_dict({"q": {f"d{i}": 1.0 for i in range(300)}})
    exact = evaluate_run(tied, qrels, ["infap[ties=average]", "bpref[ties=average]"]).table[0]
    drawn = [
        evaluate_run(
            Run.from_dict({"q": {f"d{i}": float(s) for i, s in enumerate(rng.permutation(300))}}),
            qrels,
            ["infap", "bpref"],
        ).table[0]
        for _ in range(300)
    ]
    error = np.std(drawn, axis=0) / 300**0.5
    assert (np.abs(exact - np.mean(drawn, axis=0)) < 5 * error).all()


@given(small_runs, small_qrels, st.data())
def test_what_is_not_retrieved_or_not_judged_earns_nothing(run, qrels, data):
    """More relevant documents outside the run, or fewer judgements, never raise these."""
    names = ["map", "trec:ndcg", "recall@3", "rr", "p@2", "rbp", "success@2", "rprec"]
    before = evaluate_run(Run.from_dict({"q": run}), Qrels.from_dict({"q": qrels}), names).table
    more = {**qrels, "new": data.draw(st.integers(1, 3))}
    after = evaluate_run(Run.from_dict({"q": run}), Qrels.from_dict({"q": more}), names[:6]).table
    assert (after <= before[:, :6] + 1e-15).all()
    longer = {**run, "unjudged": -1.0}
    same = evaluate_run(Run.from_dict({"q": longer}), Qrels.from_dict({"q": qrels}), names).table
    assert same == pytest.approx(before, abs=1e-15)


@given(small_runs, small_qrels)
def test_only_judged_documents_are_what_is_left_of_the_run(run, qrels):
    names = ["map", "bpref", "p@2", "num_ret"]
    judged = {doc: score for doc, score in run.items() if qrels.get(doc, -1) >= 0}
    result = evaluate_run(
        Run.from_dict({"q": run}), Qrels.from_dict({"q": qrels}), names, judged_only=True
    )
    if judged:
        kept = evaluate_run(Run.from_dict({"q": judged}), Qrels.from_dict({"q": qrels}), names)
        assert (result.table == kept.table).all()
    else:
        assert (result.table == 0).all()


# ---- against trec_eval ---------------------------------------------------------------------------


def collection(rng, n_queries, tied, top):
    """Random runs with ties, missing and unjudged documents, and queries on one side only."""
    qrels, run = {}, {}
    for q in range(n_queries):
        pool = [f"d{i}" for i in rng.permutation(60)[: rng.integers(1, 40)]]
        grades = rng.integers(-2, top + 1, len(pool)) * (rng.random(len(pool)) < 0.8)
        # trec_eval reads beyond its tables where no grade reaches the level.
        grades[0] = top
        if top == 1 and rng.random() < 0.05:
            grades = np.minimum(grades, 0)
            grades[0] = 0
        qrels[f"q{q}"] = dict(zip(pool, grades.tolist(), strict=True))
        found = [f"d{i}" for i in rng.permutation(80)[: rng.integers(1, 50)]]
        scores = rng.integers(0, 6, len(found)) / 4 if tied else rng.normal(size=len(found))
        run[f"q{q}"] = dict(zip(found, scores.tolist(), strict=True))
    for q in range(0, n_queries, 37):
        del run[f"q{q}"]
    for q in range(5, n_queries, 41):
        qrels.pop(f"q{q}")
    return qrels, run


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("level", "top"), [(1, 1), (1, 3), (2, 3)])
def test_all_that_pytrec_eval_computes(level, top, tied, judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier not installed")
    qrels, run = collection(np.random.default_rng(level + 10 * top + tied), 500, tied, top)
    asked = pytrec_eval.supported_measures - {"relstring", "runid"}
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, asked, relevance_level=level, judged_docs_only_flag=judged_only
    ).evaluate(run)
    names = sorted(next(iter(theirs.values())))
    assert len(names) > 90
    kinds = [parse(f"trec:{name}") for name in names]
    ours = evaluate_run(
        Run.from_dict(run), Qrels.from_dict(qrels), kinds, level=level, judged_only=judged_only
    )
    assert set(ours.qids.tolist()) == set(theirs)
    assert len(theirs) > 450
    for name, kind in zip(names, kinds, strict=True):
        expected = np.array([theirs[qid][name] for qid in ours.qids])
        found = ours[kind.name]
        if name.startswith("gm_"):
            found = np.log(np.maximum(found, 1e-5))
        if judged_only and ("iprec" in name or "11pt" in name):
            expected[np.isnan(expected)] = 0.0  # nothing is left of the run: 0 / 0 in trec_eval
        assert found == pytest.approx(expected, abs=1e-12), name
        assert measures.trec_name(kind) == name or name == "Rprec_mult_1.00"
    means = {name: [theirs[qid][name] for qid in theirs] for name in ("map", "num_ret", "gm_map")}
    assert ours.mean("map") == pytest.approx(np.mean(means["map"]), abs=1e-12)
    assert ours.mean("num_ret") == sum(means["num_ret"])
    assert ours.mean("gm_map") == pytest.approx(math.exp(np.mean(means["gm_map"])), abs=1e-12)


def test_no_measure_has_the_name_of_another_one_of_trec_eval():
    names = [name for name in MEASURES if name not in ("persistence", "topk")]
    texts = [f"{name}{cut}{option}" for name in names for cut in ("", "@10")
             for option in ("", "[gain=linear]", "[discount=jk]", "[ties=average]")]  # fmt: skip
    texts += ["0.5 * ap + 0.5 * ndcg@10", "0.5 * ap + 0.5 * ndcg@10[gain=linear]"]
    kinds = set()
    for text in texts:
        with contextlib.suppress(ValueError):  # no cut-off, or no such option
            kinds.add(parse(text))
    assert len(kinds) > 80
    assert len({measures.trec_name(kind) for kind in kinds}) == len(kinds)
    for kind in kinds:
        name = measures.trec_name(kind)
        assert measures.trec(name) == kind, name
    assert measures.trec_name(parse("ndcg")) == "ndcg[gain=exp2]"
