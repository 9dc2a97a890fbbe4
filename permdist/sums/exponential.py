"""An exponential that the compiler can vectorize: loops over it run several entries at a time."""

from __future__ import annotations

from typing import Any

import llvmlite.ir
from numba.core import types
from numba.extending import intrinsic

from permdist._kernels import kernel


@intrinsic
def _float_of(_typing: Any, _bits: Any) -> Any:
    """Read 64 bits as a float."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], llvmlite.ir.DoubleType())

    return types.float64(types.int64), build


@intrinsic
def _bits_of(_typing: Any, _value: Any) -> Any:
    """Read a float as 64 bits."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], llvmlite.ir.IntType(64))

    return types.int64(types.float64), build


# An intrinsic is called with its arguments only, which its type does not tell.
to_float: Any = _float_of
to_bits: Any = _bits_of


@kernel(fuse=True, inline=True)
def exp_down(x: float) -> float:
    """exp(x) for x <= 0 to the last digit, 0 below -708, in operations that vectorize.

    x = k log 2 + r with |r| <= log(2) / 2, a Taylor polynomial in r, and k put into the exponent.
    """
    y = max(x, -708.0)
    shifted = y * 1.4426950408889634 + 6755399441055744.0  # 1.5 * 2^52: the low bits are k
    k = shifted - 6755399441055744.0
    r = y - k * 0.693147180369123816490
    r = r - k * 1.90821492927058770002e-10
    q = 1.0 / 6227020800.0
    q = q * r + 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    q = q * r + 1.0
    q = q * r + 1.0
    power = to_float((to_bits(shifted) + 1023) << 52)
    return q * power if x >= -708.0 else 0.0
