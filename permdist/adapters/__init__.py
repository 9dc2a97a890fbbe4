"""The objectives as losses of other libraries: boosted trees, PyTorch, JAX.

Each objective makes its own: ``objective.lightgbm()``, ``.xgboost()``, ``.torch()`` and ``.jax()``.
The libraries are loaded on use.
"""

from permdist.adapters.jax import JaxLoss
from permdist.adapters.lightgbm import LightGBMMeasure, LightGBMObjective
from permdist.adapters.torch import TorchLoss
from permdist.adapters.xgboost import XGBoostMeasure, XGBoostObjective

__all__ = [
    "JaxLoss",
    "LightGBMMeasure",
    "LightGBMObjective",
    "TorchLoss",
    "XGBoostMeasure",
    "XGBoostObjective",
]
