"""One round of training, as every worker and the reference do it.

A round takes each worker's minibatch gradient as integers, and gives every worker the sum of them. Workers and
reference call the same functions on the same shapes, so that their weights stay equal bit for bit.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.dataset import SHAPES, Dataset, Samples
from gradbed.hosts.learning.model import NeuralNetwork
from gradbed.hosts.learning.quantise import START_EXPONENT, dequantise, next_exponent, quantise
from gradbed.hosts.learning.settings import TrainingSettings


def network(settings: TrainingSettings) -> NeuralNetwork:
    """The network that the settings describe."""
    shape = SHAPES[settings.dataset]
    return NeuralNetwork(shape.features, settings.hidden_units, shape.classes)


@dataclass(frozen=True)
class Contribution:
    """The contribution of one worker to a round."""

    values: NDArray[np.int32]
    """Quantised gradient of the mean loss, flat."""
    loss: float
    """Mean loss of the minibatch before the round."""
    clipped: int


class Replica:
    """Weights and scales: what all workers hold in equal copies."""

    def __init__(self, settings: TrainingSettings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self.network = network(settings)
        self.weights = self.network.initial_weights(settings.seed)
        start = START_EXPONENT if settings.exponent is None else settings.exponent
        self.exponents = [start] * len(self.network.shapes)

    def contribution(self, samples: Samples) -> Contribution:
        """The quantised gradient of a minibatch at the present weights."""
        loss, gradient = self.network.loss_and_gradient(self.weights, samples)
        # The gradient is not needed any more: its integers take its memory.
        values = gradient.view(np.int32)
        clipped = 0
        for part, exponent in zip(self.network.slices, self.exponents, strict=True):
            clipped += quantise(gradient[part], exponent, values[part]).clipped
        return Contribution(values, loss, clipped)

    def apply(self, total: NDArray[np.int64]) -> None:
        """Step against the mean of all workers' gradients, whose sum is `total`; choose the next scales."""
        step_per_sum = self._settings.learning_rate / self._workers
        for index, part in enumerate(self.network.slices):
            exponent = self.exponents[index]
            step = step_per_sum * dequantise(total[part], exponent)
            self.weights[part] -= step.astype(np.float32)
            if self._settings.exponent is None:
                self.exponents[index] = next_exponent(exponent, total[part], self._settings.headroom_bits)

    def digest(self) -> str:
        """SHA-256 of the weights' bytes (float32, little-endian), in hexadecimal."""
        return hashlib.sha256(self.weights.astype("<f4").tobytes()).hexdigest()


class Shard:
    """The training samples of one worker, and its minibatch for every round."""

    def __init__(self, settings: TrainingSettings, dataset: Dataset, worker: int, workers: int) -> None:
        self._settings = settings
        self._worker = worker
        self._samples = dataset.shard(worker, workers)

    def minibatch(self, round_number: int) -> Samples:
        """Samples drawn without replacement; a function of seed, worker and round alone."""
        generator = np.random.default_rng([self._settings.seed, self._worker, round_number])
        size = min(self._settings.batch_samples, len(self._samples))
        chosen = generator.choice(len(self._samples), size, replace=False)
        return Samples(self._samples.features[chosen], self._samples.labels[chosen])
