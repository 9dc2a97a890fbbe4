"""How notebooks show distributions: a picture of the rank marginals, and the numbers that matter.

Showing a distribution takes a fraction of a second, however large it is. What would take longer is
not shown, and the output says so.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._result import Html, block, facts, note, table
from permdist._text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from permdist._typing import FloatArray, IntArray

MOST_BARS = 60  # places in one small picture
MOST_ITEMS = 12
DRAWS = 400


def distribution_html(dist: Any) -> str:
    """Show a distribution over rankings.

    Its rank marginals are exact, or estimated from draws, up to the numbers of items that
    ``dist._quick()`` says, and not shown for more.

    Parameters
    ----------
    dist : Distribution or TiedRankings

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> text = distribution_html(PlackettLuce([1.0, 0.0], names=["tea", "<b>"]))
    >>> "tea &gt; &lt;b&gt;" in text, "<td>1.269</td>" in text
    (True, True)
    """
    n, names = dist.n_items, dist.names if dist.is_named else None
    told: dict[str, Any] = {"items": n}
    marginals, how = _marginals(dist)
    if n <= dist._quick()[0]:
        told |= _mode(dist)
    if marginals is None:
        order = _order(dist)[:MOST_ITEMS]
        own = _own(dist)
        rows = [[_name(names, item), *(column[item] for column in own.values())] for item in order]
        head = ["item", *own]
        return block(repr(dist), facts(told), table(head, rows), note(how), *_rest(n))
    own = {head: [f"{value:.4g}" for value in values] for head, values in _own(dist).items()}
    parts = places_html(marginals, names, how, own)
    return block(repr(dist), facts(told), parts)


def places_html(
    marginals: FloatArray,
    names: Sequence[str] | None,
    how: str,
    own: Mapping[str, Any] | None = None,
) -> str:
    """Return a table of items with bars for the chances of their places, best items first.

    Parameters
    ----------
    marginals : array of float, shape (n, n)
        The chance of each item to be at each position.
    names : sequence of str or None
        Of the items; None for their numbers.
    how : str
        Where the chances come from.
    own : mapping of str to sequence, optional
        More columns, with a value per item.

    Examples
    --------
    >>> places_html(np.eye(2), ["tea", "milk"], "exact").count("<svg")
    2
    """
    n, more = len(marginals), own or {}
    mean = 1.0 + marginals @ np.arange(n)
    order = np.argsort(mean, kind="stable")[:MOST_ITEMS]
    places = min(n, MOST_BARS)
    highest = float(marginals[order, :places].max())
    tops = ["top 3"] if n > 3 else []
    rows = [
        [
            _name(names, item),
            *(column[item] for column in more.values()),
            bars(marginals[item, :places], highest, _places(names, item, marginals[item])),
            f"{mean[item]:.3f}",
            f"{marginals[item, 0]:.3f}",
            *(f"{marginals[item, :3].sum():.3f}" for _ in tops),
        ]
        for item in order.tolist()
    ]
    of = "places" if places == n else f"places 1 to {places} of {n:,}"
    scale = f"Bars: the chances of {of}, the highest bar {highest:.3g}; {how}."
    head = ["item", *more, "places", "mean place", "first", *tops]
    return "".join([table(head, rows), note(scale), *_rest(n)])


def pairs_html(dist: Any) -> str:
    """Show a distribution over the signs of pairs.

    Parameters
    ----------
    dist : PairSigns

    Examples
    --------
    >>> from permdist import PairSigns
    >>> text = pairs_html(PairSigns([1.0, 0.0, 0.5], [1, 0, 0]))
    >>> "<span>pairs</span> 2<" in text
    True
    """
    label = np.asarray(dist.labels)
    above = label[:, None] > label[None, :]
    told: dict[str, Any] = {"items": dist.n_items, "pairs": int(above.sum())}
    if dist.n_items > dist._quick()[0]:
        left = "pair_probabilities() computes what is not shown for so many items."
        return block(repr(dist), facts(told), note(left))
    chance = dist.pair_probabilities()
    if chance.shape != above.shape:  # goods by bads
        whole = np.zeros(above.shape)
        whole[above] = chance.ravel()
        chance = whole
    told["mean chance that a pair is in order"] = f"{chance[above].mean():.4f}"
    names = dist.names if dist.is_named else None
    better = np.flatnonzero(above.any(axis=1))
    shares = np.array([chance[item][above[item]].mean() for item in better])
    rows = []
    for place in np.argsort(-shares, kind="stable")[:MOST_ITEMS].tolist():
        item = int(better[place])
        own = chance[item][above[item]]
        name, some = _name(names, item), own[:MOST_BARS]
        text = f"{name}: above the others with chances from {own.min():.3f} to {own.max():.3f}"
        row = [name, f"{dist.scores[item]:.4g}", str(label[item]), bars(some, 1.0, text)]
        rows.append([*row, f"{shares[place]:.3f}"])
    head = ["item", "score", "label", "above each worse item", "mean"]
    scale = "Bars: the chances to be above the items with lower labels, by number; full height 1."
    if above.sum(axis=1).max() > MOST_BARS:
        scale += f" The first {MOST_BARS} of them."
    parts = facts(told), table(head, rows), note(scale)
    return block(repr(dist), *parts, *_rest(len(better)))


def _marginals(dist: Any) -> tuple[FloatArray | None, str]:
    """Return rank marginals and how they were found, or None and why not."""
    n, more = dist.n_items, "rank_marginals() computes all of them"
    try:
        exact, drawn = dist._quick()
        if n <= exact:
            found = dist.rank_marginals()
            if getattr(found, "draws", 0):  # not exact after all
                return _drawn(dist), f"estimated from {DRAWS} draws; {more}"
            return np.asarray(found), "exact"
        if n <= drawn:
            return _drawn(dist), f"estimated from {DRAWS} draws; {more}"
    except Exception as error:  # a distribution of a user's own: show what there is
        return None, f"Rank marginals are not shown: {type(error).__name__}: {error}"
    more = "rank_marginals() computes them, or says why not"
    return None, f"Rank marginals are not shown for so many items; {more}."


def _drawn(dist: Any) -> FloatArray:
    """Estimate rank marginals, always from the same draws."""
    n = dist.n_items
    if hasattr(dist, "sample_ranks"):  # with ties
        return np.asarray(dist.rank_marginals(method="sample", draws=DRAWS, rng=0))
    orders = dist.sample(DRAWS, rng=0)
    counts = np.bincount((orders * n + np.arange(n)).ravel(), minlength=n * n)
    return counts.reshape(n, n) / DRAWS


def _mode(dist: Any) -> dict[str, Any]:
    """Return the most probable ranking in words, if it is known."""
    try:
        best = dist.mode()
    except Exception:  # of a user's own, or too many items for this one
        return {}
    if getattr(best, "draws", 0):
        return {}
    names = dist.names if dist.is_named else None
    buckets = [[item] for item in best.tolist()] if isinstance(best, np.ndarray) else best.buckets
    shown = [" = ".join(_name(names, item) for item in bucket) for bucket in buckets[:MOST_ITEMS]]
    more = " > ..." if len(buckets) > MOST_ITEMS else ""
    return {"most probable": " > ".join(shown) + more}


def _order(dist: Any) -> list[int]:
    """Return the items as they are listed where nothing is known about their places."""
    scores = getattr(dist, "scores", None)
    if scores is not None:
        return np.argsort(-np.asarray(scores), kind="stable").tolist()
    center: IntArray | None = getattr(dist, "center", None)
    return list(range(min(dist.n_items, MOST_ITEMS))) if center is None else center.tolist()


def _name(names: Sequence[str] | None, item: int) -> str:
    return str(item) if names is None else names[item]


def _own(dist: Any) -> dict[str, Any]:
    """Return what a distribution has for each item."""
    return {
        name: getattr(dist, f"{name}s") for name in ("score", "label") if hasattr(dist, f"{name}s")
    }


def _places(names: Sequence[str] | None, item: int, chances: FloatArray) -> str:
    """Return an item's most likely places in words."""
    likely = np.argsort(-chances, kind="stable")[:3]
    told = ", ".join(f"{place + 1} ({chances[place]:.3f})" for place in likely.tolist())
    return f"{_name(names, item)}: most likely at {told}"


