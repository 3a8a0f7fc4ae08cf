"""Train on other samples in every epoch, which is what shuffles are for.

Each worker trains for an epoch on its own samples, in an order of its own, and the mean of all workers' weights is
what they begin the next epoch with (local SGD). Local shuffling changes only the order, global shuffling the samples.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradbed.controller.systems.shuffle.scheduling.instance import parts
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.shuffle.configuration import TrainingSection
from gradbed.experiments.systems.shuffle.phase import ShuffleJob
from gradbed.hosts.learning.dataset import SHAPES, Samples, load
from gradbed.hosts.learning.model import NeuralNetwork
from gradbed.hosts.systems.shuffle.samples import DigitSamples, SampleSource, from_base64

Parts = Sequence[Sequence[int]]
"""For each worker, the numbers of its samples."""


def first_parts(
    source: SampleSource, samples: int, workers: int, how: Literal["random", "sorted"], seed: int
) -> list[list[int]]:
    """Return the workers' samples before the first shuffle: random ones, or runs of the samples sorted by digit."""
    if how == "random":
        return parts(samples, workers, random.Random(f"first {seed}"))
    order = list(range(samples))
    if isinstance(source, DigitSamples):
        order.sort(key=lambda number: int(source.sample(number)[-1]))
    cuts = [samples * place // workers for place in range(workers + 1)]
    return [sorted(order[low:high]) for low, high in pairwise(cuts)]


def originals(source: SampleSource, numbers: Sequence[int]) -> NDArray[np.uint8]:
    """Return samples as they are in the data set, shape (samples, bytes)."""
    return np.stack([source.sample(number) for number in numbers])


def held(job: ShuffleJob, found: PhaseResult) -> list[NDArray[np.uint8]]:
    """Return for each worker the samples that it needs for the next epoch, as the bytes that it holds: (samples,
    bytes).

    It cannot train on samples that it does not hold.
    """
    parts = []
    for index, needed in enumerate(job.instance.needed):
        contents = found.agents.final.get((job.answer.job, job.agent_name(index)), {}).get("contents", {})
        own = [from_base64(contents[str(number)]) for number in needed if str(number) in contents]
        parts.append(np.stack(own) if own else np.zeros((0, 0), np.uint8))
    return parts


def _samples(table: NDArray[np.uint8]) -> Samples:
    """Convert bytes to samples: 64 pixels from 0 to 16, and the digit."""
    return Samples(table[:, :-1].astype(np.float32) / np.float32(16), table[:, -1].astype(np.int64))


def accuracies(epochs: Sequence[Sequence[NDArray[np.uint8]]], section: TrainingSection, seed: int) -> list[float]:
    """Return the test accuracy of the mean weights after each epoch on these samples of each worker."""
    shape = SHAPES["digits"]
    network = NeuralNetwork(shape.features, section.hidden_units, shape.classes)
    weights = network.initial_weights(seed)
    test = load("digits").test
    course = []
    for epoch, of_workers in enumerate(epochs):
        trained = [
            _epoch(network, weights, _samples(part), section, np.random.default_rng([seed, epoch, worker]))
            for worker, part in enumerate(of_workers)
            if len(part)
        ]
        weights = np.stack(trained or [weights]).mean(axis=0, dtype=np.float64).astype(np.float32)
        course.append(float(network.accuracy(weights, test)))
    return course


def _epoch(
    network: NeuralNetwork,
    weights: NDArray[np.float32],
    samples: Samples,
    section: TrainingSection,
    draw: np.random.Generator,
) -> NDArray[np.float32]:
    """Return a worker's weights after one pass over its samples."""
    own = weights.copy()
    order = draw.permutation(len(samples))
    for start in range(0, len(order), section.batch_samples):
        batch = order[start : start + section.batch_samples]
        _, gradient = network.loss_and_gradient(own, Samples(samples.features[batch], samples.labels[batch]))
        np.subtract(own, np.float32(section.learning_rate) * gradient, out=own)
    return own
