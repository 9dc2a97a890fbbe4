"""Distributions over rankings: sample them, inspect them, fit them, test what they claim.

Everything is reached from here (``from permdist import rankings, measures, data``), and each
part is loaded when it is first used, so that ``import permdist`` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from permdist.ballots import Ballots
    from permdist.distributions import (
        DavidsonLuce,
        Distribution,
        GaussianScores,
        GaussianScoresBatch,
        GeneralizedMallows,
        GoodBad,
        Mallows,
        Mixture,
        PairSigns,
        PlackettLuce,
        PlackettLuceBatch,
        ValidSigns,
        WeightedOrders,
    )

__version__ = "0.1.0"

__all__ = [
    "Ballots",
    "DavidsonLuce",
    "Distribution",
    "GaussianScores",
    "GaussianScoresBatch",
    "GeneralizedMallows",
    "GoodBad",
    "Mallows",
    "Mixture",
    "PairSigns",
    "PlackettLuce",
    "PlackettLuceBatch",
    "ValidSigns",
    "WeightedOrders",
    "__version__",
    "adapters",
    "comparison",
    "consensus",
    "data",
    "diagnostics",
    "distances",
    "distributions",
    "explorer",
    "identities",
    "inference",
    "measures",
    "models",
    "objectives",
    "plots",
    "posterior",
    "rankings",
    "rating",
    "report",
    "samplers",
    "strategies",
]

# In a checkout, `samplers` and `models` lie beside this folder and only an installation maps them
# to `permdist.samplers` and `permdist.models`. Python started in the checkout's root finds this
# folder before any installed copy, so these two are looked up in the root, and nothing else is.
_ROOT = Path(__file__).resolve().parent.parent


class _Checkout:
    """Finds `permdist.samplers` and `permdist.models` in a checkout."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004
        """Return where one of the two packages is, None for anything else."""
        if name not in ("permdist.samplers", "permdist.models"):
            return None
        folder = _ROOT / name.rpartition(".")[2]
        return spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


if (_ROOT / "samplers" / "__init__.py").is_file() and (_ROOT / "pyproject.toml").is_file():
    sys.meta_path.append(_Checkout)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module 'permdist' has no attribute {name!r}")
    if name == "Ballots":
        return importlib.import_module("permdist.ballots").Ballots
    if name[0].isupper():
        return getattr(importlib.import_module("permdist.distributions"), name)
    return importlib.import_module(f"permdist.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
