"""Plackett-Luce, Gaussian scores, good-bad pairs and Mallows, beside numpy and other libraries.

    python benchmarks/distributions.py

Peers that are not installed are skipped (``pip install choix winning prefsampling``; TensorFlow
Probability runs on ``pip install tensorflow-probability "jax==0.4.38"``).
"""

from __future__ import annotations

import harness
import numpy as np
from scipy import optimize

from permdist import GaussianScores, GoodBad, Mallows, PairSigns, PlackettLuce


def tensorflow_probability():
    try:
        from tensorflow_probability.substrates import jax
    except (ImportError, AttributeError):  # it breaks on newer versions of jax
        return None
    return jax


def jitted(function):
    import jax

    return jax.jit(function)


def random_key():
    import jax

    return jax.random.PRNGKey(0)


def draws():
    for n in (10, 100, 1000):
        model = PlackettLuce(np.random.default_rng(n).normal(size=n))
        worths, size = np.exp(model.scores), 300_000 // n
        rows = {
            "permdist": harness.seconds(lambda m=model, s=size: m.sample(s, rng=0)),
            "numpy, exponential keys and argsort": harness.seconds(
                lambda w=worths, s=size, n=n: np.argsort(
                    np.random.default_rng(0).exponential(size=(s, n)) / w, axis=1
                )
            ),
            "permdist, first 10 only": harness.seconds(
                lambda m=model, s=size: m.sample_top_k(10, s, rng=0)
            ),
        }
        try:
            from prefsampling.ordinal import plackett_luce

            few = max(1, size // 100)
            rows["prefsampling"] = (
                harness.seconds(lambda w=worths, f=few, n=n: plackett_luce(f, n, list(w)), repeat=2)
                * size
                / few
            )
        except ImportError:
            rows["prefsampling"] = "not installed"
        peer = tensorflow_probability()
        if peer is None:
            rows["TensorFlow Probability (jax, float32)"] = "not installed"
        else:
            theirs = peer.distributions.PlackettLuce(np.float32(worths))
            draw = jitted(lambda key, t=theirs, s=size: t.sample(s, seed=key))
            key = random_key()
            rows["TensorFlow Probability (jax, float32)"] = harness.seconds(
                lambda d=draw, k=key: d(k).block_until_ready()
            )
        harness.table(f"{size:,} Plackett-Luce draws of {n} items", rows)


def log_probs():
    model = PlackettLuce(np.random.default_rng(0).normal(size=100))
    orders = model.sample(5000, rng=0)

    def plain():
        worths = np.exp(model.scores)[orders]
        left = np.cumsum(worths[:, ::-1], axis=1)[:, ::-1]
        return (model.scores[orders] - np.log(left)).sum(axis=1)

    if not np.allclose(plain(), model.log_prob(orders)):
        raise SystemExit("the two ways disagree")
    rows = {
        "permdist": harness.seconds(lambda: model.log_prob(orders)),
        "numpy, reversed cumulative sum": harness.seconds(plain),
    }
    peer = tensorflow_probability()
    if peer is None:
        rows["TensorFlow Probability (jax, float32)"] = "not installed"
    else:
        theirs = peer.distributions.PlackettLuce(np.float32(np.exp(model.scores)))
        score = jitted(theirs.log_prob)
        rows["TensorFlow Probability (jax, float32)"] = harness.seconds(
            lambda: score(orders).block_until_ready()
        )
        spread = peer.distributions.PlackettLuce(np.exp(np.float32([60, 0, -60])))
        ours = PlackettLuce([60.0, 0.0, -60.0]).log_prob([2, 1, 0])
        rows["scores 60, 0, -60, worst order: ours, theirs"] = (
            f"{ours:.1f}, {spread.log_prob(np.array([2, 1, 0])):.1f}"
        )
    harness.table("log_prob of 5,000 rankings of 100 items", rows)


def fits():
    truth = np.random.default_rng(1).normal(size=10)
    orders = PlackettLuce(truth).sample(10_000, rng=0)

    def by_scipy():
        def objective(scores):
            worths = np.exp(scores)[orders]
            left = np.cumsum(worths[:, ::-1], axis=1)[:, ::-1]
            value = (scores[orders] - np.log(left)).sum()
            chance = worths * np.cumsum(1.0 / left, axis=1)
            slope = np.bincount(orders.ravel(), (1.0 - chance).ravel(), minlength=10)
            return -value, -slope

        return optimize.minimize(objective, np.zeros(10), jac=True, method="L-BFGS-B").x

    rows = {
        "permdist": harness.seconds(lambda: PlackettLuce.fit(orders)),
        "numpy and scipy's L-BFGS": harness.seconds(by_scipy, repeat=3),
    }
    try:
        import choix

        data = [tuple(row) for row in orders.tolist()]
        few = data[:1000]
        rows["choix, ilsr_rankings (from a tenth)"] = 10 * harness.seconds(
            lambda: choix.ilsr_rankings(10, few), repeat=1
        )
    except ImportError:
        rows["choix"] = "not installed"
    harness.table("Fitting 10,000 rankings of 10 items", rows)
    tops = orders[:, :3]

    def by_mm():
        worths = np.full(10, 0.1)
        wins = np.bincount(tops.ravel(), minlength=10).astype(float)
        for _ in range(200):
            listed = worths[tops]
            left = 1.0 - np.concatenate(
                [np.zeros((len(tops), 1)), np.cumsum(listed, axis=1)[:, :-1]], axis=1
            )
            inverse = np.cumsum(1.0 / left, axis=1)
            owed = np.full(10, inverse[:, -1].sum())
            np.add.at(owed, tops, inverse - inverse[:, -1:])
            new = wins / owed
            new /= new.sum()
            done = np.abs(new - worths).max() < 1e-9
            worths = new
            if done:
                break
        return np.log(worths)

    rows = {
        "permdist": harness.seconds(lambda: PlackettLuce.fit(tops, subset=False)),
        "numpy, minorize-maximize": harness.seconds(by_mm, repeat=3),
    }
    harness.table("Fitting 10,000 top-3 lists of 10 items", rows)


def marginals():
    for n in (100, 200):
        scores = np.random.default_rng(n).normal(size=n)
        rows = {
            "Gaussian scores": harness.seconds(lambda s=scores: GaussianScores(s).rank_marginals()),
            "Gaussian scores, SoftRank's recursion": harness.seconds(
                lambda s=scores: GaussianScores(s).rank_marginals(method="softrank"), repeat=3
            ),
            "Plackett-Luce": harness.seconds(lambda s=scores: PlackettLuce(s).rank_marginals()),
            "Gaussian gradient of NDCG": harness.seconds(
                lambda s=scores, n=n: GaussianScores(s).expect_gradient("ndcg", np.arange(n) % 3)
            ),
        }
        try:
            from winning.factor.topk import rank_probabilities

            rows["winning, Gaussian"] = harness.seconds(
                lambda s=scores: rank_probabilities(-s), repeat=3
            )
            ours = GaussianScores(scores).rank_marginals()
            gap = np.abs(rank_probabilities(-scores) - ours).max()
            rows["winning, largest difference from ours"] = f"{gap:.1e}"
        except ImportError:
            rows["winning"] = "not installed"
        harness.table(f"All rank marginals of {n} items", rows)
    order = np.arange(200)
    rows = {
        "log_prob of one order": harness.seconds(
            lambda: GaussianScores(np.zeros(200)).log_prob(order)
        )
    }
    harness.table("Gaussian scores, 200 items", rows)


def both(model):
    return model.log_partition(), model.log_partition_gradient()


def good_bad():
    rng = np.random.default_rng(0)
    scores, labels = rng.uniform(-1, 1, 1050), np.r_[np.ones(50, int), np.zeros(1000, int)]
    for scale in (0.01, 1.0, 50.0):

        def model(scale=scale):
            return GoodBad(scores * scale, labels, space="interleavings", tilt="ap", kappa=10.0)

        rows = {
            "log-partition": harness.seconds(lambda m=model: m().log_partition()),
            "and its gradient": harness.seconds(lambda m=model: both(m())),
            "gradient of E[AP]": harness.seconds(lambda m=model: m().expect_gradient("ap")),
        }
        rows["value and gradient, a cell"] = (
            f"{rows['and its gradient'] / (51 * 1001) * 1e9:.1f} ns"
        )
        harness.table(f"Interleavings, 50 good and 1,000 bad, scores to +-{scale:g}", rows)
    for n in (16, 20):
        labels = (np.arange(n) < n // 3).astype(int)
        values = rng.normal(size=n) / 4
        rows = {
            "log-partition": harness.seconds(
                lambda v=values, y=labels: GoodBad(v, y).log_partition(), repeat=2
            ),
            "its gradient, too": harness.seconds(
                lambda v=values, y=labels: GoodBad(v, y).log_partition_gradient(), repeat=2
            ),
        }
        harness.table(f"Orders, {n} items", rows)
    scores = rng.normal(size=20_000) * 300
    labels = (rng.random(20_000) < 0.2).astype(int)
    x = scores[labels > 0][:500, None] - scores[labels == 0][None, :]
    parts = labels.sum() / 500
    rows = {
        "sorted windows": harness.seconds(lambda: PairSigns(scores, labels).log_partition()),
        "numpy, all pairs": parts * harness.seconds(lambda: np.logaddexp(x, -x).sum(), repeat=2),
    }
    harness.table("Pairs, 20,000 items with spread scores", rows)


def mallows():
    rows = {
        f"{distance}, {n:,} items": harness.seconds(
            lambda d=distance, n=n: Mallows(range(n), 0.01, d).log_partition()
        )
        for distance, n in (
            ("kendall", 10_000),
            ("cayley", 10_000),
            ("hamming", 10_000),
            ("footrule", 1_000),
            ("footrule", 10_000),
            ("spearman", 16),
        )
    }
    harness.table("Log-partition functions of Mallows' model", rows)


if __name__ == "__main__":
    print(harness.machine())
    for part in (draws, log_probs, fits, marginals, good_bad, mallows):
        part()
