"""Validation shared by all public functions: convert the input, or raise a clear error."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._files import check_size
from permdist._text import hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState


def as_rng(rng: RandomState) -> np.random.Generator:
    """Return a generator from a seed, a generator (as it is) or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(
            f"rng: expected an int, a numpy.random.Generator or None, got {type(rng).__name__}"
        )
    if rng < 0:
        raise ValueError(f"rng: expected a non-negative seed, got {rng}")
    return np.random.default_rng(rng)


def as_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Convert to an array; rows of unequal length and objects are refused by name.

    Sparse matrices become dense, nullable columns of a data frame floats.
    """
    check_masks(name, values)
    try:
        array = np.asarray(dense(name, values))
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{name}: expected an array, got rows of unequal length") from error
    except RuntimeError as error:
        if not getattr(values, "requires_grad", False):
            raise
        raise ValueError(
            f"{name}: expected numbers, got a tensor that requires a gradient, which stops here; "
            f"pass {name}.detach()"
        ) from error
    if array.dtype.kind == "O":
        array = np.asarray(without_nulls(values))
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: expected numbers, got dtype {array.dtype}")
    return array


def first_index(mask: BoolArray, start: int = 0) -> str:
    """Name the first true entry of a mask: ``4`` in one dimension, ``(0, 4)`` in more.

    `start` is the row of the first entry, where the mask is that of a part of the rows.
    """
    row, *rest = np.unravel_index(int(np.argmax(mask)), mask.shape)
    where = (int(row) + start, *map(int, rest))
    return str(where[0]) if mask.ndim == 1 else str(where)


LARGEST_SCORE = 1e8  # of a distribution or an objective
PIECE = 1 << 18  # entries of a large array that are looked at together; they fit into a cache


def finite(
    name: str,
    values: ArrayLike,
    *,
    ndim: int | None = None,
    nan: bool = False,
    remedy: str = "",
    single: bool = False,
) -> FloatArray:
    """Convert to float64 and refuse NaN, infinities, booleans and the wrong dimension.

    With `nan`, NaN is accepted; otherwise `remedy` is added to the error about it. With `single`,
    arrays of float32 or float64 are returned as they are, in any order of memory.
    """
    array = as_array(name, values)
    if array.dtype.kind == "b":
        raise TypeError(f"{name}: expected numbers, got booleans")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if single and array.dtype in (np.float32, np.float64):
        result = array
    else:
        result = np.asarray(array, dtype=np.float64, order="C")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = max(abs(int(array.max())), abs(int(array.min())))
        if largest > 2**53:
            raise ValueError(f"{name}: whole numbers beyond 2^53 lose digits as floats: {largest}")
    for start, part in pieces(result):
        bad = np.isinf(part) if nan else ~np.isfinite(part)
        if bad.any():
            bad = np.atleast_1d(bad)
            value = np.atleast_1d(part)[bad][0]
            where = first_index(bad, start)
            hint = f"; {remedy}" if remedy and np.isnan(value) else ""
            raise ValueError(f"{name}: expected finite numbers, got {value} at index {where}{hint}")
    return result


def check_scores(values: FloatArray, unit: float = 1.0, name: str = "scores") -> None:
    """Refuse scores beyond 1e8 units: their differences would lose the digits that matter."""
    bad = ~(np.abs(values) <= LARGEST_SCORE * unit)
    if bad.any():
        got, limit = values[bad][0], LARGEST_SCORE * unit
        raise ValueError(
            f"{name}: expected numbers up to {limit:g} in absolute value, got {got} at index "
            f"{first_index(bad)}; rescale them"
        )


def pieces(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut an array into ranges of rows of about a quarter of a million entries each.

    Yields
    ------
    start : int
        The first row.
    part : array
    """
    if array.ndim == 0 or array.size <= PIECE:
        yield 0, array
        return
    step = max(1, PIECE // max(1, array.size // len(array)))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def integers(name: str, values: ArrayLike, *, what: str = "integers") -> IntArray:
    """Convert to int64; floats are refused, even whole-numbered ones."""
    array = as_array(name, values)
    if array.dtype.kind == "f" and np.isnan(array).any():
        where = first_index(np.atleast_1d(np.isnan(array)))
        raise ValueError(f"{name}: expected {what}, got nan at index {where}")
    if array.dtype.kind not in "iu" and array.size:  # an empty list has no type to speak of
        raise TypeError(f"{name}: expected {what}, got dtype {array.dtype}")
    return np.asarray(array, dtype=np.int64, order="C")


def grades(name: str, values: ArrayLike) -> IntArray:
    """Convert relevance labels to int64; whole-numbered floats are accepted, negatives are not."""
    array = as_array(name, values)
    if array.dtype.kind == "f":
        bad = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**63))
        if bad.any():
            where = first_index(np.atleast_1d(bad))
            value = np.atleast_1d(array)[np.atleast_1d(bad)][0]
            raise ValueError(
                f"{name}: expected non-negative integers, got {value} at index {where}"
            )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise ValueError(f"{name}: expected labels below 2^63, got {array.max()}")
    result = np.asarray(array, dtype=np.int64, order="C")
    if result.size and result.min() < 0:
        negative = np.atleast_1d(result < 0)
        value = np.atleast_1d(result)[negative][0]
        raise ValueError(
            f"{name}: expected non-negative integers, got {value} at index {first_index(negative)}"
        )
    return result


