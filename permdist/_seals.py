"""Checksums at the end of files, so that truncated or edited files are detected."""

from __future__ import annotations

import hashlib

_MARK = b"\npermdist sha256 "
_LENGTH = len(_MARK) + 64 + 1


def seal(data: bytes) -> bytes:
    r"""Append a line with the checksum of what stands before it.

    Examples
    --------
    >>> seal(b"tea")[:20]
    b'tea\npermdist sha256 '
    >>> unseal(seal(b"tea"))
    b'tea'
    """
    return data + _MARK + hashlib.sha256(data).hexdigest().encode() + b"\n"


def unseal(data: bytes) -> bytes:
    """Return what was sealed.

    Raises
    ------
    ValueError
        Saying what is wrong: there is no checksum, or it is another one.

    Examples
    --------
    >>> unseal(seal(b"tea").replace(b"tea", b"sea"))
    Traceback (most recent call last):
    ...
    ValueError: the contents do not match their checksum
    """
    if not is_sealed(data):
        raise ValueError("the checksum at its end is missing: it was cut or edited")
    body = data[:-_LENGTH]
    if data[len(body) + len(_MARK) : -1] != hashlib.sha256(body).hexdigest().encode():
        raise ValueError("the contents do not match their checksum")
    return body


def is_sealed(data: bytes) -> bool:
    """Return whether there is a checksum at the end, right or wrong."""
    return data[-_LENGTH:].startswith(_MARK) and data.endswith(b"\n")
