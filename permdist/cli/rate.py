"""``permdist rate``: a leaderboard from battles or ballots."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._battles import Columns, in_options
from permdist.cli._errors import echo
from permdist.cli._shared import AsJson, Seed, command_line, need_files, print_json, without_nan

if TYPE_CHECKING:
    from permdist.rating import Rating

SUFFIXES = (".html", ".htm", ".csv", ".json", ".tex")
MOST_SLICES = 200
TOLD = ("left out", "half-life", "note")  # what a report says of the data besides its pictures
ARGUMENTS = (
    "prior",
    "half_life",
    "errors",
    "bootstrap",
    "bayes",
    "draws",
    "level",
    "elo",
    "anchor",
    "folds",
)


def rate(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="BATTLES",
            help="A table of battles (.csv, .tsv, .json, .jsonl) with columns such as model_a, "
            "model_b and winner, or a PrefLib file (.soc .soi .toc .toi).",
        ),
    ],
    columns: Columns,
    by: Annotated[
        str | None, typer.Option("--by", help="A column; its values are rated one by one, too.")
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            "--covariates",
            help="A comma-separated list of columns to adjust for: NAME, with the difference first "
            "minus second, or the pair NAME_a and NAME_b; 'position' is the side.",
        ),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option("--without", help="A comma-separated list of competitors to leave out."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="A column whose equal values are dependent: a voter, a prompt."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", help="A column with dates, Unix times or other numbers, for --half-life."
        ),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(
            "--half-life",
            help="The time after which a battle counts half: days, if --time has dates or Unix "
            "times, else in the unit of its numbers.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            help="For competitors that only won or only lost: the strength of a ridge, such as "
            "0.1, or imagined wins and losses, such as wins=0.5.",
        ),
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            "--errors",
            help="What errors come from: observed, penalized, sandwich, bootstrap or profile; by "
            "default bootstrap with --bootstrap, sandwich with --cluster, else observed.",
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", help="Number of bootstrap replicates.", min=0, max=10**7)
    ] = 0,
    bayes: Annotated[
        bool,
        typer.Option(
            "--bayes",
            help="Draw from the posterior: means, credible intervals and places, chances to be the "
            "best one. --prior is the precision of scores around their mean, 0.1 by default.",
        ),
    ] = False,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            help="Posterior draws in each of four chains, for --bayes; 1000 by default.",
            min=20,
            max=10**6,
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of intervals and rank sets.")] = 0.95,
    elo: Annotated[
        bool, typer.Option("--elo", help="Add scores on the Elo scale, 1000 for the mean.")
    ] = False,
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", help="The competitor with 1000 points on the Elo scale."),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            "--folds", help="Parts for predictions of held-out battles; 0 for none.", min=0, max=100
        ),
    ] = 5,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write a report with pictures (.html) or the table (.csv, .json, .tex).",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Rate competitors from battles: scores, intervals, possible places, goodness of fit.

    Ties are modeled as Davidson's (1970). Ballots of a PrefLib file are rated by the same model.
    """
    from permdist import rating
    from permdist._registry import split_list
    from permdist.data.preflib import FILE_TYPES
    from permdist.rating.notes import text_of

    if output is not None and output.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--output: expected a file {', '.join(SUFFIXES)}, got {output}")
    if half_life is not None and time is None:
        raise ValueError("--half-life: pass the column with the times by --time")
    if time is not None and half_life is None:
        raise ValueError("--time: without --half-life times are not used; pass it, too")
    if draws is not None and not bayes:
        raise ValueError("--draws: these are draws of a posterior; pass --bayes, too")
    if bootstrap and not bayes and errors not in (None, "bootstrap"):
        raise ValueError(f"--bootstrap: --errors {errors} has no use for it; leave one of them out")
    need_files(output)
    gone = split_list(without or "", "--without")
    options = {
        "prior": _prior(prior),
        "half_life": half_life,
        "errors": errors,
        "bootstrap": bootstrap,
        "bayes": bayes,
        "draws": 1000 if draws is None else draws,
        "level": level,
        "elo": elo or anchor is not None,
        "folds": folds,
        "rng": seed,
        "progress": bool(bootstrap) and not as_json,
    }
    if bayes and (errors or bootstrap or cluster or (prior or "").startswith("wins")):
        raise ValueError(
            "--bayes: errors come from the posterior, which takes battles as independent; leave "
            "out --errors, --bootstrap, --cluster and --prior wins=..."
        )
    slices: dict[str, Rating] = {}
    failures: dict[str, str] = {}
    if any(suffix[1:] in FILE_TYPES for suffix in data.suffixes):
        if by or covariates or cluster or time:
            raise ValueError("--by, --covariates, --cluster, --time: only for tables of battles")
        columns.refuse()
        ballots = _preflib(data, gone)
        found = _rated(lambda: rating.rate(ballots, anchor=anchor, **options))
    else:
        battles = columns.load(data, by=by, covariates=covariates or (), cluster=cluster, time=time)
        battles = battles.without(_known(gone, battles.names)) if gone else battles
        found = _rated(lambda: rating.rate(battles, anchor=anchor, **options))
        if by is not None:
            if len(battles.groups) > MOST_SLICES:
                raise ValueError(
                    f"--by: expected a column with at most {MOST_SLICES} different values, "
                    f"{by!r} has {len(battles.groups):,}"
                )
            slices, failures = rating.rate_slices(battles, **options)
    _tell_warnings(found, slices)
    if output is not None:
        told = {name: text for name, text in found.summary().items() if name in TOLD}
        _write(output, data, found, slices, failures, {"seed": str(seed), **told})
    if as_json:
        print_json(_facts(found, slices, failures))
        return
    echo(f"{found}")
    for name, one in slices.items():
        echo(f"\n{by} = {name}, {one.fit.n_ballots:,.6g} battles\n{one.leaderboard}")
        for note in one.notes:
            echo(text_of(note))
    for name, reason in failures.items():
        echo(f"\n{by} = {name}: {reason}")
    if output is not None:
        echo(f"\nWritten: {output}")


