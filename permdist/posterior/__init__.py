"""Posterior distributions of the parameters of rankings, as datasets that arviz takes."""

from permdist.posterior.calibration import Calibration, simulation_based_calibration
from permdist.posterior.families import problem_of, register_family
from permdist.posterior.priors import Flat, Gamma, Normal, Prior, UniformCenter
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.result import Posterior
from permdist.posterior.run import sample
from permdist.posterior.smooth import ImproperPosteriorError, Smooth

__all__ = [
    "Calibration",
    "Flat",
    "Gamma",
    "ImproperPosteriorError",
    "Normal",
    "Posterior",
    "Prior",
    "Problem",
    "Smooth",
    "UniformCenter",
    "Variable",
    "problem_of",
    "register_family",
    "sample",
    "simulation_based_calibration",
]
