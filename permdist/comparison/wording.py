"""How comparisons are written: names of measures, settings, p-values, and LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._result import block, note, table
from permdist._text import plural, text_table, to_tex
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

    from permdist.comparison.results import Comparison

HEAD = (
    "learner",
    "mean",
    "s.e.",
    "interval",
    "rank",
    "mean rank",
    "diff.",
    "p (t)",
    "p (Wilcoxon)",
    "p (rand.)",
    "fit, s",
)
# By model of `permdist.comparison.bayes`: worse, equivalent and better than the baseline.
BAYES_HEAD = ("Pr (ranks)", "Pr (folds)")
# By mark.
PLACES = {
    "first": "1st",
    "second": "2nd",
    "third": "3rd",
    "": "",
    "null": "null",
    "reference": "reference",
}
REFERENCES = ("order of the file", "random order")  # rows of every table, without a learner


def title(measure: Measure) -> str:
    """Return a short name of a measure, by its preset if it comes from one.

    Examples
    --------
    >>> title(parse("letor4:ndcg@10")), title(parse("ndcg@10")), title(parse("ap[empty=one]"))
    ('letor4:ndcg@10', 'ndcg@10', 'ap[empty=one]')
    >>> title(parse("letor4:ndcg@10[ties=average]"))
    'letor4:ndcg@10[ties=average]'
    """
    plain = measure.name.partition("[")[0]
    for preset in ("", "letor4:", "letor3:", "trec:"):
        for name in (f"{preset}{plain}", f"{preset}{plain}[ties={measure.ties}]"):
            if _reads_as(name, measure):
                return name
    return measure.name


def empty_rule(measure: Measure) -> str:
    """Say what becomes of queries without a relevant document.

    Examples
    --------
    >>> empty_rule(parse("map"))
    'queries without a relevant document count as 0'
    >>> empty_rule(parse("map[empty=skip]"))
    'queries without a relevant document are left out'
    """
    rules = {"zero": "count as 0", "one": "count as 1", "skip": "are left out"}
    return f"queries without a relevant document {rules[measure.empty]}"


def _reads_as(name: str, measure: Measure) -> bool:
    try:
        return parse(name) == measure
    except ValueError:  # a measure without an average over ties
        return False


def comparison_html(comparison: Comparison) -> str:
    """Return the tables of a comparison for notebooks, one per measure.

    Parameters
    ----------
    comparison : Comparison
    """
    parts = []
    for measure in comparison.measures:
        rows = [[*row[:-1], PLACES[row[-1]]] for row in comparison.rows(measure)]
        head = (*comparison.headings, "")
        parts += [table(head, rows, title(measure)), note(comparison.explain(measure))]
    left = [note(f"Left out: {name}: {reason}") for name, reason in comparison.failures.items()]
    left += [note(one) for one in [comparison.explain_marks()] if one]
    queries = plural(len(comparison.qids), "test query", "test queries")
    sizes = f"{plural(len(comparison.names), 'learner')}, {queries}"
    return block(f"{sizes}, {plural(comparison.n_folds, 'fold')}", *parts, *left)


def setting_text(setting: dict[str, Any]) -> str:
    """Return a setting in one line.

    Examples
    --------
    >>> setting_text({"C": 100.0, "measure": "ap", "alpha": 1e-05})
    'C=100, measure=ap, alpha=1e-05'
    """
    return (
        ", ".join(f"{name}={_short(value)}" for name, value in setting.items())
        or "default parameters"
    )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def p_text(value: float) -> str:
    """Return a p-value as a string, empty for NaN."""
    return "" if value != value else ("<0.001" if value < 0.001 else f"{value:.3f}")


def bayes_text(frame: pd.DataFrame, base: str, rope: float) -> str:
    """Return a sentence about the Bayesian probabilities of a table.

    Parameters
    ----------
    frame : pandas.DataFrame
        As from `Comparison.to_frame`, with probabilities.
    base : str
        The learner that the others are compared with.
    rope : float
    """
    others = frame.drop(index=base)
    sure = {
        told: int((others[f"signed_rank_{region}"] > 0.95).sum())
        for region, told in (("worse", "worse"), ("rope", "equivalent"), ("better", "better"))
    }
    return (
        f" Pr: percent probabilities to be worse than {base} / equivalent / better, with "
        f"differences up to {rope:g} equivalent. {sure_text(sure)}"
    )


def sure_text(sure: Mapping[str, int]) -> str:
    """Return a sentence about the numbers of learners that are surely something.

    Examples
    --------
    >>> sure_text({"worse": 0, "equivalent": 0, "better": 0})
    'None is worse, equivalent or better with more than 95% (by ranks).'
    >>> sure_text({"worse": 3, "equivalent": 0, "better": 1})
    'With more than 95% (by ranks) 3 are worse and 1 is better; none is equivalent.'
    """
    some = [f"{n} {'is' if n == 1 else 'are'} {told}" for told, n in sure.items() if n]
    none = listed([told for told, n in sure.items() if not n], "or")
    if not some:
        return f"None is {none} with more than 95% (by ranks)."
    rest = f"; none is {none}" if none else ""
    return f"With more than 95% (by ranks) {listed(some, 'and')}{rest}."


def listed(words: Sequence[str], last: str) -> str:
    """Return words with commas, and the last one with its conjunction."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def chances_text(values: Sequence[float]) -> str:
    """Return probabilities in percent, empty for NaN.

    Examples
    --------
    >>> chances_text([0.0213, 0.1, 0.8787]), chances_text([0.0, 0.0004, 0.9996])
    ('2/10/88', '0/<1/>99')
    """
    return "" if any(value != value for value in values) else "/".join(map(_percent, values))


