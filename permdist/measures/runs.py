"""Evaluation of runs against judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist.data.trec import JudgedRun, Qrels, Run, id_array
from permdist.measures.evaluation import Evaluation, several
from permdist.measures.judged import JudgedQueries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from permdist.measures.base import Measure

DEFAULT_RUN = ("map", "trec:ndcg@10", "rprec", "p@10", "recall@100", "rr", "bpref", "judged@10")

# What trec_eval prints unless told otherwise.
OFFICIAL = (
    *("num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "rprec", "bpref", "rr"),
    *(f"iprec[recall={tenths / 10}]" for tenths in range(11)),
    *(f"p@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
)


@dataclass(frozen=True, eq=False)
class RunEvaluation(Evaluation):
    """Values of several measures on the queries of a run, and what was left out.

    Attributes
    ----------
    qids, measures, table
        See `Evaluation`; queries in the order of the judgements.
    judged : JudgedRun
        What was evaluated: ``judged.n_unjudged`` counts retrieved documents without a grade,
        ``judged.n_left_out`` relevant ones that were not retrieved, ``judged.missing`` and
        ``judged.unknown`` list queries that only the judgements or only the run have.
    complete : bool
        Whether queries that the run lacks are counted.
    """

    judged: JudgedRun
    complete: bool

    def notes(self) -> list[str]:
        """Describe what was left out, or taken as not relevant, one line each."""
        judged = self.judged
        retrieved, open_ = len(judged.judgement), judged.n_unjudged
        fate = "counted as if nothing had been retrieved" if self.complete else "left out"
        shown = {
            "retrieved documents without a judgement, taken as not relevant": open_,
            "relevant documents not retrieved, which earn nothing": judged.n_left_out,
            f"judged queries that the run lacks, {fate}": len(judged.missing),
            "queries of the run without judgements, left out": len(judged.unknown),
            "documents that tie only in single precision, as in trec_eval": judged.merged,
        }
        lines = [f"{text}: {number:,}" for text, number in shown.items() if number]
        if open_:
            lines[0] += f" of {retrieved:,} ({open_ / retrieved:.1%})"
        return lines

    def _remarks(self) -> list[str]:
        return [*super()._remarks(), *self.notes()]


def evaluate_run(
    run: Run,
    qrels: Qrels,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_RUN,
    *,
    level: int = 1,
    complete: bool = False,
    judged_only: bool = False,
) -> RunEvaluation:
    """Evaluate a run against judgements, as trec_eval does.

    Documents that were not retrieved earn nothing, and those without a judgement are not
    relevant. Equal scores are broken by document id, the last id first; measures with
    ``ties="average"`` take the mean over all ways to break them.

    Parameters
    ----------
    run : Run
    qrels : Qrels
    measures : name or Measure, or several of them
        Any measure of `permdist.measures`; ``"trec:..."`` has trec_eval's conventions.
    level : int
        Measures of binary relevance take grades from this on as relevant (``-l`` of trec_eval).
    complete : bool
        Count judged queries that the run lacks, as if nothing had been retrieved for them
        (``-c``). Otherwise, as in trec_eval, they are left out of means.
    judged_only : bool
        Take retrieved documents without a judgement out of the run first (``-J``).

    Returns
    -------
    RunEvaluation

    Examples
    --------
    >>> from permdist.data import Qrels, Run
    >>> qrels = Qrels.from_dict({"q": {"a": 1, "b": 1}})
    >>> run = Run.from_dict({"q": {"a": 2.0, "new": 1.0}})
    >>> result = evaluate_run(run, qrels, ["trec:map", "recall@10"])
    >>> result.mean("trec:map")  # one of two relevant documents, at the top
    0.5
    >>> result.notes()[0]
    'retrieved documents without a judgement, taken as not relevant: 1 of 2 (50.0%)'
    """
    given: tuple[object, object] = (run, qrels)
    if not (isinstance(given[0], Run) and isinstance(given[1], Qrels)):
        raise TypeError(
            f"run, qrels: expected a Run and Qrels, got {type(run).__name__} and "
            f"{type(qrels).__name__}; see data.load_run, data.load_qrels and their from_dict"
        )
    judged = qrels.judge(run, complete=complete, judged_only=judged_only)
    if not judged.qids:
        raise ValueError(
            f"run: none of its {run.n_queries:,} queries has judgements, such as "
            f"{run.qids[0]!r} among {', '.join(map(repr, qrels.qids[:3]))}"
        )
    return evaluate_judged(judged, measures, level=level, complete=complete)


def evaluate_judged(
    judged: JudgedRun,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_RUN,
    *,
    level: int = 1,
    complete: bool = False,
) -> RunEvaluation:
    """Evaluate a run whose documents have been looked up, as `Qrels.judge` does.

    Parameters
    ----------
    judged : JudgedRun
    measures, level
        As in `evaluate_run`.
    complete : bool
        Whether queries that the run lacks were counted in; for the notes.

    Examples
    --------
    >>> from permdist.data import Qrels, Run
    >>> judged = Qrels.from_dict({"q": {"a": 1}}).judge(Run.from_dict({"q": {"a": 2.0}}))
    >>> evaluate_judged(judged, "map").mean("map")
    1.0
    """
    seen, chosen = JudgedQueries(judged, level), several(measures)
    table = np.stack([measure.on_run(seen) for measure in chosen], axis=1)
    return RunEvaluation(id_array(judged.qids), chosen, table, judged, complete)
