"""arviz of either generation: what differs between those before and from 1.0."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray

# The quantiles whose effective draws are those of the tails; the generations have other defaults.
TAILS = (0.05, 0.95)


def load_arviz() -> Any:
    """Import arviz without its announcements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def has_trees() -> bool:
    """Return whether arviz takes trees of xarray, as from 1.0 on, or else `InferenceData`."""
    return int(load_arviz().__version__.split(".")[0]) >= 1


def to_arviz(groups: Mapping[str, xarray.Dataset]) -> Any:
    """Return groups of datasets as arviz takes them.

    Parameters
    ----------
    groups : mapping of str to xarray.Dataset
    """
    if not has_trees():
        return load_arviz().InferenceData(**groups)
    import xarray

    return xarray.DataTree.from_dict(dict(groups))
