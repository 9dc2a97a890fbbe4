"""Strategies for distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from hypothesis import strategies as st

from permdist.distributions import (
    DavidsonLuce,
    GaussianScores,
    GeneralizedMallows,
    GoodBad,
    Mallows,
    Mixture,
    PairSigns,
    PlackettLuce,
    ValidSigns,
)
from permdist.rankings import DISTANCES
from permdist.strategies.values import labels, orders, scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.strategies.values import Sizes

WIDEST = 1e8


def plackett_luces(
    *, max_score: float = 5.0, wide: bool = False, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[PlackettLuce]:
    """Generate Plackett-Luce distributions.

    Parameters
    ----------
    max_score : float
        The largest magnitude of a score.
    wide : bool
        Whether scores of magnitudes from 1e-8 to 1e8 occur as well, as in `scores`.
    n_items, min_items, max_items : int
        As in `orders`; at most 6 items by default.
    """
    return _scores_up_to(max_score, wide, sizes).map(PlackettLuce)


def davidson_luces(
    *, max_score: float = 5.0, max_tie: int = 3, wide: bool = False, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[DavidsonLuce]:
    """Generate Davidson-Luce distributions; they shrink towards none with ties.

    Parameters
    ----------
    max_score : float
        The largest magnitude of a score.
    max_tie : int
        The largest number of items that may be tied. Logarithms of deltas are from -5 to 5, or
        -inf.
    wide : bool
        Whether scores of magnitudes from 1e-8 to 1e8 occur as well, as in `scores`.
    n_items, min_items, max_items : int
        As in `orders`; at most 6 items by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(davidson_luces(n_items=2), lambda model: model.largest_tie > 1)
    DavidsonLuce([0., 0.], ties=[0.])
    """
    delta = st.one_of(st.floats(-5.0, 5.0).map(lambda x: x + 0.0), st.just(-np.inf))
    ties = st.lists(delta, max_size=max_tie - 1)
    return st.builds(DavidsonLuce, _scores_up_to(max_score, wide, sizes), ties)


def gaussian_scores(
    *, max_score: float = 5.0, wide: bool = False, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[GaussianScores]:
    """Generate Gaussian-score distributions with scales from 1/4 to 4.

    Parameters
    ----------
    max_score, n_items, min_items, max_items
        As in `plackett_luces`.
    wide : bool
        Whether scores of magnitudes from 1e-8 on occur as well, and scales of 1e-9 and 1e9 with
        them; their spread is at most 40 standard deviations, since the time that the probability
        of an order takes grows with it.
    """
    values = _scores_up_to(max_score, wide, sizes)
    scales = st.sampled_from([1.0, 0.25, 4.0])
    if not wide:
        return st.builds(GaussianScores, values, scales)

    def within(score: FloatArray, scale: float) -> GaussianScores:
        return GaussianScores(np.clip(score, -20.0 * scale, 20.0 * scale), scale)

    return st.builds(within, values, st.one_of(scales, st.sampled_from([1e9, 1e-9])))


def mallows(
    *,
    max_theta: float = 3.0,
    distances: Sequence[str] = tuple(DISTANCES),
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[Mallows]:
    """Generate Mallows models; they shrink towards the uniform one with Kendall's distance.

    Parameters
    ----------
    max_theta : float
        The largest spread parameter.
    distances : sequence of str
        The distances to choose from.
    wide : bool
        Whether parameters of magnitudes from 1e-8 to 1e8 occur as well.
    n_items, min_items, max_items : int
        As in `orders`; at most 6 items by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(mallows(n_items=2), lambda model: True)
    Mallows([0, 1], 0, distance='kendall')
    """
    distance = st.sampled_from(list(distances))
    return st.builds(Mallows, orders(**_small(sizes)), _thetas(max_theta, wide), distance)


def generalized_mallows(
    *,
    max_theta: float = 3.0,
    distances: Sequence[str] = ("kendall", "cayley"),
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[GeneralizedMallows]:
    """Generate generalized Mallows models.

    Parameters
    ----------
    max_theta, distances, wide
        As in `mallows`.
    n_items, min_items, max_items : int
        As in `orders`; at most 6 items by default.
    """

    def around(center: IntArray) -> st.SearchStrategy[GeneralizedMallows]:
        stages = len(center) - 1
        thetas = st.lists(_thetas(max_theta, wide), min_size=stages, max_size=stages)
        distance = st.sampled_from(list(distances))
        return st.builds(GeneralizedMallows, st.just(center), thetas, distance)

    return orders(**_small(sizes)).flatmap(around)


def mixtures(
    *, max_components: int = 3, wide: bool = False, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[Mixture]:
    """Generate mixtures of Plackett-Luce and Mallows models; they shrink towards one component.

    Parameters
    ----------
    max_components : int
        The largest number of components.
    wide : bool
        As in `plackett_luces` and `mallows`.
    n_items, min_items, max_items : int
        As in `orders`; at most 6 items by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(mixtures(n_items=2), lambda model: True)
    Mixture(1 PlackettLuce; 2 items)
    """

    def of_items(order: IntArray) -> st.SearchStrategy[Mixture]:
        n = len(order)
        part = st.one_of(plackett_luces(n_items=n, wide=wide), mallows(n_items=n, wide=wide))
        shares = st.tuples(part, st.integers(1, 8))
        return st.lists(shares, min_size=1, max_size=max_components).map(mixed)

    def mixed(shares: list[tuple[Any, int]]) -> Mixture:
        parts, numbers = zip(*shares, strict=True)
        return Mixture(parts, np.array(numbers) / sum(numbers))

    return orders(**_small(sizes)).flatmap(of_items)


def good_bads(
    *,
    max_score: float = 2.0,
    max_grade: int = 2,
    spaces: Sequence[str] = ("orders", "interleavings"),
    tilts: Sequence[str | None] = (None, "ap", "ndcg", "auc"),
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[GoodBad]:
    """Generate good-bad pair models with at least one good and one bad item.

    Parameters
    ----------
    max_score : float
        The largest magnitude of a score.
    max_grade : int
        Labels are 0 to this.
    spaces : sequence of str
        The spaces to choose from.
    tilts : sequence of str or None
    wide : bool
        Whether scores of magnitudes from 1e-8 to 1e8 occur as well.
    n_items, min_items, max_items : int
        As in `orders`; 2 to 6 items by default.
    """
    parts = _pair_models(max_score, max_grade, tilts, wide, _small(sizes))
    space = st.sampled_from(list(spaces))
    return st.builds(lambda given, space: GoodBad(**given, space=space), parts, space)


def pair_signs(
    *,
    max_score: float = 2.0,
    max_grade: int = 2,
    tilts: Sequence[str | None] = (None, "auc"),
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[PairSigns]:
    """Generate pair models over sign vectors.

    Parameters
    ----------
    max_score, max_grade, tilts, wide
        As in `good_bads`.
    n_items, min_items, max_items : int
        As in `orders`; 2 to 6 items by default.
    """
    parts = _pair_models(max_score, max_grade, tilts, wide, _small(sizes))
    return st.builds(lambda given: PairSigns(**given), parts)


def valid_signs(
    *,
    max_score: float = 2.0,
    max_grade: int = 2,
    tilts: Sequence[str | None] = (None, "auc", "ap"),
    wide: bool = False,
    **sizes: Unpack[Sizes],
) -> st.SearchStrategy[ValidSigns]:
    """Generate pair models over the sign vectors that orders have.

    Parameters
    ----------
    max_score, max_grade, tilts, wide
        As in `good_bads`.
    n_items, min_items, max_items : int
        As in `orders`; 2 to 6 items by default, 18 at most.
    """
    parts = _pair_models(max_score, max_grade, tilts, wide, _small(sizes))
    return st.builds(lambda given: ValidSigns(**given), parts)


@st.composite
def _pair_models(
    draw: st.DrawFn,
    max_score: float,
    max_grade: int,
    tilts: Sequence[str | None],
    wide: bool,
    sizes: Sizes,
) -> dict[str, Any]:
    """Generate what the good-bad pair model takes, whatever it is summed over."""
    label = draw(labels(**sizes, max_grade=max_grade, min_relevant=1, min_irrelevant=1))
    score = draw(_scores_up_to(max_score, wide, {"n_items": len(label)}))
    tilt = draw(st.sampled_from(list(tilts)))
    scale, kappa = draw(st.sampled_from([1.0, 0.3])), draw(st.sampled_from([1.0, 10.0]))
    return {"scores": score, "labels": label, "scale": scale, "tilt": tilt, "kappa": kappa}


def _thetas(limit: float, wide: bool) -> st.SearchStrategy[float]:
    """Generate spread parameters."""
    ordinary = st.floats(0.0, limit)
    return st.one_of(ordinary, st.floats(1e-8, WIDEST)) if wide else ordinary


def _small(sizes: Sizes) -> Sizes:
    """Return the sizes, with at most 6 items by default: distributions list all orders."""
    return {"max_items": 6, **sizes}


def _scores_up_to(limit: float, wide: bool, sizes: Sizes) -> st.SearchStrategy[FloatArray]:
    return scores(min_value=-limit, max_value=limit, wide=wide, **_small(sizes))


st.register_type_strategy(Mallows, mallows())
st.register_type_strategy(GoodBad, good_bads())
st.register_type_strategy(GaussianScores, gaussian_scores())
st.register_type_strategy(DavidsonLuce, davidson_luces())
st.register_type_strategy(PairSigns, pair_signs())
st.register_type_strategy(PlackettLuce, plackett_luces())
st.register_type_strategy(Mixture, mixtures())
st.register_type_strategy(GeneralizedMallows, generalized_mallows())
st.register_type_strategy(ValidSigns, valid_signs())
