"""The catalogue of identities, and `check_all`, which tests them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from permdist import _result
from permdist._check import as_rng, count
from permdist._text import hint, text_table

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import RandomState

HEAD = ("identity", "tried", "worst", "allowed", "", "statement")
Residual = TypeVar("Residual", bound=Callable[..., float])


@dataclass(frozen=True)
class Identity:
    """A statement that can be checked on instances.

    Attributes
    ----------
    name : str
    statement : str
        What is claimed, in one line.
    source : str
        The paper and equation it comes from.
    residual : callable
        Takes an instance as keywords; returns the error of the claim, relative to the size of the
        numbers in it (for a bound: by how much it is violated, 0 if it holds).
    instances : callable
        Returns a Hypothesis strategy for dictionaries of keywords.
    tolerance : float
        The largest residual that counts as rounding.
    """

    name: str
    statement: str
    source: str
    residual: Callable[..., float]
    instances: Callable[[], Any]
    tolerance: float = 1e-9

    def check(self, **instance: Any) -> float:
        """Return the residual of one instance.

        Examples
        --------
        >>> from permdist.identities import CATALOGUE
        >>> CATALOGUE["sum-product"].check(h=[[0.5, 2.0], [1.0, 3.0]]) < 1e-12
        True
        """
        return float(self.residual(**instance))


@dataclass(frozen=True)
class Result(_result.Result):
    """The result of one entry: the number of instances tried, the worst residual, pass or fail.

    Attributes
    ----------
    identity : Identity
    tried : int
        How many instances, or draws.
    worst : float
        The largest residual; of a test on draws, -log10 of its p-value.
    p_value : float or None
        Of a test on draws.
    note : str
        What was raised instead of an answer, or why there is none.
    offered : bool
        False where the distribution refuses, with `NotExactError`, what would be checked.
    """

    identity: Identity
    tried: int
    worst: float
    p_value: float | None = None
    note: str = ""
    offered: bool = True

    @property
    def passed(self) -> bool:
        """Whether no residual was above the tolerance; what is not offered breaks no promise."""
        return not self.offered or (self.tried > 0 and self.worst <= self.identity.tolerance)

    def row(self) -> list[str]:
        """Return the entries of its row in the table of `Results`."""
        worst, allowed = f"{self.worst:.1e}", f"{self.identity.tolerance:.0e}"
        if self.p_value is not None:
            worst, allowed = f"p = {self.p_value:.1e}", f"{10**-self.identity.tolerance:.0e}"
        if self.note:  # there is no number
            worst = "-"
        verdict = ("pass" if self.passed else "FAIL") if self.offered else "none"
        note = self.note if self.offered else "not offered"
        statement = f"{self.identity.statement}; {note}" if note else self.identity.statement
        return [self.identity.name, f"{self.tried}", worst, allowed, verdict, statement]

    @property
    def caption(self) -> str:
        """The name of the entry."""
        return self.identity.name

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a data frame with one row, as `Results.to_frame` has it."""
        return Results([self]).to_frame()

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], list[list[str]]]:
        return HEAD, [self.row()][:most]


class Results(_result.Result, Sequence[Result]):
    """The results of several entries; prints as a table."""

    _most_rows: ClassVar[int] = 200

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = tuple(results)

    def __getitem__(self, number: Any) -> Any:
        return self._results[number]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def passed(self) -> bool:
        """Whether every entry passed."""
        return all(result.passed for result in self)

    def to_frame(self) -> pd.DataFrame:
        """Return the results as a data frame, a row per entry.

        Returns
        -------
        DataFrame
            Indexed by ``identity``, with the columns ``tried``, ``worst``, ``tolerance``,
            ``p_value`` (of a test on draws, NaN for others), ``passed``, ``offered``, ``note``,
            ``statement`` and ``source``.

        Examples
        --------
        >>> check_all(["sum-product"], max_examples=5).to_frame()["tried"].tolist()
        [5]
        """
        import pandas as pd

        rows = [
            {
                "identity": result.identity.name,
                "tried": result.tried,
                "worst": result.worst,
                "tolerance": result.identity.tolerance,
                "p_value": np.nan if result.p_value is None else result.p_value,
                "passed": result.passed,
                "offered": result.offered,
                "note": result.note,
                "statement": result.identity.statement,
                "source": result.identity.source,
            }
            for result in self
        ]
        return pd.DataFrame(rows).set_index("identity") if rows else pd.DataFrame()

    @property
    def caption(self) -> str:
        """How many of the entries hold, in one line."""
        offered = [result for result in self if result.offered]
        held = sum(result.passed for result in offered)
        return f"{held} of {len(offered)} hold within their tolerance"

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], list[list[str]]]:
        return HEAD, [result.row() for result in self][:most]

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int = 130) -> str:
        """Format the table for a width in characters."""
        table = text_table(*self._cells(), left=("", "statement"), width=width)
        return f"{table}\n\n{self.caption}"


