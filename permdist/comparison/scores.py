"""Comparisons of scores, whatever made them, with the tests and reports of `compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite, grades
from permdist.comparison.bayes import check_rope
from permdist.comparison.choose import assemble
from permdist.comparison.entries import Entry, check_names, check_options
from permdist.comparison.fits import Fit, Outcome
from permdist.comparison.guests import Guest
from permdist.data import Fold, Queries
from permdist.data.tables import as_frame, check_same_rows, group_queries
from permdist.measures import evaluate
from permdist.measures.evaluation import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.comparison.results import Comparison
    from permdist.measures import Measure

DEFAULT = ("letor4:map", "letor4:ndcg@10")


def compare_scores(
    scores: Mapping[str, ArrayLike] | pd.DataFrame,
    y: ArrayLike | Queries,
    qid: ArrayLike | None = None,
    *,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    baseline: str | None = None,
    correction: str = "holm",
    level: float = 0.95,
    ties: str | None = None,
    rope: float | None = None,
    random_state: int = 0,
    regroup: bool = False,
) -> Comparison:
    """Compare the scores that several tools give to the same documents.

    The result is that of `compare`, without anything that was fitted: means with intervals, paired
    tests, references and the report. To set scores beside learners on folds, use the parameter
    `scores` of `compare`.

    Parameters
    ----------
    scores : mapping of names to arrays of float, shape (documents,), or data frame
        Higher is better. The columns of a data frame are tools. Predict documents of queries that
        the tool has not been trained on.
    y : array of int, shape (documents,), or Queries
        Relevance labels. A collection brings its own query ids.
    qid : array, shape (documents,), optional
        The query of each document, as in `permdist.data.Queries`.
    measures : measure or iterable of measures
        The measures to report; by default MAP and NDCG@10 as LETOR 4.0 defines them.
    baseline : str, optional
        The name of the scores to test the others against; by default those with the best mean.
    correction : {"holm", "bonferroni", "bh", "none"}
        The adjustment for the number of tests against the baseline, for each measure and each kind
        of test.
    level : float
        The level of the confidence intervals.
    ties : {"index", "average"}, optional
        The rule for equal scores in all measures, as in `compare`.
    rope : float, optional
        If given, the tables also show the probabilities of `Comparison.bayes`, with this region of
        practical equivalence, such as 0.005.
    random_state : int
        The random state of the randomization test.
    regroup : bool
        Gather the documents of queries that are not contiguous, instead of refusing them.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> y, qid = [0, 1, 0, 1, 0], ["jazz", "jazz", "jazz", "blues", "blues"]
    >>> found = compare_scores(
    ...     {"lgbm": [0.3, 0.9, 0.1, 0.7, 0.2], "ours": [0.3, 0.2, 0.1, 0.7, 0.2]}, y, qid,
    ...     measures="map",
    ... )
    >>> found.to_frame()["mean"].to_dict()
    {'lgbm': 1.0, 'ours': 0.75}
    """
    chosen = several(measures, ties)
    given = named_scores(scores)
    check_options(correction, level, random_state, baseline, list(given))
    margin = None if rope is None else check_rope(rope)
    if isinstance(y, Queries):
        if qid is not None:
            raise TypeError("qid: a collection of queries brings its own")
        check_same_rows(**{f"scores: {name}": one for name, one in given.items()})
        test, order = y, None
    else:
        check_same_rows(y=y, qid=qid, **{f"scores: {name}": one for name, one in given.items()})
        labels = grades("y", y)
        if labels.ndim != 1:
            raise ValueError(f"y: expected 1 dimension(s), got shape {labels.shape}")
        groups = group_queries(qid, len(labels), regroup=regroup)
        order = groups.order
        labels = labels if order is None else labels[order]
        test = Queries.trusted(np.empty((len(labels), 0)), labels, groups.ptr, groups.qids)
    if not (test.n_relevant > 0).any():
        raise ValueError("y: expected a relevant document, got none")
    folds = [Fold(test, test, test)]
    if order is not None:
        need = test.n_documents
        given = {name: _checked(name, one, need)[order] for name, one in given.items()}
    entries, fits, outcomes = as_entries(given, folds, chosen)
    return assemble(
        entries,
        fits,
        outcomes,
        folds,
        measures=chosen,
        select=chosen[0],
        baseline=baseline,
        correction=correction,
        level=level,
        random_state=random_state,
        ties=ties,
        rope=margin,
    )


def as_entries(
    scores: Mapping[str, Any] | pd.DataFrame, folds: Sequence[Fold], measures: tuple[Measure, ...]
) -> tuple[list[Entry], list[Fit], list[Outcome]]:
    """Return scores as entries of a comparison, with what would come out of their fits.

    Parameters
    ----------
    scores : mapping of names to arrays, or data frame
        Of the documents of all test parts, fold after fold; or one array per fold.
    folds : sequence of Fold
    measures : tuple of Measure
    """
    sizes = [fold.test.n_documents for fold in folds]
    named = named_scores(scores)
    entries = check_names([Entry(name, Guest(None, ready=True)) for name in named])
    fits, outcomes = [], []
    for entry, given in zip(entries, named.values(), strict=True):
        parts = _by_fold(entry.name, given, sizes)
        for number, (fold, part) in enumerate(zip(folds, parts, strict=True)):
            test = fold.test
            found = evaluate(part, test.y, test.qid, measures)
            fits.append(Fit(entry.name, number, {}, entry.learner, "", len(test)))
            outcomes.append(
                Outcome(
                    learner={"params": {}, "state": {}},
                    validation={one.name: float("nan") for one in measures},
                    test={one.name: found[one.name].tolist() for one in measures},
                    seconds=float("nan"),
                    source="scores",
                    scores=[[], part.tolist()],
                )
            )
    return entries, fits, outcomes


def named_scores(scores: Any) -> dict[str, Any]:
    """Return scores by their names, which the columns of a data frame have.

    Parameters
    ----------
    scores : mapping of names to arrays, or data frame
    """
    if not isinstance(scores, Mapping):
        scores = as_frame("scores", scores)
        if not hasattr(scores, "iloc") or not hasattr(scores, "columns"):
            raise TypeError(
                "scores: expected a mapping of names to arrays, or a data frame, got "
                f"{type(scores).__name__}"
            )
        if not scores.columns.is_unique:
            raise ValueError("scores: expected columns of different names, got some twice")
    names = list(scores.keys())
    if not names:
        raise ValueError("scores: expected at least one name with its scores, got none")
    return {str(name): scores[name] for name in names}


def _by_fold(name: str, given: Any, sizes: list[int]) -> list[FloatArray]:
    """Return the scores of each fold; they come together or fold by fold."""
    apart = isinstance(given, list | tuple) and bool(given) and np.ndim(given[0]) == 1
    if not apart:
        whole = _checked(name, given, sum(sizes))
        return np.split(whole, np.cumsum(sizes)[:-1])
    if len(given) != len(sizes):
        raise ValueError(
            f"scores: {name}: expected an array for each of {len(sizes)} folds, got {len(given)}"
        )
    return [_checked(name, part, size) for part, size in zip(given, sizes, strict=True)]


def _checked(name: str, values: Any, size: int) -> FloatArray:
    found = finite(f"scores: {name}", values, ndim=1)
    if len(found) != size:
        raise ValueError(
            f"scores: {name}: expected {size:,} scores, one per document, got {len(found):,}"
        )
    return found
