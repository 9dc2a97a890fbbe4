"""All learners on LETOR folds, by LETOR's rules: accuracy and fit times.

    python benchmarks/letor_models.py FOLDER [part of a learner's name ...]

Every setting is chosen by MAP on the validation part of each fold. The last column is the p-value
of a paired t-test over test queries against the first row.
"""

from __future__ import annotations

import sys
import time
import warnings

import harness
import numpy as np
from scipy.stats import ttest_rel

from permdist import data, models
from permdist.comparison import compare
from permdist.measures import evaluate, parse

# Without `scale` the objective is a sum over all pairs, some 100 per query: C must be smaller.
SUMS = {"C": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0]}
SCALED = {"C": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]}
TILTED = {"C": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1], "kappa": [1.0, 30.0, 100.0]}
HINGES = {"C": [3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
LISTS = {"C": [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0]}
SMOOTH = {"C": [0.03, 0.1, 1.0, 10.0, 100.0], "alpha": [1.0, 10.0, 100.0]}
MAP, NDCG = "letor4:map", "letor4:ndcg@10"
VIEWS = ("raw", "zscore", "rank")
BOOST = {"early_stopping": 300, "measure": MAP}

LEARNERS = {
    "MLE": (models.MLE(), SCALED),
    "MLE, unscaled": (models.MLE(scale=False), SUMS),
    "MLE, interleavings, unscaled": (models.MLE(space="interleavings", scale=False), SUMS),
    "ExpectedGain AUC": (models.ExpectedGain("auc", space="pairs", n_starts=1), SCALED),
    "ExpectedGain AP": (models.ExpectedGain("ap", n_starts=1), SCALED),
    "ExpectedGain NDCG": (models.ExpectedGain("ndcg@10", n_starts=1), SCALED),
    "L3 AUC": (models.L3("auc", space="pairs"), SCALED),
    "L3 AP, unscaled": (models.L3("ap", scale=False), SUMS),
    "L3 NDCG, unscaled": (models.L3("ndcg@10", scale=False), SUMS),
    "ConvexLoss AUC": (models.ConvexLoss("auc", space="pairs"), SCALED),
    "ConvexLoss AUC, unscaled": (models.ConvexLoss("auc", space="pairs", scale=False), SUMS),
    "ConvexLoss AP": (models.ConvexLoss("ap"), SCALED),
    "ConvexLoss AP, unscaled": (models.ConvexLoss("ap", scale=False), SUMS),
    "ConvexLoss AP, interleavings": (models.ConvexLoss("ap", space="interleavings"), SCALED),
    "ConvexLoss AP, restart": (models.ConvexLoss("ap", space="restart", scale=False), SUMS),
    "ConvexLoss NDCG, unscaled": (models.ConvexLoss("ndcg@10", scale=False), SUMS),
    "ConvexLoss NDCG, graded": (models.ConvexLoss("ndcg@10", scale=False, graded=True), SUMS),
    "ConvexLoss AUC, kappa": (models.ConvexLoss("auc", space="pairs", scale=False), TILTED),
    "ConvexLoss AP, kappa": (models.ConvexLoss("ap", scale=False), TILTED),
    "ConvexLoss NDCG, kappa": (models.ConvexLoss("ndcg@10", scale=False), TILTED),
    "ConvexLoss AUC, kappa, 3 views": (
        models.ConvexLoss("auc", space="pairs", scale=False, normalize=VIEWS),
        TILTED,
    ),
    "ConvexLoss AP, kappa, 3 views": (
        models.ConvexLoss("ap", scale=False, normalize=VIEWS),
        TILTED,
    ),
    "AdaRank AP": (models.AdaRank("ap"), {}),
    "AdaRank AP, all accepted": (
        models.AdaRank(accept="all", max_iter=500, patience=500, **BOOST),
        {},
    ),
    "AdaRank NDCG@5, both ways": (models.AdaRank("ndcg@5", weak="signed"), {}),
    "AdaRank NDCG@10, 3 views": (models.AdaRank("ndcg@10", weak="signed", normalize=VIEWS), {}),
    "RankBoost": (models.RankBoost(**BOOST), {}),
    "RankBoost, raw features": (models.RankBoost(weak="feature", **BOOST), {}),
    "RankBoost, 3 views": (models.RankBoost(normalize=VIEWS, **BOOST), {}),
    "RankSVM": (models.RankSVM(), HINGES),
    "RankSVM, hinge": (models.RankSVM(loss="hinge"), HINGES),
    "SVMMap": (models.SVMMap(), HINGES),
    "SVMNDCG": (models.SVMNDCG(), HINGES),
    "SVMMap, AUC": (models.SVMMap("auc"), HINGES),
    "ListNet": (models.ListNet(), LISTS),
    "ListNet, labels as they are": (models.ListNet(target="label"), LISTS),
    "ListMLE": (models.ListMLE(), LISTS),
    "RankCosine": (models.RankCosine(), {}),
    "ApproxNDCG": (models.ApproxNDCG(), SMOOTH),
    "ApproxNDCG@10": (models.ApproxNDCG("ndcg@10", beta=1.0), SMOOTH),
    "ApproxNDCG, 3 views": (models.ApproxNDCG(normalize=VIEWS), SMOOTH),
    "ApproxAP": (models.ApproxAP(), SMOOTH),
    "ApproxAP, 3 views": (
        models.ApproxAP(normalize=VIEWS),
        {"C": [0.01, 0.1, 1.0, 10.0], "alpha": [1.0, 10.0, 100.0]},
    ),
    "SoftRank, recursion": (models.SoftRank(method="softrank"), {"C": [10.0, 100.0, 1000.0]}),
    "BoltzRank": (models.BoltzRank(), {"C": [10.0, 100.0, 1e3, 1e4], "mix": [0.0, 0.5, 1.0]}),
    "FeatureRank": (models.FeatureRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "BLFeatureRank": (models.BLFeatureRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "DiffRank": (models.DiffRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "PermuRank": (
        models.PermuRank(max_iter=15, early_stopping=6, measure=MAP),
        {"C": [1e-4, 1e-3, 0.01, 0.1]},
    ),
    "PermuRank, all pairs": (
        models.PermuRank(pairs="all", max_iter=15, early_stopping=6, measure=MAP),
        {"C": [1e-4, 1e-3, 0.01, 0.1]},
    ),
}


def peers(folds, first):
    """Print boosted trees of other libraries, where they are installed, by the same rules."""
    found = {}
    try:
        import lightgbm

        def boost(fold):
            model = lightgbm.LGBMRanker(
                objective="rank_xendcg",
                n_estimators=500,
                learning_rate=0.05,
                random_state=0,
                verbose=-1,
            )
            train, validation, _ = fold
            model.fit(
                train.X,
                train.y,
                group=train.sizes,
                eval_set=[(validation.X, validation.y)],
                eval_group=[validation.sizes],
                eval_metric="map",
                callbacks=[lightgbm.early_stopping(50, verbose=False)],
            )
            return model.predict(fold.test.X)

        found["LightGBM, rank_xendcg"] = boost
    except ImportError:
        print("LightGBM: not installed")
    try:
        import catboost

        def stochastic(fold):
            pools = [
                catboost.Pool(part.X, part.y, group_id=np.repeat(np.arange(len(part)), part.sizes))
                for part in fold
            ]
            model = catboost.CatBoostRanker(
                loss_function="StochasticRank:metric=NDCG",
                custom_metric="MAP",
                eval_metric="NDCG:top=10",
                iterations=500,
                random_seed=0,
                verbose=False,
                allow_writing_files=False,
            )
            model.fit(pools[0], eval_set=pools[1], early_stopping_rounds=50)
            return model.predict(pools[2])

        found["CatBoost, StochasticRank"] = stochastic
    except ImportError:
        print("CatBoost: not installed")
    for name, fit in found.items():
        begin = time.perf_counter()
        tests = []
        for fold in folds:
            scores = np.asarray(fit(fold), dtype=float)
            tests.append(evaluate(scores, fold.test.y, fold.test.qid, [parse(MAP), parse(NDCG)]))
        seconds = (time.perf_counter() - begin) / len(folds)
        values = np.concatenate([test[parse(MAP).name] for test in tests])
        means = [np.mean([test.mean(parse(one)) for test in tests]) for one in (MAP, NDCG)]
        p = ttest_rel(values, first).pvalue if first is not None else np.nan
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(f"{name:<30} {means[0]:7.4f} {error:6.4f} {means[1]:8.4f} {seconds:7.2f} s {p:6.2f}")


def main(folder, wanted):
    folds = list(data.load_letor_folds(folder))
    print(harness.machine())
    print(f"\n{'learner':<30} {'MAP':>7} {'s.e.':>6} {'NDCG@10':>8} {'one fit':>9} {'p':>6}")
    first = None
    for name, (learner, grid) in LEARNERS.items():
        if wanted and not any(part.lower() in name.lower() for part in wanted):
            continue
        found = compare(folds, {name: (learner, grid)}, measures=[MAP, NDCG])
        values = found.values(MAP)[0]
        means = [np.mean([one.mean(by) for one in found.evaluations[name]]) for by in (MAP, NDCG)]
        if first is None:
            first = values
        same = np.array_equal(values, first)
        p = "" if same else f"{ttest_rel(values, first).pvalue:6.2f}"
        begin = time.perf_counter()
        for fitted, (train, validation, _) in zip(found.learners(name), folds, strict=True):
            stops = fitted.get_params()["early_stopping"] is not None
            fitted.fit(train, eval_set=validation if stops else None)
        seconds = (time.perf_counter() - begin) / len(folds)
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(
            f"{name:<30} {means[0]:7.4f} {error:6.4f} {means[1]:8.4f} {seconds:7.2f} s {p}",
            flush=True,
        )
    if not wanted or "peers" in wanted:
        peers(folds, first)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
