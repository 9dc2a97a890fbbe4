"""Stores: collections in a folder of ``.npy`` files, opened as memory maps.

The layout is documented in docs/large_data.md; `store_writer` makes stores.
"""

from __future__ import annotations

import hashlib
import json
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._files import parse_json
from permdist.data.queries import Queries

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

FORMAT = "permdist-store"
VERSION = 1
HEADER, CHECKSUMS = "header.json", "checksums.json"
NAMES = ("X", "y", "ptr", "qids", "doc_ids")
LONGEST_HEADER = 2**28
_KINDS = {"X": "f", "y": "i", "ptr": "i", "qids": "iU", "doc_ids": "U"}
_FIELDS: dict[str, Any] = {
    "n_queries": int,
    "n_documents": int,
    "n_features": int,
    "has_missing": bool,
    "feature_names": list | None,
    "checksums": str,
    "arrays": dict,
}


def is_store(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder that has the header of a store.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> is_store("no/such/folder")
    False
    """
    return (Path(path) / HEADER).is_file()


def open_store(path: str | os.PathLike[str], *, verify: bool = False) -> Queries:
    """Open a store as `Queries` whose arrays are memory maps: in milliseconds, whatever its size.

    Documents are read from disk when they are used, and the operating system keeps in memory what
    there is room for.

    Parameters
    ----------
    path : path
        The folder that `write_store` or ``permdist convert`` made.
    verify : bool
        Whether to read all files and compare their checksums. Without it the header, the sizes
        of the files and their types are checked.

    Returns
    -------
    Queries
        With the folder as its attribute `store`.

    Raises
    ------
    ValueError
        With the file, and for a wrong checksum the documents, that are damaged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from permdist import data
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "small.store"
    >>> _ = data.write_store(data.make_letor(5, rng=0), folder)
    >>> queries = data.open_store(folder, verify=True)
    >>> queries.n_queries, queries.X.dtype, queries.store.name
    (5, dtype('float32'), 'small.store')
    """
    folder = Path(path)
    header = read_header(folder)
    given = header["arrays"]
    arrays = {name: _open(folder, name, given[name]) for name in NAMES if name in given}
    n_documents, n_queries = header["n_documents"], header["n_queries"]
    shapes = {
        "X": (n_documents, header["n_features"]),
        "y": (n_documents,),
        "ptr": (n_queries + 1,),
        "qids": (n_queries,),
        "doc_ids": (n_documents,),
    }
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise ValueError(
                f"{folder / name}.npy: expected shape {shapes[name]} as {HEADER} says, got "
                f"{array.shape}"
            )
    ptr = np.array(arrays["ptr"])
    if ptr[0] != 0 or ptr[-1] != n_documents or (np.diff(ptr) <= 0).any():
        raise ValueError(f"{folder / 'ptr.npy'}: damaged: these are not the starts of queries")
    if verify:
        _verify(folder, header, arrays)
    names = header["feature_names"]
    result = Queries.trusted(
        arrays["X"],
        arrays["y"],
        ptr,
        arrays["qids"],
        doc_ids=arrays.get("doc_ids"),
        feature_names=None if names is None else tuple(names),
        has_missing=header["has_missing"],
    )
    result.store = folder.resolve()
    return result


def read_header(folder: Path) -> dict[str, Any]:
    """Read and check the header of a store.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    dict
        See docs/large_data.md.
    """
    file = folder / HEADER
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: no such folder")
    if not file.is_file():
        raise ValueError(
            f"{folder}: expected a store, a folder with {HEADER}; 'permdist convert' or "
            "permdist.data.write_store makes one"
        )
    header = _read_json(file)
    if header.get("format") != FORMAT:
        raise ValueError(f"{file}: expected the header of a store ({FORMAT})")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{file}: the store has version {header.get('version')!r:.40} of the format, this "
            f"permdist reads version {VERSION}; convert the data again, or update permdist"
        )
    if header.pop("checksum", None) != checksum_of(header):
        raise ValueError(f"{file}: the contents do not match their checksum: damaged or edited")
    wrong = [name for name, kind in _FIELDS.items() if not isinstance(header.get(name), kind)]
    if not wrong:
        arrays = header["arrays"]
        given = [name for name in NAMES if name in arrays or name != "doc_ids"]
        wrong = [f"the array {name}" for name in given if not _is_array(arrays.get(name))]
        names = header["feature_names"]
        if names is not None and [*map(type, names)] != [str] * header["n_features"]:
            wrong.append("feature_names with a text for each feature")
    if wrong:
        raise ValueError(f"{file}: expected an entry for {', '.join(wrong)}")
    return header


def _is_array(facts: Any) -> bool:
    """Check whether an entry of the header describes a file."""
    if not isinstance(facts, dict):
        return False
    return isinstance(facts.get("dtype"), str) and isinstance(facts.get("bytes"), int)


def checksum_of(header: dict[str, Any]) -> str:
    """Return the SHA-256 checksum of a header without its checksum: of its canonical JSON text."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _read_json(file: Path) -> dict[str, Any]:
    if file.stat().st_size > LONGEST_HEADER:
        raise ValueError(f"{file}: expected the header of a store, got a file that is too large")
    try:
        found = parse_json(file.read_bytes())
    except ValueError:
        raise ValueError(f"{file}: damaged: expected JSON") from None
    if not isinstance(found, dict):
        raise ValueError(f"{file}: damaged: expected a JSON object")
    return found


def _open(folder: Path, name: str, facts: dict[str, Any]) -> NDArray[Any]:
    """Open one array as a memory map, after a look at the size of its file."""
    file = folder / f"{name}.npy"
    if not file.is_file():
        raise FileNotFoundError(f"{file}: this file of the store is missing")
    size = file.stat().st_size
    if size != facts["bytes"]:
        word = "truncated" if size < facts["bytes"] else "damaged"
        raise ValueError(f"{file}: {word}: expected {facts['bytes']:,} bytes, got {size:,}")
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception:  # of many kinds, for a header that is a Python expression
        raise ValueError(f"{file}: damaged: it has no header of a .npy file") from None
    if array.dtype.kind not in _KINDS[name] or array.dtype.str != facts["dtype"]:
        raise ValueError(
            f"{file}: expected dtype {facts['dtype']} as {HEADER} says, got {array.dtype.str}"
        )
    if not array.flags.c_contiguous:
        raise ValueError(f"{file}: expected C order, got Fortran order")
    # A plain array over the map: kernels need no compilation of their own for it.
    return array.view(np.ndarray)


# ---- checksums -----------------------------------------------------------------------------------


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 checksum of the bytes of an array in C order."""
    return hashlib.sha256(as_bytes(array)).hexdigest()


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array in C order, without a copy where it is in that order."""
    if array.size == 0:
        return memoryview(b"")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _verify(folder: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Compare the checksums of all pieces, and name the first that is damaged."""
    file = folder / CHECKSUMS
    if not file.is_file():
        raise FileNotFoundError(f"{file}: this file of the store is missing")
    if hashlib.sha256(file.read_bytes()).hexdigest() != header["checksums"]:
        raise ValueError(f"{file}: the contents do not match their checksum: damaged or edited")
    first = query = 0
    for last, end, sums in _pieces(file, set(arrays)):
        for name, expected in sums.items():
            part = _part(arrays[name], name, (first, last), (query, end))
            if digest(part) != expected:
                raise ValueError(
                    f"{folder / name}.npy: damaged: the checksum of documents {first:,} to "
                    f"{last - 1:,} (queries number {query:,} to {end - 1:,}) is wrong"
                )
        first, query = last, end
    if (first, query) != (header["n_documents"], header["n_queries"]):
        raise ValueError(f"{file}: expected checksums of all documents, got those of {first:,}")


def _pieces(file: Path, names: set[str]) -> list[tuple[int, int, dict[str, str]]]:
    """Read where pieces end, in documents and in queries, and their checksums."""
    found, last, end = [], 0, 0
    try:
        for piece in _read_json(file)["pieces"]:
            last, end = (
                last + operator.index(piece["documents"]),
                end + operator.index(piece["queries"]),
            )
            sums = dict(piece["sha256"])
            if set(sums) != names or piece["documents"] < 1 or piece["queries"] < 1:
                raise KeyError
            found.append((last, end, sums))
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{file}: damaged: expected the checksums of pieces") from None
    return found


def _part(
    array: NDArray[Any], name: str, documents: tuple[int, int], queries: tuple[int, int]
) -> NDArray[Any]:
    """Return the entries of an array that belong to a piece."""
    if name == "ptr":  # without the first entry, which is 0
        return array[queries[0] + 1 : queries[1] + 1]
    return array[slice(*(queries if name == "qids" else documents))]
