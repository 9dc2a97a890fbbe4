"""Our values against scikit-learn's and trec_eval's, on random and on tied data."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from permdist import measures

pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")


def collections(tied):
    rng = np.random.default_rng(7)
    for _ in range(60):
        n = int(rng.integers(2, 60))
        labels = rng.integers(0, 4, n) * (rng.random(n) < 0.5)
        labels[rng.integers(n)] = 3
        labels[(labels.argmax() + 1) % n] = 0
        scores = rng.integers(0, 5, n) / 4 if tied else rng.permutation(n) / 64
        yield scores.astype(float), labels.astype(int)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k", [None, 1, 5, 10, 100])
def test_ndcg_equals_scikit_learns(tied, k):
    for scores, labels in collections(tied):
        averaged = measures.NDCG(k, gain="linear", ties="average").from_scores(scores, labels)
        theirs = ndcg_score([labels], [scores], k=k)
        assert averaged == pytest.approx(theirs, abs=1e-12)
        exponential = measures.NDCG(k, ties="average").from_scores(scores, labels)
        assert exponential == pytest.approx(ndcg_score([2**labels - 1], [scores], k=k), abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_auc_and_ap_equal_scikit_learns(tied):
    for scores, labels in collections(tied):
        good = labels > 0
        ours = measures.AUC(ties="average").from_scores(scores, good.astype(int))
        assert ours == pytest.approx(roc_auc_score(good, scores), abs=1e-12)
        if not tied:  # scikit-learn treats a tie as one step of the curve, not as orders
            ours = measures.AP().from_scores(scores, labels)
            assert ours == pytest.approx(average_precision_score(good, scores), abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_trec_measures_equal_trec_evals(tied):
    names = {
        "map": "map",
        "ap@10": "map_cut_10",
        "trec:ndcg": "ndcg",
        "trec:ndcg@10": "ndcg_cut_10",
        "p@5": "P_5",
        "rr": "recip_rank",
    }
    ask = {"map", "map_cut.10", "ndcg", "ndcg_cut.10", "P.5", "recip_rank"}
    for scores, labels in collections(tied):
        # trec_eval breaks ties by document id, the last in the alphabet first.
        ids = [f"d{999 - i:03d}" for i in range(len(labels))]
        evaluator = pytrec_eval.RelevanceEvaluator(
            {"q": dict(zip(ids, labels.tolist(), strict=True))}, ask
        )
        theirs = evaluator.evaluate({"q": dict(zip(ids, scores.tolist(), strict=True))})["q"]
        ours = measures.evaluate(scores, labels, None, list(names))
        for measure, (_, key) in zip(ours.measures, names.items(), strict=True):
            assert ours.mean(measure) == pytest.approx(theirs[key], abs=1e-12)


def test_relevant_documents_with_negative_scores_count():
    scores, labels = np.array([-1.0, -2.0, -3.0]), np.array([0, 1, 1])
    assert measures.AP().from_scores(scores, labels) == pytest.approx((1 / 2 + 2 / 3) / 2)
    shifted = measures.evaluate(scores + 10, labels).table
    assert (measures.evaluate(scores, labels).table == shifted).all()


def test_what_the_presets_disagree_about():
    # Eight documents: LETOR gives NDCG@10 = 0 where everybody else has a number.
    labels, scores = np.array([0, 1, 2, 0, 0, 1, 0, 0]), -np.arange(8.0)
    values = {
        name: measures.evaluate(scores, labels, None, f"{name}:ndcg@10").table.item()
        for name in measures.PRESETS
    }
    assert values["letor3"] == values["letor4"] == 0.0
    assert values["trec"] == pytest.approx(ndcg_score([labels], [scores], k=10))
    assert values["burges"] == pytest.approx(ndcg_score([2**labels - 1], [scores], k=10))
    at_five = measures.evaluate(scores, labels, None, "letor4:ndcg@5").table.item()
    log2_3 = np.log2(3)
    assert at_five == pytest.approx((1 + 3 / log2_3) / (3 + 1 + 1 / log2_3))