def _percent(value: float) -> str:
    if 0.0 < value < 0.005:
        return "<1"
    return ">99" if 0.995 < value < 1.0 else f"{100.0 * value:.0f}"


def plain(value: Any) -> Any:
    """Return a value that JSON can represent."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | bool | type(None)) else str(value)


def fitted_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, spared: Sequence[str]
) -> tuple[str, list[str]]:
    r"""Return a table as text, without some of its columns if it would be too wide.

    Returns
    -------
    str, list of str
        The table, and the headings of the omitted columns.

    Examples
    --------
    >>> fitted_table(["name", "size"], [["a", "1"], ["b", "2"]], 6, ["size"])
    ('name\na\nb', ['size'])
    """
    gone: list[str] = []
    while True:
        kept = [place for place, heading in enumerate(head) if heading not in gone]
        text = text_table([head[place] for place in kept], [[row[p] for p in kept] for row in rows])
        if width is None or max(map(len, text.splitlines())) <= width or len(gone) == len(spared):
            return text, gone
        gone.append(spared[len(gone)])


def how_many(some: int, others: int) -> str:
    """Return words for how many of the others, with their verb."""
    if others == 1:
        return "the other one is" if some else "the other one is not"
    if some == others:
        return "all others are"
    if some == 0:
        return "none of the others is"
    return f"{some} of the {others} others {'is' if some == 1 else 'are'}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the rows of a comparison as a Markdown table; the last item of a row is its mark."""
    lines = [f"| {' | '.join(head)} |", "| :--- |" + " ---: |" * (len(head) - 1)]
    for row in rows:
        name = re.sub(r"([|*<`\\])", r"\\\1", row[0])  # a bar would end the cell
        name = {"": name, "null": f"{name} (null)", "reference": f"*{name}*"}.get(
            row[-1], f"**{name}**"
        )
        lines.append("| " + " | ".join([name, *row[1:-1]]) + " |")
    return "\n".join(lines)


def latex_table(
    frames: Mapping[str, pd.DataFrame], is_worse: Callable[[Any], bool], marks: str = ""
) -> str:
    """Return the tables of several measures, by their names, as one LaTeX table.

    Below it, `marks` explains the asterisks.
    """
    head = " & ".join(["learner", *(f"{to_tex(name)} & s.e." for name in frames)])
    lines = [r"\begin{tabular}{l" + "rr" * len(frames) + "}", r"\hline", head + r" \\", r"\hline"]
    first = next(iter(frames.values()))
    for name in first.index:
        lines += [r"\hline"] if name == REFERENCES[0] else []
        # In braces: LaTeX would read a bracket as an option of the line break before it.
        null = " (null)" if first.loc[name, "mark"] == "null" else ""
        cells = [f"{{{to_tex(name)}{null}}}"]
        for frame in frames.values():
            row = frame.loc[name]
            text = f"{row['mean']:.4f}"
            text = rf"\textbf{{{text}}}" if row["mark"] == "first" else text
            marked = (r"\dagger" if is_worse(row) else "") + ("*" if row["edge"] else "")
            cells += [text + (f"$^{{{marked}}}$" if marked else "")]
            cells += [f"{row['standard_error']:.4f}"]
        lines.append(" & ".join(cells) + r" \\")
    if marks:
        width = rf"\multicolumn{{{1 + 2 * len(frames)}}}{{p{{0.95\linewidth}}}}"
        lines += [r"\hline", rf"{width}{{\footnotesize {to_tex(marks)}}} \\"]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"])
