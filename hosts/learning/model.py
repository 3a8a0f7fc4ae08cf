"""Softmax regression, or a network with one hidden layer (ReLU), in NumPy and float32.

All weights live in one flat vector; the tensors are views of it, in the order hidden weights, hidden biases,
output weights, output biases.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.dataset import Samples

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class NeuralNetwork:
    """Layer sizes; hidden_units 0 means none."""

    features: int
    hidden_units: int
    classes: int

    @functools.cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the tensors in the flat vector."""
        if self.hidden_units == 0:
            return ((self.features, self.classes), (self.classes,))
        return (
            (self.features, self.hidden_units),
            (self.hidden_units,),
            (self.hidden_units, self.classes),
            (self.classes,),
        )

    @functools.cached_property
    def slices(self) -> tuple[slice, ...]:
        """Return where each tensor lies in the flat vector."""
        slices, start = [], 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            slices.append(slice(start, stop))
            start = stop
        return tuple(slices)

    @property
    def parameters(self) -> int:
        """Length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    def tensors(self, vector: Vector) -> list[Vector]:
        """Views of the flat vector, one per tensor."""
        return [vector[part].reshape(shape) for part, shape in zip(self.slices, self.shapes, strict=True)]

    def initial_weights(self, seed: int) -> Vector:
        """Weights by He et al. 2015 (normal, variance 2 / inputs), biases 0."""
        vector = np.zeros(self.parameters, np.float32)
        generator = np.random.default_rng(seed)
        for tensor in self.tensors(vector):
            if tensor.ndim == 2:
                tensor[:] = generator.normal(0.0, math.sqrt(2 / tensor.shape[0]), tensor.shape)
        return vector

    def _layers(self, weights: Vector, features: Vector) -> tuple[Vector, Vector]:
        """Input of the output layer, and logits."""
        *hidden, out_weights, out_biases = self.tensors(weights)
        if hidden:
            features = np.maximum(features @ hidden[0] + hidden[1], np.float32(0))
        return features, features @ out_weights + out_biases

    def loss_and_gradient(self, weights: Vector, samples: Samples) -> tuple[float, Vector]:
        """Mean cross-entropy of the samples and its gradient, flat like the weights."""
        rows = np.arange(len(samples))
        inputs, logits = self._layers(weights, samples.features)
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(axis=1, keepdims=True)
        loss = float(np.mean(np.log(sums[:, 0]) - logits[rows, samples.labels]))

        error = exponentials / sums
        error[rows, samples.labels] -= 1
        error /= np.float32(len(samples))
        gradient = np.empty_like(weights)
        *hidden, out_weights, out_biases = self.tensors(gradient)
        np.matmul(inputs.T, error, out=out_weights)
        out_biases[:] = error.sum(axis=0)
        if hidden:
            hidden_error = (error @ self.tensors(weights)[2].T) * (inputs > 0)
            np.matmul(samples.features.T, hidden_error, out=hidden[0])
            hidden[1][:] = hidden_error.sum(axis=0)
        return loss, gradient

    def accuracy(self, weights: Vector, samples: Samples) -> float:
        """Part of the samples whose label has the largest logit."""
        logits = self._layers(weights, samples.features)[1]
        return float(np.mean(logits.argmax(axis=1) == samples.labels))
