"""What a worker does between the rounds: makes a gradient as integers, and takes in the sum of all workers'."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.compressors.block_sparse import compact_values, sent_form
from gradbed.hosts.learning.dataset import load
from gradbed.hosts.learning.settings import ExternalSettings, SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.trainer import Contribution, Replica, Shard, network

# ---- Gradients for measurements: random integers, the same for the same seed, worker and round ----


def synthetic_gradient(settings: SyntheticSettings, worker: int, round_number: int) -> NDArray[np.int32]:
    """A worker's gradient of a round, flat."""
    generator = np.random.default_rng([settings.seed, worker, round_number])
    limit = settings.magnitude
    return generator.integers(-limit, limit, settings.values, dtype=np.int32, endpoint=True)


_latest: deque[tuple[NDArray[np.int64], str]] = deque(maxlen=4)
"""Sums and their digests. All workers of a job get the same sum: it takes a tenth of the time to see that."""


def sum_digest(total: NDArray[np.int64]) -> str:
    """SHA-256 of a global sum's bytes (int64, little-endian), in hexadecimal."""
    for known, digest in _latest:
        if np.array_equal(known[:64], total[:64]) and np.array_equal(known, total):
            return digest
    sums = total.astype("<i8")
    _latest.appendleft((sums, hashlib.sha256(sums.tobytes()).hexdigest()))
    return _latest[0][1]


# ---- Workloads ----


class Workload(Protocol):
    """The computation of one worker of a job. Rounds are numbered from 0."""

    def gradient(self, round_number: int) -> NDArray[np.int32]:
        """The worker's gradient of a round as it is sent, flat."""

    @property
    def loss(self) -> float:
        """Mean loss of the gradient that was asked for last; 0 where nothing is learnt."""

    def apply(self, total: NDArray[np.int64]) -> None:
        """Take in the global sum of the round whose gradient was asked for last."""

    def report(self) -> dict[str, Any]:
        """Return what there is to tell of the round that was applied last, as JSON."""


class TrainingWorkload:
    """Trains; reports weights_sha256, loss, clipped and, on worker 0, accuracy."""

    def __init__(self, settings: TrainingSettings, worker: int, workers: int) -> None:
        self._evaluates = worker == 0
        self._dataset = load(settings.dataset)
        self._replica = Replica(settings, workers)
        self._shard = Shard(settings, self._dataset, worker, workers)
        self._form = sent_form(self._replica.network.parameters, settings.blocks)
        self._contribution: Contribution | None = None

    def gradient(self, round_number: int) -> NDArray[np.int32]:
        self._contribution = self._replica.contribution(self._shard.minibatch(round_number))
        return self._form.compact(self._contribution.values)

    @property
    def loss(self) -> float:
        assert self._contribution is not None, "no gradient was asked for"
        return self._contribution.loss

    def apply(self, total: NDArray[np.int64]) -> None:
        self._replica.apply(self._form.expanded(total))

    def report(self) -> dict[str, Any]:
        assert self._contribution is not None, "nothing was applied"
        report = {
            "weights_sha256": self._replica.digest(),
            "loss": self._contribution.loss,
            "clipped": self._contribution.clipped,
        }
        if self._evaluates:
            report["accuracy"] = self._replica.network.accuracy(self._replica.weights, self._dataset.test)
        return report


class SyntheticWorkload:
    """Sums random gradients; reports sums_sha256."""

    loss = 0.0

    def __init__(self, settings: SyntheticSettings, worker: int) -> None:
        self._settings = settings
        self._worker = worker
        self._form = sent_form(settings.values, settings.blocks)
        self._total: NDArray[np.int64] | None = None
        """Until it has been reported: the sums of many workers need much memory."""

    def gradient(self, round_number: int) -> NDArray[np.int32]:
        return self._form.compact(synthetic_gradient(self._settings, self._worker, round_number))

    def apply(self, total: NDArray[np.int64]) -> None:
        self._total = self._form.expanded(total)

    def report(self) -> dict[str, Any]:
        assert self._total is not None, "nothing was taken in since the last report"
        total, self._total = self._total, None
        return {"sums_sha256": sum_digest(total)}


def prepare_workload(settings: TrainingSettings | SyntheticSettings | ExternalSettings) -> None:
    """Load what several workers of one machine can share, before they are forked."""
    if isinstance(settings, TrainingSettings):
        load(settings.dataset)


def gradient_values(settings: TrainingSettings | SyntheticSettings | ExternalSettings) -> int:
    """Values in a gradient as it is sent."""
    if isinstance(settings, ExternalSettings):
        return settings.values
    values = settings.values if isinstance(settings, SyntheticSettings) else network(settings).parameters
    return compact_values(values, settings.blocks)


def workload(
    settings: TrainingSettings | SyntheticSettings | ExternalSettings, worker: int, workers: int
) -> Workload:
    """The part of worker `worker` of `workers`. UserError if a program outside has it."""
    if isinstance(settings, ExternalSettings):
        raise UserError("a job with an external workload needs a script for every worker")
    if isinstance(settings, SyntheticSettings):
        return SyntheticWorkload(settings, worker)
    return TrainingWorkload(settings, worker, workers)
