"""Posterior distributions of the parameters of rankings, as datasets that arviz takes."""

from permdist.posterior.calibration import Calibration, simulation_based_calibration
from permdist.posterior.checks import Check
from permdist.posterior.comparing import compare, compare_evidence
from permdist.posterior.diagnose import PosteriorSummary
from permdist.posterior.evidence import Evidence, bridge_sampling
from permdist.posterior.exact import ExactPosterior, exact
from permdist.posterior.expectations import Expected
from permdist.posterior.families import problem_of, register_family
from permdist.posterior.files import load
from permdist.posterior.generalized import GeneralizedMallowsPosterior
from permdist.posterior.interop import to_jax
from permdist.posterior.mallows import MallowsPosterior, MallowsPrior
from permdist.posterior.mixtures import MixturePosterior
from permdist.posterior.own import from_functions
from permdist.posterior.priors import Flat, Gamma, Normal, Prior, UniformCenter
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.result import Posterior
from permdist.posterior.run import sample
from permdist.posterior.smooth import ImproperPosteriorError, Smooth

__all__ = [
    "Calibration",
    "Check",
    "Evidence",
    "ExactPosterior",
    "Expected",
    "Flat",
    "Gamma",
    "GeneralizedMallowsPosterior",
    "ImproperPosteriorError",
    "MallowsPosterior",
    "MallowsPrior",
    "MixturePosterior",
    "Normal",
    "Posterior",
    "PosteriorSummary",
    "Prior",
    "Problem",
    "Smooth",
    "UniformCenter",
    "Variable",
    "bridge_sampling",
    "compare",
    "compare_evidence",
    "exact",
    "from_functions",
    "load",
    "problem_of",
    "register_family",
    "sample",
    "simulation_based_calibration",
    "to_jax",
]
