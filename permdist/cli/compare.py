"""``permdist compare``: learners compared on folds, with a report."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._errors import echo
from permdist.cli._scheduler import connected
from permdist.cli._shared import (
    AsJson,
    Jobs,
    Measures,
    Preset,
    Reading,
    Seed,
    command_line,
    kept,
    need_files,
    need_folder,
    no_litter,
    print_json,
    read_measures,
    terminal_width,
    waiting,
)

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.comparison import Comparison
    from permdist.data import Fold, Queries

ROPE = 0.005


def compare(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A folder with LETOR folds (Fold1/train.txt, ...; or S1.txt to S5.txt), or one "
            "LETOR file or store to split into folds.",
        ),
    ],
    reading: Reading,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            "--learners",
            "--models",
            "-M",
            help="A comma-separated list of learners, with optional settings: "
            "'MLE,SVMMap[C=0.1|1|10]'; by default all, and none with --scores. 'permdist fit "
            "--help' lists their names.",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores",
            "-s",
            metavar="NAME=FILE",
            help="Scores of another tool, under a name; repeat it for several. One per document "
            "and line in the order of DATA (of a folder: of S1 to S5, or of the test files of "
            "Fold1, Fold2, ...), a .npy file, or a TREC run.",
        ),
    ] = None,
    measures: Measures = None,
    preset: Preset = None,
    select: Annotated[
        str | None,
        typer.Option(help="The measure by which settings are chosen; by default the first."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="The learner to test the others against; by default the best one."),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(help="Adjustment for multiple comparisons: holm, bonferroni, bh or none."),
    ] = "holm",
    ties: Annotated[
        str | None,
        typer.Option(
            help="The rule for equal scores: index (the first in the file), or average (the mean "
            "over all ways to break ties); by default that of each measure."
        ),
    ] = None,
    bayes: Annotated[
        bool,
        typer.Option(
            "--bayes",
            help="Also show the probabilities to be worse than the baseline, equivalent, and "
            "better: by a Bayesian signed-rank test, and by a hierarchical model of the folds.",
        ),
    ] = False,
    rope: Annotated[
        float | None,
        typer.Option(
            help="As --bayes, with this region of practical equivalence: differences of at most "
            "this size do not matter; 0.005 by default.",
            min=0.0,
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Number of folds to split a single file into.", min=3, max=10_000)
    ] = 5,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for finished fits, tables and the report. Run the same command again "
            "to resume.",
        ),
    ] = Path("permdist-compare"),
    jobs: Jobs = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(help="The address of a dask scheduler on whose workers to run the fits."),
    ] = None,
    identities: Annotated[
        int,
        typer.Option(
            help="Number of random instances of each identity to check in the report.",
            min=0,
            max=10**6,
        ),
    ] = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare learners on folds: choose settings on validation queries, test differences.

    With --scores NAME=FILE, scores of other tools are tested alongside.

    Every fit is stored in the output folder as soon as it is finished. Default measures: letor4:map
    and letor4:ndcg@10, as LETOR 4.0 defines them, which are comparable to published results.
    """
    from permdist._files import write_atomically
    from permdist._text import csv_text
    from permdist.comparison import compare, compare_scores, read_entries
    from permdist.comparison.scores import DEFAULT
    from permdist.comparison.wording import title
    from permdist.measures.evaluation import several
    from permdist.report.comparison import comparison_report

    chosen = several(read_measures(measures, preset, DEFAULT), ties)
    by = None
    if select is not None:
        selected = read_measures([select], preset, (), "--select")
        if len(selected) != 1:
            raise ValueError(f"--select: expected one measure, got {select!r}")
        by = selected[0]
    files = _score_files(scores or [])
    entries = None if files and not learners else read_entries(learners or "all", by or chosen[0])
    if jobs == 0:
        raise ValueError("--jobs: expected a number of processes or -1, got 0")
    # Where nothing is to be fitted, a single file needs no folds.
    parts, tests = _folds(data, folds if entries else 1, seed, reading)
    values = _test_scores(files, tests, parts)
    need_folder(output, "the comparison")
    tables = {measure: output / f"{_file_name(title(measure))}.csv" for measure in chosen}
    need_files(output / "report.html", output / "tables.tex", *tables.values())
    told = f"finished fits are kept in {output}; run the same command to resume"
    options: dict[str, Any] = {
        "measures": chosen,
        "baseline": baseline,
        "correction": correction,
        "ties": ties,
        "rope": ROPE if bayes and rope is None else rope,
        "random_state": seed,
    }
    if entries is None and len(parts) == 1:
        found = compare_scores({name: one[0] for name, one in values.items()}, tests[0], **options)
    else:
        with _backend(scheduler), kept(told):
            found = compare(
                parts,
                entries,
                scores=values or None,
                select=by,
                directory=output,
                n_jobs=None if scheduler else jobs,
                progress=not as_json,
                **options,
            )
    try:
        with waiting("Writing the report"), no_litter():
            for measure, file in tables.items():
                write_atomically(
                    file, [csv_text(found.to_frame(measure, references=True), index=True).encode()]
                )
            write_atomically(output / "tables.tex", [f"{found.to_latex()}\n".encode()])
            report = comparison_report(
                found, folds=parts, identities=identities, command=command_line()
            )
            report.save(output / "report.html")
    finally:  # show the results even if the report cannot be written
        _show(found, as_json)
    if not as_json:
        where = output / "report.html"
        echo(f"\nReport: {where}, with tables as .csv and .tex files next to it")


