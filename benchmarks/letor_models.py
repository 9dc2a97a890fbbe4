"""All learners on LETOR folds, by LETOR's rules: accuracy beside published figures, and fit times.

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

from permdist import data
from permdist.comparison import compare
from permdist.comparison.published import published, recognize
from permdist.measures import evaluate, parse
from permdist.models import (
    L3,
    MLE,
    SVMNDCG,
    AdaRank,
    ApproxAP,
    ApproxNDCG,
    BLFeatureRank,
    BoltzRank,
    ConvexLoss,
    DiffRank,
    ExpectedGain,
    FeatureRank,
    ListMLE,
    ListNet,
    PermuRank,
    RankBoost,
    RankCosine,
    RankSVM,
    SoftRank,
    SVMMap,
)

# Without `scale` the objective is a sum over all pairs, some 100 a query: it wants a smaller C.
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
    "MLE": (MLE(), SCALED),
    "MLE, unscaled": (MLE(scale=False), SUMS),
    "MLE, lattice, unscaled": (MLE(space="lattice", scale=False), SUMS),
    "MLE, interleavings, unscaled": (MLE(space="interleavings", scale=False), SUMS),
    "ExpectedGain AUC": (ExpectedGain("auc", space="pairs", n_starts=1), SCALED),
    "ExpectedGain AP": (ExpectedGain("ap", n_starts=1), SCALED),
    "ExpectedGain NDCG": (ExpectedGain("ndcg@10", n_starts=1), SCALED),
    "L3 AUC": (L3("auc", space="pairs"), SCALED),
    "L3 AP, unscaled": (L3("ap", scale=False), SUMS),
    "L3 NDCG, unscaled": (L3("ndcg@10", scale=False), SUMS),
    "ConvexLoss AUC": (ConvexLoss("auc", space="pairs"), SCALED),
    "ConvexLoss AUC, unscaled": (ConvexLoss("auc", space="pairs", scale=False), SUMS),
    "ConvexLoss AP": (ConvexLoss("ap"), SCALED),
    "ConvexLoss AP, unscaled": (ConvexLoss("ap", scale=False), SUMS),
    "ConvexLoss AP, interleavings": (ConvexLoss("ap", space="interleavings"), SCALED),
    "ConvexLoss AP, restart": (ConvexLoss("ap", space="restart", scale=False), SUMS),
    "ConvexLoss NDCG, unscaled": (ConvexLoss("ndcg@10", scale=False), SUMS),
    "ConvexLoss NDCG, graded": (ConvexLoss("ndcg@10", scale=False, graded=True), SUMS),
    "ConvexLoss AUC, kappa": (ConvexLoss("auc", space="pairs", scale=False), TILTED),
    "ConvexLoss AP, kappa": (ConvexLoss("ap", scale=False), TILTED),
    "ConvexLoss NDCG, kappa": (ConvexLoss("ndcg@10", scale=False), TILTED),
    "ConvexLoss AUC, kappa, 3 views": (
        ConvexLoss("auc", space="pairs", scale=False, normalize=VIEWS),
        TILTED,
    ),
    "ConvexLoss AP, kappa, 3 views": (ConvexLoss("ap", scale=False, normalize=VIEWS), TILTED),
    "AdaRank AP": (AdaRank("ap"), {}),
    "AdaRank AP, all accepted": (AdaRank(accept="all", max_iter=500, patience=500, **BOOST), {}),
    "AdaRank NDCG@5, both ways": (AdaRank("ndcg@5", directions="both"), {}),
    "AdaRank NDCG@10, 3 views": (AdaRank("ndcg@10", directions="both", normalize=VIEWS), {}),
    "RankBoost": (RankBoost(**BOOST), {}),
    "RankBoost, raw features": (RankBoost(weak="feature", **BOOST), {}),
    "RankBoost, 3 views": (RankBoost(normalize=VIEWS, **BOOST), {}),
    "RankSVM": (RankSVM(), HINGES),
    "RankSVM, hinge": (RankSVM(loss="hinge"), HINGES),
    "SVMMap": (SVMMap(), HINGES),
    "SVMNDCG": (SVMNDCG(), HINGES),
    "SVMMap, AUC": (SVMMap("auc"), HINGES),
    "ListNet": (ListNet(), LISTS),
    "ListNet, labels as they are": (ListNet(target="label"), LISTS),
    "ListMLE": (ListMLE(), LISTS),
    "RankCosine": (RankCosine(), {}),
    "ApproxNDCG": (ApproxNDCG(), SMOOTH),
    "ApproxNDCG@10": (ApproxNDCG("ndcg@10", beta=1.0), SMOOTH),
    "ApproxNDCG, 3 views": (ApproxNDCG(normalize=VIEWS), SMOOTH),
    "ApproxAP": (ApproxAP(), SMOOTH),
    "ApproxAP, 3 views": (
        ApproxAP(normalize=VIEWS),
        {"C": [0.01, 0.1, 1.0, 10.0], "alpha": [1.0, 10.0, 100.0]},
    ),
    "SoftRank, recursion": (SoftRank(method="softrank"), {"C": [10.0, 100.0, 1000.0]}),
    "BoltzRank": (BoltzRank(), {"C": [10.0, 100.0, 1e3, 1e4], "mix": [0.0, 0.5, 1.0]}),
    "FeatureRank": (FeatureRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "BLFeatureRank": (BLFeatureRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "DiffRank": (DiffRank(cycles=3, measure=MAP, early_stopping=200), {}),
    "PermuRank": (
        PermuRank(max_iter=15, early_stopping=6, measure=MAP),
        {"C": [1e-4, 1e-3, 0.01, 0.1]},
    ),
    "PermuRank, all pairs": (
        PermuRank(pairs="all", max_iter=15, early_stopping=6, measure=MAP),
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
            vali = fold.vali
            model.fit(
                fold.train.X,
                fold.train.y,
                group=fold.train.sizes,
                eval_set=[(vali.X, vali.y)],
                eval_group=[vali.sizes],
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
        if first is None:
            first = values
        same = np.array_equal(values, first)
        p = "" if same else f"{ttest_rel(values, first).pvalue:6.2f}"
        begin = time.perf_counter()
        for fitted, fold in zip(found.learners(name), folds, strict=True):
            stops = fitted.get_params()["early_stopping"] is not None
            fitted.fit(fold.train, eval_set=fold.vali if stops else None)
        seconds = (time.perf_counter() - begin) / len(folds)
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(
            f"{name:<30} {found.to_frame(MAP)['mean'].item():7.4f} {error:6.4f} "
            f"{found.to_frame(NDCG)['mean'].item():8.4f} "
            f"{seconds:7.2f} s {p}",
            flush=True,
        )
    if not wanted or "peers" in wanted:
        peers(folds, first)
    collection = recognize(folds)
    for row in published(collection, MAP):
        print(f"{row.learner:<30} {row.value:7.4f}  published for {collection}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
