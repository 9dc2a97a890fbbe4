"""Solvers: how ``objective(X w) + sum p w^2 / C`` is minimized over w.

Each takes a `Total` (a sum over queries as a function of w, with its gradient), a start and C, and
returns a `Solution`; or an objective (a function of all scores that returns the values of the
queries and the gradient by the scores), the features, a start and C. None of them knows of
learners.
"""

from permdist.models.solvers.growing import growing
from permdist.models.solvers.planes import cutting_planes
from permdist.models.solvers.quasi_newton import lbfgs
from permdist.models.solvers.solution import UNCHANGED, Note, Objective, Solution, one_thread
from permdist.models.solvers.starts import multistart
from permdist.models.solvers.steps import stochastic
from permdist.models.solvers.total import (
    Evaluation,
    Total,
    add_parts,
    column_sums,
    linear_scores,
)

__all__ = [
    "UNCHANGED",
    "Evaluation",
    "Note",
    "Objective",
    "Solution",
    "Total",
    "add_parts",
    "column_sums",
    "cutting_planes",
    "growing",
    "lbfgs",
    "linear_scores",
    "multistart",
    "one_thread",
    "stochastic",
]
