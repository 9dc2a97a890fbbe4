"""Reward models from ranked responses, as in preference tuning of language models.

Judges rank the responses to each prompt, by Plackett-Luce with a hidden reward. A small network
learns the reward from features of prompt and response: from the whole ranking of each prompt, from
its best response only, or from one pair of its responses, chosen and rejected. The picture shows
how often it then agrees with the true reward about two responses to new prompts, by the number of
prompts, with standard errors over collections. Without PyTorch a linear learner of products of
features takes the place of the network.
"""

import numpy as np
from common import plain, read_options, save, standard_error, tell
from matplotlib.figure import Figure
from sklearn.preprocessing import PolynomialFeatures

from permdist import PlackettLuce
from permdist.models import LinearRanker
from permdist.objectives import ListMLE, ListNet

WIDTH, HIDDEN, STEPS, RATE = 8, 32, 150, 0.01
KINDS = {"all ranked": ListMLE(), "the best one": ListNet(), "one pair": ListMLE()}
COLORS = ("tab:red", "tab:blue", "0.5")


def simulate(n_prompts, n_responses, rng):
    """Return features, shape (prompts, responses, features), and the true reward."""
    prompt = rng.normal(size=(n_prompts, 1, WIDTH // 2))
    response = rng.normal(size=(n_prompts, n_responses, WIDTH // 2))
    fit = np.abs(prompt - response)  # an answer should suit its question
    reward = 2.0 - 1.5 * fit[..., 0] - fit[..., 1] + response[..., 2] * prompt[..., 2]
    return np.concatenate([np.broadcast_to(prompt, response.shape), response], axis=2), reward


def judged(kind, reward, rng):
    """Return which responses of each prompt a judge sees, and labels from 0 for the last."""
    orders = np.stack([PlackettLuce(row).sample(rng=rng) for row in reward])
    n = reward.shape[1]
    labels = np.empty(orders.shape, dtype=int)
    np.put_along_axis(labels, orders, np.broadcast_to(n - 1 - np.arange(n), orders.shape), axis=1)
    if kind == "one pair":
        seen = rng.permuted(np.broadcast_to(np.arange(n), orders.shape), axis=1)[:, :2]
        return np.sort(seen, axis=1), labels
    if kind == "the best one":
        labels = (labels == n - 1).astype(int)
    return np.broadcast_to(np.arange(n), orders.shape), labels


def train_torch(torch, objective, features, labels, seed):
    """Return the function of features that a network in PyTorch becomes."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    layers = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    model, loss = torch.nn.Sequential(*layers), objective.torch(n_jobs=1)
    optimizer = torch.optim.Adam(model.parameters(), RATE, weight_decay=1e-3)
    inputs, labels = torch.tensor(features, dtype=torch.float32), torch.from_numpy(labels)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(inputs).squeeze(-1), labels).backward()  # padded: a prompt in each row
        optimizer.step()
    return lambda given: model(torch.tensor(given, dtype=torch.float32)).detach().numpy()[..., 0]


def train_linear(objective, features, labels):
    """Do the same without PyTorch, with squares and products of features in place of layers."""
    n, k = labels.shape
    products = PolynomialFeatures(2, include_bias=False)
    X, qid = products.fit_transform(features.reshape(-1, WIDTH)), np.repeat(np.arange(n), k)
    learner = LinearRanker(objective, C=1e2, n_jobs=1).fit(X, labels.ravel(), qid)
    return lambda given: learner.predict(products.transform(given.reshape(-1, WIDTH))).reshape(
        given.shape[:2]
    )


def main():
    options = read_options(
        __file__,
        __doc__,
        prompts=(800, "the largest number of prompts"),
        responses=(4, "responses to each prompt"),
        seeds=(4, "collections"),
    )
    try:
        import torch
    except ImportError:
        torch = None
        print("Without PyTorch, by products of features; for it: pip install -e '.[torch]'")
    tell(options, f"simulated, {options.responses} responses to each prompt")
    sizes = np.unique(np.geomspace(options.prompts / 16, options.prompts, 5).astype(int))
    agree = np.zeros((len(KINDS), len(sizes), options.seeds))
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        features, reward = simulate(int(sizes[-1]), options.responses, rng)
        new, true = simulate(1000, 2, rng)
        for row, (kind, objective) in enumerate(KINDS.items()):
            seen, labels = judged(kind, reward, rng)
            labels = np.take_along_axis(labels, seen, axis=1)
            given = np.take_along_axis(features, seen[:, :, None], axis=1)
            for column, size in enumerate(sizes):
                arguments = objective, given[:size], labels[:size]
                model = train_torch(torch, *arguments, seed) if torch else train_linear(*arguments)
                same = (np.diff(model(new), axis=1) > 0) == (np.diff(true, axis=1) > 0)
                agree[row, column, seed] = same.mean()
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    print(f"{'prompts':<16}" + "".join(f"{size:>8}" for size in sizes))
    for row, (kind, color) in enumerate(zip(KINDS, COLORS, strict=True)):
        means = agree[row].mean(axis=1)
        error = standard_error(agree[row]) if options.seeds > 1 else None
        ax.errorbar(
            sizes,
            100.0 * means,
            None if error is None else 100.0 * error,
            color=color,
            marker="o",
            label=f"{kind}: {type(KINDS[kind]).__name__}",
        )
        print(f"{kind:<16}" + "".join(f"{mean:>8.1%}" for mean in means))
    ax.set(xscale="log", xlabel="prompts", ylabel="agreement with the true reward, % of new pairs")
    ax.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    ax.minorticks_off()
    ax.legend(frameon=False, title="the judge tells")
    plain(ax)
    save(figure, options)


if __name__ == "__main__":
    main()