def count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Check a whole number with a lower limit."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name}: expected at least {minimum}, got {value}")
    return int(value)


SMALLEST_SCALE = 1e-290


def scale_of(name: str, value: Any) -> float:
    """Check a scale factor: positive, finite, and not so extreme that products overflow."""
    result = float(finite(name, value, ndim=0))
    if not SMALLEST_SCALE <= result <= 1.0 / SMALLEST_SCALE:
        raise ValueError(
            f"{name}: expected a positive number from {SMALLEST_SCALE:g} to "
            f"{1.0 / SMALLEST_SCALE:g}, got {result:g}"
        )
    return result


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, so that kernels are compiled for one type of array only."""
    view = array.view()
    view.flags.writeable = False
    return view


def batch_shape(size: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Read the size of a batch as numpy's generators do: None is a single draw."""
    if size is None:
        return ()
    entries = size if isinstance(size, tuple | list) else (size,)
    return tuple(count("size", entry, minimum=0) for entry in entries)


LONGEST_NAME = 300


def short_text(name: str, text: str) -> str:
    """Check that the text of a name is not longer than `LONGEST_NAME`."""
    if len(text) > LONGEST_NAME:
        raise ValueError(
            f"{name}: expected at most {LONGEST_NAME} characters, got {len(text):,}, from "
            f"{text[:20]!r} on"
        )
    return text


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Check that a value is one of the options; suggest the nearest one if not."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    shown, given = ", ".join(options), repr(value)
    given = given if len(given) <= 80 else f"{given[:77]}..."
    raise ValueError(f"{name}: expected one of {shown}, got {given}{hint(value, options)}")


def dense(name: str, values: Any) -> Any:
    """Return a scipy sparse matrix or array as a dense one; anything else as it is.

    A matrix of which a share s is not 0 takes about ``1 / (1.5 s)`` times its memory.
    """
    sparse = sys.modules.get("scipy.sparse")  # nothing is sparse before it was imported
    if sparse is None or not sparse.issparse(values):
        return values
    shape = " x ".join(f"{size:,}" for size in values.shape)
    check_size(f"{name}: as a dense array, {shape} numbers", 8.0 * math.prod(values.shape))
    return values.toarray(order="C")


def check_masks(name: str, values: Any) -> None:
    """Refuse arrays with masked entries, whose masks numpy would silently drop."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        hidden = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name}: expected numbers, got an array with {hidden:,} masked entries; fill them or "
            "leave their documents out"
        )


def without_nulls(values: Any) -> Any:
    """Return columns of a data frame whose types numpy does not have, with NaN for what is null.

    Nullable integers, nullable floats, and columns of different types side by side. Columns of
    objects and of texts stay as they are.
    """
    if not hasattr(values, "to_numpy") or not hasattr(values, "dtypes"):
        return values
    dtypes = values.dtypes
    kinds = [
        getattr(dtype, "kind", "O")
        for dtype in (dtypes if isinstance(dtypes, Iterable) else [dtypes])
    ]
    if not kinds or any(kind not in "biuf" for kind in kinds):
        return values
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def import_extra(name: str, what: str) -> Any:
    """Import a package that is an optional dependency, and return it.

    Parameters
    ----------
    name : str
        Of the package, and of the extra that installs it.
    what : str
        What needs it, for the message.

    Raises
    ------
    ImportError
        In one line, with the command that installs the package.

    Examples
    --------
    >>> import_extra("nosuchbooster", "trees")
    Traceback (most recent call last):
    ImportError: trees: requires nosuchbooster; pip install nosuchbooster
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise  # it is there, and something of its own is missing
        raise ImportError(f"{what}: requires {name}; pip install {name}") from None
