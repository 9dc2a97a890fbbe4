"""Samplers of distributions over rankings, imported as ``permdist.samplers``."""
