"""Posterior distributions of the parameters of rankings, as datasets that arviz takes."""

from permdist.posterior.checks import Check
from permdist.posterior.comparing import compare, compare_evidence
from permdist.posterior.diagnose import PosteriorSummary
from permdist.posterior.expectations import Expected
from permdist.posterior.files import load
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.result import Posterior

__all__ = [
    "Check",
    "Expected",
    "Posterior",
    "PosteriorSummary",
    "Problem",
    "Variable",
    "compare",
    "compare_evidence",
    "load",
]
