"""Which family of distributions fits some ballots: likelihoods, BIC and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import rankings
from permdist._check import as_rng, choice, count
from permdist._result import Result
from permdist._text import plural, text_table
from permdist.ballots import Ballots, check_independent
from permdist.distributions.mixture_families import UniformFamily, different_ballots, family_of
from permdist.distributions.mixture_fit import folds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, RandomState
    from permdist.distributions.base import Distribution
    from permdist.distributions.mixture_families import Family

FAMILIES = ("uniform", "mallows", "plackett-luce")
_HEAD = ["family", "parameters", "log-likelihood", "BIC", "left out", "behind", "error"]


@dataclass(frozen=True, eq=False, repr=False)
class FamilyComparison(Result):
    """How well families of distributions fit the same ballots. Prints as a table.

    Attributes
    ----------
    families : tuple of str
        As they were asked for, a Mallows model for each distance.
    models : tuple of Distribution
        Fitted to all ballots.
    log_likelihood : array of float, shape (families,)
        Of all ballots, by weight.
    n_parameters : array of int, shape (families,)
        Real numbers that were estimated: n - 1 scores, or theta. The center of a Mallows model is
        no real number and not counted.
    bic : array of float, shape (families,)
        The Bayesian information criterion: the smaller, the better.
    left_out : array of float, shape (families,)
        The mean log-likelihood of a ballot under the fit to the folds without it: the larger, the
        better.
    behind : array of float, shape (families,)
        By how much `left_out` is below that of the best family.
    error : array of float, shape (families,)
        The standard error of that difference, from the differences of single ballots; 0 for the
        best family.
    n_ballots : float
        The sum of the weights.
    folds : int
    """

    families: tuple[str, ...]
    models: tuple[Distribution, ...]
    log_likelihood: FloatArray
    n_parameters: Any
    bic: FloatArray
    left_out: FloatArray
    behind: FloatArray
    error: FloatArray
    n_ballots: float
    folds: int

    @property
    def best(self) -> str:
        """The family with the highest log-likelihood of ballots left out."""
        return self.families[int(self.left_out.argmax())]

    def to_frame(self) -> pd.DataFrame:
        """Return the table, a row per family.

        Returns
        -------
        DataFrame
            Indexed by family, with the columns ``n_parameters``, ``log_likelihood``, ``bic``,
            ``left_out``, ``behind`` and ``error``, which are those of the class.
        """
        import pandas as pd

        columns = (self.n_parameters, self.log_likelihood, self.bic, self.left_out, self.behind)
        names = ["n_parameters", "log_likelihood", "bic", "left_out", "behind", "error"]
        data = dict(zip(names, (*columns, self.error), strict=True))
        return pd.DataFrame(data, index=pd.Index(self.families, name="family"))

    @property
    def caption(self) -> str:
        """What the table is about, in one line."""
        number = self.models[0].n_items
        votes = plural(int(self.n_ballots), "ballot") if self._is_whole else f"{self.n_ballots:g}"
        return f"{plural(number, 'item')}, {votes}; {self.folds} folds, best: {self.best}"

    @property
    def _is_whole(self) -> bool:
        return self.n_ballots == int(self.n_ballots)

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], list[list[str]]]:
        columns = zip(
            self.families, self.n_parameters, self.log_likelihood, self.bic, self.left_out,
            self.behind, self.error, strict=True,
        )  # fmt: skip
        rows = [
            [name, str(number), f"{value:.2f}", f"{bic:.2f}", f"{mean:.4f}", f"{gap:.4f}",
             f"{error:.4f}"]
            for name, number, value, bic, mean, gap, error in columns
        ]  # fmt: skip
        return _HEAD, rows[:most]

    def __repr__(self) -> str:
        return f"{self.caption}\n{text_table(*self._cells())}"


def compare_families(
    ballots: Any,
    families: Sequence[str] = FAMILIES,
    *,
    distances: Sequence[str] = ("kendall",),
    weights: ArrayLike | None = None,
    n_items: int | None = None,
    subset: bool | None = None,
    names: Sequence[str] | None = None,
    prior: float = 0.01,
    folds: int = 5,
    rng: RandomState = None,
) -> FamilyComparison:
    """Compare families of distributions by how well they fit some ballots.

    Every family is fitted to all ballots, and once per fold to the ballots outside it. Folds are
    the same for all families, so that differences are between the same ballots. A family whose
    `behind` is several times its `error` is worse; if that is the uniform one, the ballots
    agree more than chance does.

    Parameters
    ----------
    ballots : array of int, shape (rankings, k), sequence of rankings, Ballots or Preferences
        All that the families accept. On ballots with ties leave out Plackett-Luce, which has none;
        a tie is then no statement, as in `Mallows.log_prob`.
    families : sequence of {"uniform", "mallows", "plackett-luce"}
    distances : sequence of str
        Of Mallows models, one row each.
    weights : array of float, shape (rankings,), optional
        How often each ranking counts. Equal ballots are separate voters, if weights are whole
        numbers.
    n_items, subset, names
        As in `permdist.Ballots.from_orders`.
    prior : float
        The weight of a prior, in ballots, which keeps estimates finite: as in `Mixture.fit`.
    folds : int
        The number of parts of the cross-validation.
    rng : int, Generator or None
        For the folds.

    Returns
    -------
    FamilyComparison

    Examples
    --------
    >>> from permdist import Mallows
    >>> from permdist.distributions import compare_families
    >>> ballots = Mallows([2, 0, 3, 1], 1.0).sample(500, rng=0)
    >>> found = compare_families(ballots, distances=["kendall", "hamming"], rng=0)
    >>> found.best
    'mallows (kendall)'
    """
    count("folds", folds, minimum=2)
    data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
    check_independent(data, "a comparison of families")
    kinds = _families(data, families, distances, prior)
    merged = next(iter(kinds.values())).ballots
    counts, (casts, unit) = merged.weights, merged.units()
    total, number_cast = float(counts.sum()), float(casts.sum())
    parts = folds_of(merged, folds, as_rng(rng))
    models, rows, left_out = [], [], []
    for kind in kinds.values():
        models.append(kind.fit(counts, None))
        number, likelihood = kind.n_parameters or 0, float(counts @ kind.log_prob(models[-1]))
        rows.append((likelihood, number, number * np.log(total) - 2.0 * likelihood))
        left_out.append([kind.log_prob(kind.fit(counts - part, None)) for part in parts])
    likelihoods, numbers, bics = (np.array(column) for column in zip(*rows, strict=True))
    each, votes = np.array(left_out), np.array(parts)  # (families, folds, ballots), (folds, ...)
    means = (each * votes).sum(axis=(1, 2)) / total
    gaps = each[int(means.argmax())] - each
    behind = (gaps * votes).sum(axis=(1, 2)) / total
    # The variance of a mean of ballots, each with its weight.
    squares = ((gaps - behind[:, None, None]) ** 2 * votes * unit).sum(axis=(1, 2)) / total**2
    return FamilyComparison(
        families=tuple(kinds),
        models=tuple(models),
        log_likelihood=likelihoods,
        n_parameters=numbers,
        bic=bics,
        left_out=means,
        behind=behind,
        error=np.sqrt(squares * number_cast / max(number_cast - 1.0, 1.0)),
        n_ballots=total,
        folds=folds,
    )


def _families(
    data: Ballots, families: Sequence[str], distances: Sequence[str], prior: float
) -> dict[str, Family]:
    """Return how to fit each family; all of them to the same ballots in the same order."""
    if isinstance(families, str) or isinstance(distances, str):
        raise TypeError("families, distances: expected a sequence of names, got one; use [it]")
    if data.features is not None:
        raise ValueError("ballots: expected none with covariates")
    result: dict[str, Family] = {}
    for name in families:
        choice("families", name, FAMILIES)
        if name == "uniform":
            result[name] = UniformFamily(different_ballots(data), False)
        elif name == "mallows":
            for distance in distances:
                choice("distances", distance, rankings.DISTANCES)
                found = family_of(name, data, False, prior, distance, None)
                result[f"{name} ({distance})"] = found
        else:
            result[name] = family_of(name, data, False, prior, "kendall", None)
    if not result:
        raise ValueError("families: expected at least one, got none")
    return result
