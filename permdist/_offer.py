"""Registration of our types with Hypothesis, whichever library is imported first.

Hypothesis calls `hypothesis_hook` (by entry point) when it is imported; our types announce
themselves with `offer_strategy` when they are. Neither import pulls in the other.
"""

from __future__ import annotations

import sys

_offered: list[tuple[type, str]] = []


def offer_strategy(kind: type, strategy: str) -> None:
    """Let ``st.from_type(kind)`` draw from ``permdist.strategies.<strategy>()``."""
    _offered.append((kind, strategy))
    if "hypothesis.strategies" in sys.modules:
        _register(kind, strategy)


def hypothesis_hook() -> None:
    """Register every type that was offered before Hypothesis was imported."""
    for kind, strategy in _offered:
        _register(kind, strategy)


def _register(kind: type, strategy: str) -> None:
    from hypothesis import strategies as st

    def draw_from(_: type) -> st.SearchStrategy[object]:
        from permdist import strategies

        return getattr(strategies, strategy)()

    st.register_type_strategy(kind, draw_from)
