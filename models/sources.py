"""Where the data of a fit come from: this process, or stores that the workers of a cluster hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from permdist.data import Queries, open_store
from permdist.data.tables import check_same_rows
from permdist.models.checkpoints import fingerprint
from permdist.models.cluster import ClusterTable
from permdist.models.cluster_scores import HeldOutStores, columns_of_store
from permdist.models.crew import on_workers
from permdist.models.inputs import (
    as_eval_set,
    as_queries,
    as_table,
    keep_names,
    names_of,
    need_names,
    read_features,
)
from permdist.models.missing import Filling, need_values
from permdist.models.shares import Facts, look_at, store_fingerprint
from permdist.models.stores import far_stores, need_different, store_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist.models.base import Ranker
    from permdist.models.blocks import Table


def source_of(
    learner: Ranker, X: Any, y: Any, qid: Any, client: Any, *, warm: bool, regroup: bool = False
) -> Source:
    """Return where the data of a fit come from; the learner keeps their number and names.

    Parameters
    ----------
    learner : Ranker
    X, y, qid, client
        As in `Ranker.fit`.
    warm : bool
        Whether the learner goes on from coefficients for the same features.
    regroup : bool
        Whether to gather queries that are not contiguous.
    """
    paths = far_stores(X, client, y, qid)
    if paths is not None and len(paths) == 1 and client is None:
        X, paths = open_store(paths[0]), None
    if paths is None:
        return Source(learner, X, y, qid, warm=warm, regroup=regroup)
    name, why = type(learner).__name__, learner.why_whole()
    if why:
        what = "several stores" if client is None else "a cluster"
        raise ValueError(f"X: {name} cannot be fitted to data on {what}: {why}")
    need_different(paths)
    return Stores(learner, paths, client, warm=warm)


class Source:
    """Data in this process.

    Parameters
    ----------
    learner : Ranker
    X, y, qid
        As in `Ranker.fit`.
    warm : bool
    regroup : bool
        Whether to gather queries that are not contiguous, of validation data, too.
    """

    regroup = False

    def __init__(
        self, learner: Ranker, X: Any, y: Any, qid: Any, *, warm: bool, regroup: bool = False
    ) -> None:
        self.regroup = bool(regroup)
        if not isinstance(X, Queries):
            check_same_rows(X=X, y=y, qid=qid)
            X = as_table("X", X)
        width = X.n_features if isinstance(X, Queries) else np.shape(X)[1] if np.ndim(X) == 2 else 0
        learner.check_width(width, names_of(X), warm=warm)
        features = read_features(learner, X, reset=True)
        self.queries = as_queries(
            X if isinstance(X, Queries) else features, y, qid, regroup=self.regroup
        )
        need_values(learner.missing, self.queries)
        learner.keep_filling(learner.new_filling(self.queries), warm=warm)

    def held_out(self, learner: Ranker, eval_set: Any) -> Any:
        """Check validation data, and scale its features as those of the training data."""
        return _held_out(learner, eval_set, None, regroup=self.regroup)

    def table(self, learner: Ranker) -> Table:
        """Return the queries that the learner learns from, by blocks."""
        return learner.training_table(self.queries)

    def facts(self) -> Any:
        """Return what tells the data from others."""
        return fingerprint(self.queries)


class Stores(Source):
    """Data in stores, which the workers of a cluster hold, or this process where there is none.

    Parameters
    ----------
    learner : Ranker
    paths : sequence of str
    client : distributed.Client or None
    warm : bool
    """

    def __init__(self, learner: Ranker, paths: Sequence[str], client: Any, *, warm: bool) -> None:
        self.paths, self.client = paths, client
        found: list[Facts] = on_workers(client, look_at, [(path, plain(learner)) for path in paths])
        first = found[0]
        for path, one in zip(paths, found, strict=True):
            if one.n_features != first.n_features or one.feature_names != first.feature_names:
                raise ValueError(
                    f"X: {path} has {one.n_features} features, {paths[0]} has {first.n_features}, "
                    "or their names differ; all stores must have the same"
                )
        learner.check_width(first.n_features, first.feature_names, warm=warm)
        keep_names(learner, first.n_features, first.feature_names)
        indicators = sorted({column for one in found for column in one.indicators})
        learner.keep_filling(Filling(learner.missing, tuple(indicators)), warm=warm)

    def held_out(self, learner: Ranker, eval_set: Any) -> Any:
        """Check validation data; stores are looked at where they are."""
        return _held_out(learner, eval_set, self.client)

    def table(self, learner: Ranker) -> Any:
        """Return the queries that the learner learns from, by blocks that workers hold."""
        width = learner.n_features_in_ * len(learner.views) + len(learner.filling.indicators)
        return ClusterTable(self.paths, plain(learner), self.client, width)

    def facts(self) -> Any:
        """Return what tells the data from others; of one store, as if it were in this process."""
        found = on_workers(self.client, store_fingerprint, [(path,) for path in self.paths])
        return found[0] if len(found) == 1 else found


def plain(learner: Ranker) -> Ranker:
    """Return a learner with the same parameters, not fitted but for what it does with NaN.

    Parameters
    ----------
    learner : Ranker
    """
    found: Ranker = clone(learner)
    if hasattr(learner, "filling_"):
        found.filling_ = learner.filling_
    return found


def _held_out(learner: Ranker, eval_set: Any, client: Any, *, regroup: bool = False) -> Any:
    paths = store_paths(eval_set)
    if paths is not None and (client is not None or len(paths) > 1):
        if learner.why_whole():
            raise ValueError(f"eval_set: expected one collection, got {len(paths)} stores")
        for names, width in on_workers(client, columns_of_store, [(path,) for path in paths]):
            _need_same(learner, names, width)
        return HeldOutStores(paths, plain(learner), client)
    if paths is not None and not isinstance(eval_set, Queries):
        eval_set = open_store(paths[0])
    held_out = as_eval_set(eval_set, regroup=regroup)
    _need_same(learner, held_out.feature_names, held_out.n_features)
    need_values(learner.missing, held_out, "eval_set")
    return learner.filling.apply(held_out, learner.views)


def _need_same(learner: Ranker, names: tuple[str, ...] | None, width: int) -> None:
    """Refuse validation data with other features."""
    need_names(learner, names, "eval_set")
    if width != learner.n_features_in_:
        raise ValueError(f"eval_set: expected {learner.n_features_in_} features, got {width}")
