"""Targets, what may come of a case, and the loop that makes cases and judges them."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz.coverage import library_roots
from fuzz.mutate import FORMS, MAX_LENGTH, mutate_bytes

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
TARGETS: dict[str, Target] = {}
CLEAN = (ValueError, TypeError, OSError)
LONGEST = 2000  # letters of a message, beside what it repeats of the case


class BrokenPromiseError(Exception):
    """A result that does not have a property it must have."""


def expect(condition: object, text: str) -> None:
    """State what must hold for the result of a case."""
    if not condition:
        raise BrokenPromiseError(text)


@dataclass(frozen=True)
class Target:
    """Something that is fuzzed.

    Parameters
    ----------
    name : str
        Also of its folder in the corpus.
    group : str
        Targets of one group share a test.
    run : callable
        Takes the bytes of a case. It returns, having checked what it got by `expect`, or raises
        what the library raised.
    form : str
        What the bytes are, one of `fuzz.mutate.FORMS`.
    tokens : sequence of bytes
        Words of the format.
    seeds : callable, optional
        Makes cases to begin with, beside the files in the corpus.
    says : str
        What each error's message must have in it, such as the file's name.
    seconds : float
        Of processor time that a case may take.
    seal : callable, optional
        Makes the check sums of a mutated case right again.
    """

    name: str
    group: str
    run: Callable[[bytes], object]
    form: str = "text"
    tokens: Sequence[bytes] = ()
    seeds: Callable[[], Iterable[bytes]] | None = None
    says: str = ""
    seconds: float = 5.0
    seal: Callable[[bytes], bytes] | None = None

    @property
    def folder(self) -> Path:
        """The folder of its corpus."""
        return CORPUS / self.name

    def corpus(self) -> list[bytes]:
        """Read or make the cases to begin with, in a fixed order."""
        made = [] if self.seeds is None else list(self.seeds())
        kept = sorted(self.folder.glob("*")) if self.folder.is_dir() else []
        return [*made, *(file.read_bytes() for file in kept if file.is_file())] or [b""]


def target(name: str, **options: Any) -> Callable[[Callable[[bytes], object]], Any]:
    """Declare a function to be a target; its module is its group."""

    def declare(run: Callable[[bytes], object]) -> Callable[[bytes], object]:
        group = options.pop("group", run.__module__.rpartition(".")[2])
        TARGETS[name] = Target(name, group, run, **options)
        return run

    return declare


class Outcome(NamedTuple):
    """What came of a case.

    Attributes
    ----------
    kind : str
        ``"returned"`` or ``"refused"``; anything else is a failure: ``"wrong error"``, ``"broken
        promise"``, ``"crash"``, ``"hang"``.
    text : str
        The error, in a line.
    where : str
        The innermost line of the library.
    details : str
        A traceback.
    """

    kind: str
    text: str = ""
    where: str = ""
    details: str = ""

    @property
    def failed(self) -> bool:
        """Whether this must not happen."""
        return self.kind not in ("returned", "refused")

    @property
    def signature(self) -> tuple[str, str, str]:
        """What makes two failures the same one."""
        what = self.feature[1] if self.kind == "broken promise" else self.text.partition(":")[0]
        return self.kind, what, self.where

    @property
    def feature(self) -> tuple[str, str]:
        """The error without what differs from case to case: a new one is a new behavior."""
        plain = re.sub(r"'.*'|\".*\"|\S*\d\S*|\(.*\)|\[.*\]", "?", self.text)
        return self.kind, plain.partition(", got")[0][:80]


def judge(one: Target, data: bytes) -> Outcome:
    """Run a case and say what came of it."""
    try:
        with warnings.catch_warnings():
            # What numpy warns of is for the library to see to; what it warns of itself is fine.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            one.run(data)
        return Outcome("returned")
    except BrokenPromiseError as error:
        return _describe("broken promise", error)
    except CLEAN as error:
        return _describe(_manners(one, len(data), error), error)
    except BaseException as error:  # the point of all this: nothing else may come out
        return _describe("wrong error", error)


def _manners(one: Target, length: int, error: Exception) -> str:
    """Tell a clean error from one that slipped through: its type, one line, the right words."""
    own = type(error).__module__.startswith("permdist")
    if not own and isinstance(error, ValueError) and type(error) is not ValueError:
        return "wrong error"  # of a codec, a JSON reader, linear algebra: not meant for users
    text = str(error)
    if not text or "\n" in text or len(text) > LONGEST + 2 * length:
        return "bad message"
    return "refused" if one.says in text else "bad message"


def _describe(kind: str, error: BaseException) -> Outcome:
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if of_library(frame.filename)] or frames[:-1]
    where = f"{short(places[-1].filename)}:{places[-1].lineno}" if places else ""
    text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
    return Outcome(kind, text, where, "".join(traceback.format_exception(error))[-6000:])


def of_library(file: str) -> bool:
    """Tell whether a source file is one of the library's."""
    return file.startswith(library_roots())


def short(file: str) -> str:
    """Shorten a path to what a reader of the repository needs."""
    roots = (Path(root).parent for root in library_roots() if file.startswith(root))
    return str(Path(file).relative_to(next(roots, Path(file).parent)))


def make_case(one: Target, pool: Sequence[bytes], seed: int, number: int) -> bytes:
    """Mutate something of the pool; the same seed, number and pool give the same case."""
    rng = Random(f"{seed}/{one.name}/{number}")
    recent = rng.random() < 0.5
    data = pool[-1 - min(len(pool) - 1, int(rng.expovariate(0.1)))] if recent else rng.choice(pool)
    for _ in range(1 + int(rng.expovariate(1.2))):
        form = FORMS[one.form] if rng.random() < 0.85 else mutate_bytes
        data = form(data, rng, one.tokens, rng.choice(pool))[:MAX_LENGTH]
    if one.seal is not None and rng.random() < 0.7:
        data = one.seal(data)[:MAX_LENGTH]
    return data
