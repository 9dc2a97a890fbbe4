"""The library's spaces of rankings, as learners are told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from permdist.models.rules import LARGEST_COUNT, Number, Seed, Whole
from permdist.models.spaces.base import Space, Sums, need_draws, register_space
from permdist.models.spaces.interleavings import InterleavingSums, LatticeSums
from permdist.models.spaces.pairs import PairSums
from permdist.models.spaces.restart import RestartSums
from permdist.samplers import RestartSampler

if TYPE_CHECKING:
    from permdist._typing import RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch

    Jobs = int | None


@register_space
@dataclass(frozen=True)
class Pairs(Space):
    """All sign vectors of pairs with different labels, transitive or not.

    Everything is in closed form, for AUC; other measures have no sum here.
    """

    alias: ClassVar[str] = "pairs"

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, _rng: RandomState) -> Sums:
        return PairSums(batch, measure, n_jobs)


@register_space
@dataclass(frozen=True)
class Interleavings(Space):
    """All interleavings of the classes of equal labels, each class sorted by score."""

    alias: ClassVar[str] = "interleavings"
    kinked: ClassVar[bool] = True

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, _rng: RandomState) -> Sums:
        return InterleavingSums(batch, measure, n_jobs)


@register_space
@dataclass(frozen=True)
class Lattice(Space):
    """All interleavings, for each of several random orders of every class, drawn once.

    Parameters
    ----------
    orders : int
        How many orders of each class.
    random_state : int, optional
        The seed of the orders; the learner's own by default.

    Examples
    --------
    >>> Lattice(orders=16).name
    'lattice[orders=16]'
    """

    alias: ClassVar[str] = "lattice"
    orders: int = 4
    random_state: int | None = None

    def __post_init__(self) -> None:
        Whole(1, LARGEST_COUNT).check("orders", self.orders)
        Seed().check("random_state", self.random_state)

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, rng: RandomState) -> Sums:
        need_draws("orders", self.orders, batch)
        return LatticeSums(batch, measure, n_jobs, orders=self.orders, rng=rng)


@register_space
@dataclass(frozen=True)
class Restart(Space):
    """A fixed sample of rankings, drawn by a `permdist.samplers.RestartSampler`, and the best one.

    Parameters
    ----------
    sample_size : int
        Rankings of each query.
    rungs, skew, walk, stride : int, float, int, int
        The restart states, which of them are favored, the rankings of each walk and the flips
        between two of them, as in `RestartSampler`.
    sampler : RestartSampler, optional
        One of your own in place of that; it has no text form.
    random_state : int, optional
        The seed of the sample; the learner's own by default.

    Examples
    --------
    >>> Restart(sample_size=30).name
    'restart[sample_size=30]'
    """

    alias: ClassVar[str] = "restart"
    sample_size: int = 100
    rungs: int = 11
    skew: float = -10.0
    walk: int = 10
    stride: int = 1
    sampler: RestartSampler | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        Whole(1, LARGEST_COUNT).check("sample_size", self.sample_size)
        Whole(2).check("rungs", self.rungs)
        Number().check("skew", self.skew)
        Whole().check("walk", self.walk)
        Whole().check("stride", self.stride)
        Seed().check("random_state", self.random_state)
        if not isinstance(self.sampler, RestartSampler | None):
            raise TypeError(f"sampler: expected a RestartSampler, got {self.sampler!r:.100}")

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, rng: RandomState) -> Sums:
        need_draws("sample_size", self.sample_size, batch)
        walks = {name: getattr(self, name) for name in ("rungs", "skew", "walk", "stride")}
        sampler = RestartSampler(measure, **walks) if self.sampler is None else self.sampler
        size = self.sample_size
        return RestartSums(batch, measure, n_jobs, sampler=sampler, sample_size=size, rng=rng)