def _show(found: "Comparison", as_json: bool) -> None:
    from permdist._text import wrapped

    if as_json:
        print_json(found.to_dict())
        return
    width = terminal_width()
    echo(found.to_text(width))
    for note in found.notes:
        echo(wrapped(f"note: {note}", width))


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def _score_files(given: list[str]) -> dict[str, Path]:
    """Read the options --scores NAME=FILE."""
    files: dict[str, Path] = {}
    for text in given:
        name, equals, file = (part.strip() for part in text.partition("="))
        if not equals or not name or not file:
            raise ValueError(f"--scores: expected NAME=FILE, got {text!r}")
        if name in files:
            raise ValueError(f"--scores: {name!r} appears twice; give each file its own name")
        files[name] = Path(file)
    return files


def _test_scores(
    files: dict[str, Path], tests: "list[Queries]", folds: "list[Fold]"
) -> "dict[str, list[FloatArray]]":
    """Read the scores of all documents, and return those of the test part of each fold.

    `tests` has all test queries in the order of the files.
    """
    import numpy as np

    from permdist._parallel import bounds, pointers
    from permdist.data import Queries, is_run, load_run, load_scores

    if not files:
        return {}
    whole = tests[0] if len(tests) == 1 else Queries.concatenate(tests)
    starts = pointers(np.array([one.n_documents for one in tests]))
    rows = np.concatenate([a + one.rows for a, one in zip(starts[:-1], tests, strict=True)])
    spans = dict(zip(whole.qids.tolist(), bounds(whole.ptr), strict=True))
    found = {}
    for name, file in files.items():
        if is_run(file):
            values = load_run(file, whole)
        else:
            values = load_scores(file, n_documents=whole.n_documents)[rows]
        found[name] = [
            np.concatenate([values[slice(*spans[qid])] for qid in fold.test.qids.tolist()])
            for fold in folds
        ]
    return found


def _folds(
    data: Path, number: int, seed: int, reading: Reading
) -> "tuple[list[Fold], list[Queries]]":
    """Return the folds, and the test queries of all of them in the order of the files.

    A file that is not split, `number` is 1, has one fold with all queries in every part.
    """
    from permdist.comparison.entries import check_folds
    from permdist.data import Fold, is_store, load_letor_folds, make_folds

    if data.is_dir() and not is_store(data):
        if reading.query_file is not None:
            raise ValueError("--query-file: only for a single file; folds have their own files")
        folds = load_letor_folds(
            data, regroup=reading.regroup, zero_based=reading.zero_based, null=reading.null
        )
        tests = [fold.test for fold in folds]
        if not any(re.fullmatch(r"Fold\d+", entry.name) for entry in data.iterdir()):
            tests = [*tests[1:], *tests[:1]]  # the first fold tests on S5
        return folds, tests
    whole = reading.load(data)
    if number == 1:
        return [Fold(whole, whole, whole)], [whole]
    folds = make_folds(whole, number, rng=seed)
    try:
        check_folds(folds)
    except ValueError as error:
        raise ValueError(f"{error} (with --folds {number})") from error
    return folds, [whole]


@contextlib.contextmanager
def _backend(scheduler: str | None) -> Iterator[None]:
    """Run the fits on a dask scheduler if its address is given."""
    from joblib import parallel_config

    if scheduler is None:
        yield
        return
    with connected(scheduler), parallel_config("dask"):
        yield
