"""Makes the pictures that the tutorials show, from the tutorials' own code.

    python docs/tutorials/pictures.py FOLDER

The examples of each page are run, and what they leave behind is drawn, so that a picture always
belongs to the numbers around it.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from permdist import GaussianScores, PlackettLuce, diagnostics, plots
from permdist.samplers import run_chains

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
RECORD = "made-from.txt"  # the digest of the code that the pictures were made from
DPI = 100
BLUE, RED, GREY = "#4c72b0", "#c44e52", "0.6"
Pictures = Iterator[tuple[str, Figure]]


def inspect(page: SimpleNamespace) -> Pictures:
    """Draw what `inspect.md` shows."""
    figure = _figure(10.0, 3.4)
    left, right = figure.subplots(1, 2)
    plots.marginals(page.model, left).set_title("where each document may stand", loc="left")
    plots.pairwise(page.model, right).set_title("which is above which", loc="left")
    yield "inspect-places", figure

    scales = 2.0 ** np.arange(-6, 3.5, 0.5)
    models = [GaussianScores(page.scores, scale) for scale in scales]
    even = PlackettLuce(np.zeros(len(page.scores)))
    figure = _figure(10.0, 3.2)
    left, right = figure.subplots(1, 2)
    left.plot(scales, [model.expect("ndcg@3", page.labels) for model in models], "o-", color=BLUE)
    sure = page.measures.parse("ndcg@3")(page.best, page.labels)
    _level(left, sure, "the ranking by score", 1.0)
    _level(left, even.expect("ndcg@3", page.labels), "all orders alike", 0.0)
    left.set(ylabel="expected NDCG@3", ylim=(0.4, 0.75))
    right.plot(scales, [_orders_in_play(model) for model in models], "o-", color=BLUE)
    _level(right, 720, "all 720", 0.0)
    right.set(ylabel="orders in play: exp(entropy)", ylim=(0, 800))
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(scales[::4], ["1/64", "1/16", "1/4", "1", "4"])
        axes.set_xlabel("standard deviation of the noise")
        _open(axes)
    yield "inspect-noise", figure

    figure = _figure(6.5, 3.2)
    axes = figure.subplots()
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)][::-1]
    said = np.array([page.said[pair] for pair in pairs])
    told = np.array([page.poll.pairwise()[pair] for pair in pairs])
    places, errors = np.arange(len(pairs)), 2.0 * np.sqrt(said * (1.0 - said) / sum(page.counts))
    style = {"capsize": 3, "linewidth": 1.2, "color": BLUE}
    axes.errorbar(said, places, xerr=errors, fmt="o", label="ballots, two standard errors", **style)
    axes.plot(told, places, "D", markersize=6, color=RED, fillstyle="none", label="model")
    names = [f"{page.drinks[i]} above {page.drinks[j]}" for i, j in pairs]
    axes.set_yticks(places, names)
    axes.set(xlabel="share", xlim=(0.5, 1.02), ylim=(-0.6, 5.6))
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    _open(axes)
    yield "inspect-poll", figure

    figure = _figure(11.0, 3.4)
    first, second, third = figure.subplots(1, 3)
    for axes, chains in ((first, page.hasty), (second, page.chains)):
        plots.autocorrelation(chains, lags=30, ax=axes).set_ylim(-0.3, 1.05)
    plots.estimated(page.comparison, ax=third)
    yield "inspect-chains", figure


def fit(page: SimpleNamespace) -> Pictures:
    """Draw what `fit.md` shows."""
    figure = _figure(8.0, 3.0)
    plots.collection(page.whole, figure.subplots())
    yield "fit-collection", figure

    history, kept = page.to_the_end.history_, int(np.argmax(page.stopped.history_["measure"]))
    figure = _figure(10.0, 3.2)
    left, right = figure.subplots(1, 2)
    for axes, key, name in (
        (left, "objective", "objective on the training part"),
        (right, "measure", "mean AP on the validation part"),
    ):
        steps = np.arange(1, len(history[key]) + 1)
        axes.plot(steps, history[key], color=BLUE)
        axes.plot(kept + 1, history[key][kept], "o", color=RED, label="kept by early stopping")
        axes.axvspan(0, page.stopped.n_iter_, color="0.94", zorder=0, label="until it stopped")
        axes.set(xlabel="iteration", ylabel=name, xlim=(0, steps[-1]))
        _open(axes)
    left.legend(frameon=False)
    yield "fit-history", figure

    values = np.sort(page.difference)[::-1]
    mean, error = values.mean(), page.error(values)
    figure = _figure(8.0, 3.2)
    axes = figure.subplots()
    places = np.arange(1, len(values) + 1)
    for part, color, winner in ((values > 0, BLUE, "ConvexLoss"), (values < 0, RED, "MLE")):
        name = f"{winner} is better: {part.sum()} queries"
        axes.bar(places[part], values[part], 1.0, color=color, label=name)
    name = f"mean ± two standard errors: {mean:.4f} ± {2 * error:.4f}".replace(
        "-", "\N{MINUS SIGN}"
    )
    axes.axhspan(mean - 2 * error, mean + 2 * error, color="0.8", label=name, zorder=0)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set(xlabel="test queries of all folds, sorted", ylabel="AP: ConvexLoss less MLE")
    axes.set_xlim(0.5, len(values) + 0.5)
    axes.legend(frameon=False)
    _open(axes)
    yield "fit-differences", figure


def test_your_own(page: SimpleNamespace) -> Pictures:
    """Draw what `test-your-own.md` shows."""
    figure = _figure(11.0, 3.2)
    for axes, theta in zip(figure.subplots(1, 3), (0.2, 0.8, 2.0), strict=True):
        # The same colors in all three, so that they compare.
        table = page.Mallows(range(6), theta).rank_marginals()
        shown = {"rows": "012345", "columns": "123456", "label": "probability"}
        plots.heatmap(table, **shown, limits=(0.0, 0.9), ax=axes)
        axes.set(xlabel="position", ylabel="item")
        axes.tick_params(axis="x", labelrotation=0)
        axes.set_title(f"theta = {theta}", loc="left")
    yield "own-spread", figure

    figure = _figure(8.0, 3.6)
    for axes, kind in zip(figure.subplots(1, 2), (page.Mallows, page.Clipped), strict=True):
        chains = run_chains(kind([2, 0, 1, 3], theta=0.8), draws=2500, kernel="exact", rng=0)
        comparison = diagnostics.compare_to_exact(chains)
        plots.estimated(comparison, axes)
        off = f"off by up to {comparison.worst_score:.0f} standard errors"
        axes.set_title(f"{kind.__name__}: {off}", fontsize=10)
    yield "own-mistake", figure


def lightgbm(page: SimpleNamespace) -> Pictures:
    """Draw what `lightgbm.md` shows."""
    figure = _figure(7.5, 2.8)
    plots.intervals(page.found, "map", ax=figure.subplots())
    yield "lightgbm-intervals", figure


def rate(page: SimpleNamespace) -> Pictures:
    """Draw what `rate.md` shows."""
    figure = _figure(7.5, 3.2)
    plots.plot_intervals(page.found.leaderboard, ax=figure.add_subplot())
    yield "rate-intervals", figure

    figure = _figure(4.4, 4.2)
    label = "predicted chance to win"
    plots.plot_calibration(page.check.calibration, label=label, ax=figure.add_subplot())
    yield "rate-calibration", figure

    figure = _figure(5.0, 5.0)
    met = page.wins + page.wins.T + page.ties
    scores = page.found.fit.scores
    plots.plot_comparisons(met, page.plain.names, scores, ax=figure.add_subplot())
    yield "rate-graph", figure


def leaderboard(page: SimpleNamespace) -> Pictures:
    """Draw what `leaderboard.md` shows."""
    figure = _figure(7.5, 3.2)
    page.posterior.plot_scores(ax=figure.add_subplot())
    yield "leaderboard-scores", figure

    figure = _figure(6.2, 4.0)
    page.posterior.plot_rank_probabilities(ax=figure.add_subplot())
    yield "leaderboard-places", figure

    figure = _figure(9.0, 3.0)
    left, right = figure.subplots(1, 2)
    for axes, values, name in (
        (left, page.chances, "probability that model-a is best"),
        (right, page.widths, "places in a credible set, on average"),
    ):
        axes.plot(page.sizes, values, "o-", color=BLUE)
        axes.set(xlabel="battles", ylabel=name, xscale="log")
        axes.set_xticks(page.sizes, [f"{size:,}" for size in page.sizes])
        axes.minorticks_off()
        _open(axes)
    left.set_ylim(0.0, 1.0)
    right.set_ylim(1.0, 8.0)
    yield "leaderboard-more", figure

    figure = _figure(7.0, 6.0)
    page.check.plot(ax=figure.add_subplot())
    yield "leaderboard-check", figure


PAGES: dict[str, Callable[[SimpleNamespace], Pictures]] = {
    "inspect.md": inspect,
    "fit.md": fit,
    "lightgbm.md": lightgbm,
    "rate.md": rate,
    "leaderboard.md": leaderboard,
    "test-your-own.md": test_your_own,
}


def draw(page: str, names: dict[str, object], folder: Path) -> list[str]:
    """Draw the pictures of one page, given the names that its examples have defined.

    Returns
    -------
    list of str
        The files' names.
    """
    made = []
    for name, figure in PAGES[page](SimpleNamespace(**names)):
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        made.append(f"{name}.png")
    return made


def run(page: str) -> dict[str, object]:
    """Run the examples of a page, but for those that show an error, and give their names."""
    text = (HERE / page).read_text(encoding="utf-8").replace("```\n", "\n")
    names: dict[str, object] = {"__name__": page}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example in doctest.DocTestParser().get_examples(text, page):
            if example.exc_msg is None:
                code = compile(example.source, f"<{page}, line {example.lineno + 1}>", "exec")
                with contextlib.redirect_stdout(None):
                    exec(code, names)
    return names


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description="Makes the pictures that the tutorials show.")
    parser.add_argument("folder", type=Path, help="where to put them")
    folder = parser.parse_args(arguments).folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        print(f"{page}: {', '.join(draw(page, run(page), folder))}")
    (folder / RECORD).write_text(digest() + "\n", encoding="utf-8")


def digest() -> str:
    """Return what identifies the code behind the pictures: that of the pages, and this file."""
    code = [Path(__file__).read_text(encoding="utf-8")]
    for page in PAGES:
        text = (HERE / page).read_text(encoding="utf-8")
        code += [example.source for example in doctest.DocTestParser().get_examples(text, page)]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def are_current() -> bool:
    """Check whether the pictures in the repository were made from the present code."""
    record = HERE / "pictures" / RECORD
    return record.is_file() and record.read_text(encoding="utf-8").strip() == digest()


def _orders_in_play(model: GaussianScores) -> float:
    """Estimate exp(entropy) from how often each order is drawn: fast, whatever the noise."""
    _, counts = np.unique(model.sample(100_000, rng=0), axis=0, return_counts=True)
    shares = counts / counts.sum()
    return float(np.exp(-(shares @ np.log(shares))))


def _level(axes: Axes, value: float, name: str, at: float) -> None:
    """Draw a named level across the axes; the name stands at the left (0) or the right (1)."""
    axes.axhline(value, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    where = axes.get_yaxis_transform()
    side = "right" if at else "left"
    axes.annotate(
        name, (at, value), (-6 if at else 6, 4), xycoords=where, textcoords="offset points", ha=side
    )


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _open(axes: Axes) -> None:
    """Take away the frame's upper and right sides."""
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
