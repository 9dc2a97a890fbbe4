"""Learners on five collections, at their defaults and tuned, beside boosted trees.

    python benchmarks/five_collections.py --data FOLDER --learners ListNet --collections raw,long
    python benchmarks/five_collections.py --learners all --default-only --results results.jsonl
    python benchmarks/five_collections.py --learners peers --collections mq2008
    python benchmarks/five_collections.py --show

Collections: `mq2008` (its own folds) and `lightgbm` (five folds over 251 queries), which are read
from --data or the folder in PERMDIST_DATA; and three simulated ones: `short` (10 documents, little
noise), `raw` (120 documents, 5 grades, features with scales from 1e-3 to 1e7) and `long` (1,000
documents, 1 to 8 of them relevant, 64 skewed features from 0 to 1). --draw simulates other ones of
the same kinds, with another file for their results.

Settings are chosen by NDCG@10 on the validation part; peers stop early by it. Equal scores count
as the mean over all ways to break ties. Every result is appended to a file of JSON lines, and
results that are there already are not computed again (--again does). p-values are of paired
t-tests over test queries against the best row of the collection, by Holm's correction; `null`
counts the folds on which a learner learned nothing, `warned` the fits that did not converge.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np

from permdist import data, models
from permdist.comparison import adjust, compare, read_entries
from permdist.measures import evaluate, parse

MAP, NDCG = parse("ap[ties=average]"), parse("ndcg@10[ties=average]")
MEASURES = (MAP, NDCG)
RANDOM = ("random order", "")  # learner and mode of this reference
PATIENCE, ROUNDS = 50, 500  # of boosted trees


# ---- collections ---------------------------------------------------------------------------------


def mq2008(folder, _draw=0):
    """Return the five folds of MQ2008."""
    return data.load_letor_folds(Path(folder) / "mq2008")


def lightgbm(folder, _draw=0):
    """Return five folds over the 251 queries of LightGBM's ranking example."""
    from sklearn.datasets import load_svmlight_file

    parts, labels, sizes = [], [], []
    for part in ("train", "test"):
        root = Path(folder) / "lightgbm_rank"
        with gzip.open(root / f"rank.{part}.gz") as file:
            X, y = load_svmlight_file(file, n_features=300, zero_based=False)
        parts.append(X.toarray())
        labels.append(y.astype(int))
        sizes.append(np.loadtxt(root / f"rank.{part}.query", dtype=int))
    sizes = np.concatenate(sizes)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    queries = data.Queries(np.concatenate(parts), np.concatenate(labels), qid)
    return data.make_folds(queries, 5, rng=0)


def short(_=None, draw=0):
    """Simulate short queries with little noise; some features see relevance through a hump."""
    options = {"n_documents": (10, 10), "n_features": 25, "noise": 0.6, "relevant": 0.3}
    queries = data.make_letor(460, empty=0.0, rng=1 + 1000 * draw, **options)
    return _split(queries, 100, 60)


def raw(_=None, draw=0):
    """Simulate long noisy queries with five grades and features of very different scales."""
    rng = np.random.default_rng(2 + 1000 * draw)
    n_queries, n, width = 300, 120, 24
    shape = (n_queries, n, width)
    shared = rng.standard_normal((n_queries, n, 4)) @ rng.standard_normal((4, width))
    hidden = (shared / 2.0 + rng.standard_normal(shape)) / np.sqrt(2.0)
    weights = rng.standard_normal(width) * (rng.random(width) < 0.6)
    signal_ = hidden @ weights
    signal_ /= signal_.std()
    skewed = rng.random(width) < 0.4
    X = np.where(skewed, np.exp(0.8 * hidden), hidden)
    # Queries shift and stretch features, as the frequency of their words does.
    X = X * rng.lognormal(0.0, 0.3, (n_queries, 1, width))
    X = X + 0.5 * rng.standard_normal((n_queries, 1, width))
    X = X * 10.0 ** rng.permutation(np.linspace(-3.0, 7.0, width))
    judged = signal_ + 1.2 * rng.standard_normal((n_queries, n))
    cuts = np.array([0.55, 0.75, 0.87, 0.95]) + 0.04 * rng.standard_normal((n_queries, 1))
    place = np.argsort(np.argsort(judged, axis=1), axis=1) / n
    y = (place[:, :, None] >= cuts[:, None, :]).sum(axis=2)
    qid = np.repeat(np.arange(n_queries), n)
    return _split(data.Queries(X.reshape(-1, width), y.ravel(), qid), 100, 50)


