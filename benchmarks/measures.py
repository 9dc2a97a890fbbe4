"""AP and NDCG@10 over 10,000 queries of 100 documents, and of runs, beside the tools people use.

    python benchmarks/measures.py [--queries N] [--relevant SHARE]

Peers that are not installed are skipped (``pip install -e '.[bench]'``).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import harness
import numpy as np

from permdist import data, measures


def padded_numpy(scores, y, n_queries):
    """Evaluate in the usual vectorized way, for queries of equal length."""
    s, labels = scores.reshape(n_queries, -1), y.reshape(n_queries, -1)
    n = s.shape[1]
    ranked = np.take_along_axis(labels, np.argsort(-s, axis=1), axis=1)
    good = ranked > 0
    precision = np.cumsum(good, axis=1) / np.arange(1, n + 1)
    ap = (precision * good).sum(axis=1) / np.maximum(good.sum(axis=1), 1)
    discount = 1.0 / np.log2(np.arange(2, 12))
    dcg = ((2.0 ** ranked[:, :10] - 1.0) * discount).sum(axis=1)
    best = -np.sort(-labels, axis=1)[:, :10]
    ideal = ((2.0**best - 1.0) * discount).sum(axis=1)
    return ap, np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)


def of_runs(rng, q, n, relevant):
    """Time runs against judgements of four fifths of their documents; ids decide what is what."""
    names, judged = [f"doc-{i:07d}" for i in range(n)], 4 * n // 5
    scores = rng.normal(size=(q, n))
    grades = rng.integers(1, 4, (q, n)) * (rng.random((q, n)) < relevant)
    in_run = {f"q{k}": dict(zip(names, scores[k].tolist(), strict=True)) for k in range(q)}
    in_qrels = {
        f"q{k}": dict(zip(names[:judged], grades[k, :judged].tolist(), strict=True))
        for k in range(q)
    }
    wanted = ["map", "trec:ndcg@10"]
    with tempfile.TemporaryDirectory() as folder:
        run_file, qrels_file = Path(folder) / "run.txt", Path(folder) / "qrels.txt"
        with run_file.open("w") as out:
            for qid, row in in_run.items():
                out.writelines(f"{qid} Q0 {doc} 0 {score:.6f} x\n" for doc, score in row.items())
        with qrels_file.open("w") as out:
            for qid, row in in_qrels.items():
                out.writelines(f"{qid} 0 {doc} {grade}\n" for doc, grade in row.items())
        run, qrels = data.load_run(run_file), data.load_qrels(qrels_file)
        together = qrels.judge(run)
        rows = {
            "permdist, documents looked up and measured": harness.seconds(
                lambda: measures.evaluate_run(run, qrels, wanted)
            ),
            "permdist, measured alone": harness.seconds(
                lambda: measures.evaluate_judged(together, wanted)
            ),
            "permdist, reading the run": harness.seconds(lambda: data.load_run(run_file), repeat=3),
        }
        try:
            import pytrec_eval

            evaluator = pytrec_eval.RelevanceEvaluator(in_qrels, {"map", "ndcg_cut.10"})
            rows["pytrec_eval"] = harness.seconds(lambda: evaluator.evaluate(in_run), repeat=3)

            def read():
                with run_file.open() as lines:
                    return pytrec_eval.parse_run(lines)

            rows["pytrec_eval, reading the run"] = harness.seconds(read, repeat=1)
            theirs = evaluator.evaluate(in_run)
            ours = measures.evaluate_run(data.Run.from_dict(in_run), qrels, "map")
            if not np.allclose(ours["map"], [theirs[qid]["map"] for qid in ours.qids], atol=1e-12):
                raise SystemExit("trec_eval disagrees")
        except ImportError:
            rows["pytrec_eval"] = "not installed"
    harness.table(f"AP and NDCG@10 of a run, {q:,} queries x {n} documents, 80% judged", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--relevant", type=float, default=0.1, help="share of relevant documents")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    q, n = options.queries, options.documents
    scores = rng.normal(size=q * n)
    y = rng.integers(1, 4, q * n) * (rng.random(q * n) < options.relevant)
    qid = np.repeat(np.arange(q), n)
    wanted = [measures.AP(), measures.NDCG(10)]

    def ours():
        return measures.evaluate(scores, y, qid, wanted)

    ap, ndcg = padded_numpy(scores, y, q)
    if not (np.allclose(ours()["ap"], ap) and np.allclose(ours()["ndcg@10"], ndcg)):
        raise SystemExit("the two ways disagree")
    rows = {
        "permdist, flat arrays with query ids": harness.seconds(ours),
        "numpy, padded to equal length": harness.seconds(lambda: padded_numpy(scores, y, q)),
    }
    sizes = rng.integers(n // 2, 3 * n // 2, q)
    unequal = np.repeat(np.arange(q), sizes)
    s2, y2 = rng.normal(size=len(unequal)), rng.integers(0, 2, len(unequal))
    y2 *= rng.random(len(unequal)) < 2 * options.relevant
    rows["permdist, queries of unequal length"] = harness.seconds(
        lambda: measures.evaluate(s2, y2, unequal, wanted)
    )
    averaged = [measures.AP(ties="average"), measures.NDCG(10, ties="average")]
    rows["permdist, averaged over ties"] = harness.seconds(
        lambda: measures.evaluate(scores, y, qid, averaged)
    )
    everything = [
        measures.parse(f"{kind.aliases[0]}{'@10' if 'k' in kind.__dataclass_fields__ else ''}")
        for kind in measures.kinds()
    ]
    rows[f"permdist, all {len(everything)} measures"] = harness.seconds(
        lambda: measures.evaluate(scores, y, qid, everything)
    )
    try:
        from sklearn.metrics import ndcg_score

        gains, table = 2.0 ** y.reshape(q, n) - 1, scores.reshape(q, n)
        rows["scikit-learn, NDCG@10 alone, no ties"] = harness.seconds(
            lambda: ndcg_score(gains, table, k=10, ignore_ties=True), repeat=3
        )
    except ImportError:
        rows["scikit-learn"] = "not installed"
    try:
        import pytrec_eval

        def build():
            names = [f"d{i}" for i in range(n)]
            qrels, run = {}, {}
            for k in range(q):
                own = slice(k * n, (k + 1) * n)
                qrels[f"q{k}"] = dict(zip(names, y[own].tolist(), strict=True))
                run[f"q{k}"] = dict(zip(names, scores[own].tolist(), strict=True))
            return pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg_cut.10"}), run

        evaluator, run = build()
        rows["pytrec_eval"] = harness.seconds(lambda: evaluator.evaluate(run), repeat=3)
        rows["pytrec_eval, building its dictionaries"] = harness.seconds(build, repeat=2)
    except ImportError:
        rows["pytrec_eval"] = "not installed"
    try:
        import ranx

        names = np.array([f"d{i}" for i in range(n)])

        def build_ranx():
            ids = {f"q{k}": names for k in range(q)}
            truth = {f"q{k}": y[k * n : (k + 1) * n] for k in range(q)}
            values = {f"q{k}": scores[k * n : (k + 1) * n] for k in range(q)}
            return (
                ranx.Qrels({k: dict(zip(ids[k], truth[k].tolist(), strict=True)) for k in ids}),
                ranx.Run({k: dict(zip(ids[k], values[k].tolist(), strict=True)) for k in ids}),
            )

        qrels, ranked = build_ranx()
        rows["ranx"] = harness.seconds(
            lambda: ranx.evaluate(qrels, ranked, ["map", "ndcg_burges@10"]), repeat=3
        )
        rows["ranx, building its runs"] = harness.seconds(build_ranx, repeat=1)
    except ImportError:
        rows["ranx"] = "not installed"
    print(harness.machine())
    harness.table(
        f"AP and NDCG@10, {q:,} queries x {n} documents, {options.relevant:.0%} relevant", rows
    )
    of_runs(rng, q, n, options.relevant)


if __name__ == "__main__":
    main()
