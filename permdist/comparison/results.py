"""The result of a comparison: tables of means, ranks, intervals and tests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice
from permdist._text import plural, visible, wrapped
from permdist.comparison.bayes import MODELS, Probabilities, check_rope, probabilities
from permdist.comparison.statistics import (
    TESTS,
    adjust,
    friedman,
    interval,
    mean_ranks,
    paired_tests,
)
from permdist.comparison.wording import (
    BAYES_HEAD,
    HEAD,
    PLACES,
    REFERENCES,
    bayes_text,
    chances_text,
    comparison_html,
    empty_rule,
    fitted_table,
    how_many,
    latex_table,
    markdown_table,
    p_text,
    plain,
    title,
)
from permdist.measures import Evaluation, Measure, parse
from permdist.measures.evaluation import find_measure
from permdist.models.files import from_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.comparison.fits import Outcome
    from permdist.data import Queries
    from permdist.models import Ranker

REGIONS = ("worse", "rope", "better")
# By the source of an outcome.
FITTED = {"fit": "here", "model": "before", "scores": "elsewhere"}
# The columns that a narrow terminal omits, in this order.
SPARED = ("p (rand.)", "p (Wilcoxon)", "rank", "mean rank", "interval")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Learners compared on the test queries of all folds; prints as one table per measure.

    Attributes
    ----------
    names : list of str
        The learners that were fitted on every fold, as given.
    measures : tuple of Measure
        The measures that are reported.
    select : Measure
        The measure by which settings were chosen.
    evaluations : dict of lists of Evaluation
        By learner: the measures on the test queries of each fold.
    chosen : dict of lists of dict
        By learner: the setting chosen on each fold.
    outcomes : dict of lists of Outcome
        By learner: the outcome of the chosen fit on each fold.
    validation : dict of lists of dict
        By learner: for each fold, the validation measure of every setting, by its text.
    varied : dict of tuples of str
        By learner: the parameters with several values to choose from.
    failures : dict of str
        The learners that could not be fitted, and why.
    notes : list of str
        Remarks about the fits.
    edges : dict of str
        By learner: the chosen settings that are at an end of the values tried, and on how many
        folds; the tables mark them with an asterisk.
    kinds : dict of classes
        By learner of this library that was fitted here: its class.
    baseline : str or None
        The learner that the others are tested against; None is the best one by each measure.
    correction : str
    level : float
    random_state : int
    n_fits : int
        The number of different fits.
    references : dict of lists of Evaluation
        The order of the documents in the file and the expectation of a random order, on the test
        queries of each fold. They have rows in all tables, but no rank, and are not tested.
    ties : str or None
        The rule for equal scores; None is the rule of each measure.
    rope : float or None
        The region of practical equivalence, if tables show Bayesian probabilities (`bayes`).
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
    edges: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, type[Ranker]] = field(default_factory=dict)
    baseline: str | None = None
    correction: str = "holm"
    level: float = 0.95
    random_state: int = 0
    n_fits: int = 0
    references: dict[str, list[Evaluation]] = field(default_factory=dict)
    ties: str | None = None
    rope: float | None = None

    # ---- numbers -------------------------------------------------------------------------------

    @cached_property
    def folds(self) -> IntArray:
        """The fold of each test query, from 0."""
        sizes = [len(one.qids) for one in self.evaluations[self.names[0]]]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.evaluations[self.names[0]])

    @cached_property
    def qids(self) -> NDArray[Any]:
        """The test queries, fold after fold."""
        return np.concatenate([one.qids for one in self.evaluations[self.names[0]]])

    def values(self, measure: str | Measure | None = None) -> FloatArray:
        """Return a measure on every test query, shape (learners, queries), fold after fold."""
        name = self.resolve(measure).name
        return np.array([_joined(self.evaluations[key], name) for key in self.names])

    def n_null(self, name: str) -> int:
        """Count the folds on which a learner's chosen model is null: no better than its ties."""
        choice("name", name, self.names)
        return sum(outcome.null for outcome in self.outcomes[name])

    def learners(self, name: str) -> list[Any]:
        """Return the chosen, fitted learner of each fold, or model of another library."""
        choice("name", name, self.names)
        kind, outcomes = self.kinds.get(name), self.outcomes[name]
        if kind is None:
            if any(outcome.model is None for outcome in outcomes):
                why = "scores" if outcomes[0].source == "scores" else "scores of a stored fit"
                raise ValueError(f"name: of {name!r} there are only {why}, and no model")
            return [outcome.model for outcome in outcomes]
        return [from_dict(outcome.learner, kind=kind) for outcome in outcomes]

    def scores(self, name: str, fold: int, test: Queries) -> FloatArray:
        """Return the scores that a learner gives to the documents of the test part of a fold.

        Parameters
        ----------
        name : str
        fold : int
            From 0.
        test : Queries
            The test part of this fold.
        """
        choice("name", name, self.names)
        known = self.outcomes[name][fold].scores
        return np.array(known[1]) if known else self.learners(name)[fold].predict(test)

    def to_frame(
        self, measure: str | Measure | None = None, *, references: bool = False
    ) -> pd.DataFrame:
        """Return the table of a measure (by default the first), best learner first.

        Learners that are null on every fold come last, whatever their means are.

        Parameters
        ----------
        measure : Measure or str, optional
        references : bool
            Whether to add the rows of the order of the file and of a random order, with NaN for
            ranks, p-values and seconds.

        Returns
        -------
        pandas.DataFrame
            Indexed by learner: ``rank`` (of the mean), ``mean`` (over folds of the means over test
            queries, as LETOR reports it), ``standard_error``, ``low`` and ``high`` (the interval),
            ``mean_rank`` (over queries), ``difference`` (from the baseline), adjusted p-values
            ``p_t``, ``p_wilcoxon`` and ``p_randomization`` (NaN for the baseline itself),
            ``seconds`` (per fit with the chosen setting), ``null`` (the number of folds on which
            the chosen model is null), ``fitted`` (``"here"``, ``"before"`` for a model that was
            used as it is, or ``"elsewhere"`` where there are only scores), ``edge`` (chosen
            settings at an end of the values tried) and ``mark`` (of the best three, of learners
            that are null on every fold, and of references). With `rope`, the probabilities to be
            worse than the baseline, equivalent and better (``signed_rank_worse``,
            ``signed_rank_rope``, ..., ``hierarchical_better``), as in `bayes`.
        """
        import pandas as pd

        name = self.resolve(measure).name
        if name not in self._frames:  # the tests are slow, and the result is needed often
            self._frames[name] = self._make_frame(name)
        frame = self._frames[name].copy()
        if not references or not self.references:
            return frame
        base = float(frame.loc[self.tested_against(measure), "mean"])
        more = self._reference_frame(name, base)
        # Reindexed, not concatenated, so that missing values are those of each column's kind.
        whole = frame.astype({"rank": float}).reindex([*frame.index, *more.index])
        for column in more.columns:
            whole.loc[more.index, column] = more[column]
        whole["null"] = whole["null"].fillna(0).astype(int)
        return whole.rename_axis(pd.Index(frame.index).name)

    def _reference_frame(self, measure: str, base: float) -> pd.DataFrame:
        """Return the rows of the references; `base` is the mean of the learner tested against."""
        import pandas as pd

        used = self._used(measure)[1]
        found = [
            interval(_joined(parts, measure)[used], self.folds[used], self.level)
            for parts in self.references.values()
        ]
        frame = pd.DataFrame(found, index=pd.Index(self.references, name="learner"))
        difference = frame["mean"] - base
        return frame.assign(difference=difference, fitted="", edge="", mark="reference")

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {}

    def _make_frame(self, measure: str) -> pd.DataFrame:
        import pandas as pd

        values, used = self._used(measure)
        found = [interval(row, self.folds[used], self.level) for row in values]
        means = np.array([one.mean for one in found])
        rank = self._ranks(means)
        null = [self.n_null(name) for name in self.names]
        base = self._baseline(means)
        others = np.flatnonzero(np.arange(len(means)) != base)
        tests = {name: np.full(len(means), np.nan) for name in TESTS}
        if others.size and values.shape[1]:
            differences = values[others] - values[base]
            found_p = paired_tests(differences, self.folds[used], rng=self.random_state)
            for name, p in found_p.items():
                tests[name][others] = adjust(p, self.correction)
        chances = {} if self.rope is None else self._chances(values, used, base, self.rope)
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
                **chances,
                "seconds": [
                    np.mean([one.seconds for one in self.outcomes[name]]) for name in self.names
                ],
                "null": null,
                "fitted": [FITTED[self.outcomes[name][0].source] for name in self.names],
                "edge": [self.edges.get(name, "") for name in self.names],
                "mark": [
                    "null"
                    if nulls == self.n_folds
                    else (list(PLACES)[place - 1] if place <= 3 and mean == mean else "")
                    for place, mean, nulls in zip(rank, means, null, strict=True)
                ],
            },
            index=pd.Index(self.names, name="learner"),
        )
        return frame.sort_values("rank", kind="stable")

    def p_values(self, measure: str | Measure | None = None, test: str = "t") -> pd.DataFrame:
        """Return adjusted p-values of all pairs of learners by one kind of test."""
        import pandas as pd

        choice("test", test, TESTS)
        values, used = self._used(measure)
        pairs = list(itertools.combinations(range(len(self.names)), 2))
        table = np.full((len(self.names), len(self.names)), np.nan)
        if pairs and values.shape[1]:
            rows, columns = np.array(pairs).T
            differences = values[rows] - values[columns]
            p = paired_tests(differences, self.folds[used], rng=self.random_state)[test]
            table[rows, columns] = table[columns, rows] = adjust(p, self.correction)
        return pd.DataFrame(table, index=self.names, columns=self.names)

    def bayes(
        self,
        measure: str | Measure | None = None,
        *,
        rope: float = 0.005,
        model: str = "signed-rank",
        baseline: str | None = None,
    ) -> pd.DataFrame:
        """Return the probabilities that learners are worse, equivalent or better than the baseline.

        Parameters
        ----------
        measure : Measure or str, optional
        rope : float
            The region of practical equivalence: differences of at most this size do not matter.
        model : {"signed-rank", "hierarchical"}
            The Bayesian signed-rank test over queries (`permdist.comparison.bayes.signed_rank`), or
            a model in which folds differ, too (`permdist.comparison.bayes.hierarchical`).
        baseline : str, optional
            By default the learner that the tables test against.

        Returns
        -------
        pandas.DataFrame
            Indexed by learner, without the baseline: ``worse``, ``rope`` and ``better`` for the
            typical difference, and ``worse_query``, ``rope_query`` and ``better_query`` for the
            difference on a new query.

        Examples
        --------
        >>> from permdist.comparison import compare_scores
        >>> y, qid = [0, 1] * 20, np.repeat(np.arange(20), 2)
        >>> scores = {"right": y, "wrong": 1 - np.array(y)}
        >>> found = compare_scores(scores, y, qid, measures="map")
        >>> found.bayes("map").loc["wrong", ["worse", "worse_query"]].round(2).tolist()
        [1.0, 0.98]
        """
        import pandas as pd

        choice("model", model, MODELS)
        margin = check_rope(rope)
        base = self.tested_against(measure) if baseline is None else baseline
        choice("baseline", base, self.names)
        values, used = self._used(measure)
        against = values[self.names.index(base)]
        rows = {
            name: probabilities(row - against, self.folds[used], model, margin, self.random_state)
            for name, row in zip(self.names, values, strict=True)
            if name != base
        }
        index = pd.Index(list(rows), name="learner")
        return pd.DataFrame(list(rows.values()), index=index, columns=Probabilities._fields)

    def _chances(
        self, values: FloatArray, used: BoolArray, base: int, rope: float
    ) -> dict[str, FloatArray]:
        """Return the columns of the probabilities of both models; NaN for the baseline."""
        found: dict[str, FloatArray] = {}
        for model in MODELS:
            table = np.full((len(values), 3), np.nan)
            for row in range(len(values) if values.shape[1] else 0):
                if row != base:
                    inputs = values[row] - values[base], self.folds[used], model, rope
                    table[row] = probabilities(*inputs, self.random_state)[:3]
            for column, region in zip(table.T, REGIONS, strict=True):
                found[f"{model.replace('-', '_')}_{region}"] = column
        return found

    def friedman(self, measure: str | Measure | None = None) -> float:
        """Return the p-value of Friedman's test that all learners are equally good."""
        return friedman(self._used(measure)[0])

    # ---- texts ---------------------------------------------------------------------------------

    def to_markdown(self, measure: str | Measure | None = None) -> str:
        """Return the table of a measure in Markdown, with the best three in bold."""
        text = self.explain_marks()
        return markdown_table(*self.table(measure)) + (f"\n\n{text}" if text else "")

    def to_latex(self) -> str:
        """Return all measures as one LaTeX table, with the best mean of each in bold.

        A dagger marks means below the baseline's with p < 1 - level by the adjusted t-test, an
        asterisk means with a chosen setting at an end of the values tried.
        """
        frames = {
            title(measure): self.to_frame(measure, references=True) for measure in self.measures
        }
        return latex_table(frames, self.is_worse, self.explain_marks())

    def is_worse(self, row: Any) -> bool:
        """Check whether a row of the table is significantly below the baseline (t-test)."""
        return bool(row["difference"] < 0.0 and row["p_t"] < 1.0 - self.level)

    def is_better(self, row: Any) -> bool:
        """Check whether a row of the table is significantly above the baseline (t-test)."""
        return bool(row["difference"] > 0.0 and row["p_t"] < 1.0 - self.level)

    def tested_against(self, measure: str | Measure | None = None) -> str:
        """Return the learner that the others are tested against: the baseline, or the best."""
        means = self.to_frame(measure).loc[self.names, "mean"].to_numpy()
        return self.names[self._baseline(means)]

    def rows(self, measure: str | Measure | None = None) -> list[list[str]]:
        """Return the table of a measure as strings; the last item of a row is its mark.

        The last two rows are the references. An asterisk marks the mean of a learner of which a
        chosen setting is at an end of the values tried.
        """
        frame, base = self.to_frame(measure, references=True), self.tested_against(measure)
        return [
            [
                str(name),
                f"{row['mean']:.4f}{'*' if row['edge'] else ''}",
                f"{row['standard_error']:.4f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                *(
                    ["", ""]
                    if row["mark"] == "reference"
                    else [str(int(row["rank"])), f"{row['mean_rank']:.2f}"]
                ),
                *(
                    ["", "", "", ""]
                    if name == base
                    else [
                        f"{row['difference']:+z.4f}",
                        *(p_text(row[f"p_{test}"]) for test in TESTS),
                    ]
                ),
                *([] if self.rope is None else map(chances_text, _regions(row))),
                _fit_text(row),
                row["mark"],
            ]
            for name, row in frame.iterrows()
        ]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of `rows`, but for the mark."""
        return HEAD if self.rope is None else (*HEAD[:-1], *BAYES_HEAD, HEAD[-1])

    def table(self, measure: str | Measure | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the `rows` of a measure, without seconds if nothing was fitted.

        The last item of a row is its mark, which has no heading.
        """
        rows = self.rows(measure)
        if self.n_fits:
            return list(self.headings), rows
        return list(self.headings[:-1]), [[*row[:-2], row[-1]] for row in rows]

    def explain(self, measure: str | Measure | None = None, *, bayes: bool = True) -> str:
        """Summarize the table of a measure, and its probabilities if it has any.

        Parameters
        ----------
        measure : measure, optional
            By default the first.
        bayes : bool
            Whether to explain the Bayesian probabilities, where tables show them.
        """
        frame = self.to_frame(measure)
        highest = frame["mean"].iloc[0]
        if highest != highest:
            return "This measure is undefined on all test queries."
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
            told = f"{how_many(worse, len(frame) - 1)} significantly below {base}"
        else:
            above, below = (f"{n or 'none'} {'is' if n < 2 else 'are'}" for n in (better, worse))
            told = f"against the baseline {base}, {above} significantly better and {below} worse"
        tested = f"(paired t-test, p < {1 - self.level:.2g}, correction: {self.correction})."
        return f"{text}; {told} {tested}" + (
            bayes_text(frame, base, self.rope) if bayes and self.rope is not None else ""
        )

    def explain_marks(self) -> str:
        """Return sentences about models fitted before, and about settings at an end; or nothing."""
        before = [one for one in self.names if self.outcomes[one][0].source == "model"]
        edges = [f"{name} ({text})" for name, text in self.edges.items()]
        told = [
            f"Fitted before, and used as they are: {', '.join(before)}." if before else "",
            f"* A chosen setting is at an end of the values tried: {'; '.join(edges)}. Values "
            "beyond it may be better."
            if edges
            else "",
        ]
        return " ".join(filter(None, told))

    def to_text(self, width: int | None = None) -> str:
        """Return one table per measure as plain text.

        Parameters
        ----------
        width : int, optional
            The width of the terminal; columns that do not fit are omitted. By default all columns
            are included.
        """
        parts = []
        sizes = plural(len(self.qids), "test query", "test queries")
        if self.n_fits or self.n_folds > 1:
            sizes += f", {self._folds_text()}"
        for measure in self.measures:
            head, rows = self.table(measure)
            rows = [[*row[:-1], PLACES[row[-1]]] for row in rows]
            text = f"{title(measure)}: {sizes}; {empty_rule(measure)}"
            table, spared = fitted_table((*head, ""), rows, width, SPARED)
            if spared:
                table += f"\n(omitted, too wide: {', '.join(spared)})"
            parts.append("\n".join([text, table, wrapped(self.explain(measure), width)]))
        left = [
            wrapped(f"left out: {name}: {reason}", width) for name, reason in self.failures.items()
        ]
        marks = self.explain_marks()
        left += [wrapped(marks, width)] if marks else []
        return visible("\n\n".join([*parts, *(["\n".join(left)] if left else [])]))

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return comparison_html(self)

    def __repr__(self) -> str:
        measured = ", ".join(title(measure) for measure in self.measures)
        return f"Comparison({len(self.names)} learners, {self._folds_text()}: {measured})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the tables show as plain values, for JSON."""
        tables, references = {}, {}
        for measure in self.measures:
            frame = self.to_frame(measure, references=True)
            rows = {
                str(name): {key: plain(value) for key, value in row.items()}
                for name, row in frame.iterrows()
            }
            tables[measure.name] = {
                name: {**row, "rank": int(row["rank"])}
                for name, row in rows.items()
                if name not in REFERENCES
            }
            references[measure.name] = {
                name: {key: row[key] for key in ("mean", "standard_error", "low", "high")}
                for name, row in rows.items()
                if name in REFERENCES
            }
        return {
            "n_queries": len(self.qids),
            "n_folds": self.n_folds,
            "select": self.select.name,
            "baseline": self.baseline,
            "correction": self.correction,
            "level": self.level,
            "random_state": self.random_state,
            "ties": self.ties,
            "rope": self.rope,
            "tables": tables,
            "references": references,
            "friedman": {one.name: plain(self.friedman(one)) for one in self.measures},
            "chosen": {
                name: [{key: plain(value) for key, value in one.items()} for one in settings]
                for name, settings in self.chosen.items()
            },
            "failures": self.failures,
            "notes": self.notes,
        }

    def report(
        self, path: str | Path, *, folds: Sequence[Any] | None = None, command: str = ""
    ) -> None:
        """Write the comparison as a single HTML file with tables and pictures.

        Parameters
        ----------
        path : path
        folds : sequence of (train, validation, test), optional
            What was compared on; if given, the report shows the uncertainty of the best learner
            about one test query.
        command : str
            The command that reproduces the report, shown in its last section.
        """
        from permdist.report.comparison import comparison_report

        comparison_report(self, folds=folds, command=command).save(Path(path))

    def resolve(self, measure: str | Measure | None = None) -> Measure:
        """Return the reported measure of a name; by default the first one."""
        if measure is None:
            return self.measures[0]
        wanted = parse(measure)
        number = find_measure(self.measures, wanted)
        if number is None:
            shown = ", ".join(one.name for one in self.measures)
            raise ValueError(f"measure: expected one of {shown}, got {wanted.name!r}")
        return self.measures[number]

    # ---- inside --------------------------------------------------------------------------------

    def _used(self, measure: str | Measure | None) -> tuple[FloatArray, BoolArray]:
        """Return the values without the queries on which a measure is undefined."""
        values = self.values(measure)
        used = np.asarray(~np.isnan(values).any(axis=0))
        return values[:, used], used

    def _baseline(self, means: FloatArray) -> int:
        if self.baseline is not None:
            return self.names.index(self.baseline)
        return int(np.argmin(self._ranks(means)))  # the first of those that share rank 1

    def _ranks(self, means: FloatArray) -> IntArray:
        """Rank learners by their means, those that are null on every fold behind all others."""
        null = np.array([self.n_null(name) == self.n_folds for name in self.names])
        rounded = np.round(means, 12)
        ahead = np.where(null[:, None] == null, rounded[:, None] < rounded, null[:, None] & ~null)
        return 1 + ahead.sum(axis=1)

    def _folds_text(self) -> str:
        return plural(self.n_folds, "fold")


def _fit_text(row: Any) -> str:
    """Return the seconds of a fit, or that there was none, in a row of a table."""
    if row["fitted"] == "before":
        return "before"
    return "" if np.isnan(row["seconds"]) else f"{row['seconds']:.2f}"


def _regions(row: Any) -> list[list[float]]:
    """Return the probabilities of each model in a row of a table."""
    return [
        [float(row[f"{model.replace('-', '_')}_{region}"]) for region in REGIONS]
        for model in MODELS
    ]


def _joined(parts: list[Evaluation], measure: str) -> FloatArray:
    """Return a measure on every test query, fold after fold."""
    return np.concatenate([part[measure] for part in parts])
