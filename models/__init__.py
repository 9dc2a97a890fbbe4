"""Learners that fit ranking models, imported as ``permdist.models``."""
