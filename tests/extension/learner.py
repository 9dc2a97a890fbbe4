"""A learner: the difference of the means of good and bad documents, shrunk."""

from __future__ import annotations

import numpy as np

from permdist import models
from permdist.models.rules import Number


class Means(models.Ranker):
    """Weighs each feature by how far the means of good and bad documents are apart."""

    settings = {"shrink": [0.0, 0.5]}  # noqa: RUF012

    shrink: float = models.option(Number(0.0, 1.0), "How much weights are shrunk.", default=0.0)

    def _learn(self, features, batch, watch, start):
        gap = features[batch.labels > 0].mean(axis=0) - features[batch.labels == 0].mean(axis=0)
        spread = features.std(axis=0)
        self.coef_ = (1.0 - self.shrink) * gap / np.where(spread > 0.0, spread, 1.0)
        watch.linear(self.coef_, objective=-float(gap @ self.coef_))


def register():
    """Let comparisons, files and the command line find it by its name."""
    models.register(Means)
