"""What several commands share: options, the choice of a query, output, and how they end."""

import contextlib
import dataclasses
import functools
import inspect
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from permdist._files import check_place
from permdist._text import visible
from permdist.cli._errors import echo, let_go_of_output, tell

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.data import Queries
    from permdist.distributions import Distribution
    from permdist.models import Ranker

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Seed = Annotated[
    int, typer.Option("--seed", help="Seed of all random numbers.", min=0, max=2**63 - 1)
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Number of worker processes; -1 uses one per core.",
        min=-1024,
        max=1024,
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "--measures",
        "-m",
        help="A measure, such as map, ndcg@10, p@5, mrr, err@10 or 'ndcg@10[gain=linear]', or a "
        "comma-separated list of measures; may be repeated.",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="The conventions of a tool: letor3, letor4, trec or burges."),
]
DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A LETOR/SVMlight file, plain, .gz or .bz2, or a store made by 'permdist convert'.",
    ),
]


# ---- groups of options -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Reading:
    """How to read LETOR files."""

    regroup: Annotated[
        bool, typer.Option("--regroup", help="Accept queries whose lines are not contiguous.")
    ] = False
    query_file: Annotated[
        Path | None,
        typer.Option(
            "--query-file",
            help="If DATA has no query ids: a file with the number of documents per query; by "
            "default DATA.query or DATA.group next to it.",
        ),
    ] = None
    zero_based: Annotated[
        bool,
        typer.Option("--zero-based", help="Features are numbered from 0 in the file, not from 1."),
    ] = False
    null: Annotated[
        str,
        typer.Option(
            "--null",
            help="What becomes of values written NULL: min (the lowest in the query), zero, error, "
            "or missing, for learners with settings such as 'MLE[missing=mean]'; only then values "
            "may also be written nan.",
        ),
    ] = "min"

    def load(self, file: Path, n_features: int | None = None) -> "Queries":
        """Read a file, or open a store."""
        from permdist.data import is_store, load_letor, open_store

        options = dataclasses.asdict(self)
        if not is_store(file):
            return load_letor(file, n_features=n_features, **options)
        for field in dataclasses.fields(self):
            if options[field.name] != field.default:
                flag = f"--{field.name.replace('_', '-')}"
                raise ValueError(f"{flag}: only for text files, {file} is a store")
        queries = open_store(file)
        if n_features is not None and queries.n_features != n_features:
            raise ValueError(f"{file}: expected {n_features} features, got {queries.n_features}")
        return queries


class OneQuery(NamedTuple):
    """A query with scores, and the distribution of its rankings."""

    qid: Any
    scores: "FloatArray"
    labels: "IntArray"
    names: list[str]
    scored_by: str


class ScoredQueries(NamedTuple):
    """Queries and the scores of their documents."""

    queries: "Queries"
    values: "FloatArray"
    scored_by: str
    raw: bool

    def pick(self, query: str | None) -> OneQuery:
        """Return one query by its id; see `query_number`."""
        from permdist.report.inspection import document_names, standardized

        queries, number = self.queries, query_number(self.queries, query)
        rows = slice(queries.ptr[number], queries.ptr[number + 1])
        labels = queries.y[rows].copy()
        ids = None if queries.doc_ids is None else queries.doc_ids[rows].tolist()
        return OneQuery(
            queries.qids[number],
            self.values[rows] if self.raw else standardized(self.values[rows]),
            labels,
            document_names(labels, ids),
            self.scored_by,
        )


def query_number(queries: "Queries", query: str | None) -> int:
    """Find a query by its id; None is the first with relevant and irrelevant documents."""
    import numpy as np

    from permdist._text import hint

    if query is not None:
        ids = [str(qid) for qid in queries.qids.tolist()]
        if query not in ids:
            raise ValueError(
                f"--query: there is no query {query!r}{hint(query, ids)}; the first "
                f"ones are {', '.join(ids[:5])}"
            )
        return ids.index(query)
    mixed = np.flatnonzero((queries.n_relevant > 0) & (queries.n_relevant < queries.sizes))
    return int(mixed[0]) if mixed.size else 0


