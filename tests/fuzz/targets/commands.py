"""Every command, with its arguments and the files that they name.

A case is a bundle: the file ``arguments`` has one argument a line, the others are files in the
working folder. ``model.json`` and ``data.txt`` are there even if the case does not have them.
Options come from the commands themselves, so that a new one is fuzzed without a word here.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import joblib
import typer

from fuzz.engine import BrokenPromiseError, expect, target
from fuzz.mutate import FORMS, NUMBERS, mutate_bundle, mutate_bytes, pack, unpack
from fuzz.targets.models import fitted
from fuzz.targets.names import MEASURES, SETTINGS
from permdist import cli, models

LINES = 30  # of complaints; help for a wrong option is framed and wrapped
DATA = b"2 qid:1 1:0.5 2:1 3:0\n0 qid:1 1:0.25 2:0 3:1\n1 qid:1 1:0.125 2:0 3:0\n" + b"".join(
    b"%d qid:%d 1:0.%d 2:1 3:%d\n" % (k % 2, 2 + k // 3, k, k % 4) for k in range(15)
)
# Where a large number is honest work and not a mistake; and what may not be tried at all.
LONG_WORK = ["--examples", "--queries", "--draws", "-n", "--identities", "--folds", "--chains"]
LONG_WORK += ["--thin", "--jobs", "-j"]
FORBIDDEN = ("--scheduler",)
VALUES = [*NUMBERS, "data.txt", "model.json", "scores.txt", "out.html", "out.nc", "out", "no", ""]
VALUES += ["plackett-luce", "gaussian", "good-bad", "letor4", "trec", "adjacent", "holm", "-", "x"]
VALUES += ["out.csv", "out.tex", "--ranks", "voter", "nan", "names", "sides", "0=tie"]
VALUES += [".", "map,ndcg@10", "p@5", "MLE", "ListNet[C=1|10]", "RankBoost[max_iter=3]", "1", "2"]

# What a name must not do to a terminal or a spreadsheet.
ESCAPES = [b"\x1b]0;x\x07", b"\x1b[2J", b"=cmd|'x'!A0", b"@SUM(1)", b"\xe2\x80\xae", b"\xc2\x9b2J"]
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
FORMULA = re.compile(r"[=+@-](?![\d.]+(e[+-]?\d+)?$)", re.IGNORECASE)

command_line = functools.cache(typer.main.get_command)


@functools.cache
def options_of(name: str) -> list[str]:
    """List the options that a command has."""
    group: Any = command_line(cli.app)
    return sorted(option for one in group.commands[name].params for option in one.opts)


def tame(arguments: list[str]) -> list[str]:
    """Keep a case inside its folder and short: no paths out of it, no honest work for hours."""
    found: list[str] = []
    for argument in arguments[:20]:
        argument = argument.replace("\0", "").replace("/", "_").replace("..", "_")
        flag, equals, value = argument.partition("=")
        if flag in FORBIDDEN:
            argument = "--json"
        elif flag in LONG_WORK and equals:
            argument = f"{flag}={_small(value)}"
        elif found and found[-1] in LONG_WORK:
            argument = _small(argument)
        elif "[" in argument:  # settings of a learner, among them numbers of rounds
            argument = re.sub(r"\d{3,15}", lambda digits: digits[0][:2], argument)
        found.append(re.sub(r"^-[jn]\d+$", "-j1", argument))
    return found


def _small(number: str) -> str:
    try:
        return str(int(number) % 40) if int(number) > 40 else number
    except ValueError:
        return number


def call(arguments: list[str]) -> tuple[int, str, str]:
    """Run the command as a terminal would; return its exit code and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["permdist", *arguments]),
        mock.patch.dict("os.environ", {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        joblib.parallel_config("sequential"),
        mock.patch("typer.main.get_command", command_line),  # it takes longer than most commands
    ):
        try:
            cli.main()
            code: Any = 0
        except SystemExit as stop:
            code = stop.code
    return (0 if code is None else code), out.getvalue(), err.getvalue()


def check_command(name: str, case: bytes) -> None:
    """Run a case, and state what holds for every command."""
    files = {"data.txt": DATA, "model.json": fitted(models.MLE), **unpack(case)}
    text = files.pop("arguments", b"").decode(errors="surrogateescape")
    for file, content in files.items():
        Path(file.replace("/", "_")).write_bytes(content)
    arguments = tame([name, *text.split("\n")])
    if name == "identities" and "--examples" not in arguments:
        arguments += ["--examples", "1"]
    before = set(Path().iterdir())
    code, out, err = call(arguments)
    check_text(code, out, err, set(Path().iterdir()) - before)
    expect(code in (0, 1, 2), f"exit code 0, 1 or 2, got {code!r}")
    if code == 1 and name != "identities":
        expect("memory" in err, f"exit code 1 is for claims that fail, got {err!r:.300}")
    for written in () if "--debug" in arguments else (out, err):
        expect("Traceback (most recent call last)" not in written, f"a traceback: {written:.200}")
    allowed = LINES + len(text) // 40  # a complaint may quote an argument
    expect(len(err.splitlines()) <= allowed, f"at most {allowed} lines of complaints")
    if code == 2:
        expect(err.strip(), "a complaint where something is wrong")
        raise ValueError(" ".join(err.split())[:500])
    # Behind another option it may be that option's value.
    flags = [b for a, b in pairwise(arguments) if not a.startswith("-")]
    asked = "--json" in flags and not {"--help", "-h"} & set(arguments)
    if code == 0 and asked and out:
        try:
            json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            raise BrokenPromiseError(f"--json prints JSON, got {out[:200]!r}") from error


def check_text(code: Any, out: str, err: str, written: set[Path]) -> None:
    """No control character is printed, and no name is a formula in a file of a new name."""
    # A wrong option is quoted as it is: nobody else wrote it.
    told = [line for line in err.split("\n") if line.startswith("permdist:")]
    for text in (*told, out if code == 0 else ""):
        expect(not UNSEEN.search(text), f"text without control characters, got {text!r:.200}")
    for file in written:
        if file.suffix in (".csv", ".tex") and file.is_file():
            text = file.read_text(encoding="utf-8")
            expect(not UNSEEN.search(text), f"a file without control characters, got {text!r:.200}")
            for row in csv.reader(io.StringIO(text)) if file.suffix == ".csv" else ():
                bad = [cell for cell in row if FORMULA.match(cell)]
                expect(not bad, f"no formulas, got {bad}")


def _refuse(word: str) -> None:
    raise ValueError(word)


def mutate_arguments(name: str) -> Callable[..., bytes]:
    """Change the arguments one by one, or one of the files."""

    def mutate(data: bytes, rng: Any, tokens: Any, other: bytes) -> bytes:
        files = unpack(data)
        if "arguments" not in files or rng.random() < 0.3:
            return mutate_bundle(data, rng, tokens, other)
        words = files["arguments"].split(b"\n")
        place = rng.randrange(len(words) + 1)
        option = rng.choice([*options_of(name), "--help", "--nonsense"])
        kind = rng.randrange(6)
        if kind == 0:
            words[place : place + 1] = []
        elif kind == 1:
            words[place:place] = [option.encode(), rng.choice(VALUES).encode()]
        elif kind == 2:
            words[place:place] = [option.encode()]
        elif kind == 3:
            words[place : place + 1] = [rng.choice(VALUES).encode()]
        elif kind == 4 and place < len(words):
            words[place] = mutate_bytes(words[place], rng, tokens, b"")
        else:
            words[place : place + 1] = [rng.choice([*MEASURES, *SETTINGS, *tokens, b"x"])]
        return pack({**files, "arguments": b"\n".join(words)})

    return mutate


def declare(name: str) -> None:
    seconds = 20.0 if name in ("compare", "demo") else 10.0

    @target(
        f"command-{name}",
        form=f"command-{name}",
        tokens=[*(option.encode() for option in options_of(name)), *ESCAPES],
        seconds=seconds,
    )
    def run(case: bytes) -> None:
        with cheaper(name):
            check_command(name, case)


def cheaper(name: str) -> Any:
    """Leave out steps of a command that take their time, and are tested elsewhere."""
    module = sys.modules[f"permdist.cli.{name}"]
    if name == "demo":
        return mock.patch.object(module, "STEPS", module.STEPS[:1])
    if name == "warmup":
        return mock.patch.object(module, "calls", return_value=[])
    if name == "explore":  # it would serve until Ctrl-C
        return mock.patch.object(module, "_serve")
    return contextlib.nullcontext()


for command in cli.COMMANDS:
    FORMS[f"command-{command.__name__}"] = mutate_arguments(command.__name__)
    declare(command.__name__)
