"""Targets: what a Markov chain has to know about a distribution.

Every kernel is made of swaps of neighbors. A target answers three questions about them: `peek` (the
log-weight that a swap leads to), `swap` (make it) and `restore` (compute everything anew from the
order). `Distribution._target` returns the target of a distribution; there is one file per target.
"""

from permdist.targets.base import State, Target, compiled, exchange, peek, restore, swap, target_of

__all__ = ["State", "Target", "compiled", "exchange", "peek", "restore", "swap", "target_of"]
