"""The run that every other is measured against: all workers in one process, no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hosts.learning.dataset import load
from hosts.learning.settings import TrainingSettings
from hosts.learning.trainer import Replica, Shard


@dataclass(frozen=True)
class ReferenceRound:
    """State after a round."""

    round: int
    weights_sha256: str
    losses: tuple[float, ...]
    """Of the workers' minibatches, before the round."""
    accuracy: float
    """On the test samples, after the round."""
    clipped: int
    """Over all workers."""


def reference(settings: TrainingSettings, workers: int) -> Iterator[ReferenceRound]:
    """Train with `workers` workers; one item per round."""
    dataset = load(settings.dataset)
    replica = Replica(settings, workers)
    shards = [Shard(settings, dataset, worker, workers) for worker in range(workers)]
    for round_number in range(settings.rounds):
        contributions = [replica.contribution(shard.minibatch(round_number)) for shard in shards]
        total = np.zeros(replica.network.parameters, np.int32)
        for contribution in contributions:
            total += contribution.values
        replica.apply(total)
        yield ReferenceRound(
            round=round_number,
            weights_sha256=replica.digest(),
            losses=tuple(contribution.loss for contribution in contributions),
            accuracy=replica.network.accuracy(replica.weights, dataset.test),
            clipped=sum(contribution.clipped for contribution in contributions),
        )
