"""Engines that grow trees: LightGBM, XGBoost, and scikit-learn's regression trees.

An engine is given gradient and curvature of every document in each round, adds a tree, and returns
all scores.
"""

from __future__ import annotations

import itertools
import json
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._extras import need_extra
from permdist._kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from permdist._typing import FloatArray, IntArray

ENGINES = ("lightgbm", "xgboost", "sklearn")
_SIGNS = re.compile(r"[\s\[\]{}<>:,\"\\]|[^\x21-\x7e\w]")
PARTS = ("feature", "threshold", "left", "right", "value", "missing_left")


class Growth(NamedTuple):
    """How trees are grown; see `Boosted`."""

    rate: float = 0.1
    leaves: int = 31
    depth: int | None = None
    min_documents: int = 20
    l2: float = 1.0
    columns: float = 1.0
    seed: int = 0
    n_jobs: int | None = None


class Booster(ABC):
    """Trees on some documents.

    Parameters
    ----------
    features : array of float, shape (documents, features)
    held_out : array of float, shape (others, features), or None
        Documents that are scored only.
    growth : Growth
    names : list of str, optional
        Of the features, as `names_for_engines` makes them.
    """

    @abstractmethod
    def __init__(
        self,
        features: FloatArray,
        held_out: FloatArray | None,
        growth: Growth,
        names: list[str] | None = None,
    ) -> None: ...

    @abstractmethod
    def step(
        self, gradient: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add a tree; return the scores of all documents, and of those that are held out."""

    @abstractmethod
    def text(self, rounds: int) -> str:
        """Write the trees of the first rounds."""


class _LightGBM(Booster):
    def __init__(
        self,
        features: FloatArray,
        held_out: FloatArray | None,
        growth: Growth,
        names: list[str] | None = None,
    ) -> None:
        lightgbm = need_extra("lightgbm", "Boosted(engine='lightgbm')")
        data = {"max_bin": 255, "verbosity": -1, "feature_pre_filter": False}
        params = {
            **data,
            "objective": "none",
            "metric": "none",
            "boost_from_average": False,
            "learning_rate": growth.rate,
            "num_leaves": growth.leaves,
            "max_depth": -1 if growth.depth is None else growth.depth,
            "min_data_in_leaf": growth.min_documents,
            "lambda_l2": growth.l2,
            "feature_fraction": growth.columns,
            "seed": growth.seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": _threads(growth.n_jobs),
        }
        named = {} if names is None else {"feature_name": names}
        train = lightgbm.Dataset(features, np.zeros(len(features)), params=data, **named)
        self._held_out = held_out is not None
        if held_out is not None:  # made before the booster adds its parameters to those of the data
            other = train.create_valid(held_out, np.zeros(len(held_out)), params=data).construct()
        self._booster = lightgbm.Booster(params, train)
        if held_out is not None:
            self._booster.add_valid(other, "held_out")

    def step(
        self, gradient: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add a tree; return the scores of all documents, and of those that are held out."""
        seen: list[FloatArray] = []

        def look(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
            seen.append(np.array(scores))
            return "seen", 0.0, True

        self._booster.update(fobj=lambda *_: (gradient, curvature))
        self._booster.eval_train(look)
        if self._held_out:
            self._booster.eval_valid(look)
        return seen[0], seen[1] if self._held_out else None

    def text(self, rounds: int) -> str:
        """Write the trees of the first rounds."""
        return str(self._booster.model_to_string(num_iteration=max(1, rounds)))


class _XGBoost(Booster):
    def __init__(
        self,
        features: FloatArray,
        held_out: FloatArray | None,
        growth: Growth,
        names: list[str] | None = None,
    ) -> None:
        xgboost = need_extra("xgboost", "Boosted(engine='xgboost')")
        params = {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "eta": growth.rate,
            "max_leaves": growth.leaves,
            "max_depth": 0 if growth.depth is None else growth.depth,
            "min_child_weight": growth.min_documents,
            "lambda": growth.l2,
            "colsample_bytree": growth.columns,
            "seed": growth.seed,
            "nthread": _threads(growth.n_jobs),
        }
        options = {"nthread": _threads(growth.n_jobs), "feature_names": names}
        self._train = xgboost.DMatrix(features, np.zeros(len(features)), **options)
        self._held_out = None if held_out is None else xgboost.DMatrix(held_out, **options)
        cached = [one for one in (self._train, self._held_out) if one is not None]
        self._booster, self._round = xgboost.Booster(params, cached), 0

    def step(
        self, gradient: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add a tree; return the scores of all documents, and of those that are held out."""
        self._booster.boost(
            self._train, self._round, grad=gradient[:, None], hess=curvature[:, None]
        )
        self._round += 1
        parts = [
            None if one is None else self._booster.predict(one, output_margin=True).astype(float)
            for one in (self._train, self._held_out)
        ]
        return parts[0], parts[1]  # type: ignore[return-value]

    def text(self, rounds: int) -> str:
        """Write the trees of the first rounds."""
        return bytes(self._booster[: max(1, rounds)].save_raw("json")).decode()


class _Sklearn(Booster):
    def __init__(
        self,
        features: FloatArray,
        held_out: FloatArray | None,
        growth: Growth,
        names: list[str] | None = None,  # noqa: ARG002 -- its trees are kept without
    ) -> None:
        self._features, self._held_out = features, held_out
        self._growth, self._rng = growth, np.random.default_rng(growth.seed)
        self._scores = np.zeros(len(features))
        self._others = None if held_out is None else np.zeros(len(held_out))
        self._trees: list[dict[str, list[Any]]] = []
        # Trees compare in single precision; whatever is scored must be rounded alike.
        self._single = np.asarray(features, dtype=np.float32)

    def step(
        self, gradient: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Add a tree; return the scores of all documents, and of those that are held out."""
        from sklearn.tree import DecisionTreeRegressor

        growth = self._growth
        found = DecisionTreeRegressor(
            max_leaf_nodes=growth.leaves,
            max_depth=growth.depth,
            min_samples_leaf=min(growth.min_documents, max(1, len(gradient) // 2)),
            max_features=growth.columns if growth.columns < 1.0 else None,
            random_state=int(self._rng.integers(2**31)),
        )
        weights = np.maximum(curvature, 1e-30)
        found.fit(self._single, -gradient / weights, sample_weight=weights)
        leaf = found.apply(self._single)
        tree, number = found.tree_, found.tree_.node_count
        total = np.bincount(leaf, curvature, minlength=number) + growth.l2
        steps = -np.bincount(leaf, gradient, minlength=number)
        value = growth.rate * np.where(total > 0.0, steps / np.where(total > 0.0, total, 1.0), 0.0)
        missing = getattr(tree, "missing_go_to_left", np.zeros(number, dtype=np.uint8))
        columns = (
            tree.feature,
            tree.threshold,
            tree.children_left,
            tree.children_right,
            value,
            missing,
        )
        self._trees.append(
            {name: column.tolist() for name, column in zip(PARTS, columns, strict=True)}
        )
        last = _read_trees(self._trees[-1:])
        self._scores = self._scores + last(self._features)
        if self._others is not None and self._held_out is not None:
            self._others = self._others + last(self._held_out)
        return self._scores, self._others

    def text(self, rounds: int) -> str:
        """Write the trees of the first rounds."""
        return json.dumps(self._trees[: max(1, rounds)])


_BOOSTERS: dict[str, type[Booster]] = dict(
    zip(ENGINES, (_LightGBM, _XGBoost, _Sklearn), strict=True)
)


def booster_of(
    engine: str,
    features: FloatArray,
    held_out: FloatArray | None,
    growth: Growth,
    names: list[str] | None = None,
) -> Booster:
    """Return an engine that is ready for its first round.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost", "sklearn"}
    features : array of float, shape (documents, features)
    held_out : array of float, shape (others, features), or None
    growth : Growth
    names : list of str, optional
    """
    return _BOOSTERS[engine](features, held_out, growth, names)


def names_for_engines(names: Iterable[str]) -> list[str]:
    """Return names that all engines take: without spaces and signs of JSON, and no name twice.

    Examples
    --------
    >>> names_for_engines(["tf idf", "bm25[title]", "tf_idf"])
    ['tf_idf', 'bm25_title_', 'tf_idf_2']
    """
    found: dict[str, None] = {}
    for name in names:
        plain = _SIGNS.sub("_", name) or "_"
        numbers = itertools.count(2)
        new = plain
        while new in found:
            new = f"{plain}_{next(numbers)}"
        found[new] = None
    return list(found)


def _threads(n_jobs: int | None) -> int:
    """Return the number of threads as engines count them: 0 are all."""
    return 0 if n_jobs in (None, -1) else int(n_jobs or 0)


# ---- what was written -------------------------------------------------------------------------


def reader_of(engine: str, text: str, width: int) -> Callable[[FloatArray], FloatArray]:
    """Return the function that scores documents by trees that were written.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost", "sklearn"}
    text : str
    width : int
        The number of features.
    """
    try:
        if engine == "lightgbm":
            return _read_lightgbm(text, width)
        if engine == "xgboost":
            return _read_xgboost(text, width)
        return _read_trees(json.loads(text), width)
    except ImportError:
        raise
    except Exception as error:  # each library has errors of its own
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"model_: expected trees as {engine} writes them ({reason})") from error


def _read_lightgbm(text: str, width: int) -> Callable[[FloatArray], FloatArray]:
    lightgbm = need_extra("lightgbm", "Boosted(engine='lightgbm')")
    if not text.startswith("tree\n"):
        raise ValueError("no text of LightGBM")
    booster = lightgbm.Booster(model_str=text)
    _need_width(booster.num_feature(), width)

    def scores(features: FloatArray) -> FloatArray:
        if not len(features):
            return np.zeros(0)
        return np.asarray(booster.predict(features, raw_score=True, num_threads=1), dtype=float)

    return scores


def _read_xgboost(text: str, width: int) -> Callable[[FloatArray], FloatArray]:
    xgboost = need_extra("xgboost", "Boosted(engine='xgboost')")
    booster = xgboost.Booster()
    booster.load_model(bytearray(text.encode()))
    _need_width(booster.num_features(), width)

    def scores(features: FloatArray) -> FloatArray:
        data = xgboost.DMatrix(features, nthread=1)
        found = booster.predict(data, output_margin=True, validate_features=False)
        return np.asarray(found, dtype=float)

    return scores


def _need_width(found: int, width: int) -> None:
    if found != width:
        raise ValueError(f"{found} features, expected {width}")


def _read_trees(trees: Any, width: int | None = None) -> Callable[[FloatArray], FloatArray]:
    """Return the function that adds up trees, after checking that every path ends."""
    if not isinstance(trees, list) or not trees:
        raise ValueError("expected a list of trees")
    arrays = []
    for tree in trees:
        if not isinstance(tree, dict) or set(tree) != set(PARTS):
            raise ValueError(f"expected trees of {', '.join(PARTS)}")
        kinds = (np.int64, np.float64, np.int64, np.int64, np.float64, np.uint8)
        parts = [np.array(tree[name], dtype=kind) for name, kind in zip(PARTS, kinds, strict=True)]
        feature, _, left, right, value, _ = parts
        number, inner = len(feature), feature >= 0
        if any(part.shape != (number,) for part in parts) or number == 0:
            raise ValueError("expected lists of the same length")
        nodes = np.arange(number)[inner]
        ahead = (left[inner] > nodes) & (right[inner] > nodes)
        if not ahead.all() or max(left.max(), right.max()) >= number:
            raise ValueError("expected branches that lead onward")
        if width is not None and feature.max() >= width:
            raise ValueError(f"expected features below {width}")
        if not np.isfinite(value).all() or np.isnan(parts[1]).any():
            raise ValueError("expected finite numbers")
        arrays.append(parts)
    ptr = np.concatenate([[0], np.cumsum([len(parts[0]) for parts in arrays])]).astype(np.int64)
    joined: list[Any] = [np.concatenate(column) for column in zip(*arrays, strict=True)]

    def scores(features: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            single: Any = np.ascontiguousarray(features, dtype=np.float32)
        out = np.zeros(len(single))
        feature, threshold, left, right, value, missing = joined
        _add_trees(single, ptr, feature, threshold, left, right, value, missing, out)
        return out

    return scores


@kernel
def _add_trees(
    features: FloatArray,
    ptr: IntArray,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
    value: FloatArray,
    missing_left: IntArray,
    out: FloatArray,
) -> None:
    """Add the values of the leaves that documents reach; features has single precision."""
    for t in range(len(ptr) - 1):
        first = ptr[t]
        for i in range(len(out)):
            node = first
            while feature[node] >= 0:
                x = np.float64(features[i, feature[node]])
                goes_left = missing_left[node] > 0 if np.isnan(x) else x <= threshold[node]
                node = first + (left[node] if goes_left else right[node])
            out[i] += value[node]
