"""How far are smooth measures from the measures themselves? Their mean distance along training.

ApproxAP with three factors alpha of scores and three factors beta of positions, ApproxNDCG with
three alphas; every pass of the stochastic optimizer is followed by a look at all training queries.
``--data`` takes a folder with LETOR folds, of which the first is used.
"""

import warnings

import numpy as np
from common import FOLDS, load_training, plain, read_options, save, smooth_values, with_pairs
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist.measures import evaluate
from permdist.models import ApproxAP, ApproxNDCG

PANELS = {
    "AP, beta = 10": (ApproxAP, [{"alpha": alpha, "beta": 10.0} for alpha in (10.0, 50.0, 100.0)]),
    "AP, alpha = 100": (ApproxAP, [{"beta": beta, "alpha": 100.0} for beta in (1.0, 10.0, 100.0)]),
    "NDCG": (ApproxNDCG, [{"alpha": alpha} for alpha in (10.0, 50.0, 100.0)]),
}


def follow(learner, train, passes):
    """Return the mean distance and the mean measure after every pass."""
    errors, means = [], []
    for turn in range(passes):
        # One pass more from where the last one ended, in an order of its own.
        learner.set_params(max_iter=1, warm_start=True, random_state=turn).fit(train)
        scores = learner.predict(train)
        true = evaluate(scores, train.y, train.qid, learner.measure)[learner.measure]
        errors.append(np.abs(smooth_values(learner, train, scores) - true).mean())
        means.append(true.mean())
    return np.array(errors), np.array(means)


def main():
    options = read_options(
        __file__, __doc__, FOLDS, queries=150, passes=(40, "passes over the queries")
    )
    train = with_pairs(load_training(options))
    warnings.simplefilter("ignore", ConvergenceWarning)  # of steps that are followed one by one
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    print(
        f"{'':<17} {'':<10} {'error: first':>12} {'last':>7} {'largest':>8} {'measure: last':>14}"
    )
    for ax, (title, (kind, settings)) in zip(
        figure.subplots(1, 3, sharey=True), PANELS.items(), strict=True
    ):
        for setting in settings:
            name, value = next(iter(setting.items()))
            learner = kind(**setting, optimizer="stochastic", start="zeros")
            errors, means = follow(learner, train, options.passes)
            label = f"{name} = {value:g}"
            ax.plot(np.arange(1, len(errors) + 1), errors, label=label)
            ends = f"{errors[0]:12.4f} {errors[-1]:7.4f} {errors.max():8.4f} {means[-1]:14.4f}"
            print(f"{title:<17} {label:<12} {ends}")
        ax.set(title=title, xlabel="pass over the queries")
        ax.set_ylim(bottom=0.0)
        plain(ax)
        ax.legend(frameon=False)
    figure.axes[0].set(ylabel="mean |smooth measure - measure|, training")
    save(figure, options)


if __name__ == "__main__":
    main()
