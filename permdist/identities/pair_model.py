"""Claims about the good-bad pair model: partition functions, expectations, bounds, derivatives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from permdist.distributions import GoodBad, PairSigns
from permdist.identities.catalogue import claims_of, excess, relative
from permdist.measures import parse

_claim = claims_of("Dubey et al. 2009")


def _models(strategy: str = "good_bads", **options: Any) -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    models = getattr(strategies, strategy)
    either = st.one_of(models(max_items=5, **options), models(max_items=5, wide=True, **options))
    return st.fixed_dictionaries({"model": either})


def _binary_pairs() -> Any:
    return _models("pair_signs", max_grade=1)


def _over_orders() -> Any:
    return _models(spaces=["orders", "interleavings"])


def _untilted(*, wide: bool = True) -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    models = [strategies.good_bads(max_items=5, tilts=[None])]
    if wide:
        models.append(strategies.good_bads(max_items=5, tilts=[None], wide=True))
    tilt = st.sampled_from(["auc", "ap", "ndcg", "rr", "p@2"])
    return st.fixed_dictionaries({"model": st.one_of(*models), "tilt": tilt})


@_claim("Z over sign vectors = prod (h_gb(-1) + h_gb(1))", "section 2.3", _binary_pairs)
def factored_partition(model: PairSigns) -> float:
    """Compare the closed log-partition with the sum over all sign vectors."""
    best, weights, _ = _sign_vectors(model)
    return relative(model.log_partition(), best + np.logaddexp.reduce(weights))


@_claim(
    "the expected AUC over sign vectors is a mean of sigmoids",
    "section 2.3 (corrected: h_gb(+1))",
    _binary_pairs,
)
def factored_gain(model: PairSigns) -> float:
    """Compare the closed expected AUC with the sum over all sign vectors."""
    _, weights, shares = _sign_vectors(model)
    chances = np.exp(weights - np.logaddexp.reduce(weights))
    return relative(float(model.expect("auc")), chances @ shares)


@_claim(
    "L1 + L2 <= L: the convex loss bounds likelihood plus expected loss, over orders",
    "section 3",
    _untilted,
)
def convex_loss_bound(model: GoodBad, tilt: str) -> float:
    """Check Jensen's inequality for a tilt of weight 1."""
    tilted = _tilted(model, tilt, 1.0)
    lower = model.log_partition() + 1.0 - float(model.expect(tilt))
    return excess(lower, tilted.log_partition())


@_claim(
    "L1 + L2 <= L over sign vectors, for AUC",
    "section 3",
    lambda: _models("pair_signs", tilts=[None]),
)
def convex_loss_bound_pairs(model: PairSigns) -> float:
    """Check Jensen's inequality for the closed forms."""
    lower = model.log_partition() + 1.0 - float(model.expect("auc"))
    tilted = PairSigns(model.scores, model.labels, scale=model.scale, tilt="auc")
    return excess(lower, tilted.log_partition())


@_claim(
    "the largest exponent (the structured hinge) is below the log-partition",
    "equations (1) and (14)",
    _over_orders,
)
def hinge_below_convex_loss(model: GoodBad) -> float:
    """Compare the largest exponent with the log of the sum of all exponentials."""
    return excess(float(model.log_weight(model.mode())), model.log_partition())


@_claim(
    "d log Z / d s_i = scale * E[items with another label below i, less those above]",
    "equation (8)",
    lambda: _models(spaces=["orders", "interleavings"]),
)
def partition_derivatives(model: GoodBad) -> float:
    """Compare the gradient of the log-partition with expectations from pairwise chances."""
    other = model.labels[:, None] != model.labels[None, :]
    pairwise = model.pairwise()
    signed = ((pairwise - pairwise.T) * other).sum(axis=1)
    return relative(model.log_partition_gradient(), model.scale * signed)


@_claim(
    "d log Z / d kappa is the expected loss under the tilt",
    "equations (11) and (13)",
    lambda: _untilted(wide=False),
    tolerance=1e-6,
)  # a difference quotient of large numbers loses digits
def tilt_derivative(model: GoodBad, tilt: str) -> float:
    """Compare a difference quotient in kappa with the expected loss."""
    step = 1e-4
    quotient = (
        _tilted(model, tilt, 1.0 + step).log_partition()
        - _tilted(model, tilt, 1.0 - step).log_partition()
    ) / (2 * step)
    return relative(quotient, 1.0 - float(_tilted(model, tilt, 1.0).expect(tilt)))


@claims_of("")(
    "as many sign vectors are rankings as there are lonesum matrices",
    "Kaneko: poly-Bernoulli numbers (1997)",
    lambda: _sizes(),
    tolerance=0.0,
)
def lonesum_count(p: int, m: int) -> float:
    """Count the sign matrices of orders, and the matrices that their row and column sums fix."""
    from permdist.rankings import enumerate_orders, order_to_ranks

    ranks = order_to_ranks(enumerate_orders(p + m))
    of_orders = {(row[:p, None] < row[None, p:]).tobytes() for row in ranks}
    # Lonesum: no two rows and columns form a permutation matrix.
    found = 0
    for bits in itertools.product((False, True), repeat=p * m):
        matrix = np.reshape(bits, (p, m))
        crossed = matrix[:, None, :] & ~matrix[None, :, :]
        ways = crossed.any(axis=2)
        found += not (ways & ways.T).any()
    return float(abs(len(of_orders) - found))


def _sizes() -> Any:
    from hypothesis import strategies as st

    small = st.integers(1, 3)
    return st.fixed_dictionaries({"p": small, "m": small})


def _tilted(model: GoodBad, tilt: str, kappa: float) -> GoodBad:
    return GoodBad(
        model.scores,
        model.labels,
        space=model.space,
        scale=model.scale,
        tilt=parse(tilt),
        kappa=kappa,
    )


def _sign_vectors(model: PairSigns) -> tuple[float, Any, Any]:
    """List the exponents of all sign vectors of a binary query, less the largest, and their AUC.

    The largest is that of the scores' order, without the tilt. A vector loses twice the gap of each
    pair that it has the other way round: large scores do not cost small gaps their digits.
    """
    low, high = model.labels.min(), model.labels.max()
    if not np.isin(model.labels, (low, high)).all():
        raise ValueError("model: expected binary labels, got more than two different ones")
    goods, bads = np.flatnonzero(model.labels == high), np.flatnonzero(model.labels == low)
    gaps = (model.scores[goods][:, None] - model.scores[bads][None, :]).ravel()
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(gaps))))
    shares = (signs > 0).mean(axis=1)
    weights = -2.0 * model.scale * ((signs * gaps < 0) @ np.abs(gaps))
    if model.tilt is not None:
        weights = weights + model.kappa * (1.0 - shares)
    return model.scale * float(np.abs(gaps).sum()), weights, shares
