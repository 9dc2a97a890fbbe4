"""Marks that several test modules share."""

import pytest

CONVERGENCE = "sklearn.exceptions.ConvergenceWarning"
# Fits of few iterations, on features of noise, whose warnings are tested elsewhere.
UNFINISHED_FITS = [
    pytest.mark.filterwarnings(f"ignore:.*{text}:{CONVERGENCE}")
    for text in ("max_iter=", "could not improve", "no better than by chance")
]
