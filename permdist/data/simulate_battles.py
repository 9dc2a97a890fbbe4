"""Simulated battles, in the form in which arenas publish theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import as_rng, count, finite

if TYPE_CHECKING:
    from pandas import DataFrame

    from permdist._typing import RandomState


def make_battles(
    n_battles: int = 2000,
    n_models: int = 8,
    *,
    spread: float = 0.7,
    ties: float = 0.5,
    length_effect: float = 0.3,
    rng: RandomState = None,
) -> DataFrame:
    """Simulate battles of language models with ties, voters and the lengths of answers.

    Outcomes follow Davidson's model: the chances of the first, of the second and of a tie are
    proportional to ``a``, ``b`` and ``ties * sqrt(a * b)``. Longer answers are liked better.

    Parameters
    ----------
    n_battles, n_models : int
    spread : float
        The standard deviation of the models' scores, which are equally spaced from the best one,
        ``model-a``, down.
    ties : float
        The weight of ties; 0 for none.
    length_effect : float
        What one standard deviation of a longer answer adds to the score.
    rng : int, Generator or None

    Returns
    -------
    DataFrame
        With the columns ``model_a``, ``model_b``, ``winner``, ``length_a``, ``length_b``,
        ``language``, ``voter`` and ``date``, which `load_battles` reads.

    Examples
    --------
    >>> frame = make_battles(100, 4, rng=0)
    >>> sorted(set(frame["model_a"]))
    ['model-a', 'model-b', 'model-c', 'model-d']
    >>> from permdist.data import load_battles
    >>> load_battles(frame)
    Battles(100 of 4 competitors)
    """
    from pandas import DataFrame, Timestamp, to_timedelta

    n, size = count("n_models", n_models, minimum=2), count("n_battles", n_battles)
    weight = float(finite("ties", ties, ndim=0))
    if weight < 0.0:
        raise ValueError(f"ties: expected a non-negative weight, got {weight:g}")
    generator = as_rng(rng)
    place = np.linspace(1.0, -1.0, n)
    scores = float(finite("spread", spread, ndim=0)) * place / place.std()
    first = generator.integers(n, size=size)
    second = (first + generator.integers(1, n, size=size)) % n
    length = generator.normal(size=(size, 2))
    effect = float(finite("length_effect", length_effect, ndim=0)) * (length[:, 0] - length[:, 1])
    half = (scores[first] - scores[second] + effect) / 2.0
    tie = np.full(size, np.log(weight) if weight else -np.inf)
    # The largest of three utilities with Gumbel noise is each with its chance.
    noisy = np.stack([half, -half, tie], axis=1) + generator.gumbel(size=(size, 3))
    outcome = noisy.argmax(axis=1)
    bad = (outcome == 2) & (generator.random(size) < 0.3)
    names = np.array([f"model-{_letters(item)}" for item in range(n)])
    return DataFrame(
        {
            "model_a": names[first],
            "model_b": names[second],
            "winner": np.array(["model_a", "model_b", "tie", "tie (bothbad)"])[outcome + bad],
            "length_a": length[:, 0].round(3),
            "length_b": length[:, 1].round(3),
            "language": generator.choice(["English", "German", "Chinese"], size, p=[0.6, 0.2, 0.2]),
            "voter": generator.integers(1 + size // 5, size=size),
            "date": Timestamp("2026-01-01") + to_timedelta(generator.integers(180, size=size), "D"),
        }
    )


def _letters(number: int) -> str:
    """Name a number as columns of spreadsheets are: a, ..., z, aa, ab, ..."""
    first, last = divmod(number, 26)
    return (_letters(first - 1) if first else "") + chr(ord("a") + last)
