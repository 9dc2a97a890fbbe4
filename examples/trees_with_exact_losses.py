"""Boosted trees with exact losses, on queries whose labels no line explains.

On the left the AP of validation queries after every tree, for the likelihood of pairs, the same
with the expected loss of AP (L3), ListNet, and the expected loss alone; LightGBM's own lambdarank
if it is installed; and a linear model of the same likelihood. On the right what each model makes
of the first feature, of which quality is a hump. Trees are scikit-learn's, each fitted to the
Newton steps of an objective; LightGBM and XGBoost do so with ``objective.lightgbm()`` and
``objective.xgboost()``.
"""

import warnings

import numpy as np
from common import plain, read_options, save, size_of, tell
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor

from permdist import data
from permdist.measures import evaluate
from permdist.models import MLE
from permdist.objectives import parse_objective

ROWS = "space=rows,scale=false"
OBJECTIVES = {
    "likelihood of pairs": "likelihood[scale=false]",
    "L3: and expected loss of AP": f"likelihood-and-loss[measure=ap,{ROWS},kappa=10]",
    "ListNet": "listnet",
    "expected loss of AP alone": f"expected-loss[measure=ap,{ROWS}]",
}
COLORS = ("tab:blue", "tab:red", "tab:green", "tab:purple")
RATE, LEAVES, FEWEST, FLOOR = 0.1, 15, 20, 0.1


def boost(objective, train, rounds):
    """Return regression trees whose leaves are Newton steps of an objective."""
    derive = objective.prepare(train.y, train.qid, n_jobs=1)
    scores, trees = np.zeros(train.n_documents), []
    for number in range(rounds):
        _, gradient, curvature = derive(scores)
        curvature = np.maximum(curvature, FLOOR * curvature.mean())
        tree = DecisionTreeRegressor(
            max_leaf_nodes=LEAVES, min_samples_leaf=FEWEST, random_state=number
        )
        tree.fit(train.X, -gradient / curvature, sample_weight=curvature)
        scores += RATE * tree.predict(train.X)
        trees.append(tree)
    return trees


def stages(trees, X):
    """Return the scores after each tree, shape (trees, documents)."""
    return np.cumsum([RATE * tree.predict(X) for tree in trees], axis=0)


def lambdarank(train, validation, options):
    """Return the AP after each tree of LightGBM's own objective; None without LightGBM."""
    try:
        import lightgbm
    except ImportError:
        print("lambdarank is left out: pip install -e '.[lightgbm]'\n")
        return None
    from permdist.adapters import LightGBMMeasure

    params = {"objective": "lambdarank", "metric": "none", "num_leaves": LEAVES}
    params |= {"verbosity": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True}
    quiet, told = {"params": {"verbosity": -1}}, {}
    table = lightgbm.Dataset(train.X, train.y, group=train.sizes, **quiet)
    held_out = table.create_valid(validation.X, validation.y, group=validation.sizes, **quiet)
    lightgbm.train(
        params,
        table,
        options.rounds,
        valid_sets=[held_out],
        valid_names=["validation"],
        feval=LightGBMMeasure("ap"),
        callbacks=[lightgbm.record_evaluation(told)],
    )
    return told["validation"]["permdist_ap"]


def main():
    rounds = (150, "trees")
    options = read_options(__file__, __doc__, queries=400, rounds=rounds)
    whole = data.make_letor(
        2 * options.queries, n_documents=(8, 60), n_features=12, features="bent", empty=0.0, rng=0
    )
    parts = [whole.where(np.arange(len(whole)) % 2 == part) for part in range(2)]
    tell(options, f"simulated (make_letor, bent), training and validation, {size_of(*parts)}")
    train, validation = parts
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    grid = np.zeros((81, 12))
    grid[:, 0] = np.linspace(-2.5, 2.5, 81)
    curve = lambdarank(train, validation, options)
    if curve is not None:
        left.plot(np.arange(1, len(curve) + 1), curve, color="0.5", label="LightGBM's lambdarank")
        print(f"{'lambdarank':<30}{max(curve):.3f}")
    for (name, text), color in zip(OBJECTIVES.items(), COLORS, strict=True):
        trees = boost(parse_objective(text), train, options.rounds)
        measured = [
            evaluate(scores, validation.y, validation.qid, "ap").mean("ap")
            for scores in stages(trees, validation.X)
        ]
        left.plot(np.arange(1, len(measured) + 1), measured, color=color, label=name)
        print(f"{name:<30}{max(measured):.3f}")
        shape = stages(trees, grid)[-1]
        right.plot(grid[:, 0], (shape - shape.mean()) / shape.std(), color=color)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        line = MLE().fit(train)
    value = line.score(validation)
    left.axhline(value, color="black", linestyle="--", linewidth=1.0, label="linear, likelihood")
    print(f"{'linear, likelihood':<30}{value:.3f}")
    left.set(xlabel="trees", ylabel="AP of validation queries")
    left.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 0.08))
    hump = np.exp(-(grid[:, 0] ** 2))
    right.plot(grid[:, 0], (hump - hump.mean()) / hump.std(), color="0.8", linewidth=4, zorder=0)
    right.set(xlabel="first feature, others 0", ylabel="score, standardized (gray: true quality)")
    plain(left, right)
    save(figure, options)


if __name__ == "__main__":
    main()
