"""Smooth measures against bounds of measures: six learners on the same folds, by MAP and NDCG.

ApproxAP and ApproxNDCG (smooth positions) and SoftRank (smooth scores) beside AdaRank and SVMMap
(bounds). Learners of AP choose their settings by MAP on the validation part of every fold, learners
of NDCG by NDCG. Differences are paired by query. ``--data`` takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, load_folds, plain, read_options, save, settings_text, standard_error
from matplotlib.figure import Figure

from permdist.comparison import compare
from permdist.models import AdaRank, ApproxAP, ApproxNDCG, SoftRank, SVMMap

SMOOTH = {"alpha": [10.0, 100.0], "C": [0.1, 1.0, 100.0]}
LEARNERS = {
    "ApproxAP": (ApproxAP(), SMOOTH, "#4c72b0"),
    "AdaRank, AP": (AdaRank("ap", early_stopping=30), {}, "#55a868"),
    "SVMMap": (SVMMap(), {"C": [0.01, 0.1, 1.0, 10.0]}, "#8172b3"),
    "ApproxNDCG": (ApproxNDCG(), SMOOTH, "#4c72b0"),
    "AdaRank, NDCG": (AdaRank("ndcg", early_stopping=30), {}, "#55a868"),
    "SoftRank": (SoftRank("ndcg", method="softrank"), {"C": [10.0, 100.0, 1000.0]}, "#dd8452"),
}
MEASURES = ["map", "ndcg", *(f"ndcg@{k}" for k in range(1, 11))]


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    folds = load_folds(options)
    found = {}
    print(f"{'':<14} MAP     less ApproxAP's       NDCG  NDCG@1      @3      @5     @10  chosen")
    for place, (name, (learner, grid, _)) in enumerate(LEARNERS.items()):
        by = {"select": "map" if place < 3 else "ndcg", "measures": MEASURES}
        result = compare(folds, {name: (learner, grid)}, **by)
        found[name] = np.array([result.values(measure)[0] for measure in MEASURES])
        more, means = found[name][0] - found["ApproxAP"][0], found[name].mean(axis=1)
        shown = "".join(f" {means[column]:7.4f}" for column in (1, 2, 4, 6, 11))
        row = f"{means[0]:.4f}  {more.mean():7.4f} +- {standard_error(more):.4f} {shown}"
        print(f"{name:<14} {row}  {settings_text(result, name)}".rstrip(), flush=True)
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    errors = []
    for place, (name, table) in enumerate(found.items()):
        style = {"color": LEARNERS[name][2], "fillstyle": "full" if place < 3 else "none"}
        more, curve = table[0] - found["ApproxAP"][0], (table - found["ApproxNDCG"])[2:]
        errors.append(standard_error(curve))
        left.errorbar(more.mean(), place, xerr=standard_error(more), fmt="o", **style)
        line = "o-" if place < 3 else "o--"
        right.plot(range(1, 11), curve.mean(axis=1), line, label=name, **style)
    band = np.sum(errors, axis=0) / (len(errors) - 1)  # ApproxNDCG has none
    right.fill_between(range(1, 11), -band, band, color="0.93", label="one standard error")
    left.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
    left.set(xlabel="MAP less that of ApproxAP, with one standard error")
    left.set_yticks(range(len(LEARNERS)), list(LEARNERS))
    left.locator_params(axis="x", nbins=5)
    left.invert_yaxis()
    right.set(xlabel="k", ylabel="NDCG@k less that of ApproxNDCG")
    right.legend(frameon=False, ncols=2)
    for ax in (left, right):
        plain(ax)
    save(figure, options, rules=MEASURES)


if __name__ == "__main__":
    main()
