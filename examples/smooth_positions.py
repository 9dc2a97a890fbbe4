"""How positions become smooth: five scores, their smooth positions, and how far off these may be.

(a) the positions of Table 1 of Qin et al. against alpha; (b) the largest error of a position under
Theorem 3; (c) the errors of AP and NDCG under Theorems 5 and 6. ``--data`` takes a LETOR file and
looks at its first query with a relevant document, scored by the mean of its features.
"""

import numpy as np
from common import plain, read_options, save, smooth_values
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import parse
from permdist.models import Approx
from permdist.models.smooth_positions import smooth_positions

SCORES, BETA = np.array([4.20074, 3.12378, 4.40918, 1.55258, 4.13330]), 100.0
COLORS = {"ap": "#4c72b0", "ndcg": "#dd8452"}


def main():
    options = read_options(
        __file__,
        __doc__,
        "a LETOR file instead of the five scores",
        points=(200, "values of alpha"),
    )
    scores, labels = SCORES, np.array([2, 0, 0, 0, 1])
    if options.data:
        query = data.load_letor(options.data).clean()[0]
        scores, kept = np.unique(query.X.mean(axis=1), return_index=True)  # no two alike
        labels = query.y[kept]
    n, true = len(scores), len(scores) - np.argsort(np.argsort(scores))
    gap = np.diff(np.sort(scores)).min()
    alphas = np.geomspace(0.05, 10.0, options.points) / gap
    places = np.array([smooth_positions(scores, alpha) for alpha in alphas])
    e = np.abs(places - true).max(axis=1)
    good = np.arange(1, (labels > 0).sum() + 1) - e[:, None]  # i - e of Theorem 5
    whole = np.round(good + e[:, None])
    first = (1.0 / good).sum(axis=1) / (1.0 + np.exp(BETA * (1.0 - 2.0 * e)))
    second = 2.0 * e * (1.0 / (whole * good)).sum(axis=1)
    bounds = {"ap": np.where(e < 0.5, first + second, np.nan), "ndcg": e / (2.0 * np.log(2.0))}
    print("   score  label  position  smooth, alpha = 100")
    for row in zip(scores, labels, true, smooth_positions(scores, 100.0), strict=True):
        print("{:8.5f}  {:5}  {:8}  {:19.5f}".format(*row))
    axes = (figure := Figure(figsize=(14, 4.4), layout="constrained")).subplots(1, 3)
    axes[0].plot(alphas, places)
    axes[0].set(title="(a) smooth positions", ylabel="position", ylim=(n + 0.2, 0.8))
    axes[1].plot(alphas, e, label="largest error of a position")
    axes[1].plot(alphas, (n - 1) / (np.exp(alphas * gap) + 1.0), "--", label="Theorem 3")
    axes[1].set(title="(b) positions", yscale="log")
    query = data.Queries(scores[:, None], labels, np.zeros(n, dtype=int))
    for (name, bound), theorem in zip(bounds.items(), (5, 6), strict=True):
        exact, style = float(parse(name).from_scores(scores, labels)), {"color": COLORS[name]}
        learners = (Approx(name, alpha=alpha, beta=BETA) for alpha in alphas)
        smooth = np.array([smooth_values(learner, query, scores)[0] for learner in learners])
        axes[2].plot(alphas, np.abs(smooth - exact), label=f"error of {name.upper()}", **style)
        axes[2].plot(alphas, bound, "--", label=f"Theorem {theorem}", **style)
    axes[2].set(title=f"(c) measures, beta = {BETA:g}", yscale="log", ylim=(1e-6, 10.0))
    for ax in axes:
        ax.set(xscale="log", xlabel="alpha")
        ax.axvline(100.0, color="0.7", linewidth=0.8, zorder=0)
        plain(ax)
    for ax in axes[1:]:
        ax.legend(frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
