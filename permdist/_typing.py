"""Type aliases shared by all modules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
AnyIntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
RandomState = int | np.random.Generator | None