def long(_=None, draw=0):
    """Simulate the regime of the papers: long queries with very few relevant documents."""
    rng = np.random.default_rng(3 + 1000 * draw)
    n_queries, n, width = 105, 1000, 64
    X = rng.random((n_queries, n, width)) ** rng.uniform(2.0, 8.0, width)
    weights = rng.standard_normal(width) * (rng.random(width) < 0.5)
    judged = X @ weights
    judged = judged / judged.std() + 0.35 * rng.standard_normal((n_queries, n))
    place = np.argsort(np.argsort(-judged, axis=1), axis=1)
    y = (place < rng.integers(1, 9, (n_queries, 1))).astype(int)
    qid = np.repeat(np.arange(n_queries), n)
    return _split(data.Queries(X.reshape(-1, width), y.ravel(), qid), 30, 15)


def _split(queries, training, validation):
    """Return one fold; simulated queries cost nothing, so all the others are for testing."""
    number = np.arange(len(queries))
    train, rest = number < training, number < training + validation
    parts = (train, rest & ~train, ~rest)
    return [data.Fold(*(queries.where(part) for part in parts))]


COLLECTIONS = {"mq2008": mq2008, "lightgbm": lightgbm, "short": short, "raw": raw, "long": long}
REAL = ("mq2008", "lightgbm")


# ---- boosted trees of other libraries ------------------------------------------------------------


def fit_lightgbm(fold, setting):
    """Fit LambdaMART; return a function of features to scores."""
    import lightgbm

    train, validation, _ = fold
    options = {"n_estimators": ROUNDS, "learning_rate": 0.05, "random_state": 0, "n_jobs": 1}
    model = lightgbm.LGBMRanker(objective="lambdarank", verbose=-1, **{**options, **setting})
    model.fit(
        train.X,
        train.y,
        group=train.sizes,
        eval_set=[(validation.X, validation.y)],
        eval_group=[validation.sizes],
        eval_metric="ndcg",
        eval_at=[10],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return model.predict


def fit_xgboost(fold, setting):
    """Fit XGBoost's rank:ndcg; return a function of features to scores."""
    import xgboost

    train, validation, _ = fold
    options = {"n_estimators": ROUNDS, "learning_rate": 0.05, "random_state": 0, "n_jobs": 1}
    model = xgboost.XGBRanker(
        objective="rank:ndcg",
        eval_metric="ndcg@10",
        early_stopping_rounds=PATIENCE,
        tree_method="hist",
        **{**options, **setting},
    )
    numbers = [np.repeat(np.arange(len(part)), part.sizes) for part in (train, validation)]
    model.fit(
        train.X,
        train.y,
        qid=numbers[0],
        eval_set=[(validation.X, validation.y)],
        eval_qid=[numbers[1]],
        verbose=False,
    )
    return model.predict


def fit_catboost(fold, setting):
    """Fit CatBoost's YetiRank; return a function of features to scores."""
    import catboost

    highest = max(1, *(int(part.y.max()) for part in fold))
    # Gains 2^label - 1 as elsewhere, scaled: CatBoost wants relevance from 0 to 1 for some losses.
    pools = [
        catboost.Pool(
            part.X,
            (2.0**part.y - 1.0) / (2.0**highest - 1.0),
            group_id=np.repeat(np.arange(len(part)), part.sizes),
        )
        for part in fold[:2]
    ]
    model = catboost.CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Base",
        iterations=ROUNDS,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **setting,
    )
    model.fit(pools[0], eval_set=pools[1], early_stopping_rounds=PATIENCE)
    return model.predict


PEERS = {
    "LightGBM": (
        fit_lightgbm,
        [{"num_leaves": n, "min_child_samples": m} for n in (7, 15, 31) for m in (5, 20, 50)],
    ),
    "XGBoost": (
        fit_xgboost,
        [
            {"max_depth": depth, "lambdarank_pair_method": pairs}
            for depth in (3, 6)
            for pairs in ("topk", "mean")
        ],
    ),
    "CatBoost": (fit_catboost, [{"depth": depth} for depth in (4, 6)]),
}


