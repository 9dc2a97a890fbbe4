"""What several commands share: their flags, where scores come from, how results are printed."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from permdist._files import check_place
from permdist.cli._errors import let_go_of_output, tell

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.data import Queries
    from permdist.models import Ranker

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Seed = Annotated[
    int, typer.Option("--seed", help="The seed of whatever draws.", min=0, max=2**63 - 1)
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Processes; -1 is one a core.", min=-1024, max=1024)
]
Regroup = Annotated[
    bool, typer.Option("--regroup", help="Gather queries whose lines do not stand together.")
]
QueryFile = Annotated[
    Path | None,
    typer.Option(
        "--query-file",
        help="Where DATA has no query ids: the file with the number of documents of each query; "
        "by default DATA.query or DATA.group beside it.",
    ),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="The first feature has number 0 in the file, not 1.")
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "--measures",
        "-m",
        help="A measure, such as map, ndcg@10, p@5, mrr, err@10 or 'ndcg@10[gain=linear]', or "
        "several with commas between them; may be given several times.",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="The conventions of a tool: letor3, letor4, trec or burges."),
]
DataFile = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="A LETOR/SVMlight file, plain, .gz or .bz2."),
]
QueryId = Annotated[
    str | None,
    typer.Option(
        "--query",
        "-q",
        help="The id of a query; by default the first that has relevant documents and others.",
    ),
]
ScoresFile = Annotated[
    Path | None,
    typer.Option("--scores", help="Scores of the documents: one a line, or a TREC run."),
]
Feature = Annotated[
    int | None,
    typer.Option("--feature", help="Score by this feature, numbered from 1 as in the file.", min=1),
]
ModelFile = Annotated[
    Path | None, typer.Option("--model", help="Score by a learner that 'permdist fit' wrote.")
]
Distribution = Annotated[
    str,
    typer.Option(
        "--distribution",
        "-d",
        help="The distribution: plackett-luce, gaussian, or good-bad, which knows the labels.",
    ),
]
Noise = Annotated[
    float,
    typer.Option("--noise", help="The noise scale, in standard deviations of the query's scores."),
]
Raw = Annotated[
    bool,
    typer.Option("--raw", help="Take scores as they are, without scaling them in their query."),
]


class OneQuery(NamedTuple):
    """The query that a command looks at."""

    qid: Any
    scores: FloatArray
    labels: IntArray
    names: list[str]
    scored_by: str


def read_measures(
    measure: list[str] | None, preset: str | None, usual: tuple[str, ...], flag: str = "--measure"
) -> Any:
    """Read measures from what a user typed."""
    from permdist._check import choice
    from permdist.comparison.entries import split
    from permdist.measures import PRESETS, parse

    if preset is not None:
        choice("--preset", preset, PRESETS)
    texts = [text for one in measure or [] for text in split(one, flag)]
    texts = texts or [text.rpartition(":")[2] if preset else text for text in usual]
    return [parse(text if preset is None or ":" in text else f"{preset}:{text}") for text in texts]


def read_scores(path: Path, queries: Queries) -> FloatArray:
    """Read scores in either format; those of lines follow gathered queries to their place."""
    from permdist.data import is_run, load_run, load_scores

    if is_run(path):
        return load_run(path, queries)
    return load_scores(path, n_documents=queries.n_documents)[queries.rows]


def choose_query(
    file: Path,
    *,
    query: str | None,
    scores: Path | None,
    feature: int | None,
    model: Path | None,
    raw: bool,
    regroup: bool,
    query_file: Path | None = None,
    zero_based: bool = False,
) -> OneQuery:
    """Find the query that was asked for, and its scores."""
    import numpy as np

    from permdist._text import hint
    from permdist.data import load_letor
    from permdist.report.sections import document_names, standardized

    learner = None if model is None else load_fitted(model)
    width = None if learner is None else learner.n_features_in_
    queries = load_letor(
        file, n_features=width, regroup=regroup, query_file=query_file, zero_based=zero_based
    )
    number = _number(queries, query, hint)
    if len([one for one in (scores, feature, model) if one is not None]) > 1:
        raise ValueError("--scores, --feature, --model: expected one of them, got several")
    if learner is not None:
        values, scored_by = learner.predict(queries), f"{type(learner).__name__} ({model})"
    else:
        values, scored_by = _scores(queries, scores, feature)
    a, b = queries.ptr[number], queries.ptr[number + 1]
    chosen = values[a:b] if raw else standardized(values[a:b])
    ids = None if queries.doc_ids is None else queries.doc_ids[a:b].tolist()
    labels = np.array(queries.y[a:b])
    return OneQuery(queries.qids[number], chosen, labels, document_names(labels, ids), scored_by)


def heading(one: OneQuery, kind: str, dist: Any, noise: float) -> str:
    """Say which query it is, where its scores come from, and what is drawn from."""
    text = f"Query {one.qid}, scored by {one.scored_by}; {kind}, noise {noise:g}"
    if kind == "good-bad":
        text += f", over {dist.space}: labels are used"
        if dist.space == "interleavings":
            text += ", and documents of the same label keep their order by score"
    return f"{text}."


def _number(queries: Queries, query: str | None, hint: Any) -> int:
    import numpy as np

    if query is not None:
        ids = [str(qid) for qid in queries.qids.tolist()]
        if query not in ids:
            raise ValueError(
                f"--query: there is no query {query!r}{hint(query, ids)}; the first ones are "
                f"{', '.join(ids[:5])}"
            )
        return ids.index(query)
    mixed = np.flatnonzero((queries.n_relevant > 0) & (queries.n_relevant < queries.sizes))
    return int(mixed[0]) if mixed.size else 0


def _scores(queries: Queries, scores: Path | None, feature: int | None) -> tuple[FloatArray, str]:
    if scores is not None:
        return read_scores(scores, queries), str(scores)
    if queries.n_features == 0:
        raise ValueError("--scores: the file has no features to score by; name a file of scores")
    if feature is None:
        feature = best_feature(queries)
        why = ", the best single one by MAP" if queries.y.any() else ""
        return queries.X[:, feature - 1], f"feature {feature}{why}"
    if feature > queries.n_features:
        raise ValueError(f"--feature: expected at most {queries.n_features}, got {feature}")
    return queries.X[:, feature - 1], f"feature {feature}"


def best_feature(queries: Queries) -> int:
    """Find the feature, from 1, that ranks best by mean average precision."""
    import numpy as np

    from permdist.measures import evaluate

    varying = np.flatnonzero(np.ptp(queries.X, axis=0) > 0)
    found = {
        int(one): float(evaluate(queries.X[:, one], queries.y, queries.qid, "map").mean("map"))
        for one in varying
    }
    return 1 + max(found, key=lambda one: found[one], default=0)


def load_fitted(path: Path) -> Ranker:
    """Read a learner that can predict."""
    from permdist.models import load

    learner = load(path)
    if not hasattr(learner, "history_"):
        raise ValueError(f"{path}: this {type(learner).__name__} is not fitted")
    return learner


def print_json(facts: Any) -> None:
    """Print plain values; what is no number becomes null."""
    typer.echo(json.dumps(_without_nan(facts), indent=2, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and value not in (float("inf"), float("-inf")):
        return None if value != value else value
    return str(value) if isinstance(value, float) else value


def command_line() -> str:
    """Give the command as it was typed, for a report's last section."""
    text = shlex.join(["permdist", *sys.argv[1:]])
    return text.encode(errors="surrogateescape").decode(errors="replace")


def terminal_width() -> int | None:
    """Give the width of the terminal, or None where a file or another program reads."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say on the terminal what takes a while."""
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def no_litter() -> Iterator[None]:
    """Keep Hypothesis, which checks the identities, from making a folder where the user is."""
    from hypothesis import configuration

    with tempfile.TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(None)


@contextlib.contextmanager
def kept(text: str) -> Iterator[None]:
    """Say what is kept where Ctrl-C ends this part of a command."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end in one line whatever is raised, and without any if its reader has gone."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # the reader has seen enough; nothing is left to write to
            let_go_of_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt as error:
            text = f"; {error}" if str(error) else ""
            typer.echo(f"permdist: interrupted{text}", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            code = tell(error)
            let_go_of_output()
            raise typer.Exit(code) from None

    return run


def need_files(*paths: Path) -> None:
    """Refuse places that no file can be written to, before any work is done."""
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{path}: expected a place for a file, this is a folder")
        check_place(path)


def need_folder(folder: Path, what: str) -> None:
    """Make the folder for output, or say why it cannot be one."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder for {what}, this is a file")
    folder.mkdir(parents=True, exist_ok=True)
