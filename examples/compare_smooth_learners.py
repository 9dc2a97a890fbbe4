"""Smooth measures against bounds of measures: six learners on the same folds, by MAP and NDCG.

ApproxAP and ApproxNDCG (smooth positions) and SoftRank (smooth scores) beside AdaRank and SVMMap
(bounds). Learners of AP choose their settings by MAP on the validation part of every fold, learners
of NDCG by NDCG. Differences are paired by query. ``--data`` takes a folder with LETOR folds.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.models import AdaRank, ApproxAP, ApproxNDCG, SoftRank, SVMMap, cross_validate

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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="simulated queries of each part")
    parser.add_argument("--output", type=Path, default=Path("compare_smooth_learners.png"))
    options = parser.parse_args(arguments)
    if options.data:
        folds = data.load_letor_folds(options.data)
    else:
        whole = data.make_letor(3 * options.queries, rng=0)
        parts = [whole.where(np.arange(len(whole)) % 3 == part) for part in range(3)]
        folds = [parts[turn:] + parts[:turn] for turn in range(3)]
    found = {}
    print(f"{'':<14} MAP     less ApproxAP's       NDCG  NDCG@1      @3      @5     @10  chosen")
    for place, (name, (learner, grid, _)) in enumerate(LEARNERS.items()):
        by = {"select": "map" if place < 3 else "ndcg", "measures": MEASURES}
        result = cross_validate(learner, folds, grid, **by)
        found[name] = np.array([result.per_query(measure) for measure in MEASURES])
        more, means = found[name][0] - found["ApproxAP"][0], found[name].mean(axis=1)
        shown = "".join(f" {means[column]:7.4f}" for column in (1, 2, 4, 6, 11))
        error = more.std(ddof=1) / np.sqrt(len(more))
        chosen = ", ".join("/".join(f"{v:g}" for v in one.values()) for one in result.chosen)
        row = f"{means[0]:.4f}  {more.mean():7.4f} +- {error:.4f} {shown}  {chosen}"
        print(f"{name:<14} {row}".rstrip(" ,"), flush=True)
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    errors = []
    for place, (name, table) in enumerate(found.items()):
        style = {"color": LEARNERS[name][2], "fillstyle": "full" if place < 3 else "none"}
        more, curve = table[0] - found["ApproxAP"][0], (table - found["ApproxNDCG"])[2:]
        errors.append(curve.std(axis=1, ddof=1) / np.sqrt(len(more)))
        error = more.std(ddof=1) / np.sqrt(len(more))
        left.errorbar(more.mean(), place, xerr=error, fmt="o", **style)
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
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
