"""What other libraries read: netCDF files with a checksum, and arviz's objects.

arviz has two generations, before and from 1.0; what differs between them is here.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from typing import TYPE_CHECKING, Any

from permdist._files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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


_CHECKSUM = b"\npermdist sha256 "
_CHECKSUM_LENGTH = len(_CHECKSUM) + 64 + 1


def write_netcdf(path: Path, groups: Mapping[str, xarray.Dataset]) -> None:
    """Write datasets to a file atomically, the one without a name as its root, and a checksum.

    Parameters
    ----------
    path : Path
    groups : mapping of str to xarray.Dataset
    """
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    buffer = io.BytesIO()  # HDF5 itself does not survive a disk that fills up
    with h5netcdf.File(buffer, "w") as file:
        for name, dataset in groups.items():
            dataset.dump_to_store(H5NetCDFStore(file.create_group(name) if name else file))
    write_atomically(path, [add_checksum(buffer.getvalue())])


def read_netcdf(path: Path, names: Iterable[str] = ("",)) -> dict[str, xarray.Dataset]:
    """Read those of some groups that a file has, after comparing its checksum.

    Parameters
    ----------
    path : Path
    names : iterable of str
        The root has no name.
    """
    import h5netcdf
    import xarray

    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        data = strip_checksum(path.read_bytes())
        with h5netcdf.File(io.BytesIO(data), "r") as file:
            there = [name for name in names if not name or name in file.groups]
        found = {}
        for name in there:
            group = name or None
            with xarray.open_dataset(io.BytesIO(data), engine="h5netcdf", group=group) as opened:
                found[name] = opened.load()
    except Exception as error:  # a damaged file may raise any
        text = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: not a netCDF file, or a damaged one ({text})") from error
    return found


def add_checksum(data: bytes) -> bytes:
    r"""Append a line with the checksum of what stands before it.

    Examples
    --------
    >>> add_checksum(b"tea")[:20]
    b'tea\npermdist sha256 '
    >>> strip_checksum(add_checksum(b"tea"))
    b'tea'
    """
    return data + _CHECKSUM + hashlib.sha256(data).hexdigest().encode() + b"\n"


def strip_checksum(data: bytes) -> bytes:
    """Return the data without its checksum.

    Raises
    ------
    ValueError
        Saying what is wrong: there is no checksum, or it is another one.

    Examples
    --------
    >>> strip_checksum(add_checksum(b"tea").replace(b"tea", b"sea"))
    Traceback (most recent call last):
    ...
    ValueError: the contents do not match their checksum
    """
    if not data[-_CHECKSUM_LENGTH:].startswith(_CHECKSUM) or not data.endswith(b"\n"):
        raise ValueError("the checksum at its end is missing: it was cut or edited")
    body = data[:-_CHECKSUM_LENGTH]
    if data[len(body) + len(_CHECKSUM) : -1] != hashlib.sha256(body).hexdigest().encode():
        raise ValueError("the contents do not match their checksum")
    return body
