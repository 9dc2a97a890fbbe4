"""Losses of 1,000 lists of 30 documents beside Rax and the formulas of allRank; costs of all ours.

    python benchmarks/objectives.py [--lists N] [--documents N]

Everything runs on one core, in double precision. Rax is jitted, with value and gradient in one
call; the formulas of allRank are written out in torch, with `backward`. Ours are called through
`Objective.prepare`, and return a curvature besides. Values and gradients must agree to 1e-6.
Peers that are not installed are skipped (``pip install -e '.[jax,torch]' rax``).
"""

from __future__ import annotations

import argparse
import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):  # XLA and torch would use all cores whatever they are told
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import harness
import numpy as np

from permdist import objectives

EPS = 1e-10  # allRank's
ALPHA = 1.0


def rax_losses():
    """Return Rax's losses, of arrays of scores and labels, per list."""
    import jax
    import jax.numpy as jnp
    import rax

    jax.config.update("jax_enable_x64", True)

    def listnet(s, y):
        return rax.softmax_loss(s, jax.nn.softmax(y, axis=-1), reduce_fn=None)

    def approx_ndcg(s, y):
        return 1.0 - rax.ndcg_metric(
            ALPHA * s,
            y,
            rank_fn=rax.utils.approx_ranks,
            gain_fn=lambda label: jnp.power(2.0, label) - 1.0,
            reduce_fn=None,
        )

    def listmle(s, y):
        return rax.listmle_loss(s, y, reduce_fn=None)

    losses = {"ListNet": listnet, "ApproxNDCG": approx_ndcg, "ListMLE": listmle}

    def prepared(name, scores, labels):
        function = jax.jit(jax.value_and_grad(lambda s, y: losses[name](s, y).sum()))
        s, y = jnp.asarray(scores), jnp.asarray(labels, dtype=float)
        return lambda: jax.block_until_ready(function(s, y))

    return prepared


def torch_losses():
    """Return the losses of allRank, of tensors of scores and labels, summed over lists."""
    import torch

    torch.set_num_threads(1)

    def listnet(s, y):
        shares, targets = torch.softmax(s, dim=1), torch.softmax(y, dim=1)
        return -(targets * torch.log(shares + EPS)).sum()

    def approx_ndcg(s, y):
        s, order = s.sort(descending=True, dim=-1)
        gains = torch.pow(2.0, y.gather(-1, order)) - 1.0
        places = torch.arange(1, s.shape[1] + 1, dtype=s.dtype)
        discounts = torch.log2(1.0 + places)[None, :]
        best = y.sort(descending=True, dim=-1).values
        ideal = ((torch.pow(2.0, best) - 1.0) / discounts).sum(-1).clamp(min=EPS)
        differences = s[:, :, None] - s[:, None, :]
        above = torch.sigmoid(-ALPHA * differences).clamp(min=EPS)
        above = above * (1.0 - torch.eye(s.shape[1], dtype=s.dtype))
        positions = 1.0 + above.sum(-1)
        return (1.0 - ((gains / ideal[:, None]) / torch.log2(1.0 + positions)).sum(-1)).sum()

    def listmle(s, y):
        order = y.sort(descending=True, dim=-1).indices
        s = s.gather(1, order)
        s = s - s.max(dim=1, keepdim=True).values
        tails = torch.cumsum(s.exp().flip(dims=[1]), dim=1).flip(dims=[1])
        return (torch.log(tails + EPS) - s).sum()

    def lambdarank(s, y):
        s, order = s.sort(descending=True, dim=-1)
        y_of = y.gather(-1, order)
        upper = (y_of[:, :, None] - y_of[:, None, :]) > 0
        places = torch.arange(1, s.shape[1] + 1, dtype=s.dtype)
        discounts = torch.log2(1.0 + places)[None, :]
        best = y.sort(descending=True, dim=-1).values
        ideal = ((torch.pow(2.0, best) - 1.0) / discounts).sum(-1).clamp(min=EPS)
        gains = (torch.pow(2.0, y_of) - 1.0) / ideal[:, None]
        gap = 1.0 / discounts
        weights = (gap[:, :, None] - gap[:, None, :]).abs()
        weights = weights * (gains[:, :, None] - gains[:, None, :]).abs()
        chances = torch.sigmoid(s[:, :, None] - s[:, None, :]).clamp(min=EPS)
        return -(weights * torch.log(chances))[upper].sum()

    losses = {
        "ListNet": listnet,
        "ApproxNDCG": approx_ndcg,
        "ListMLE": listmle,
        "LambdaRank": lambdarank,
    }

    def prepared(name, scores, labels):
        s = torch.tensor(scores, requires_grad=True)
        y = torch.tensor(labels, dtype=s.dtype)

        def call():
            s.grad = None
            value = losses[name](s, y)
            value.backward()
            return value.item(), s.grad.numpy()

        return call

    return prepared


