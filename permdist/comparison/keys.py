"""Names of fits: fingerprints of a learner, of its code, and of the data."""

from __future__ import annotations

import hashlib
import inspect
import json
import uuid
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from permdist import __version__
from permdist.data import Queries
from permdist.models import Ranker
from permdist.models.files import to_dict

# What does not change the result of a fit.
INDIFFERENT = ("n_jobs", "verbose")
# Whose classes are named well enough by their version.
KNOWN = ("permdist", "sklearn", "builtins", "abc", "typing")
_tokens: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()


def make_key(learner: Ranker, prints: Sequence[str]) -> str:
    """Name a fit by all that its result depends on: the learner, its code and the data.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> make_key(MLE(), ["a"]) == make_key(MLE(n_jobs=2), ["a"]) != make_key(MLE(C=2.0), ["a"])
    True
    """
    kind = type(learner)
    params = {
        name: value for name, value in to_dict(learner)["params"].items() if name not in INDIFFERENT
    }
    name = f"{kind.__module__}.{kind.__qualname__}"
    return digest([__version__, name, params, list(prints), _code(kind)])


def digest(facts: Any) -> str:
    """Name plain values by their contents."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _code(kind: type) -> list[str]:
    """Give the source of a class of the user's own, so that an edit can be seen.

    A class that is made inside a function may depend on what that was called with, and one typed
    at a prompt has no source: such a class is like no other, and its fits are not found again.
    """
    own = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in KNOWN]
    try:
        if any("<locals>" in base.__qualname__ for base in own):
            raise OSError
        return [inspect.getsource(base) for base in own]
    except (OSError, TypeError):
        return [_tokens.setdefault(kind, uuid.uuid4().hex)]


def fingerprint(queries: Queries) -> str:
    """Name a collection by its contents."""
    found = hashlib.sha256()
    for array in (queries.X, queries.y, queries.ptr):
        found.update(str((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).data)
    found.update(json.dumps([str(qid) for qid in queries.qids.tolist()]).encode())
    if queries.feature_names is not None:
        found.update(json.dumps(queries.feature_names).encode())
    return found.hexdigest()
