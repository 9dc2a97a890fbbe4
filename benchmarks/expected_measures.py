"""Expected NDCG@10 and its gradient for many lists, exactly and from samples.

Run ``python benchmarks/expected_measures.py``: 1,000 lists of 30 documents with five grades, one
thread, best of several runs. Beside the exact sums stands PL-Rank (the third version, compiled in
the same way) with 100 sampled rankings per list: its time, and its error against the exact values.
Then what decides how many nodes the quadrature has: the largest error for lists of all kinds, by
the distance of the nodes, against the slower quadrature of single distributions.

Oosterhuis: Learning-to-Rank at the Speed of Sampling: Plackett-Luce Gradient Estimation with
Minimal Computational Complexity (2022).
"""

from __future__ import annotations

import argparse
import time

import numba
import numpy as np
from harness import machine, table

from permdist import GaussianScores, GaussianScoresBatch, PlackettLuce, PlackettLuceBatch
from permdist import objectives as permdist_objectives
from permdist.measures import parse
from permdist.measures.positional import positional_batch
from permdist.sums import luce_positions

MEASURE = "ndcg@10"
GRADES = [0.5, 0.2, 0.15, 0.1, 0.05]


def processor_seconds(function, repeat=7):
    """Return the best processor time of several runs after a first one."""
    function()
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


@numba.njit(cache=True, error_model="numpy", fastmath={"contract"})
def pl_rank(worths, keys, gains, weights, values, gradient):
    """Estimate sums over positions and gradients of lists (lists, n) from sampled rankings.

    keys (samples, lists, n) are exponential times, weights (lists, k); values (lists,) and
    gradient (lists, n) are filled in.
    """
    samples, lists, n = keys.shape
    k = weights.shape[1]
    best, arrival = np.empty(k, np.int64), np.empty(k)
    rank, rest = np.empty(n, np.int64), np.empty(k + 1)
    for q in range(lists):
        values[q] = 0.0
        everything = 0.0
        for i in range(n):
            gradient[q, i] = 0.0
            everything += worths[q, i]
        for sample in range(samples):
            kept = 0
            for i in range(n):  # the k first arrivals, by insertion
                rank[i] = k
                time_of = keys[sample, q, i] / worths[q, i]
                if kept < k:
                    place = kept
                    kept += 1
                elif time_of < arrival[k - 1]:
                    place = k - 1
                else:
                    continue
                while place > 0 and arrival[place - 1] > time_of:
                    arrival[place], best[place] = arrival[place - 1], best[place - 1]
                    place -= 1
                arrival[place], best[place] = time_of, i
            rest[k] = 0.0
            for r in range(k - 1, -1, -1):
                rest[r] = rest[r + 1] + weights[q, r] * gains[q, best[r]]
                rank[best[r]] = r
            values[q] += rest[0] / samples
            reward, discount, left = 0.0, 0.0, everything
            for r in range(k):
                i = best[r]
                reward += rest[r] / left
                discount += weights[q, r] / left
                part = rest[r + 1] + worths[q, i] * (gains[q, i] * discount - reward)
                gradient[q, i] += part / samples
                left -= worths[q, i]
            for i in range(n):
                if rank[i] == k:
                    part = worths[q, i] * (gains[q, i] * discount - reward)
                    gradient[q, i] += part / samples


