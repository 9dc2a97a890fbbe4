"""``permdist explore``: a local page to move scores, noise, labels and models."""

import dataclasses
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from permdist.cli._battles import Columns
from permdist.cli._errors import echo
from permdist.cli._shared import (
    AsJson,
    Measures,
    Preset,
    QueryChoice,
    Reading,
    Seed,
    need_files,
    print_json,
    read_measures,
)

if TYPE_CHECKING:
    from permdist.explorer import Server, Source

AUTO = "auto"


@dataclasses.dataclass(frozen=True)
class Start(QueryChoice):
    """Where the page starts."""

    distribution: Annotated[
        str,
        typer.Option(
            "--distribution",
            "-d",
            help="The distribution to start with: plackett-luce, gaussian, good-bad, "
            "davidson-luce, mallows-kendall, ...; auto is davidson-luce for ballots with ties, "
            "and else plackett-luce.",
        ),
    ] = AUTO


def explore(
    asked: Start,
    reading: Reading,
    columns: Columns,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A LETOR/SVMlight file or a store (one query), a table of battles (.csv, .tsv, "
            ".json, .jsonl) or a PrefLib file (fitted scores); an example without it.",
        ),
    ] = None,
    measures: Measures = None,
    preset: Preset = None,
    port: Annotated[
        int, typer.Option("--port", help="The port to serve on; 0 is a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the page to this .html file, to share it; serve nothing."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Move scores, noise, labels, model and measures on a page, and see what changes.

    Serves one page on this computer, until Ctrl-C: rank marginals, pairwise chances, expected
    measures and draws. With --json it prints the setting and its answers, and serves nothing.
    """
    from permdist.explorer import Server, answer, page

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output: expected an .html file, got {output}")
    need_files(output)
    source = _source(data, asked, reading, columns, _others(asked, measures, preset, seed))
    if output is not None:
        from permdist._files import write_atomically

        write_atomically(output, [page(source).encode()])
    if as_json:
        print_json({"setting": source.setting, "answer": answer(source.setting)})
        return
    if output is not None:
        echo(f"Written: {output}")
        return
    with Server(source, port) as server:
        server.page()  # compiles what it needs, before anybody waits for it
        _serve(server, browser)


def _serve(server: "Server", browser: bool) -> None:
    """Serve until Ctrl-C, which is how to end this command and no failure of it."""
    try:
        echo(f"Exploring at {server.url}\nCtrl-C ends it.")
        if browser:  # in a thread: browsers of the terminal do not return before they end
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        echo("Ended.")


def _others(
    asked: Start, measures: list[str] | None, preset: str | None, seed: int
) -> dict[str, Any]:
    """Check the options that need no file, and return what they say about the setting."""
    from permdist.explorer import FAMILIES
    from permdist.explorer.settings import MEASURES, read_setting

    asked.check([*FAMILIES, AUTO])
    chosen: dict[str, Any] = {"noise": asked.noise, "seed": seed}
    if asked.distribution != AUTO:
        chosen["model"] = asked.distribution
    chosen["measures"] = [one.name for one in read_measures(measures, preset, MEASURES)]
    read_setting({**chosen, "scores": [1.0, 0.0], "labels": [1, 0]})
    return chosen


def _source(
    data: Path | None, asked: Start, reading: Reading, columns: Columns, others: dict[str, Any]
) -> "Source":
    """Return what the page starts from, by the kind of the file."""
    from permdist.data import is_store, load_preflib
    from permdist.data.battle_files import is_table
    from permdist.data.preflib import FILE_TYPES
    from permdist.explorer import Source, of_ballots

    if data is None:
        for flag in ("query", "scores", "feature", "model"):
            if getattr(asked, flag) is not None:
                raise ValueError(f"--{flag}: pass a FILE with queries, too")
        example = Source()
        return Source(example.setting | others)
    if is_table(data) and not is_store(data):
        return of_ballots(columns.load(data), title=f"Battles of {data.name}", **others)
    if any(suffix[1:] in FILE_TYPES for suffix in data.suffixes) and not is_store(data):
        return of_ballots(load_preflib(data), title=f"Ballots of {data.name}", **others)
    return _queries(data, asked, reading, others)


def _queries(data: Path, asked: Start, reading: Reading, others: dict[str, Any]) -> "Source":
    """Return the source of a query, which can open all others of its file."""
    from permdist.explorer import of_query

    loaded = asked.load_all(data, reading)
    ids = [str(qid) for qid in loaded.queries.qids.tolist()]
    scaled = "as they are" if asked.raw else "scaled to standard deviation 1"

    def opened(query: str | None) -> "Source":
        one = loaded.pick(query)
        found = of_query(
            one.scores,
            one.labels,
            one.names,
            title=f"Query {one.qid} of {data.name}",
            about=f"Scored by {one.scored_by}, {scaled}. Labels are in parentheses.",
            **others,
        )
        return dataclasses.replace(found, queries=ids, query=str(one.qid), open_query=opened)

    return opened(asked.query)
