"""How far are smooth measures from the measures themselves? Their mean distance along training.

ApproxAP with three factors alpha of scores and three factors beta of positions, ApproxNDCG with
three alphas; every pass of the stochastic optimizer is followed by a look at all training queries.
``--data`` takes a folder with LETOR folds, of which the first is used.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import evaluate
from permdist.models import ApproxAP, ApproxNDCG

PANELS = {
    "AP, beta = 10": (ApproxAP, [{"alpha": alpha, "beta": 10.0} for alpha in (10.0, 50.0, 100.0)]),
    "AP, alpha = 100": (ApproxAP, [{"beta": beta, "alpha": 100.0} for beta in (1.0, 10.0, 100.0)]),
    "NDCG": (ApproxNDCG, [{"alpha": alpha} for alpha in (10.0, 50.0, 100.0)]),
}


def follow(learner, train, passes):
    """Give the mean distance and the mean measure after every pass."""
    features, batch = learner._training(train)
    work, _ = learner._kernel(batch)
    lost, gradient = np.empty(len(batch)), np.empty(len(features))
    errors, means = [], []
    for turn in range(passes):
        # One pass more from where the last one ended, in an order of its own.
        learner.set_params(max_iter=1, warm_start=True, random_state=turn).fit(train)
        scores = features @ learner.coef_
        work(0, len(batch), scores, lost, gradient)  # 1 less the smooth measure of each query
        measured = evaluate(scores, batch.labels, batch.query_of, learner.measure)
        true = measured[learner.measure]
        errors.append(np.abs(1.0 - lost - true).mean())
        means.append(true.mean())
    return np.array(errors), np.array(means)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="simulated training queries")
    parser.add_argument("--passes", type=int, default=40, help="passes over the queries")
    parser.add_argument("--output", type=Path, default=Path("approximation_error.png"))
    options = parser.parse_args(arguments)
    if options.data:
        train = data.load_letor_folds(options.data)[0][0]
    else:
        train = data.make_letor(options.queries, rng=0)
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    print(
        f"{'':<17} {'':<10} {'error: first':>12} {'last':>7} {'largest':>8} {'measure: last':>14}"
    )
    for ax, (title, (kind, settings)) in zip(
        figure.subplots(1, 3, sharey=True), PANELS.items(), strict=True
    ):
        for setting in settings:
            name, value = next(iter(setting.items()))
            errors, means = follow(kind(**setting), train, options.passes)
            label = f"{name} = {value:g}"
            ax.plot(np.arange(1, len(errors) + 1), errors, label=label)
            ends = f"{errors[0]:12.4f} {errors[-1]:7.4f} {errors.max():8.4f} {means[-1]:14.4f}"
            print(f"{title:<17} {label:<12} {ends}")
        ax.set(title=title, xlabel="pass over the queries")
        ax.set_ylim(bottom=0.0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    figure.axes[0].set(ylabel="mean |smooth measure - measure|, training")
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