def simulated(lists, n, seed=0):
    """Return scores and labels, shape (lists, n)."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(5, size=(lists, n), p=GRADES)
    labels[:, 0] = np.maximum(labels[:, 0], 1)
    return rng.normal(size=(lists, n)) + 0.3 * labels, labels


def speed(lists, n):
    scores, labels = simulated(lists, n)
    ptr = np.arange(lists + 1) * n
    form = positional_batch(parse(MEASURE), labels.ravel(), ptr)
    gains = form.gains.reshape(lists, n)
    weights = form.weights.reshape(lists, -1)
    batch = PlackettLuceBatch(scores, n_jobs=1)
    noisy = GaussianScoresBatch(scores, n_jobs=1)
    exact, slopes = batch.expect_with_gradient(MEASURE, labels)
    qid = np.repeat(np.arange(lists), n)
    loss = permdist_objectives.ExpectedLoss(MEASURE, scale=False, distribution="plackett-luce")
    prepared = loss.prepare(labels.ravel(), qid, n_jobs=1)
    flat, worths = scores.ravel(), np.exp(scores)
    values, gradient = np.empty(lists), np.empty((lists, n))
    rng = np.random.default_rng(1)

    def sampled(samples=100):
        keys = rng.standard_exponential((samples, lists, n))
        pl_rank(worths, keys, gains, weights, values, gradient)

    few = min(lists, 50)

    def one_by_one():
        for row, label in zip(scores[:few], labels[:few], strict=True):
            PlackettLuce(row).expected_sum(parse(MEASURE).positional(label))

    rows = {
        "exact, Plackett-Luce: prepared objective": processor_seconds(lambda: prepared(flat)),
        "exact, Plackett-Luce: batch, labels read anew": processor_seconds(
            lambda: batch.expect_with_gradient(MEASURE, labels)
        ),
        "exact, Gaussian scores: batch": processor_seconds(
            lambda: noisy.expect_with_gradient(MEASURE, labels)
        ),
        "exact, exposures and their gradient": processor_seconds(
            lambda: batch.exposure_gradient(batch.exposure(k=10), k=10)
        ),
        "one distribution after the other": processor_seconds(one_by_one, 2) * lists / few,
        "PL-Rank, 100 samples": processor_seconds(sampled),
    }
    table(f"{MEASURE} and gradient, {lists:,} lists of {n}, one thread, processor time", rows)
    size = np.sqrt((slopes**2).mean())
    for samples in (100, 1000):
        sampled(samples)
        off = np.sqrt(((gradient - slopes) ** 2).mean())
        print(
            f"  PL-Rank, {samples:>5,} samples: error of a value {np.std(values - exact):.1e}, "
            f"of a slope {off:.1e} ({off / size:.0%} of the size of slopes)"
        )
    worst = [0.0, 0.0, 0.0, 0.0]
    for q in range(few):
        form_q = parse(MEASURE).positional(labels[q])
        for at, (kind, many) in enumerate(((PlackettLuce, batch), (GaussianScores, noisy))):
            value, by_scores = kind(scores[q]).expected_sum(form_q)
            found = many[q : q + 1].expect_with_gradient(MEASURE, labels[q : q + 1])
            worst[2 * at] = max(worst[2 * at], abs(found[0][0] - value))
            worst[2 * at + 1] = max(worst[2 * at + 1], np.abs(found[1][0] - by_scores).max())
    print(
        f"  exact sums: largest error of a value and of a slope {worst[0]:.0e}, {worst[1]:.0e}; "
        f"Gaussian {worst[2]:.0e}, {worst[3]:.0e}"
    )
    nodes = np.array([n_nodes(row) for row in scores])
    goods = (labels > 0).mean()
    work = nodes.sum() * n * 10.0 * (goods * 22 + (1 - goods) * 9)
    print(
        f"  nodes per list: {nodes.mean():.0f} ({nodes.min()} to {nodes.max()}); about "
        f"{work / 1e6:.0f} million operations on doubles\n"
    )


def n_nodes(scores, k=10):
    """Return how many nodes the sum of one list has."""
    score = np.sort(scores)[::-1] - scores.max()
    rate = luce_positions.log_rate(score)
    step = min(luce_positions.WIDEST, luce_positions.FINE * luce_positions.sharpest(score, rate, k))
    log_time = luce_positions.FIRST + step * np.arange(10_000)
    log_time = log_time - np.exp(-log_time) - rate
    mean = np.exp(np.minimum(score[:, None] + log_time, 5.0))
    fewest = -np.expm1(-mean).sum(axis=0) - 1.0
    blocks = fewest[:: luce_positions.BLOCK]
    ends = [luce_positions.too_late(one, len(scores), k) for one in blocks.tolist()]
    return int(np.argmax(ends)) * luce_positions.BLOCK


def accuracy(lists):
    """Print the largest errors by the distance of the nodes, for scores of every spread."""
    print("largest error of a value and a slope, by the distance of the nodes")
    print("  (multiples of what is used; no repetition with finer nodes)")
    rng = np.random.default_rng(2)
    factors = (1.6, 1.4, 1.2, 1.0, 0.8)
    print("   n   k  spread " + "".join(f"{factor:>16.1f}" for factor in factors))
    for n, k in ((2, 1), (5, 5), (30, 10), (30, 30), (200, 10)):
        for spread in (0.0, 1.0, 3.0, 10.0, 100.0):
            worst = np.zeros((len(factors), 2))
            for _ in range(lists):
                scores = np.sort(spread * rng.standard_t(3, size=n))[::-1]
                labels = rng.choice(5, size=n, p=GRADES)
                labels[rng.integers(n)] = 2
                form = parse(f"ndcg@{k}").positional(labels)
                value, slopes = PlackettLuce(scores).expected_sum(form)
                order = np.zeros(n)
                luce_positions.ranked_scores(scores, np.arange(n), 1.0, 90.0, order)
                rate = luce_positions.log_rate(order)
                step = luce_positions.FINE * luce_positions.sharpest(order, rate, k)
                step = min(luce_positions.WIDEST, step)
                found = np.empty(n)
                for at, factor in enumerate(factors):
                    one = luce_positions.sum_at_nodes(
                        order, form.gains, form.weights[:k].copy(), rate, factor * step, found
                    )
                    errors = abs(one - value), np.abs(found - slopes).max()
                    worst[at] = np.maximum(worst[at], errors)
            shown = "".join(f"  {a:.0e} {b:.0e}" for a, b in worst)
            print(f" {n:>3} {k:>3} {spread:>7g} {shown}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=30)
    parser.add_argument("--checked", type=int, default=20, help="lists per kind, for the errors")
    options = parser.parse_args()
    print(machine())
    speed(options.lists, options.documents)
    accuracy(options.checked)


if __name__ == "__main__":
    main()
