"""Objectives of learners as functions of scores and labels: values and gradients.

>>> from permdist import objectives
>>> value, gradient = objectives.ConvexLoss("ndcg@10")([0.3, 0.9, 0.1], labels=[2, 0, 1])
>>> gradient.round(3)
array([-0.793,  0.925, -0.132])
"""

from permdist.models import objectives as _objectives
from permdist.models.objectives import *  # noqa: F403

__all__ = list(_objectives.__all__)
