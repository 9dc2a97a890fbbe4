"""The report of a rating: leaderboard, win rates, goodness of fit, comparisons, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permdist.rating.bayes import facts as facts_of
from permdist.rating.notes import agree
from permdist.rating.wording import coefficient_heads
from permdist.report.document import Report
from permdist.report.table import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandas import DataFrame

    from permdist.ballots import Ballots
    from permdist.data import Battles
    from permdist.inference.leaderboard import Leaderboard
    from permdist.posterior import Posterior
    from permdist.rating import Goodness, Rating

DASH = "\N{EN DASH}"
MOST_PAIRS = 30
# Replicates of the data, and results that are drawn again in about a second.
MOST_REPLICATES, FEWEST_REPLICATES, MOST_CASTS = 200, 20, 1_000_000
EXPLAINED = {
    "observed": "the information of the data",
    "penalized": "the information of the data and the prior",
    "sandwich": "the sandwich, which holds for dependent battles of one cluster and, about the "
    "scores that fit best, if the model is not quite right",
    "bootstrap": "the bootstrap",
    "posterior": "the posterior: means and standard deviations of its draws",
    "profile": "the profile likelihood; places and chances from the information of the data",
}


def rating_report(
    rating: Rating,
    *,
    title: str = "Leaderboard",
    slices: Mapping[str, Rating] | None = None,
    failures: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> Report:
    """Make the report of a rating.

    Parameters
    ----------
    rating : Rating
    title : str
    slices : mapping of str to Rating, optional
        Ratings of parts of the data, as from `permdist.rating.rate_slices`.
    failures : mapping of str to str, optional
        Why other parts have none.
    facts : mapping of str to str, optional
        For the last section, such as the command and the seed.

    Returns
    -------
    Report

    Examples
    --------
    >>> from permdist.data import load_battles
    >>> from permdist.rating import rate
    >>> table = {"a": list("xxyyzz") * 9, "b": list("yzzxxy") * 9}
    >>> battles = load_battles(table | {"winner": ["a", "a", "tie", "a", "b", "b"] * 9})
    >>> page = rating_report(rate(battles), title="Three models").html()
    >>> "<h1>Three models</h1>" in page, page.count("<img ")
    (True, 4)
    """
    best = rating.leaderboard.to_frame().iloc[0]
    lead = (
        f"{best['name']} has the highest score; it is the best one with probability "
        f"{best['prob_best']:.2f}, as far as the {_source(rating)} tell."
    )
    warnings = [note for note in rating.notes if note.kind == "warning"]
    if rating.posterior is not None and not agree(rating.posterior):
        lead = "This leaderboard is not settled: there are too few posterior draws."
    report = Report(title, lead)
    for note in warnings:
        report.note(note.text, note.kind)
    report.facts(_tiles(rating))
    _leaderboard_section(report, rating)
    if rating.posterior is not None:
        _places_section(report, rating.posterior)
        _checks_section(report, rating.posterior, rating.fit.ballots)
    if rating.battles is not None:
        _win_rates_section(report, rating, rating.battles)
    covariates = rating.covariates()
    if covariates is not None:
        _covariates_section(report, covariates)
    if rating.goodness is not None:
        _goodness_section(report, rating.goodness)
        _circles_section(report, rating.goodness, rating.fit.names)
    if rating.goodness is not None and rating.battles is not None:
        _comparisons_section(report, rating, rating.battles)
    if slices or failures:
        _slices_section(report, rating, slices or {}, failures or {})
    report.provenance(dict(facts or {}))
    return report


def _source(rating: Rating) -> str:
    return "errors of the estimate" if rating.posterior is None else "data and the prior"


def _tiles(rating: Rating) -> dict[str, str | float]:
    noun = "ballots" if rating.battles is None else "battles"
    tiles: dict[str, str | float] = {
        "competitors": rating.fit.n_items,
        noun: f"{rating.fit.n_ballots:,.6g}",
    }
    if "half-life" in rating.summary():
        tiles["half-life"] = rating.summary()["half-life"].partition(";")[0].partition(",")[0]
    if rating.tie_chance is not None:
        tiles["chance that equals tie"] = f"{rating.tie_chance:.1%}"
    if rating.goodness is not None and rating.goodness.calibration is not None:
        tiles["log loss, held out"] = rating.goodness.log_loss
    return tiles


def _leaderboard_section(report: Report, rating: Rating) -> None:
    from permdist import plots

    board = rating.leaderboard
    percent = f"{100 * board.level:g}%"
    report.section(
        "Leaderboard",
        "Scores are log-worths: a difference of 1 means odds of 2.7 to 1 in a battle that does not "
        f"end in a tie. Errors and intervals ({percent}, each by itself) are from "
        f"{EXPLAINED[rating.errors]}. The places are those that the true scores may have; all of "
        f"them together are right with probability {percent}.",
    )
    _board_table(report, board, "Best first")
    for note in rating.notes:
        if note.kind != "warning":
            report.note(note.text, note.kind)
    report.picture(
        plots.plot_intervals(board),
        "Scores with intervals",
        "Scores with intervals. Dark: may be the best one. On the right: possible places.",
    )
    report.note(
        "This table says how sure the true places are. It does not say how often one competitor "
        "beats another in a single battle: see the fitted shares of points for that."
    )


def _places_section(report: Report, posterior: Posterior) -> None:
    found = facts_of(posterior)
    report.section(
        "Probabilities of the places",
        "How likely each true place is, given the data and the prior, over "
        f"{found['draws']}. The prior is {found['prior']}. {found['chains']}",
    )
    report.picture(
        posterior.plot_rank_probabilities(),
        "Probabilities of the places",
        "Rows are competitors, the best first; a wide row is an open question.",
    )


def _checks_section(report: Report, posterior: Posterior, ballots: Ballots) -> None:
    """Compare the data with data that the posterior makes."""
    casts, pairs = float(ballots.weights.sum()), ballots.n_items * (ballots.n_items - 1) // 2
    size = min(MOST_REPLICATES, int(MOST_CASTS / max(casts, float(pairs), 1.0)))
    report.section(
        "Does the model fit?",
        "A posterior is sure of what follows from its model, right or wrong. Here results are "
        "drawn again from the posterior, and compared with the data. Small p-values, and many "
        "crosses outside their intervals, say that the model does not make data like these.",
    )
    if size < FEWEST_REPLICATES:
        report.note(
            f"{casts:,.0f} results of {ballots.n_items:,} competitors are too many to draw again "
            "for a report; in Python, rating.posterior.check('wins', draws=20) does it."
        )
        return
    wins = posterior.check("wins", draws=size)
    report.picture(
        wins.plot(),
        "Check of the win rates of all pairs",
        f"{wins.caption}. The share of wins of each pair, a tie as half, and {size} replicates.",
    )
    if ballots.tie_sizes:
        ties = posterior.check("ties", draws=size)
        report.picture(
            ties.plot(),
            "Check of the share of ties",
            f"{ties.caption}. The share of tied pairs, and {size} replicates.",
        )


def _board_table(report: Report, board: Leaderboard, caption: str) -> None:
    frame = board.to_frame()
    elo = "elo" in frame.columns
    head = ["competitor", "score", "interval", "s.e.", "places", "P(best)", "n"]
    head += ["Elo", "Elo interval"] if elo else []
    rows: list[list[str | float | Cell]] = []
    for row in frame.to_dict(orient="records"):
        first, last = int(row["rank_low"]), int(row["rank_high"])
        cells: list[str | float | Cell] = [
            str(row["name"]),
            Cell(f"{row['score']:.3f}", row["score"]),
            Cell(f"{row['low']:.3f} to {row['high']:.3f}", row["low"]),
            Cell(f"{row['standard_error']:.3f}", row["standard_error"]),
            Cell(f"{first}" if first == last else f"{first}{DASH}{last}", first),
            Cell(f"{row['prob_best']:.3f}", row["prob_best"]),
            Cell(f"{row['n']:,.6g}", row["n"]) if "n" in row else "",
        ]
        if elo:
            cells.append(Cell(f"{row['elo']:.0f}", row["elo"]))
            cells.append(Cell(f"{row['elo_low']:.0f} to {row['elo_high']:.0f}", row["elo_low"]))
        rows.append(cells)
    report.table(head, rows, caption=caption)


def _win_rates_section(report: Report, rating: Rating, battles: Battles) -> None:
    from permdist import plots

    wins, ties = battles.counts()
    n = rating.fit.n_items
    names = list(rating.fit.names)
    fitted = rating.win_chances("points").loc[names, names].fillna(0.5)
    even = ", with equal covariates" if battles.features is not None else ""
    report.section(
        "Win rates",
        "The share of points in the battles of each pair, where a tie is half a point for both, "
        f"and what the model expects of it{even}. The model has a value for pairs that never met, "
        "too.",
    )
    report.picture(
        plots.plot_win_rates(
            wins,
            ties,
            fitted.to_numpy(),
            names,
            scores=rating.fit.scores,
        ),
        "Observed and fitted shares of points",
        f"Observed and fitted shares of points{_of_the_best(n, 25)}.",
    )


def _of_the_best(n: int, most: int) -> str:
    return f" of the {most} best" if n > most else ""


def _covariates_section(report: Report, table: DataFrame) -> None:
    report.section(
        "Covariates",
        "A coefficient is what one unit more of a covariate adds to a competitor's score in a "
        "battle. The scores above are adjusted for all of them.",
    )
    report.table(
        ["covariate", *coefficient_heads(table)],
        [
            [str(name), *map(float, row)]
            for name, row in zip(table.index, table.to_numpy(), strict=True)
        ],
        sortable=False,
    )


def _goodness_section(report: Report, found: Goodness) -> None:
    from permdist import plots

    text = "Residuals compare the points of each pair with what the model expects."
    if found.deviance is not None and found.deviance.degrees > 0:
        value = found.deviance
        text += (
            f" Against a model with free chances for every pair, the deviance is {value.value:.1f} "
            f"on {value.degrees:,} degrees of freedom, p = {value.p_value:.3g}"
        )
        rough = f"; {value.sparse:.0%} of the expected counts are below 5, which makes this rough"
        text += f"{rough if value.sparse > 0.2 else ''}."
    report.section("Goodness of fit", text)
    shown = found.residuals.head(MOST_PAIRS)
    report.table(
        ["pair", "battles", "points", "expected", "z", "adjusted p", "ties", "expected ties"],
        [
            [
                f"{row['first']} {DASH} {row['second']}",
                row["battles"],
                row["wins"] + row["ties"] / 2,
                Cell(f"{row['expected_wins'] + row['expected_ties'] / 2:.1f}"),
                Cell(f"{row['z']:+.2f}", row["z"], "bad" if row["adjusted"] < 0.05 else ""),
                Cell(f"{row['adjusted']:.3g}", row["adjusted"]),
                row["ties"],
                Cell(f"{row['expected_ties']:.1f}"),
            ]
            for row in shown.to_dict(orient="records")
        ],
        caption=f"The {len(shown)} pairs that fit worst, of {len(found.residuals):,}; points of "
        "the first",
    )
    if found.calibration is None:
        return
    report.text(
        "Calibration: each part of the battles was predicted from the other parts. If the chances "
        f"are right, the dots are on the diagonal. The log loss of these predictions is "
        f"{found.log_loss:.4f} nats; with equal chances for all pairs it is "
        f"{found.constant_loss:.4f}."
    )
    report.picture(
        plots.plot_calibration(found.calibration, label="predicted chance to win"),
        "Calibration of predicted chances",
        "Predicted chances to win, in bins, and how often it came true, with 95% intervals. Larger "
        "dots stand for more battles.",
    )


def _circles_section(report: Report, found: Goodness, names: Sequence[str]) -> None:
    circles, expected = found.circles, found.expected_circles
    if not circles.triads:
        return
    report.section(
        "Transitivity",
        f"Of {circles.triads:,} triples of competitors with a majority in each pair, "
        f"{circles.cyclic:,} ({circles.share:.1%}) go in a circle: A beats B, B beats C, and C "
        f"beats A. If the model were true, {expected[0]:.1%} would do so by chance (standard "
        f"deviation {expected[1]:.1%}). Circles in which each majority is significant at 5% by "
        f"itself: {circles.significant or 'none'}.",
    )
    if len(circles.examples):
        report.table(
            ["beats the second", "beats the third", "beats the first"],
            [[names[item] for item in row] for row in circles.examples.tolist()],
            caption="Significant circles",
        )


def _comparisons_section(report: Report, rating: Rating, battles: Battles) -> None:
    from permdist import plots

    wins, ties = battles.counts()
    n = rating.fit.n_items
    report.section(
        "Who met whom",
        "Only differences between competitors that are connected by battles can be estimated; the "
        "more battles connect them, the smaller the errors.",
    )
    report.picture(
        plots.plot_comparisons(wins + wins.T + ties, rating.fit.names, rating.fit.scores),
        "Graph of comparisons",
        f"Battles between competitors{_of_the_best(n, 40)}, clockwise from the best one at the "
        "top. Wider lines stand for more battles.",
    )


def _slices_section(
    report: Report, rating: Rating, slices: Mapping[str, Rating], failures: Mapping[str, str]
) -> None:
    report.section(
        "Slices",
        "The same for parts of the battles, each rated by itself. Scores of different slices have "
        "the mean of the slice's competitors as their zero.",
    )
    boards = {name: one.leaderboard.to_frame().set_index("name") for name, one in slices.items()}
    rows: list[list[str | float | Cell]] = []
    for place in rating.leaderboard.to_frame().to_dict(orient="records"):
        row: list[str | float | Cell] = [str(place["name"]), int(place["place"])]
        for board in boards.values():
            if place["name"] not in board.index:
                row.append(DASH)
                continue
            entry = board.loc[place["name"]]
            low, high = int(entry["rank_low"]), int(entry["rank_high"])
            hint = f"score {entry['score']:.3f}, places {low}{DASH}{high}"
            row.append(Cell(str(int(entry["place"])), float(entry["place"]), hint=hint))
        rows.append(row)
    if boards:
        report.table(["competitor", "all", *boards], rows, caption="Places by slice")
    for name, one in slices.items():
        _board_table(report, one.leaderboard, f"{name}: {one.fit.n_ballots:,.6g} battles")
        for note in one.notes:
            report.note(f"{name}: {note.text}", note.kind)
    for name, reason in failures.items():
        report.note(f"{name}: {reason}", "warning")