def _tell_warnings(found: "Rating", slices: dict[str, "Rating"]) -> None:
    """Print on stderr what a reader must know before the table, also if that goes to a file."""
    for name, one in [("", found), *slices.items()]:
        where = f"{name}: " if name else ""
        for note in one.notes:
            if note.kind == "warning":
                echo(f"permdist: warning: {where}{note.text}", err=True)


def _prior(text: str | None) -> Any:
    """Read a prior: a number, or wins=NUMBER."""
    from permdist.inference import PseudoWins, Ridge

    if text is None:
        return None
    kind, _, number = text.rpartition("=")
    kinds: dict[str, Any] = {"": Ridge, "ridge": Ridge, "wins": PseudoWins}
    try:
        return kinds[kind.strip().lower()](float(number))
    except (KeyError, ValueError):
        raise ValueError(
            f"--prior: expected a positive number, ridge=NUMBER or wins=NUMBER, got {text!r}"
        ) from None


def _preflib(data: Path, gone: list[str]) -> Any:
    from permdist.ballots import Ballots
    from permdist.data import load_preflib

    ballots = Ballots.of(load_preflib(data))
    return ballots.without(_known(gone, ballots.names)) if gone else ballots


def _known(gone: list[str], names: tuple[str, ...]) -> list[str]:
    """Check that competitors to leave out are there."""
    from permdist._check import choice

    return [choice("--without", name, names) for name in gone]


def _rated(call: Any) -> Any:
    """Add the options that help to an error about competitors that cannot be rated."""
    from permdist.inference.fit import NoEstimateError

    try:
        with in_options(ARGUMENTS):
            return call()
    except NoEstimateError as error:
        raise ValueError(f"{error}: --without NAMES, or --prior wins=0.5") from error


# ---- writing -----------------------------------------------------------------------------------


def _facts(
    found: "Rating", slices: dict[str, "Rating"], failures: dict[str, str]
) -> dict[str, Any]:
    facts = found.to_dict()
    if slices or failures:
        facts["slices"] = {name: one.to_dict() for name, one in slices.items()}
        facts["failures"] = failures
    return facts


def _write(
    output: Path,
    data: Path,
    found: "Rating",
    slices: dict[str, "Rating"],
    failures: dict[str, str],
    facts: dict[str, str],
) -> None:
    """Write a report or a table, by the suffix of the file."""
    from permdist._files import write_atomically
    from permdist._text import visible
    from permdist.report.leaderboard import rating_report

    suffix = output.suffix.lower()
    if suffix in (".html", ".htm"):
        facts = {"data": str(data), "command": command_line(), **facts}
        report = rating_report(
            found,
            title=f"Leaderboard of {data.name}",
            slices=slices,
            failures=failures,
            facts=facts,
        )
        report.save(output)
        return
    boards = {"": found.leaderboard} | {name: one.leaderboard for name, one in slices.items()}
    if suffix == ".json":
        text = json.dumps(without_nan(_facts(found, slices, failures)), indent=2) + "\n"
    elif suffix == ".csv":
        text = _csv(boards.items(), bool(slices))
    else:
        parts = (
            (f"% {visible(name, keep='')}\n" if name else "") + one.to_latex()
            for name, one in boards.items()
        )
        text = "\n".join(parts)
    write_atomically(output, [text.encode()])


def _csv(boards: Iterable[tuple[str, Any]], sliced: bool) -> str:
    """Return the tables one below the other, with the slice in the first column."""
    import pandas as pd

    from permdist._text import csv_text

    frames = []
    for name, board in boards:
        frame = board.to_frame()
        if sliced:
            frame.insert(0, "slice", name or "all")
        frames.append(frame)
    return csv_text(pd.concat(frames))
