"""What is left of a probability when one score is huge? Plain formulas against exact ones.

A good-bad pair model and a Plackett-Luce model of five items, of which the first one's score grows
from 1 to 1e18. The entropy as log-partition less expected exponent, and the chance of one of two
close items to be above the other as a softmax of centered scores, lose their digits; the library's
answers are compared with a calculation in 60 digits. ``--data`` takes a LETOR file, of whose first
suitable query the scores are a feature.
"""

from decimal import Decimal, localcontext
from itertools import permutations

import numpy as np
from common import FILE, plain, read_options, save
from matplotlib.figure import Figure

from permdist import GoodBad, PlackettLuce, data


def entropies(scores, labels):
    """Return the entropy of the good-bad pair model in 60 digits, and in plain arithmetic."""
    orders = list(permutations(range(len(scores))))
    pairs = [[(a, b) for k, a in enumerate(o) for b in o[k + 1 :]] for o in orders]
    differ = [[(a, b) for a, b in those if labels[a] != labels[b]] for those in pairs]
    plain = np.array([sum(scores[a] - scores[b] for a, b in those) for those in differ])
    total = plain.max() + np.log(np.exp(plain - plain.max()).sum())
    cancelled = total - np.exp(plain - total) @ plain
    with localcontext(prec=60):
        exact = [Decimal(float(score)) for score in scores]
        weights = [sum((exact[a] - exact[b] for a, b in those), Decimal(0)) for those in differ]
        shares = [max(weight - max(weights), Decimal(-2000)).exp() for weight in weights]
        chances = [share / sum(shares) for share in shares]
        true = float(-sum(chance * chance.ln() for chance in chances))
    return true, cancelled


def main():
    options = read_options(__file__, __doc__, FILE, sizes=(55, "how many sizes of the first score"))
    scores, labels = np.array([1.0, 0.4, 0.1, -0.2, -0.3]), np.array([1, 0, 1, 0, 1])
    for query in data.load_letor(options.data).clean() if options.data else []:
        if len(query.y) >= 5 and len(set(query.y[:5] > 0)) == 2:
            labels = (query.y[:5] > 0).astype(int)
            scores = query.X[:5, query.X[:5].std(axis=0).argmax()].astype(float)
            break
    sizes = np.logspace(0, 18, options.sizes)
    errors = {"entropy": [], "cancelled": [], "pair": [], "centered": []}
    for size in sizes:
        scores[0] = size
        true, cancelled = entropies(scores, labels)
        errors["entropy"].append(abs(GoodBad(scores, labels).entropy() - true))
        errors["cancelled"].append(abs(cancelled - true))
        chance = 1.0 / (1.0 + np.exp(scores[2] - scores[1]))
        naive = 1.0 / (1.0 + np.exp((scores[2] - scores.max()) - (scores[1] - scores.max())))
        errors["pair"].append(abs(PlackettLuce(scores).pairwise()[1, 2] - chance))
        errors["centered"].append(abs(naive - chance))
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    panels = [
        (left, "Entropy of the good-bad pair model", "cancelled", "log Z less E[F]", "entropy"),
        (right, "Chance of one close pair, Plackett-Luce", "centered", "centered scores", "pair"),
    ]
    for ax, title, naive, name, ours in panels:
        ax.loglog(sizes, np.maximum(errors[naive], 1e-18), color="C1", label=name)
        ax.loglog(sizes, np.maximum(errors[ours], 1e-18), color="C0", label="permdist")
        ax.set(title=title, xlabel="the first item's score", ylabel="absolute error (1e-18: none)")
        plain(ax)
        ax.legend(frameon=False)
        worst = f"{name} {max(errors[naive]):.1e}, permdist {max(errors[ours]):.1e}"
        print(f"{title:<42} largest error: {worst}")
    save(figure, options)


if __name__ == "__main__":
    main()