def _rest(n: int) -> list[str]:
    left = n - MOST_ITEMS
    return [note(f"Not shown: {plural(left, 'more item')}.")] if left > 0 else []


def bars(values: FloatArray, highest: float, meaning: str) -> Html:
    """Return a small picture of numbers that are not negative: a bar each.

    Parameters
    ----------
    values : array of float, shape (n,)
    highest : float
        What a bar of full height stands for.
    meaning : str
        Shown under the mouse, and read out instead of the picture.

    Examples
    --------
    >>> bars(np.array([1.0, 0.0]), 1.0, "a < b").count("&lt;")
    2
    """
    n, height = len(values), 20
    width = max(3, min(14, 180 // max(n, 1)))
    gap = 1 if width > 3 else 0
    # As rectangles of one path; what is less than a tenth of a pixel is left out.
    levels = np.round(np.asarray(values) / max(highest, 1e-300) * height, 1)
    path = "".join(
        f"M{k * width} {height}v-{level:g}h{width - gap}v{level:g}z"
        for k, level in enumerate(levels.tolist())
        if level > 0.0
    )
    text = escape(meaning)
    return Html(
        f'<svg role="img" aria-label="{text}" width="{n * width}" height="{height + 1}" '
        f'viewBox="0 0 {n * width} {height + 1}"><title>{text}</title>'
        f'<path d="{path}" fill="#3b82d0"/>'
        f'<path d="M0 {height + 0.5}h{n * width}" stroke="currentColor" stroke-opacity=".4"/></svg>'
    )
