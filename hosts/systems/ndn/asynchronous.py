"""Training without a barrier: every peer applies gradients one by one, in the order in which they came to it.

A peer's weights follow from the list of what it applied after each of its gradients. `replay` makes them of all
peers' lists, in one process: the same bits, whatever the network did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.dataset import load
from gradbed.hosts.learning.quantise import START_EXPONENT, dequantise, next_exponent, quantise
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.learning.trainer import Replica, Shard
from gradbed.hosts.systems.ndn.packets import MOST_SCALES

MOST_EXPONENT = 127
"""Scales travel in 8 bits."""

Applied = Sequence[Sequence[tuple[int, int]]]
"""After each of a peer's gradients: the publishers and versions that it applied."""


@dataclass(frozen=True)
class ScaledGradient:
    """values: flat; scales: the exponent of each tensor; next_scales: of the same peer's next gradient."""

    values: NDArray[np.int32]
    scales: tuple[int, ...]
    next_scales: tuple[int, ...]
    loss: float
    clipped: int


class AsynchronousReplica:
    """Weights that gradients of different scales are applied to. Scales are this peer's own, and follow from its own
    gradients, since no two peers apply the same."""

    def __init__(self, settings: TrainingSettings, index: int, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._dataset = load(settings.dataset)
        self._replica = Replica(settings, workers)
        self._shard = Shard(settings, self._dataset, index, workers)
        self._scales = (START_EXPONENT,) * len(self._replica.network.shapes)
        assert len(self._scales) <= MOST_SCALES

    def gradient(self, version: int) -> ScaledGradient:
        """Return the gradient of the version's minibatch, at the present weights."""
        network = self._replica.network
        loss, gradient = network.loss_and_gradient(self._replica.weights, self._shard.minibatch(version))
        # The gradient is not needed any more: its integers take its memory.
        values = gradient.view(np.int32)
        clipped = 0
        following = []
        for scale, part in zip(self._scales, network.slices, strict=True):
            clipped += quantise(gradient[part], scale, values[part]).clipped
            wide = values[part].astype(np.int64)
            following.append(min(next_exponent(scale, wide, self._settings.headroom_bits), MOST_EXPONENT))
        return ScaledGradient(values, self._scales, tuple(following), loss, clipped)

    def apply_own(self, gradient: ScaledGradient) -> None:
        """Step against the gradient that was made last; its successor is made at scales that suit it."""
        self._scales = gradient.next_scales
        self.apply(gradient.values, gradient.scales)

    def apply(self, values: NDArray[np.int32], scales: Sequence[int]) -> None:
        """Step against one peer's gradient."""
        step_per_unit = self._settings.learning_rate / self._workers
        for part, exponent in zip(self._replica.network.slices, scales, strict=False):
            step = step_per_unit * dequantise(values[part].astype(np.int64), exponent)
            self._replica.weights[part] -= step.astype(np.float32)

    def digest(self) -> str:
        return self._replica.digest()

    def accuracy(self) -> float:
        return self._replica.network.accuracy(self._replica.weights, self._dataset.test)


Replayed = list[tuple[str, list[float]]]


def replay(settings: TrainingSettings, workers: int, applied: Mapping[int, Applied]) -> dict[int, Replayed]:
    """Replay training; return of every peer, by index, after each of its versions the digest of its weights, and the
    losses of the gradients that it applied then.

    ValueError if the lists name a gradient that nobody can have made by then.
    """
    replicas = {index: AsynchronousReplica(settings, index, workers) for index in applied}
    made: dict[tuple[int, int], ScaledGradient] = {}
    digests: dict[int, Replayed] = {index: [] for index in applied}
    progress = True
    while progress:
        progress = False
        for index, steps in applied.items():
            while len(digests[index]) < len(steps):
                version = len(digests[index])
                if (index, version) not in made:
                    made[index, version] = replicas[index].gradient(version)
                    progress = True
                if any(tuple(each) not in made for each in steps[version]):
                    break
                for publisher, number in steps[version]:
                    gradient = made[publisher, number]
                    if publisher == index:
                        replicas[index].apply_own(gradient)
                    else:
                        replicas[index].apply(gradient.values, gradient.scales)
                losses = [made[publisher, number].loss for publisher, number in steps[version]]
                digests[index].append((replicas[index].digest(), losses))
                progress = True
    missing = [index for index, steps in applied.items() if len(digests[index]) < len(steps)]
    if missing:
        raise ValueError(f"peers {missing} applied gradients that were not made yet")
    return digests
