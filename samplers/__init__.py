"""Samplers: exact draws, Markov chains with diagnostics, and the restart sampler."""

from permdist.samplers.annealing import LogPartition, estimate_log_partition
from permdist.samplers.chains import Chains
from permdist.samplers.exact import sample_exact
from permdist.samplers.kernels import register_kernel
from permdist.samplers.restart import RestartSample, RestartSampler
from permdist.samplers.run import run_chains

__all__ = [
    "Chains",
    "LogPartition",
    "RestartSample",
    "RestartSampler",
    "estimate_log_partition",
    "register_kernel",
    "run_chains",
    "sample_exact",
]