# ---- runs ----------------------------------------------------------------------------------------


class OutOfTime(BaseException):
    """Not an Exception: a comparison goes on after those."""


def _values(parts):
    """Return each measure on all test queries, fold after fold."""
    names = [one.name for one in MEASURES]
    return {name: np.concatenate([part[name] for part in parts]).tolist() for name in names}


def run_learner(folds, name, tuned):
    """Compare one learner with nothing; return what is to be kept."""
    _compile(models.LEARNERS[name](), folds[0].train)
    entries = read_entries(name if tuned else {name: models.LEARNERS[name]()}, NDCG)
    found = compare(folds, entries, measures=MEASURES, select=NDCG)
    key = found.names[0]
    return {
        "values": _values(found.evaluations[key]),
        "seconds": float(np.mean([one.seconds for one in found.outcomes[key]])),
        "setting": [str(one) for one in found.chosen[key]],
        "null": sum(bool(getattr(one, "null_", False)) for one in found.learners(key)),
        "warned": sum(bool(one.warnings) for one in found.outcomes[key]),
        "notes": found.notes,
    }


def _compile(learner, queries):
    """Fit a few queries, so that no measured time includes compilation."""
    with contextlib.suppress(ValueError):
        learner.fit(queries.where(queries.n_relevant > 0).where(np.arange(3)))


def run_peer(folds, name, tuned):
    """Fit boosted trees on every fold; the best setting on validation queries is tested."""
    fit, grid = PEERS[name]
    tests, seconds, chosen = [], [], []
    for fold in folds:
        tried = []
        for setting in grid if tuned else [{}]:
            begin = time.perf_counter()
            predict = fit(fold, setting)
            took = time.perf_counter() - begin
            value = _evaluate(predict, fold.validation).mean(NDCG)
            tried.append((value, -len(tried), took, setting, predict))
        _, _, took, setting, predict = max(tried, key=lambda one: one[:2])
        tests.append(_evaluate(predict, fold.test))
        seconds.append(took)
        chosen.append(str(setting))
    return {"values": _values(tests), "seconds": float(np.mean(seconds)), "setting": chosen}


def _evaluate(predict, part):
    scores = np.asarray(predict(part.X), dtype=float)
    return evaluate(scores, part.y, part.qid, MEASURES)


def references(folds):
    """Evaluate the order of the file, and the expectation of a random order."""
    rows = {"file order": lambda X: -np.arange(len(X)), "random order": lambda X: np.zeros(len(X))}
    return {
        name: {"values": _values([_evaluate(score, fold.test) for fold in folds])}
        for name, score in rows.items()
    }


def run(folds, name, tuned, limit):
    """Run one learner or peer; return a record, with the reason if it did not end well."""

    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        return (run_peer if name in PEERS else run_learner)(folds, name, tuned)
    except OutOfTime:
        return {"failed": f"more than {limit} s"}
    except ImportError as error:
        return {"failed": f"not installed: {error}", "skip": True}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ---- tables --------------------------------------------------------------------------------------


def read(file):
    """Return the last record of each (collection, learner, mode)."""
    lines = file.read_text().splitlines() if file.exists() else []
    records = [json.loads(line) for line in lines if line.strip()]
    return {(one["collection"], one["learner"], one["mode"]): one for one in records}