OURS = {
    "ListNet": objectives.ListNet(),
    "ApproxNDCG": objectives.SmoothMeasure("ndcg", alpha=ALPHA),
    "ListMLE": objectives.ListMLE(ties="index"),
    "LambdaRank": objectives.LambdaLoss("ndcg"),
}
COSTS = (
    "likelihood",
    "convex-loss[measure=auc,space=pairs]",
    "convex-loss[measure=ndcg,space=rows]",
    "convex-loss[measure=ndcg@10,space=rows]",
    "likelihood-and-loss[measure=ndcg@10,space=rows]",
    "expected-gain[measure=ndcg@10,space=rows]",
    "expected-loss[measure=ndcg@10,space=rows]",
    "expected-loss[measure=ndcg@10,distribution=plackett-luce]",
    "listnet",
    "listnet[k=2]",
    "listmle",
    "luce",
    "luce[k=5]",
    "luce[ties=davidson]",
    "lambda-loss",
    "lambda-loss[draws=10]",
    "smooth",
    "smooth[measure=ap]",
    "noisy",
    "noisy[method=softrank]",
    "boltzmann",
    "cosine",
    "pair-hinge",
    "ranking-hinge",
)


def main() -> None:
    """Compare with peers, then print what each objective costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=30)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = options.lists, options.documents
    scores, labels = rng.normal(size=shape), rng.integers(0, 5, shape)
    strict = np.array([rng.permutation(options.documents) for _ in range(options.lists)])
    peers = {}
    for name, make in (("Rax", rax_losses), ("allRank's formula", torch_losses)):
        try:
            peers[name] = make()
        except ImportError:
            print(f"{name}: not installed")
    for name, objective in OURS.items():
        wanted = strict if name == "ListMLE" else labels
        prepared = objective.prepare(wanted, n_jobs=1)
        found = prepared(scores)
        rows = {}
        for row, given in (("permdist", scores), ("permdist, float32", scores.astype(np.float32))):
            rows[row] = harness.seconds(lambda p=prepared, s=given: p(s), repeat=30)
        for peer, losses in peers.items():
            if peer == "Rax" and name == "LambdaRank":
                continue  # it weighs pairs in its own way
            call = losses(name, scores, wanted)
            value, gradient = call()
            off = max(
                abs(float(value) - found.values.sum()) / max(1.0, abs(float(value))),
                float(np.abs(np.asarray(gradient) - found.gradient).max()),
            )
            rows[f"{peer} (differs by {off:.0e})"] = harness.seconds(call, repeat=30)
            if off > 1e-6:
                raise SystemExit(f"{name}: {peer} differs by {off:.2g}")
        harness.table(f"{name}, value and gradient of {shape[0]:,} x {shape[1]}", rows)
    print(f"\nvalue, gradient and curvature of {shape[0]:,} x {shape[1]}, per list")
    for text in COSTS:
        objective = objectives.parse_objective(text)
        binary = "measure=ap" in text or text == "ranking-hinge"
        prepared = objective.prepare(np.minimum(labels, 1) if binary else labels, n_jobs=1)
        took = harness.seconds(lambda p=prepared: p(scores), repeat=5)
        print(f"  {text:<60}{took / options.lists * 1e6:10.2f} us")


if __name__ == "__main__":
    main()
