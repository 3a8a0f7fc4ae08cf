"""The run that every other is measured against: all workers in one process, no network.

Sums are exact, and then what ACKs carry of them; for that the length of a fragment matters (fragments.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradbed.hosts.compressors.block_sparse import sent_form
from gradbed.hosts.learning.dataset import load
from gradbed.hosts.learning.fragments import as_sent
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.trainer import Replica, Shard
from gradbed.hosts.learning.workload import gradient_values, sum_digest, synthetic_gradient


@dataclass(frozen=True)
class ReferenceRound:
    """State after a round."""

    round: int
    weights_sha256: str
    losses: tuple[float, ...]
    """Loss on each worker's minibatch, before the round."""
    accuracy: float
    """Accuracy on the test samples, after the round."""
    clipped: int
    """Clipped values of all workers."""
    overflows: int
    """Values of the exact global sum outside the range of int32."""


def reference(settings: TrainingSettings, workers: int, lanes: int) -> Iterator[ReferenceRound]:
    """Train with `workers` workers, fragments of `lanes` lanes; one item per round."""
    dataset = load(settings.dataset)
    replica = Replica(settings, workers)
    shards = [Shard(settings, dataset, worker, workers) for worker in range(workers)]
    forms = [sent_form(replica.network.parameters, settings.blocks) for _ in shards]
    for round_number in range(settings.rounds):
        contributions = [replica.contribution(shard.minibatch(round_number)) for shard in shards]
        total = np.zeros(gradient_values(settings), np.int64)
        for form, contribution in zip(forms, contributions, strict=True):
            total += form.compact(contribution.values)
        sent = as_sent(total, lanes)
        *_, last = [form.expanded(sent) for form in forms]
        replica.apply(last)
        yield ReferenceRound(
            round=round_number,
            weights_sha256=replica.digest(),
            losses=tuple(contribution.loss for contribution in contributions),
            accuracy=replica.network.accuracy(replica.weights, dataset.test),
            clipped=sum(contribution.clipped for contribution in contributions),
            overflows=int(np.count_nonzero(total != total.astype(np.int32))),
        )


def synthetic_reference(settings: SyntheticSettings, workers: int, lanes: int) -> Iterator[str]:
    """The digest of every round's global sum, as all workers report it (sums_sha256)."""
    forms = [sent_form(settings.values, settings.blocks) for _ in range(workers)]
    for round_number in range(settings.rounds):
        total = np.zeros(gradient_values(settings), np.int64)
        for worker, form in enumerate(forms):
            total += form.compact(synthetic_gradient(settings, worker, round_number))
        sent = as_sent(total, lanes)
        *_, last = [form.expanded(sent) for form in forms]
        yield sum_digest(last)
