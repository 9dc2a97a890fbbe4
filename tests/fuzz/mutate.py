"""Mutations: of bytes, and of what bytes stand for (JSON, HDF5, bundles of files).

Every mutation takes its choices from the generator it is given and from nothing else, so that a
case can be made again from its number.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

MAX_LENGTH = 1 << 16

NUMBERS = (  # noqa: SIM905
    "0 1 2 -1 -0 007 255 256 32767 65536 1000000 2147483647 2147483648 4294967296 3000000000 "
    "9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 "
    "1180591620717411303424 1e5 1e-5 1e17 1e-300 5e-324 1e308 -1e308 1e309 1e999 nan NaN inf "
    "-inf Infinity +1 .5 5. 1.5 0x10 1_000 1,5 1e 1e+ - + . ١٢ ½ 0.1000000000000000055511151231"
).split()
TOKENS = [
    *(number.encode() for number in (*NUMBERS, "9" * 400, "9" * 5000)),
    *(word.encode() for word in ("é", "\u2028", "\u0085", "\u00a0", "\ufeff", "😀", "\u202e")),
    *(b"\0", b"\r\n", b"\n", b"\r", b"\t", b" ", b"\xff\xfe", b"\xc3", b"\x1f\x8b", b"\x1b[31m"),
    *(b"NULL", b"None", b"true", b"%s", b"{}", b"[]", b'"', b"'", b"\\", b"#", b":", b",", b"@"),
    *(b"../x", b"-", b"--", b"=", b"|", b";", b" " * 3000, b"," * 300, b"[" * 3000),
]
NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-320, 1e17, 1e308, -1e308),
    *(float("nan"), float("inf"), -float("inf"), 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**70),
    *(10**9, 10**400, "", "0", "nan", "inf", "rm -rf", "nonsense", "é\u2028\0", "x" * 300),
    *([], [[]], [0], [1.0, None], [[1.0], [1.0, 2.0]], ["a", 1], {}, {"a": 1}, {"": []}),
]
DTYPES = ("bool", "int8", "uint64", "int64", "float16", "float32", "float64", "O", "complex128")
DTYPES += ("U3", "S3", "M8[s]", ">i4", ">f8")


# ---- bytes -------------------------------------------------------------------------------------


def _span(data: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + 1 + int(rng.expovariate(1 / 8)))


def flip(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    if not data:
        return data
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def delete(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    a, b = _span(data, rng)
    return data[:a] + data[b:]


def duplicate(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    a, b = _span(data, rng)
    return data[:b] + data[a:b] * rng.choice((1, 1, 2, 10, 1000)) + data[b:]


def insert(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    a, _ = _span(data, rng)
    return data[:a] + rng.choice(tokens) + data[a:]


def overwrite(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    a, b = _span(data, rng)
    return data[:a] + rng.choice(tokens) + data[b:]


def truncate(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def replace_number(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return insert(data, rng, tokens, other)
    a, b = rng.choice(found).span()
    return data[:a] + rng.choice(NUMBERS).encode() + data[b:]


def move_line(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.choice((0, 1, 1, 2, 30))):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


BYTES = (flip, delete, duplicate, insert, overwrite, truncate, splice, replace_number, move_line)


def mutate_bytes(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    own = [*tokens, *TOKENS] if rng.random() < 0.5 or not tokens else tokens
    return rng.choice(BYTES)(data, rng, own, other)


# ---- JSON --------------------------------------------------------------------------------------


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List every (container, key) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            keys = list(one) if isinstance(one, dict) else list(range(len(one)))
            found += [(one, key) for key in keys]
            waiting += [one[key] for key in keys]
    return found


def mutate_value(root: Any, rng: Random) -> Any:
    """Change a JSON value somewhere; containers are changed in place."""
    places = _places(root)
    if not places or rng.random() < 0.01:
        return rng.choice(NASTY)
    # Long lists of numbers would hide everything else: choose the container first.
    containers = {id(one): one for one, _ in places}
    one = rng.choice(list(containers.values()))
    key = rng.choice(list(one)) if isinstance(one, dict) else rng.randrange(len(one))
    kind = rng.randrange(10)
    if kind == 0:
        del one[key]
    elif kind == 1 and isinstance(one, list):
        # Containers that hold one another many times over would grow without end.
        nested = isinstance(one[key], dict | list)
        one[key:key] = [one[key]] * (1 if nested else rng.choice((1, 1, 3, 40)))
    elif kind == 1 or kind == 2:
        there, where = rng.choice(places)
        copied = json.loads(json.dumps(there[where]))
        if isinstance(one, dict) and kind == 1:
            one[rng.choice((str(key) + "x", "", *map(str, one)))] = copied
        else:
            one[key] = copied
    elif kind in (3, 7) and isinstance(one[key], int | float) and not isinstance(one[key], bool):
        try:
            factor = rng.choice((-1, 0, 1, 1, 2, 0.5, 10, 1e6, 1e10, 1e16, 1e-10, 1e150, 1e-150))
            one[key] = one[key] * factor + rng.choice((0, 0, 1, -1))
        except OverflowError:
            one[key] = 0
    elif kind == 4 and isinstance(one, list):
        rng.shuffle(one)
    elif kind == 5:
        one[key] = [one[key]]
    elif kind == 6 and isinstance(one[key], str):
        text = mutate_bytes(one[key].encode(), rng, (), b"")
        one[key] = text.decode(errors="replace")
    else:
        one[key] = rng.choice(NASTY)
    return root


def mutate_json(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, rng, tokens, other)
    try:
        for _ in range(1 + int(rng.expovariate(1.0))):
            root = mutate_value(root, rng)
        return json.dumps(root).encode()
    except (ValueError, RecursionError, MemoryError):
        return data


# ---- arrays and binary files -------------------------------------------------------------------


def mutate_array(array: Any, rng: Random) -> Any:
    """Change one value, the type or the shape of an array."""
    kind = rng.randrange(5)
    with np.errstate(all="ignore"):
        if kind == 0 and array.ndim and array.size:
            return np.concatenate([array, array[: rng.choice((1, len(array)))]])
        if kind == 1:
            return array[..., :-1] if array.ndim and array.size else array.reshape(-1)
        if kind == 2 and array.dtype.kind in "biuf":
            return array.astype(rng.choice(("int8", "int32", "int64", "float32", "float64", "U3")))
        if kind == 3:
            return array.reshape(-1)[None]
        changed = np.array(array)
        if changed.size and changed.dtype.kind in "iu":
            limits = np.iinfo(changed.dtype)
            extremes = (limits.min, limits.max, 0, 1, min(100000, limits.max), int(limits.max) // 2)
            changed.flat[rng.randrange(changed.size)] = rng.choice(extremes)
        elif changed.size and changed.dtype.kind == "f":
            extremes = (np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0)
            changed.flat[rng.randrange(changed.size)] = rng.choice(extremes)
        return changed


def mutate_hdf5(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    """Change an attribute or a dataset of an HDF5 file, which stays a sound one."""
    import h5py

    buffer = io.BytesIO(data)
    try:
        with h5py.File(buffer, "r+") as file:
            names: list[str] = []
            file.visit(names.append)
            place = rng.choice(["/", *names])
            own = [name for name in file[place].attrs if name.isidentifier() and name.islower()]
            if own and rng.random() < 0.5:
                name = rng.choice(own)
                plain = [one for one in NASTY if isinstance(one, int | float | str)]
                value = rng.choice([one for one in plain if "\0" not in str(one)])
                if rng.random() < 0.2:
                    del file[place].attrs[name]
                elif not isinstance(value, int) or abs(value) < 2**63:
                    file[place].attrs[name] = value
            elif rng.random() < 0.1 and place != "/":
                del file[place]
            elif isinstance(file[place], h5py.Dataset) and file[place].dtype.kind in "iuf":
                changed = mutate_array(file[place][...], rng)
                if changed.shape == file[place].shape and changed.dtype == file[place].dtype:
                    file[place][...] = changed
                elif changed.dtype.kind in "iuf":
                    del file[place]
                    file[place] = changed
    except Exception:  # damaged by an earlier mutation, or no such value there
        return mutate_bytes(data, rng, tokens, other)
    return buffer.getvalue()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def mutate_text(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    """Change a text; of a compressed one, the text or the compressed bytes."""
    for magic, opened, compress in (
        (b"\x1f\x8b", lambda: zlib.decompressobj(31), _gzip),
        (b"BZh", bz2.BZ2Decompressor, bz2.compress),
    ):
        if data.startswith(magic) and rng.random() < 0.7:
            try:
                plain = opened().decompress(data, MAX_LENGTH)
            except (OSError, EOFError, ValueError, zlib.error):
                break
            return compress(mutate_bytes(plain, rng, tokens, other))
    if rng.random() < 0.02:
        return rng.choice((_gzip, bz2.compress))(data)
    return mutate_bytes(data, rng, tokens, other)


# ---- bundles -----------------------------------------------------------------------------------


def pack(files: dict[str, bytes]) -> bytes:
    """Write several files as one: a line ``>>> name`` before each."""
    return b"".join(b">>> %s\n%s\n" % (name.encode(), text) for name, text in files.items())


def unpack(data: bytes) -> dict[str, bytes]:
    """Read what `pack` wrote; names are reduced to plain ones that lead nowhere else.

    Examples
    --------
    >>> unpack(pack({"a": b"1", "b/c": b"2\\n"}))
    {'a': b'1', 'b/c': b'2\\n'}
    """
    files: dict[str, bytes] = {}
    parts = re.split(rb"(?:^|(?<=\n))>>> ([^\n]*)\n", data)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        words = re.findall(r"\w[\w.-]*", name.decode("ascii", "ignore")[:60], re.ASCII)
        files["/".join(words) or "file"] = text.removesuffix(b"\n")
    return files


def mutate_bundle(data: bytes, rng: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    """Change one of the files according to what it is; or leave one out, or exchange two."""
    files = unpack(data)
    if not files:
        return mutate_bytes(data, rng, tokens, other)
    name = rng.choice(list(files))
    kind = rng.random()
    if kind < 0.04:
        del files[name]
    elif kind < 0.08:
        files[name] = rng.choice(list(files.values()))
    else:
        form = name.rpartition(".")[2]
        theirs = unpack(other).get(name, b"")
        files[name] = FORMS.get(form, mutate_text)(files[name], rng, tokens, theirs)
    return pack(files)


Mutation = Callable[[bytes, Random, Sequence[bytes], bytes], bytes]
FORMS: dict[str, Mutation] = {
    "text": mutate_text,
    "json": mutate_json,
    "nc": mutate_hdf5,
    "bundle": mutate_bundle,
}