def show(collection, records):
    """Print one collection's table, best NDCG@10 first."""
    rows = {key[1:]: one for key, one in records.items() if key[0] == collection}
    good = {key: one for key, one in rows.items() if "values" in one}
    if not good:
        return
    tables = {m: np.array([one["values"][m.name] for one in good.values()]) for m in MEASURES}
    ps = {m: _p_values(table) for m, table in tables.items()}
    n = tables[MAP].shape[1]
    print(f"\n{collection}: {n} test queries")
    head = f"{'MAP':>6} {'p':>6} {'NDCG@10':>8} {'p':>6} {'fit, s':>8}  null warned"
    print(f"{'learner':<16} {'mode':<8} {head}")
    means = tables[NDCG].mean(axis=1)
    chance = np.mean(good[RANDOM]["values"][NDCG.name]) if RANDOM in good else -np.inf
    for number in np.argsort(-means, kind="stable"):
        (name, mode), one = list(good.items())[number]
        cells = []
        for measure, width in ((MAP, 6), (NDCG, 8)):
            p = ps[measure][number]
            cells.append(f"{tables[measure][number].mean():{width}.4f} {_p_text(p):>6}")
        took = f"{one['seconds']:8.2f}" if "seconds" in one else f"{'':8}"
        marks = f"  {one.get('null') or '':>4} {one.get('warned') or '':>6}"
        below = means[number] <= chance and (name, mode) != RANDOM
        marks = f"{marks}  not above random" if below else marks.rstrip()
        print(f"{name:<16} {mode:<8} {' '.join(cells)} {took}{marks}")
    for (name, mode), one in rows.items():
        if "failed" in one:
            print(f"{name:<16} {mode:<8} {one['failed'][:100]}")


def _p_values(values):
    """Test all rows against the best one."""
    from scipy.stats import ttest_rel

    best = int(np.argmax(values.mean(axis=1)))
    p = np.full(len(values), np.nan)
    others = [row for row in range(len(values)) if row != best]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal rows have no variance
        found = [ttest_rel(values[row], values[best]).pvalue for row in others]
    p[others] = adjust(np.nan_to_num(found, nan=1.0), "holm")
    return p


def _p_text(p):
    return "" if p != p else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def main(arguments=None):
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("PERMDIST_DATA"))
    parser.add_argument("--learners", default="", help="names, 'all' (learners) and 'peers'")
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--default-only", action="store_true")
    parser.add_argument("--tuned-only", action="store_true")
    parser.add_argument("--draw", type=int, default=0, help="number of the simulated collections")
    parser.add_argument("--results", type=Path, default=Path("five_collections.jsonl"))
    parser.add_argument("--limit", type=int, default=600, help="seconds per learner and collection")
    parser.add_argument("--again", action="store_true", help="repeat what has a result")
    parser.add_argument("--show", action="store_true", help="print the tables only")
    given = parser.parse_args(arguments)
    names = []
    for one in filter(None, given.learners.split(",")):
        several = {"all": [kind.__name__ for kind in models.all_learners()], "peers": list(PEERS)}
        names += several.get(one, [one])
    for name in names:
        if name not in PEERS and name not in models.LEARNERS:
            parser.error(f"--learners: {name!r} is neither a learner nor one of {', '.join(PEERS)}")
    modes = [mode for mode in ("default", "tuned") if not getattr(given, f"{_other(mode)}_only")]
    wanted = given.collections.split(",")
    for name in wanted:
        if name not in COLLECTIONS:
            parser.error(f"--collections: expected some of {', '.join(COLLECTIONS)}, got {name!r}")
    for collection in wanted:
        if collection in REAL and given.data is None:
            print(f"{collection}: left out; give its folder with --data or PERMDIST_DATA")
            continue
        if not given.show:
            _run_collection(collection, names, modes, given)
        show(collection, read(given.results))


def _other(mode):
    return "tuned" if mode == "default" else "default"


def _run_collection(collection, names, modes, given):
    folds = COLLECTIONS[collection](given.data, given.draw)
    known = read(given.results)
    for name, record in references(folds).items():
        if (collection, name, "") not in known:
            _keep(given.results, collection, name, "", record)
    for name in names:
        for mode in modes:
            if (collection, name, mode) in known and not given.again:
                continue
            record = run(folds, name, mode == "tuned", given.limit)
            print(f"{collection}: {name}, {mode}: {_told(record)}", flush=True)
            if not record.pop("skip", False):
                _keep(given.results, collection, name, mode, record)


def _told(record):
    if "failed" in record:
        return record["failed"]
    means = (f"{np.mean(record['values'][one.name]):.4f}" for one in MEASURES)
    return f"{' '.join(means)} ({record['seconds']:.2f} s per fit)"


def _keep(file, collection, name, mode, record):
    facts = {"collection": collection, "learner": name, "mode": mode}
    stamp = {"time": time.strftime("%Y-%m-%dT%H:%M:%S")}
    with file.open("a") as lines:
        lines.write(json.dumps({**facts, **stamp, **record}) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
