"""The build backend: that of setuptools, and editable installs that work from above a clone.

Python started in the folder above a clone named ``permdist`` takes the clone, which has no
``__init__.py``, for a namespace package, and asks the finder of an editable install only after
that. So editable installs get one more finder, which is asked first.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (all other hooks are those of setuptools)

ROOT = Path(__file__).resolve().parents[2]
MODULE = "__editable___permdist_first"
FINDER = '''"""Finds permdist in its clone where a folder of that name is in the way."""

import sys
from importlib.machinery import PathFinder

ROOT = {root!r}


class Clone:
    """Prefers any real package of that name, then the clone, to a folder that only has the name."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return where permdist is, None for anything else."""
        if name != "permdist":
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.origin is not None:
            return found
        return PathFinder.find_spec(name, [ROOT])


sys.meta_path.insert(0, Clone)
'''


def build_editable(
    wheel_directory: str,
    config_settings: Any = None,
    metadata_directory: str | None = None,
) -> str:
    """Build an editable wheel with setuptools and add the finder to it.

    Parameters
    ----------
    wheel_directory : str
        Where to write the wheel.
    config_settings : dict, optional
        Passed on to setuptools.
    metadata_directory : str, optional
        Passed on to setuptools.

    Returns
    -------
    str
        The name of the wheel's file.
    """
    name: str = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    add_files(
        Path(wheel_directory) / name,
        {
            f"{MODULE}.py": FINDER.format(root=str(ROOT)),
            f"{MODULE}.pth": f"import {MODULE}\n",
        },
    )
    return name


def add_files(wheel: Path, files: dict[str, str]) -> None:
    """Add files to a wheel and to its record.

    Parameters
    ----------
    wheel : Path
        Replaced by the new one.
    files : dict of str
        Texts by file name.
    """
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith(".dist-info/RECORD"):
                content += "".join(_record(*file) for file in files.items()).encode()
            out.writestr(info, content)
        for name, text in files.items():
            out.writestr(name, text)
    os.replace(new, wheel)


def _record(name: str, text: str) -> str:
    """Return the line of a wheel's record for a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text.encode())}\n"
