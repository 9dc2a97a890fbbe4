"""Layers of a network and their gradients: in numpy, or by PyTorch."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._extras import need_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray

ENGINES = ("numpy", "torch")
Layer = dict[str, "FloatArray"]


class Adam(NamedTuple):
    """The settings of Adam."""

    rate: float = 3e-3
    first: float = 0.9
    second: float = 0.999
    small: float = 1e-8


def first_layers(widths: Sequence[int], rng: np.random.Generator) -> list[Layer]:
    """Return layers to start from: weights uniform by He's rule, biases 0.

    The last layer is a tenth of that, so that first scores are close to each other.
    """
    layers = []
    for before, after in itertools.pairwise(widths):
        size = np.sqrt(6.0 / before)
        layers.append(
            {"weights": rng.uniform(-size, size, (before, after)), "biases": np.zeros(after)}
        )
    layers[-1]["weights"] *= 0.1
    return layers


def outputs(layers: Sequence[Layer], features: FloatArray) -> FloatArray:
    """Return the output of a network for each row, shape (documents,)."""
    found = features
    for number, layer in enumerate(layers):
        found = found @ layer["weights"] + layer["biases"]
        if number < len(layers) - 1:
            np.maximum(found, 0.0, out=found)
    return found[:, 0]


class Steps(ABC):
    """Steps of Adam on the mean over queries of an objective, with a penalty on weights.

    Parameters
    ----------
    layers : list of layers
        To start from.
    adam : Adam
    penalty : float
        The factor of the sum of squared weights.
    """

    @abstractmethod
    def __init__(self, layers: list[Layer], adam: Adam, penalty: float) -> None: ...

    @abstractmethod
    def __call__(self, features: FloatArray, derive: Any, n_queries: int) -> float:
        """Take a step; return the sum of the objective before it."""

    @abstractmethod
    def layers(self) -> list[Layer]:
        """Return the layers so far, as new arrays."""


class _Numpy(Steps):
    def __init__(self, layers: list[Layer], adam: Adam, penalty: float) -> None:
        self._layers = [{name: one.copy() for name, one in layer.items()} for layer in layers]
        self._adam, self._penalty, self._number = adam, penalty, 0
        self._means = [
            {name: np.zeros_like(one) for name, one in layer.items()} for layer in layers
        ]
        self._sizes = [
            {name: np.zeros_like(one) for name, one in layer.items()} for layer in layers
        ]

    def __call__(self, features: FloatArray, derive: Any, n_queries: int) -> float:
        """Take a step; return the sum of the objective before it."""
        inputs = [features]
        for layer in self._layers[:-1]:
            hidden = inputs[-1] @ layer["weights"] + layer["biases"]
            inputs.append(np.maximum(hidden, 0.0, out=hidden))
        last = self._layers[-1]
        found = derive((inputs[-1] @ last["weights"] + last["biases"])[:, 0])
        back = found.gradient[:, None] / n_queries
        slopes: list[Layer] = []
        for layer, given in zip(self._layers[::-1], inputs[::-1], strict=True):
            by_weights = given.T @ back + 2.0 * self._penalty * layer["weights"]
            slopes.append({"weights": by_weights, "biases": back.sum(axis=0)})
            back = (back @ layer["weights"].T) * (given > 0.0)
        self._step(slopes[::-1])
        return float(found.values.sum())

    def _step(self, slopes: list[Layer]) -> None:
        rate, first, second, small = self._adam
        self._number += 1
        rate /= 1.0 - first**self._number
        root = np.sqrt(1.0 - second**self._number)
        for layer, slope, mean, size in zip(
            self._layers, slopes, self._means, self._sizes, strict=True
        ):
            for name, one in slope.items():
                mean[name] += (1.0 - first) * (one - mean[name])
                size[name] += (1.0 - second) * (one * one - size[name])
                layer[name] -= rate * mean[name] / (np.sqrt(size[name]) / root + small)

    def layers(self) -> list[Layer]:
        """Return the layers so far, as new arrays."""
        return [{name: one.copy() for name, one in layer.items()} for layer in self._layers]


class _Torch(Steps):
    def __init__(self, layers: list[Layer], adam: Adam, penalty: float) -> None:
        torch = self._torch = need_extra("torch", "Network(engine='torch')")
        parts: list[Any] = []
        for layer in layers:
            linear = torch.nn.Linear(*layer["weights"].shape, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(layer["weights"].T.copy()))
                linear.bias.copy_(torch.from_numpy(layer["biases"]))
            parts += [linear, torch.nn.ReLU()]
        self._model, self._penalty = torch.nn.Sequential(*parts[:-1]), penalty
        self._linears = parts[::2]
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), adam.rate, betas=(adam.first, adam.second), eps=adam.small
        )

    def __call__(self, features: FloatArray, derive: Any, n_queries: int) -> float:
        """Take a step; return the sum of the objective before it."""
        torch = self._torch
        self._optimizer.zero_grad()
        scores = self._model(torch.from_numpy(features))[:, 0]
        found = derive(scores.detach().numpy())
        scores.backward(torch.from_numpy(found.gradient / n_queries))
        for linear in self._linears:
            linear.weight.grad += 2.0 * self._penalty * linear.weight.detach()
        self._optimizer.step()
        return float(found.values.sum())

    def layers(self) -> list[Layer]:
        """Return the layers so far, as new arrays."""
        return [
            {
                "weights": np.array(linear.weight.detach().numpy().T, order="C"),
                "biases": linear.bias.detach().numpy().copy(),
            }
            for linear in self._linears
        ]


def steps_of(engine: str, layers: list[Layer], adam: Adam, penalty: float) -> Steps:
    """Return what takes the steps of an engine.

    Parameters
    ----------
    engine : {"numpy", "torch"}
    layers : list of layers
    adam : Adam
    penalty : float
    """
    kinds: dict[str, type[Steps]] = dict(zip(ENGINES, (_Numpy, _Torch), strict=True))
    return kinds[engine](layers, adam, penalty)
