"""Learners that hold out queries of their own to stop by, where they are given none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng
from permdist.data import Queries, open_store
from permdist.models.base import Ranker
from permdist.models.batch import teaching
from permdist.models.inputs import as_queries, refuse_arguments
from permdist.models.options import option
from permdist.models.rules import Number
from permdist.models.stores import store_paths

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from permdist._typing import RandomState
    from permdist.models.stores import AnyStores

# The objective of trees and networks: of those that were tried, the best on validation queries.
DEFAULT = "likelihood-and-loss[measure=ap,space=rows,scale=false,kappa=10]"


class HoldsOut(Ranker):
    """A learner whose rounds are judged on queries that it does not learn from."""

    validation_share: float = option(
        Number(0.01, 0.9),
        "The share of the queries, drawn at random, that are held out and not learned from if "
        "there is `early_stopping` and no `eval_set`.",
        default=0.2,
    )

    def fit(
        self,
        X: ArrayLike | Queries | AnyStores,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        eval_set: Queries | tuple[ArrayLike, ArrayLike, ArrayLike] | AnyStores | None = None,
        warm_start_from: Ranker | None = None,
        client: Any = None,
        checkpoint: str | Path | None = None,
        regroup: bool = False,
        **unknown: Any,
    ) -> Ranker:
        """Fit the ranking function; parameters are those of `Ranker.fit`."""
        if unknown:
            refuse_arguments(type(self).fit, next(iter(unknown)))
        if self.early_stopping is not None and eval_set is None and client is None:
            self.check_parameters()
            paths = store_paths(X)
            if isinstance(X, Queries) or paths is None:
                whole = as_queries(X, y, qid, regroup=regroup)
            elif len(paths) == 1:
                whole = open_store(paths[0])
            else:
                raise ValueError(f"early_stopping: {len(paths)} stores need an eval_set to look at")
            X, eval_set = split_queries(
                whole, self.validation_share, getattr(self, "random_state", 0)
            )
            y = qid = None
        return super().fit(
            X,
            y,
            qid,
            eval_set=eval_set,
            warm_start_from=warm_start_from,
            client=client,
            checkpoint=checkpoint,
            regroup=regroup,
        )


def split_queries(
    queries: Queries, share: float, random_state: RandomState
) -> tuple[Queries, Queries]:
    """Split queries at random into those to learn from and those to judge by.

    Both get their part of the queries that have documents of different labels.

    Parameters
    ----------
    queries : Queries
    share : float
        That of the second part.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permdist.data import make_letor
    >>> [len(part) for part in split_queries(make_letor(50, rng=0), 0.2, 0)]
    [40, 10]
    """
    rng, useful = as_rng(random_state), teaching(queries.y, queries.ptr)
    if useful.sum() < 2:
        raise ValueError(
            "early_stopping: expected at least two queries with documents of different labels, to "
            f"hold some out, got {int(useful.sum())}; pass an eval_set"
        )
    held_out = np.zeros(len(useful), dtype=bool)
    for kind in (useful, ~useful):
        members = rng.permutation(np.flatnonzero(kind))
        number = round(share * len(members))
        if kind is useful:
            number = min(max(1, number), len(members) - 1)
        held_out[members[:number]] = True
    return queries.where(~held_out), queries.where(held_out)
