"""Conversion of trec_eval's names of measures: ``ndcg_cut_10`` is ``ndcg@10[gain=linear]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from permdist.measures.base import Measure

# trec_eval's name in lower case, with a cut-off or level where it has one, and ours.
_READ = (
    (r"p_(\d+)", "p@{0}"),
    (r"recall_(\d+)", "recall@{0}"),
    (r"success_(\d+)", "success@{0}"),
    (r"relative_p_(\d+)", "relative_p@{0}"),
    (r"map_cut_(\d+)", "ap@{0}"),
    (r"ndcg_cut_(\d+)", "ndcg@{0}[gain=linear]"),
    (r"iprec_at_recall_(\d*\.?\d+)", "iprec[recall={0}]"),
    (r"rprec_mult_(\d*\.?\d+)", "rprec[multiple={0}]"),
    (r"recip_rank", "rr"),
)
_WRITTEN = {
    "ap": ("map", "map_cut_{}"),
    "gmap": ("gm_map", ""),
    "ndcg": ("ndcg", "ndcg_cut_{}"),
    "p": ("", "P_{}"),
    "recall": ("", "recall_{}"),
    "success": ("", "success_{}"),
    "relative_p": ("", "relative_P_{}"),
    "rr": ("recip_rank", ""),
    "rprec": ("Rprec", ""),
    "11pt": ("11pt_avg", ""),
    "bing": ("binG", ""),
    "g": ("G", ""),
    "rndcg": ("Rndcg", ""),
    "infap": ("infAP", ""),
    "set_p": ("set_P", ""),
    "set_f": ("set_F", ""),
    "set_ap": ("set_map", ""),
    "set_relative_p": ("set_relative_P", ""),
}


def from_trec(text: str) -> str:
    """Translate a name of trec_eval's, in lower case, to ours; other text stays as it is.

    Examples
    --------
    >>> from_trec("ndcg_cut_10"), from_trec("map")
    ('ndcg@10[gain=linear]', 'map')
    """
    preset, colon, name = text.rpartition(":")
    for pattern, ours in _READ:
        match = re.fullmatch(pattern, name)
        if match is not None:
            return preset + colon + ours.format(*match.groups())
    return text


def trec_name(measure: Measure) -> str:
    """Return trec_eval's name of a measure, or ours, with its conventions, where it has none.

    Different measures have different names, and none has the name of another measure of
    trec_eval's: where its conventions are not ours, as for the gain of NDCG, they are spelled out.

    Parameters
    ----------
    measure : Measure

    Examples
    --------
    >>> from permdist.measures import parse
    >>> trec_name(parse("trec:ndcg@10")), trec_name(parse("ndcg@10"))
    ('ndcg_cut_10', 'ndcg@10[gain=exp2]')
    """
    from permdist.measures.registry import parse, trec

    alias, cut = "".join(measure.aliases[:1]), getattr(measure, "k", None)
    if alias == "iprec":
        text = f"iprec_at_recall_{measure.recall:.2f}"  # type: ignore[attr-defined]
    elif alias == "rprec" and measure.multiple != 1.0:  # type: ignore[attr-defined]
        text = f"Rprec_mult_{measure.multiple:.2f}"  # type: ignore[attr-defined]
    else:
        whole, at = _WRITTEN.get(alias, (alias, ""))
        text = whole if cut is None else at.format(cut)
    # Only if the name says all of it; the plain one of NDCG has trec_eval's gain.
    if text and parse(f"trec:{text}") == measure:
        return text
    return measure.name_under(trec)
