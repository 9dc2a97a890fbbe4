"""Solvers: how ``objective(X w) + sum p w^2 / C`` is minimized over w.

Each takes an objective (a function of all scores that returns the values of the queries and the
gradient by the scores), the features, a start and C, and returns a `Solution`. None of them knows
of learners.
"""

from permdist.models.solvers.planes import cutting_planes
from permdist.models.solvers.quasi_newton import lbfgs
from permdist.models.solvers.solution import UNCHANGED, Note, Objective, Solution, few_threads
from permdist.models.solvers.starts import multistart
from permdist.models.solvers.steps import stochastic

__all__ = [
    "UNCHANGED",
    "Note",
    "Objective",
    "Solution",
    "cutting_planes",
    "few_threads",
    "lbfgs",
    "multistart",
    "stochastic",
]