CATALOGUE: dict[str, Identity] = {}


def claims_of(paper: str) -> Callable[..., Callable[[Residual], Residual]]:
    """Return a decorator that adds residuals to the catalogue as claims of a paper.

    ``@claim(statement, place in the paper, instances)``; the name is that of the function, with
    hyphens, unless one is given.
    """

    def claim(
        statement: str,
        place: str,
        instances: Callable[[], Any],
        *,
        name: str | None = None,
        tolerance: float = 1e-9,
    ) -> Callable[[Residual], Residual]:
        def register(residual: Residual) -> Residual:
            key = name or residual.__name__.replace("_", "-")
            source = ", ".join(filter(None, (paper, place)))
            CATALOGUE[key] = Identity(key, statement, source, residual, instances, tolerance)
            return residual

        return register

    return claim


def history_of(learner: Any, queries: Any) -> dict[str, list[float]]:
    """Fit a learner without warnings, and return its history."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history: dict[str, list[float]] = learner.fit(queries).history_
    return history


def check_all(
    names: Iterable[str] | None = None, *, max_examples: int = 50, rng: RandomState = 0
) -> Results:
    """Try the entries of the catalogue on generated instances.

    Parameters
    ----------
    names : iterable of str, optional
        The entries to check; all by default.
    max_examples : int
        The number of instances per entry.
    rng : int, numpy.random.Generator or None
        The same seed tries the same instances.

    Returns
    -------
    Results

    Examples
    --------
    >>> results = check_all(["sum-product"], max_examples=5)
    >>> results.passed
    True
    """
    count("max_examples", max_examples)
    chosen = list(CATALOGUE) if names is None else list(names)
    for name in chosen:
        if name not in CATALOGUE:
            raise ValueError(
                f"names: there is no identity {name!r}{hint(name, CATALOGUE)}; there are "
                f"{', '.join(CATALOGUE)}"
            )
    seed = rng if isinstance(rng, int) else int(as_rng(rng).integers(2**62))
    return Results(_run(CATALOGUE[name], max_examples, seed) for name in chosen)


def _run(identity: Identity, max_examples: int, seed: int) -> Result:
    """Generate instances with Hypothesis and keep the worst residual."""
    import hypothesis

    residuals: list[float] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(instance=identity.instances())
    def run(instance: dict[str, Any]) -> None:
        residuals.append(identity.check(**instance))

    run()
    # NaN must fail, and maximum keeps it.
    return Result(identity, len(residuals), float(np.max(residuals)) if residuals else np.nan)


def max_of(*residuals: float) -> float:
    """Return the largest residual; NaN, which fails, where there is one."""
    return float(np.max(residuals))


def relative(ours: Any, truth: Any) -> float:
    """Return the largest difference, relative to the largest number (and at least to 1)."""
    a, b = np.asarray(ours, dtype=float), np.asarray(truth, dtype=float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities of one sign agree
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    return float(gap.max(initial=0.0) / max(1.0, finite.max(initial=0.0)))


def excess(smaller: Any, larger: Any) -> float:
    """Return by how much a claimed ``smaller <= larger`` is violated; 0 where it holds."""
    a, b = np.asarray(smaller, dtype=float), np.asarray(larger, dtype=float)
    return float(np.max(np.maximum(a - b, 0.0) / np.maximum(1.0, np.abs(b)), initial=0.0))