@dataclasses.dataclass(frozen=True)
class QueryChoice:
    """Which query to look at, its scores, and the distribution of its rankings."""

    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            "-q",
            help="The id of a query; by default the first with both relevant and irrelevant "
            "documents.",
        ),
    ] = None
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Scores of the documents: one per line, or a TREC run."),
    ] = None
    feature: Annotated[
        int | None,
        typer.Option(
            "--feature", help="Score by this feature, numbered from 1 as in the file.", min=1
        ),
    ] = None
    model: Annotated[
        Path | None, typer.Option("--model", help="Score by a learner saved by 'permdist fit'.")
    ] = None
    distribution: Annotated[
        str,
        typer.Option(
            "--distribution",
            "-d",
            help="The distribution: plackett-luce, gaussian, or good-bad, which uses the labels.",
        ),
    ] = "plackett-luce"
    noise: Annotated[
        float,
        typer.Option(
            "--noise", help="The noise scale, in standard deviations of the query's scores."
        ),
    ] = 1.0
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Use the scores as they are, without standardizing them."),
    ] = False

    def check(self, known: Iterable[str] | None = None) -> None:
        """Check the options that need no file; `known` are the distributions, if not the usual."""
        from permdist._check import choice
        from permdist.report.inspection import DISTRIBUTIONS

        choice("--distribution", self.distribution, known or DISTRIBUTIONS)
        if sum(one is not None for one in (self.scores, self.feature, self.model)) > 1:
            raise ValueError("--scores, --feature, --model: pass at most one of them")

    def load(self, file: Path, reading: Reading) -> OneQuery:
        """Read the query and its scores."""
        return self.load_all(file, reading).pick(self.query)

    def load_all(self, file: Path, reading: Reading) -> "ScoredQueries":
        """Read all queries and their scores, after a look whether there is the one asked for."""
        learner = None if self.model is None else load_fitted(self.model)
        queries = reading.load(file, None if learner is None else learner.n_features_in_)
        query_number(queries, self.query)
        if learner is not None:
            values, scored_by = learner.predict(queries), f"{type(learner).__name__} ({self.model})"
        else:
            values, scored_by = self._scores(queries)
        return ScoredQueries(queries, values, scored_by, self.raw)

    def describe(self, one: OneQuery, dist: "Distribution") -> str:
        """Return a sentence about the query, the source of its scores, and the distribution."""
        from permdist.report.inspection import describe_space

        text = f"Query {one.qid}, scored by {one.scored_by}; {self.distribution}"
        text += f", noise {self.noise:g}"
        space = describe_space(dist)
        if space:
            text += f", {space}; labels are used"
        return f"{text}."

    def _scores(self, queries: "Queries") -> tuple["FloatArray", str]:
        from permdist.data import is_run, load_run, load_scores

        if self.scores is not None:
            if is_run(self.scores):
                return load_run(self.scores, queries), str(self.scores)
            by_line = load_scores(self.scores, n_documents=queries.n_documents)
            return by_line[queries.rows], str(self.scores)
        if queries.n_features == 0:
            raise ValueError("--scores: the file has no features to score by; pass a score file")
        feature = best_feature(queries) if self.feature is None else self.feature
        if feature > queries.n_features:
            raise ValueError(f"--feature: expected at most {queries.n_features}, got {feature}")
        best = self.feature is None and queries.y.any()
        why = ", the best single one by MAP" if best else ""
        return queries.X[:, feature - 1], f"feature {feature}{why}"


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace every parameter that is a group of options by the options of the group."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)
    }
    fields = {
        name: [
            inspect.Parameter(
                field.name, KEYWORD, default=field.default, annotation=types[field.name]
            )
            for types in [get_type_hints(kind, include_extras=True)]
            for field in dataclasses.fields(kind)
        ]
        for name, kind in groups.items()
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        own = parameter.replace(kind=KEYWORD, annotation=hints[name])
        parameters += fields.get(name, [own])

    @functools.wraps(command)
    def run(**options: Any) -> None:
        made = {
            name: kind(**{field.name: options.pop(field.name) for field in fields[name]})
            for name, kind in groups.items()
        }
        command(**options, **made)

    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


KEYWORD = inspect.Parameter.KEYWORD_ONLY


# ---- reading -----------------------------------------------------------------------------------


def read_measures(
    measure: list[str] | None, preset: str | None, usual: tuple[str, ...], flag: str = "--measure"
) -> Any:
    """Read measures as typed by the user, with the conventions of a preset if there is one."""
    from permdist._check import choice
    from permdist._registry import split_list
    from permdist.measures import PRESETS, parse

    if preset is not None:
        choice("--preset", preset, PRESETS)
    texts = [text for one in measure or [] for text in split_list(one, flag)]
    texts = texts or [text.rpartition(":")[2] if preset else text for text in usual]
    plain = [preset is None or ":" in text for text in texts]
    read = parse if preset is None else PRESETS[preset]
    return [parse(text) if one else read(text) for text, one in zip(texts, plain, strict=True)]


def best_feature(queries: "Queries") -> int:
    """Return the feature, numbered from 1, with the highest mean average precision."""
    import numpy as np

    from permdist.measures import evaluate

    varying = np.flatnonzero(np.ptp(queries.X, axis=0) > 0)
    found = {
        int(one): float(evaluate(queries.X[:, one], queries.y, queries.qid, "map").mean("map"))
        for one in varying
    }
    return 1 + max(found, key=lambda one: found[one], default=0)


def load_fitted(path: Path) -> "Ranker":
    """Read a fitted learner."""
    from permdist.models import load

    learner = load(path)
    if not hasattr(learner, "history_"):
        raise ValueError(f"{path}: this {type(learner).__name__} is not fitted")
    return learner


# ---- writing -----------------------------------------------------------------------------------


def print_json(facts: Any) -> None:
    """Print plain values as JSON, with null for NaN."""
    echo(json.dumps(without_nan(facts), indent=2, allow_nan=False))


def without_nan(value: Any) -> Any:
    """Return plain values of numpy and Python as JSON has them, with None for NaN."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, dict):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    if isinstance(value, float) and value not in (float("inf"), float("-inf")):
        return None if value != value else value
    return str(value) if isinstance(value, float) else value


def command_line() -> str:
    """Return the command as it was typed, for the last section of a report."""
    text = shlex.join(["permdist", *sys.argv[1:]])
    return text.encode(errors="surrogateescape").decode(errors="replace")


def terminal_width() -> int | None:
    """Return the width of the terminal, or None if the output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def need_files(*paths: Path | None) -> None:
    """Check before any work that files can be written to all of these places."""
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{path}: expected a file name, got a folder")
        check_place(path)


def need_folder(folder: Path, what: str) -> None:
    """Make the output folder, or say why it cannot be one."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder for {what}, got a file")
    folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show on the terminal what is going on."""
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(text))):
        yield


@contextlib.contextmanager
def no_litter() -> Iterator[None]:
    """Keep Hypothesis from creating its folder in the working directory."""
    from hypothesis import configuration

    with tempfile.TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(None)


# ---- ending ------------------------------------------------------------------------------------


@contextlib.contextmanager
def kept(text: str) -> Iterator[None]:
    """Add to the message of Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Exit with one line on any error or Ctrl-C, and silently on a broken pipe."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            let_go_of_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt as error:
            text = f"; {error}" if str(error) else ""
            echo(f"permdist: interrupted{text}", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            code = tell(error)
            let_go_of_output()
            raise typer.Exit(code) from None

    return run
