"""What came of a comparison: tables of means, ranks, intervals and tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from permdist._check import choice
from permdist._text import plural, wrapped
from permdist._typing import FloatArray, IntArray
from permdist.comparison.cells import Outcome
from permdist.comparison.published import published
from permdist.comparison.statistics import (
    TESTS,
    adjust,
    friedman,
    interval,
    mean_ranks,
    paired_tests,
)
from permdist.comparison.wording import HEAD, fitted_table, p_text, plain, title, to_tex
from permdist.measures import Evaluation, Measure, parse
from permdist.models import Ranker
from permdist.models.files import from_dict

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("first", "second", "third")
PLACES = {"first": "1st", "second": "2nd", "third": "3rd", "": ""}
# What a narrow terminal does without, the first of these first.
SPARED = ("p (rand.)", "p (Wilcoxon)", "rank", "mean rank", "interval")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Learners compared on the test queries of all folds; prints as a table for each measure.

    Attributes
    ----------
    names : list of str
        The entries that were fitted on every fold, as given.
    measures : tuple of Measure
        What is reported.
    select : Measure
        What settings were chosen by.
    evaluations : dict of lists of Evaluation
        By entry: the measures on the test queries of each fold.
    chosen : dict of lists of dict
        By entry: the settings chosen on each fold.
    outcomes : dict of lists of Outcome
        By entry: what came of the chosen fit on each fold.
    validation : dict of lists of dict
        By entry: for each fold, what every setting, as a text, had on the validation part.
    varied : dict of tuples of str
        By entry: the settings that there was a choice of.
    failures : dict of str
        Entries that are left out, and why.
    notes : list of str
        What a reader should know about the fits.
    kinds : dict of classes
        By entry: the kind of its learner.
    collection : str or None
        The name of a known collection, of which there are published figures.
    baseline : str or None
        The entry that the others are tested against; None is the best one of each measure.
    correction : str
    level : float
    seed : int
    n_fits : int
        How many different fits there are.
    """

    names: list[str]
    measures: tuple[Measure, ...]
    select: Measure
    evaluations: dict[str, list[Evaluation]]
    chosen: dict[str, list[dict[str, Any]]]
    outcomes: dict[str, list[Outcome]]
    validation: dict[str, list[dict[str, float]]]
    varied: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kinds: dict[str, type[Ranker]] = field(default_factory=dict)
    collection: str | None = None
    baseline: str | None = None
    correction: str = "holm"
    level: float = 0.95
    seed: int = 0
    n_fits: int = 0

    # ---- numbers -------------------------------------------------------------------------------

    @cached_property
    def folds(self) -> IntArray:
        """The fold of each test query, from 0."""
        sizes = [len(one.qids) for one in self.evaluations[self.names[0]]]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def qids(self) -> NDArray[Any]:
        """The test queries, fold after fold."""
        return np.concatenate([one.qids for one in self.evaluations[self.names[0]]])

    def values(self, measure: str | Measure | None = None) -> FloatArray:
        """Give a measure on every test query, shape (entries, queries), fold after fold."""
        name = self._measure(measure).name
        return np.array(
            [np.concatenate([one[name] for one in self.evaluations[entry]]) for entry in self.names]
        )

    def learners(self, name: str) -> list[Ranker]:
        """Give the chosen learners of an entry, fitted, one for each fold."""
        choice("name", name, self.names)
        kind = self.kinds.get(name)
        return [from_dict(outcome.learner, kind=kind) for outcome in self.outcomes[name]]

    def to_frame(self, measure: str | Measure | None = None) -> pd.DataFrame:
        """Give the table of a measure (the first by default), best entry first.

        Returns
        -------
        pandas.DataFrame
            Indexed by entry: ``rank`` (of the mean), ``mean`` (over folds of the means over test
            queries, as LETOR reports it), ``standard_error``, ``low`` and ``high`` (the interval),
            ``mean_rank`` (over queries), ``difference`` (to the baseline), corrected p-values
            ``p_t``, ``p_wilcoxon`` and ``p_randomization`` (NaN for the baseline itself),
            ``seconds`` (of one fit with the chosen setting) and ``mark`` (the best three).
        """
        name = self._measure(measure).name
        if name not in self._frames:  # the tests take a while, and many ask for them
            self._frames[name] = self._make_frame(name)
        return self._frames[name].copy()

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {}

    def _make_frame(self, measure: str) -> pd.DataFrame:
        import pandas as pd

        values, used = self._used(measure)
        found = [interval(row, self.folds[used], self.level) for row in values]
        means = np.array([one.mean for one in found])
        rank = 1 + (np.round(means, 12)[:, None] < np.round(means, 12)).sum(axis=1)
        base = self._baseline(means)
        others = np.flatnonzero(np.arange(len(means)) != base)
        tests = {name: np.full(len(means), np.nan) for name in TESTS}
        if others.size and values.shape[1]:
            differences = values[others] - values[base]
            found_p = paired_tests(differences, self.folds[used], rng=self.seed)
            for name, p in found_p.items():
                tests[name][others] = adjust(p, self.correction)
        frame = pd.DataFrame(
            {
                "rank": rank,
                "mean": means,
                "standard_error": [one.standard_error for one in found],
                "low": [one.low for one in found],
                "high": [one.high for one in found],
                "mean_rank": mean_ranks(values),
                "difference": means - means[base],
                **{f"p_{name}": p for name, p in tests.items()},
                "seconds": [
                    np.mean([one.seconds for one in self.outcomes[name]]) for name in self.names
                ],
                "mark": [
                    MARKS[place - 1] if place <= 3 and mean == mean else ""
                    for place, mean in zip(rank, means, strict=True)
                ],
            },
            index=pd.Index(self.names, name="entry"),
        )
        return frame.sort_values("rank", kind="stable")

    def p_values(self, measure: str | Measure | None = None, test: str = "t") -> pd.DataFrame:
        """Give corrected p-values of all pairs of entries, for one kind of test."""
        import itertools

        import pandas as pd

        choice("test", test, TESTS)
        values, used = self._used(measure)
        pairs = list(itertools.combinations(range(len(self.names)), 2))
        table = np.full((len(self.names), len(self.names)), np.nan)
        if pairs and values.shape[1]:
            rows, columns = np.array(pairs).T
            differences = values[rows] - values[columns]
            p = paired_tests(differences, self.folds[used], rng=self.seed)[test]
            table[rows, columns] = table[columns, rows] = adjust(p, self.correction)
        return pd.DataFrame(table, index=self.names, columns=self.names)

    def friedman(self, measure: str | Measure | None = None) -> float:
        """Give the p-value of Friedman's test that all entries are alike."""
        return friedman(self._used(measure)[0])

    def published(self, measure: str | Measure | None = None) -> list[Any]:
        """List published figures for this collection and measure, where there are any."""
        if self.collection is None:
            return []
        return published(self.collection, self._measure(measure))

    # ---- texts ---------------------------------------------------------------------------------

    def to_markdown(self, measure: str | Measure | None = None) -> str:
        """Write the table of a measure in Markdown, the best three in bold."""
        lines = [f"| {' | '.join(HEAD)} |", "| :--- |" + " ---: |" * (len(HEAD) - 1)]
        for row in self.rows(measure):
            name = re.sub(r"([|*<`\\])", r"\\\1", row[0])  # a bar would end the cell
            name = f"**{name}**" if row[-1] else name
            lines.append("| " + " | ".join([name, *row[1:-1]]) + " |")
        return "\n".join(lines)

    def to_latex(self) -> str:
        """Write all measures as one LaTeX table; the best in bold, what is worse with a dagger.

        The dagger marks means below the baseline's with p < 1 - level in the corrected t-test.
        """
        frames = {title(measure): self.to_frame(measure) for measure in self.measures}
        order = list(next(iter(frames.values())).index)
        head = " & ".join(["learner", *(f"{to_tex(name)} & s.e." for name in frames)])
        lines = [
            r"\begin{tabular}{l" + "rr" * len(frames) + "}",
            r"\hline",
            head + r" \\",
            r"\hline",
        ]
        for name in order:
            # In braces: a bracket here would belong to the end of the line above.
            cells = [f"{{{to_tex(name)}}}"]
            for frame in frames.values():
                row = frame.loc[name]
                text = f"{row['mean']:.4f}"
                text = rf"\textbf{{{text}}}" if row["mark"] == "first" else text
                cells += [text + (r"$^\dagger$" if self.is_worse(row) else "")]
                cells += [f"{row['standard_error']:.4f}"]
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\hline", r"\end{tabular}"])

    def is_worse(self, row: Any) -> bool:
        """Tell whether a row of the frame is below the baseline, significantly by the t-test."""
        return bool(row["difference"] < 0.0 and row["p_t"] < 1.0 - self.level)

    def is_better(self, row: Any) -> bool:
        """Tell whether a row of the frame is above the baseline, significantly by the t-test."""
        return bool(row["difference"] > 0.0 and row["p_t"] < 1.0 - self.level)

    def tested_against(self, measure: str | Measure | None = None) -> str:
        """Give the entry that the others are tested against: the baseline, or the best."""
        means = self.to_frame(measure).loc[self.names, "mean"].to_numpy()
        return self.names[self._baseline(means)]

    def rows(self, measure: str | Measure | None = None) -> list[list[str]]:
        """Give the table of a measure as texts; the last entry of a row is its mark."""
        frame, base = self.to_frame(measure), self.tested_against(measure)
        return [
            [
                str(name),
                f"{row['mean']:.4f}",
                f"{row['standard_error']:.4f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                str(int(row["rank"])),
                f"{row['mean_rank']:.2f}",
                *(
                    ["", "", "", ""]
                    if name == base
                    else [
                        f"{row['difference']:+z.4f}",
                        *(p_text(row[f"p_{test}"]) for test in TESTS),
                    ]
                ),
                f"{row['seconds']:.2f}",
                row["mark"],
            ]
            for name, row in frame.iterrows()
        ]

    def explain(self, measure: str | Measure | None = None) -> str:
        """Say in words what the table of a measure shows."""
        frame = self.to_frame(measure)
        highest = frame["mean"].iloc[0]
        if highest != highest:
            return "No test query has a value by this measure."
        best = [str(name) for name in frame.index[frame["rank"] == 1]]
        base = self.tested_against(measure)
        if len(best) == 1:
            text = f"{best[0]} has the highest mean, {highest:.4f}"
        else:
            text = f"{', '.join(best[:-1])} and {best[-1]} share the highest mean, {highest:.4f}"
        if len(frame) == 1:
            return text + "."
        worse = sum(self.is_worse(row) for _, row in frame.iterrows())
        better = sum(self.is_better(row) for _, row in frame.iterrows())
        if base in best:
            told = f"{_how_many(worse, len(frame) - 1)} significantly below {base}"
        else:
            above, below = (f"{n or 'none'} {'is' if n < 2 else 'are'}" for n in (better, worse))
            told = f"against the baseline {base}, {above} significantly better and {below} worse"
        return (
            f"{text}; {told} (paired t-test, p < {1 - self.level:.2g}, "
            f"corrected: {self.correction})."
        )

    def to_text(self, width: int | None = None) -> str:
        """Write a table for each measure, as plain text.

        Parameters
        ----------
        width : int, optional
            Of the terminal: columns that do not fit are left out. All of them are there by default.
        """
        parts = []
        for measure in self.measures:
            rows = [[*row[:-1], PLACES[row[-1]]] for row in self.rows(measure)]
            text = f"{title(measure)}: {self._n_queries()}, {self._n_folds()}"
            table, spared = fitted_table((*HEAD, ""), rows, width, SPARED)
            if spared:
                table += f"\n(no room here for {', '.join(spared)})"
            parts.append("\n".join([text, table, wrapped(self.explain(measure), width)]))
        left = [
            wrapped(f"left out: {name}: {reason}", width) for name, reason in self.failures.items()
        ]
        return "\n\n".join([*parts, *(["\n".join(left)] if left else [])])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        measured = ", ".join(title(measure) for measure in self.measures)
        return f"Comparison({len(self.names)} entries, {self._n_folds()}: {measured})"

    def to_dict(self) -> dict[str, Any]:
        """Give everything that the tables show as plain values, for JSON."""
        tables = {}
        for measure in self.measures:
            frame = self.to_frame(measure)
            tables[measure.name] = {
                str(name): {key: plain(value) for key, value in row.items()}
                for name, row in frame.iterrows()
            }
        return {
            "collection": self.collection,
            "n_queries": len(self.qids),
            "n_folds": int(self.folds.max()) + 1,
            "select": self.select.name,
            "baseline": self.baseline,
            "correction": self.correction,
            "level": self.level,
            "seed": self.seed,
            "tables": tables,
            "friedman": {one.name: plain(self.friedman(one)) for one in self.measures},
            "chosen": {
                name: [{key: plain(value) for key, value in one.items()} for one in settings]
                for name, settings in self.chosen.items()
            },
            "published": {
                one.name: [entry._asdict() for entry in self.published(one)]
                for one in self.measures
            },
            "failures": self.failures,
            "notes": self.notes,
        }

    def report(
        self, path: str | Path, *, folds: Sequence[Any] | None = None, command: str = ""
    ) -> None:
        """Write the comparison as one HTML file with tables and pictures.

        Parameters
        ----------
        path : path
        folds : sequence of (train, validation, test), optional
            What was compared on; the report then shows how sure the best learner is of one query.
        command : str
            How to do it again, for the last section.
        """
        from permdist.comparison.page import comparison_report

        comparison_report(self, folds=folds, command=command).save(Path(path))

    # ---- inside --------------------------------------------------------------------------------

    def _measure(self, measure: str | Measure | None) -> Measure:
        if measure is None:
            return self.measures[0]
        wanted = parse(measure)
        if wanted not in self.measures:
            shown = ", ".join(one.name for one in self.measures)
            raise ValueError(f"measure: expected one of {shown}, got {wanted.name!r}")
        return wanted

    def _used(self, measure: str | Measure | None) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Give the values without the queries that a measure leaves out."""
        values = self.values(measure)
        used = np.asarray(~np.isnan(values).any(axis=0))
        return values[:, used], used

    def _baseline(self, means: FloatArray) -> int:
        if self.baseline is not None:
            return self.names.index(self.baseline)
        return int(np.argmax(np.round(means, 12)))  # the first of those that share the first rank

    def _n_folds(self) -> str:
        return plural(int(self.folds.max()) + 1, "fold")

    def _n_queries(self) -> str:
        return plural(len(self.qids), "test query", "test queries")


def _how_many(some: int, others: int) -> str:
    """Put a number of the others into words, with its verb."""
    if others == 1:
        return "the other one is" if some else "the other one is not"
    if some == others:
        return "all others are"
    if some == 0:
        return "none of the others is"
    return f"{some} of the {others} others {'is' if some == 1 else 'are'}"
