"""Pictures of leaderboards show the numbers that they were given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from permdist import plots
from permdist.inference.goodness import calibration
from permdist.inference.leaderboard import make

DASH = "\N{EN DASH}"


def board(**options):
    return make(["b", "a", "$c"], [0.0, 1.0, -1.0], 0.02 * np.eye(3), **options)


def test_intervals_are_drawn_best_first():
    axes = plots.plot_intervals(board())
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b", r"\$c"]
    assert axes.get_xlabel() == "score (log-worth), with 95% intervals"
    points = np.concatenate([line.get_xdata() for line, *_ in axes.containers])
    assert sorted(points) == pytest.approx([-1.0, 0.0, 1.0])
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3", "places"]
    low, high = sorted(axes.get_ylim())
    assert axes.get_ylim() == (high, low)


def test_intervals_on_the_elo_scale():
    axes = plots.plot_intervals(board(elo=True, anchor="b"))
    points = np.concatenate([line.get_xdata() for line, *_ in axes.containers])
    assert sorted(points)[1] == pytest.approx(1000.0)
    assert axes.get_xlabel().startswith("Elo scale")
    assert plots.plot_intervals(board(elo=True), elo=False).get_xlabel().startswith("score")
    with pytest.raises(ValueError, match="leaderboard: there is no column elo, elo_low, elo_high"):
        plots.plot_intervals(board(), elo=True)


def test_wide_intervals_and_few_items():
    endless = [[-0.5, 0.5], [0.5, np.inf], [-np.inf, -0.5]]
    axes = plots.plot_intervals(board(intervals=endless))
    assert np.isfinite(axes.get_xlim()).all()
    wide = make(["x", "y"], [0.1, -0.1], np.eye(2))
    assert plots.plot_intervals(wide).texts[0].get_text() == f"1{DASH}2"
    assert len(plots.plot_intervals(board(), most=2).get_yticks()) == 2
    own = Figure().add_subplot()
    frame = board().to_frame()
    assert plots.plot_intervals(frame, ax=own) is own
    assert own.get_xlabel() == "score (log-worth)"


def test_win_rates_leave_out_what_was_not_seen():
    wins = [[0, 3, 0], [1, 0, 0], [0, 0, 0]]
    ties = [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    fitted = [[0.5, 0.4, 0.9], [0.6, 0.5, 0.8], [0.1, 0.2, 0.5]]
    figure = plots.plot_win_rates(wins, ties, fitted, ["x", "y", "z"])
    left, right = figure.axes[:2]
    names = [tick.get_text() for tick in left.get_yticklabels()]
    assert names == ["y", "x", "z"]  # by the mean of the fitted shares
    assert sorted(text.get_text() for text in left.texts) == ["0.38", "0.62"]
    assert len(right.texts) == 6
    shown = np.asarray(right.images[0].get_array())
    assert shown[0, 1] == 0.6
    ordered = plots.plot_win_rates(wins, ties, fitted, ["x", "y", "z"], scores=[3, 2, 1], most=2)
    assert [tick.get_text() for tick in ordered.axes[0].get_yticklabels()] == ["x", "y"]
    with pytest.raises(ValueError, match=r"ties: expected shape \(3, 3\), got \(1, 1\)"):
        plots.plot_win_rates(wins, [[0]], fitted, ["x", "y", "z"])


def test_calibration_is_drawn_as_it_is():
    table = calibration([0, 0, 0, 1], [[0.75, 0.25, 0.0]] * 4, bins=2)
    axes = plots.plot_calibration(table, label="chance to win")
    assert axes.get_xlabel() == "chance to win"
    dots = axes.collections[-1].get_offsets()
    np.testing.assert_allclose(dots, [[0.25, 0.25], [0.75, 0.75]])


@pytest.mark.parametrize("layout", ["circle", "score"])
def test_every_pair_that_met_has_a_line(layout):
    counts = np.array([[0, 5, 1], [5, 0, 0], [1, 0, 0]])
    axes = plots.plot_comparisons(counts, list("abc"), [0.0, 2.0, 1.0], layout=layout)
    widths = [patch.get_linewidth() for patch in axes.patches]
    assert len(widths) == 2
    assert widths == sorted(widths)
    texts = [text.get_text() for text in axes.texts]
    assert texts[:3] == ["b", "c", "a"]
    assert texts[3] == "2 of 3 pairs met, up to 5 times"
    heights = axes.collections[-1].get_offsets()[:, 1]
    assert heights[0] == max(heights)
    if layout == "score":
        assert heights.tolist() == [2.0, 1.0, 0.0]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="layout: expected one of circle, score"):
        plots.plot_comparisons(np.zeros((2, 2)), ["a", "b"], [0, 1], layout="star")
