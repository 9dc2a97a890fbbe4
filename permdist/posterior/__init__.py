"""Posterior distributions of the parameters of rankings, as datasets that arviz takes."""

from permdist.posterior.problem import Problem, Variable

__all__ = ["Problem", "Variable"]
