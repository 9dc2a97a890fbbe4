"""One query in detail: the distribution of its rankings and the expected measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, choice, finite, grades
from permdist._result import Result, block, facts, frame_cells, table
from permdist._text import aligned, plural, visible
from permdist.distributions import Distribution, GaussianScores, GoodBad, PlackettLuce
from permdist.distributions.view import places_html
from permdist.measures import Measure, parse
from permdist.rankings import order_by_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.distributions.base import Estimate

DISTRIBUTIONS = ("plackett-luce", "gaussian", "good-bad")
MEASURES = ("ndcg", "ndcg@10", "ap", "rr", "auc")
NOISE = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DRAWS = 4000
SHOWN = 12
MOST_ORDERS = 21
FEW = 5


def standardized(scores: ArrayLike) -> FloatArray:
    """Return scores with mean 0 and standard deviation 1, to which a noise scale can refer."""
    values = finite("scores", scores, ndim=1)
    values = values / max(
        1.0, float(np.abs(values).max(initial=0.0))
    )  # so their squares are finite
    deviation = float(values.std())
    return (values - values.mean()) / (deviation if deviation > 0 else 1.0)


def document_names(labels: IntArray, ids: Sequence[Any] | None = None) -> list[str]:
    """Return names of documents: their id or number, with their label in parentheses."""
    names = [f"document {i + 1}" for i in range(len(labels))] if ids is None else map(str, ids)
    return [f"{name} ({label})" for name, label in zip(names, labels, strict=True)]


def make_distribution(
    kind: str,
    scores: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    noise: float = 1.0,
    names: Sequence[str] | None = None,
    raw: bool = False,
) -> Distribution:
    """Make one of the three distributions from scores and a noise scale.

    Parameters
    ----------
    kind : {"plackett-luce", "gaussian", "good-bad"}
        The good-bad model is over all orders of up to 21 documents, and over interleavings of more.
    scores : array of float, shape (n,)
    labels : array of int, shape (n,), optional
        Required by the good-bad model.
    noise : float
        The standard deviation of Gaussian noise. The other models divide the scores by it; the
        good-bad model additionally divides by the number of documents, since each document takes
        part in many pairs.
    names : sequence of str, optional
    raw : bool
        Use the scores as they are, divided by `noise` only, in the good-bad model, too.

    Examples
    --------
    >>> make_distribution("gaussian", [1.0, 0.0], noise=2.0)
    GaussianScores([1., 0.], scale=2)
    """
    choice("kind", kind, DISTRIBUTIONS)
    values = finite("scores", scores, ndim=1)
    if not float(finite("noise", noise, ndim=0)) > 0.0:
        raise ValueError(f"noise: expected a positive number, got {noise!r}")
    if kind == "plackett-luce":
        return PlackettLuce(values / noise, names)
    if kind == "gaussian":
        return GaussianScores(values, noise, names)
    if labels is None:
        raise ValueError("labels: required by the good-bad model, got None")
    space = "orders" if len(values) <= MOST_ORDERS else "interleavings"
    scale = 1.0 / noise if raw else 1.0 / (noise * len(values))
    return GoodBad(values, labels, space=space, scale=scale, names=names)


def describe_space(dist: Distribution) -> str:
    """Say over what a good-bad model of one query is, and why; empty for other distributions.

    Examples
    --------
    >>> describe_space(make_distribution("good-bad", [1.0, 0.0], [1, 0]))
    'over orders (of more than 21 documents: interleavings), scores times 0.5'
    """
    if not isinstance(dist, GoodBad):
        return ""
    other = f"of more than {MOST_ORDERS} documents: interleavings"
    if dist.space == "interleavings":
        other = f"as there are more than {MOST_ORDERS} documents: those of the same label keep "
        other += "their order by score"
    return f"over {dist.space} ({other}), scores times {dist.scale:.4g}"


@dataclass(frozen=True, repr=False)
class Inspection(Result):
    """The ranking distribution of one query; prints as a few small tables.

    Attributes
    ----------
    dist : Distribution
    labels : array of int, shape (n,), or None
    marginals : array of float, shape (n, n)
        Documents by positions.
    pairwise : array of float, shape (n, n)
    expected : dict of Estimate
        By measure; empty without labels.
    by_score : dict of float
        The same measures for the ranking by score, without noise.
    entropy : Estimate
        In nats.
    noise : pandas.DataFrame
        The expected measures by noise scale, and the probability that the document with the
        highest score is first.
    at : float
        The noise scale of the distribution.
    """

    dist: Distribution
    labels: IntArray | None
    marginals: FloatArray
    pairwise: FloatArray
    expected: dict[str, Estimate]
    by_score: dict[str, float]
    entropy: Estimate
    noise: pd.DataFrame
    at: float

    @property
    def order(self) -> IntArray:
        """The documents by their mean rank, best first."""
        return np.argsort(self.marginals @ np.arange(self.dist.n_items), kind="stable")

    def documents(self) -> pd.DataFrame:
        """Return a table of the documents, best first: mean rank and top-k probabilities."""
        import pandas as pd

        n, order = self.dist.n_items, self.order
        table: dict[str, Any] = {
            "mean_rank": 1.0 + self.marginals @ np.arange(n),
            "first": self.marginals[:, 0],
        }
        for k in (3, 10):
            if k < n:
                table[f"top_{k}"] = self.marginals[:, :k].sum(axis=1)
        if self.labels is not None:
            table = {"label": self.labels, **table}
        frame = pd.DataFrame(table, index=pd.Index(self.dist.names, name="document"))
        return frame.iloc[order]

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the documents, as `documents` does; `noise` is another table."""
        return self.documents()

    def _repr_html_(self) -> str:
        told = {
            f"E[{name}]": f"{_shown(value)} (by score: {self.by_score[name]:.4f})"
            for name, value in self.expected.items()
        }
        labels = {} if self.labels is None else {"label": self.labels.tolist()}
        places = places_html(self.marginals, self.dist.names, "exact", labels)
        scales = table(*frame_cells(self.noise.rename_axis("noise")), caption="Other noise scales")
        title = f"{plural(self.dist.n_items, 'document')} by {type(self.dist).__name__}"
        told["entropy"] = f"{_shown(self.entropy)} nats"
        return block(title, facts(told), places, scales)

    def __str__(self) -> str:
        frame, n = self.documents(), self.dist.n_items
        how = "ranks count from 1"
        if "label" in frame and all(
            str(name).endswith(f"({label})") for name, label in frame["label"].items()
        ):
            frame = frame.drop(columns="label")  # the names contain it
            how = f"labels in parentheses, {how}"
        lines = [f"Ranks of {plural(n, 'document')} ({how})"]
        shown = frame.head(SHOWN).to_string(float_format="{:.3f}".format, index_names=False)
        lines += [visible(shown), *([f"... and {n - SHOWN} more"] if n > SHOWN else []), ""]
        rows = {
            f"E[{name}]": f"{_shown(value)}  (ranked by score: {self.by_score[name]:.4f})"
            for name, value in self.expected.items()
        }
        lines += ["Expected values", aligned({**rows, "entropy": f"{_shown(self.entropy)} nats"})]
        if self.labels is not None and not rows:
            lines.append("(no measure is defined: the labels are all the same)")
        lines += ["", "Other noise scales"]
        lines.append(self.noise.to_string(float_format="{:.3f}".format))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Inspection({self.dist!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "documents": list(self.dist.names),
            "labels": None if self.labels is None else self.labels.tolist(),
            "noise": self.at,
            "space": describe_space(self.dist) or None,
            "rank_marginals": self.marginals.tolist(),
            "pairwise": self.pairwise.tolist(),
            "expected": {name: _plain(value) for name, value in self.expected.items()},
            "by_score": self.by_score,
            "entropy": _plain(self.entropy),
            "noise_scales": {f"{scale:g}": row.to_dict() for scale, row in self.noise.iterrows()},
        }


def inspect_query(
    scores: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str = "plackett-luce",
    noise: float = 1.0,
    measures: Iterable[str | Measure] = MEASURES,
    names: Sequence[str] | None = None,
    raw: bool = False,
    rng: RandomState = 0,
) -> Inspection:
    """Compute rank marginals, pairwise probabilities and expected measures of one query.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,), optional
        Required for expected measures, and by the good-bad model.
    kind : {"plackett-luce", "gaussian", "good-bad"}
    noise : float
        See `make_distribution`.
    measures : iterable of Measure or str
    names : sequence of str, optional
        Names of the documents.
    raw : bool
        As in `make_distribution`.
    rng : int, numpy.random.Generator or None
        For what is not feasible exactly.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> found = inspect_query([1.0, 0.5, -1.0], [1, 0, 0], measures=["ap"], names=["a", "b", "c"])
    >>> found.documents().round(3)
              label  mean_rank  first
    document
    a             1      1.497  0.574
    b             0      1.805  0.348
    c             0      2.698  0.078
    >>> float(found.expected["ap"])
    0.77...
    """
    label = None if labels is None else grades("labels", labels)
    generator = as_rng(rng)
    dist = make_distribution(kind, scores, label, noise=noise, names=names, raw=raw)
    chosen = [parse(measure) for measure in measures] if label is not None else []
    if label is not None:
        chosen = [measure for measure in chosen if measure.defined(label)]
    expected = {one.name: dist.expect(one, label, draws=DRAWS, rng=generator) for one in chosen}
    if kind == "gaussian" and dist.n_items > FEW:
        # The probability of one order takes milliseconds, more where there is little noise.
        draws = max(20, 60_000 // dist.n_items**2)
        entropy = dist.entropy(method="sample", draws=draws, rng=generator)
    else:
        entropy = dist.entropy(draws=DRAWS, rng=generator)
    ranking = order_by_scores(scores)
    by_score = {} if label is None else {one.name: float(one(ranking, label)) for one in chosen}
    by_noise = _by_noise(kind, scores, label, chosen, float(noise), raw, generator)
    return Inspection(
        dist,
        label,
        dist.rank_marginals(),
        dist.pairwise(),
        expected,
        by_score,
        entropy,
        by_noise,
        float(noise),
    )


def _by_noise(
    kind: str,
    scores: ArrayLike,
    labels: IntArray | None,
    measures: Sequence[Measure],
    noise: float,
    raw: bool,
    rng: np.random.Generator,
) -> pd.DataFrame:
    import pandas as pd

    best = int(np.argmax(np.asarray(scores)))
    rows = {}
    for scale in sorted({*NOISE, noise}):
        dist = make_distribution(kind, scores, labels, noise=scale, raw=raw)
        row = {
            f"E[{one.name}]": float(dist.expect(one, labels, draws=DRAWS, rng=rng))
            for one in measures
        }
        row["top score first"] = float(dist.rank_marginals()[best, 0])
        rows[scale] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("noise")


def _plain(value: Estimate) -> dict[str, float]:
    return {"value": float(value), "standard_error": value.standard_error}


def _shown(value: Estimate) -> str:
    error = value.standard_error
    return f"{float(value):.4f}" + (f" ± {error:.4f}" if error else "")
