"""What do learners minimize? Their objectives as the score of one relevant document moves.

One query with two relevant documents among eight. The score of one of them goes from the bottom to
the top while all others stay: on the left objectives of `permdist.objectives`, each brought to the
range from 0 to 1, on the right their slopes. The measure itself (in gray) is a step function.
Likelihoods and hinges are convex and pull hardest at the bottom; expected and smooth measures pull
where the document passes others near the top.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist import objectives
from permdist.measures import parse

SCORES = np.array([0.0, 1.2, 0.8, 0.3, 0.1, -0.4, -0.9, -1.5])
LABELS = np.array([1, 0, 0, 1, 0, 0, 0, 0])
SHOWN = {
    "likelihood, pairs": objectives.Likelihood(space="pairs", scale=False),
    "convex loss, AP, kappa 5": objectives.ConvexLoss("ap", scale=False, kappa=5.0),
    "-log E[AP]": objectives.ExpectedGain("ap", scale=False),
    "ranking hinge, AP": objectives.RankingHinge("ap"),
    "pair hinge, squared": objectives.PairHinge(),
    "ListMLE, ListNet": objectives.ListMLE(),  # the same for these labels
    "AP at smooth positions": objectives.SmoothMeasure("ap", alpha=5.0),
    "E[NDCG] under noise": objectives.NoisyMeasure("ndcg", noise=0.4),
}


def main():
    options = read_options(__file__, __doc__, points=(201, "scores of the moving document"))
    places = np.linspace(-2.5, 2.5, options.points)
    rows = np.tile(SCORES, (len(places), 1))
    rows[:, 0] = places
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    lost = 1.0 - np.array([float(parse("ap").from_scores(row, LABELS)) for row in rows])
    steps = (lost - lost.min()) / np.ptp(lost)
    left.plot(places, steps, color="0.6", linewidth=3, label="1 - AP itself")
    for name, objective in SHOWN.items():
        found = [objective(row, LABELS) for row in rows]
        values = np.array([value for value, _ in found])
        slopes = np.array([gradient[0] for _, gradient in found])
        low, span = values.min(), np.ptp(values)
        left.plot(places, (values - low) / span, label=name)
        right.plot(places, slopes / span)
        print(f"{name:<26} from {values[0]:8.4f} down to {low:8.4f}")
    left.set(ylabel="objective, brought to 0 to 1", xlabel="score of one relevant document")
    right.set(ylabel="its slope", xlabel="score of one relevant document")
    for ax in (left, right):
        for other in SCORES[1:][LABELS[1:] == 0]:
            ax.axvline(other, color="0.9", linewidth=0.8, zorder=0)
        plain(ax)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
