"""How do boosting and working sets learn? The measure by round, in training and in validation.

AdaRank keeps every feature it adds; Theorem 4 gives a lower bound of its training measure, drawn
where it is not negative. RankBoost adds features by pairs; PermuRank adds permutations to its
working sets. ``--data`` takes a folder with LETOR folds, of which the first is used.
"""

import warnings

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from permdist.models import AdaRank, PermuRank, RankBoost


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150, rounds=(60, "rounds of boosting"))
    train, validation = load_halves(options, second=1)
    # Queries without a relevant document teach nothing, and would only lower one of the curves.
    train, validation = (part.clean(conflicts=None) for part in (train, validation))
    warnings.simplefilter("ignore", ConvergenceWarning)  # a few rounds are enough here
    learners = {
        "AdaRank": AdaRank("ap", accept="all", max_iter=options.rounds, patience=options.rounds),
        "RankBoost": RankBoost(weak="feature", max_iter=options.rounds),
        "PermuRank": PermuRank("ap", max_iter=max(1, options.rounds // 3)),
    }
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    print(
        f"{'':<10} {'rounds':>6} {'train':>7} {'last':>7} {'validation':>11} {'best':>7} {'at':>4}"
    )
    for ax, (name, learner) in zip(
        figure.subplots(1, 3, sharey=True), learners.items(), strict=True
    ):
        history = learner.fit(train, eval_set=validation).history_
        judged = history["measure"]
        fitted = history.get("train")
        if fitted is None:
            fitted = clone(learner).fit(train, eval_set=train).history_["measure"]
        rounds = np.arange(1, len(judged) + 1)
        ax.plot(rounds, fitted, color="#4c72b0", label="training")
        ax.plot(rounds, judged, color="#dd8452", label="validation")
        best = int(np.argmax(judged))
        ax.plot(best + 1, judged[best], "o", color="#dd8452")
        if "guarantee" in history:
            lower = np.array(history["guarantee"])
            lower[lower < 0.0] = np.nan  # it says nothing there
            ax.plot(rounds, lower, ".:", color="0.5", label="Theorem 4, from below")
        ax.set(title=name, xlabel="round")
        ends = f"{fitted[0]:7.4f} {fitted[-1]:7.4f} {judged[-1]:11.4f}"
        print(f"{name:<10} {len(judged):6} {ends} {judged[best]:7.4f} {best + 1:4}")
    for ax in figure.axes:
        ax.set_ylim(bottom=0.0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        plain(ax)
    figure.axes[0].set(ylabel="MAP")
    figure.axes[0].legend(frameon=False, loc="center right")
    save(figure, options)


if __name__ == "__main__":
    main()
