"""Training by pushed gradients: with a barrier after every version, and without."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.dataset import load
from gradbed.hosts.learning.fragments import as_sent, cut, join
from gradbed.hosts.learning.quantise import START_EXPONENT, dequantise, next_exponent, quantise
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.learning.trainer import Replica, Shard
from gradbed.hosts.learning.workload import Workload, sum_digest, workload
from gradbed.hosts.systems.ndn.config import PeerConfig
from gradbed.hosts.systems.ndn.node import NdnNode, Publication
from gradbed.hosts.systems.ndn.packets import MOST_SCALES, VersionHead
from gradbed.hosts.systems.ndn.reception import Version

# ---- Without a barrier: every peer applies gradients one by one, in the order in which they came to it ----
#
# A peer's weights follow from the list of what it applied after each of its gradients. `replay` makes them of all
# peers' lists, in one process: the same bits, whatever the network did.


MOST_EXPONENT = 127
"""Scales travel in 8 bits."""

Applied = Sequence[Sequence[tuple[int, int]]]
"""After each of a peer's gradients: the publishers and versions that it applied."""


@dataclass(frozen=True)
class ScaledGradient:
    """A peer's gradient as integers, with a scale for each tensor."""

    values: NDArray[np.int32]
    """Values, flat."""
    scales: tuple[int, ...]
    """Exponent of each tensor."""
    next_scales: tuple[int, ...]
    """Exponents of the same peer's next gradient."""
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

    ValueError if the lists name a gradient that no peer can have made by then.
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


# ---- Peers ----


def total_of(fragments: NDArray[np.int64], values: int, lanes: int) -> NDArray[np.int64]:
    """The sum as the workers of every system take it in (gradbed.hosts.learning.fragments)."""
    return as_sent(join(fragments, values), lanes)


def train_synchronously(node: NdnNode, peer: PeerConfig) -> bool:
    """Train all versions, each after everybody's one before; False when stopped before the end."""
    job, context = peer.job, node.context
    own: Workload = workload(job.workload, peer.index, len(job.publishers))
    others = set(range(len(job.publishers))) - {peer.index}
    complete: set[tuple[int, int]] = set()
    pushed_us = 0
    current = -1

    def take(publisher: int, number: int, version: Version) -> None:
        complete.add((publisher, number))
        if number == current:
            node.stop_waiting(publisher, None if version.last_push_us is None else version.last_push_us - pushed_us)

    node.tell_of_versions(take)
    for current in range(job.workload.rounds):
        start_us = context.now_us()
        for _ in range(peer.slowness):
            gradient = context.compute(partial(own.gradient, current))
        pushed_us = context.now_us()
        loss = own.loss
        last = current == job.workload.rounds - 1
        node.publish(current, Publication(VersionHead(loss, (), last), cut(gradient, job.lanes)))
        for publisher in others:
            if (publisher, current) not in complete:
                node.wait_for(publisher, current)
            else:
                # Theirs was there before the own one: no gap.
                node.timers[publisher].stop(0)
        if node.puller is not None:
            node.puller.begin(current, sorted(others))
        wanted = {(publisher, current) for publisher in others}
        # What waits for the pace leaves before the next gradient is computed: others wait for it.
        if not node.serve_until(partial(_all_there, node, wanted, complete)):
            return False
        complete_us = context.now_us()
        fragments = cut(gradient.astype(np.int64), job.lanes)
        losses = [loss]
        for publisher in sorted(others):
            version = node.receptions[publisher].end(current)
            fragments += version.fragments
            assert version.head is not None
            losses.append(version.head.loss)
        complete -= wanted
        total = total_of(fragments, job.values, job.lanes)
        own.apply(total)
        mean_loss = mean_of(losses)
        context.emit(
            "version",
            version=current,
            seconds=(complete_us - pushed_us) / 1e6,
            total_seconds=(context.now_us() - start_us) / 1e6,
            now_us=context.now_us(),
            sum_sha256=sum_digest(total),
            mean_loss=mean_loss,
            **own.report(),
        )
        if job.target_loss is not None and mean_loss < job.target_loss:
            break
    return True


def mean_of(losses: Collection[float]) -> float:
    """Return the mean over all peers, the same to the last bit for everybody."""
    return sum(sorted(losses)) / len(losses)


def _all_there(node: NdnNode, wanted: set[tuple[int, int]], complete: set[tuple[int, int]]) -> bool:
    return node.all_sent and wanted <= complete


def train_asynchronously(node: NdnNode, peer: PeerConfig) -> bool:
    """Train all versions, each as soon as the own one before is applied, with whatever has come until then."""
    job, context = peer.job, node.context
    assert isinstance(job.workload, TrainingSettings)
    replica = AsynchronousReplica(job.workload, peer.index, len(job.publishers))
    losses: dict[int, float] = {}
    arrived: list[tuple[int, int, Version]] = []

    def take(publisher: int, number: int, version: Version) -> None:
        reception = node.receptions[publisher]
        # Versions before it are left out: they would come after one that was made later.
        node.statistics.superseded_versions += number - reception.floor
        reception.end(number)
        node.stop_waiting(publisher, None)
        arrived.append((publisher, number, version))

    node.tell_of_versions(take)
    for current in range(job.workload.rounds):
        start_us = context.now_us()
        for _ in range(peer.slowness):
            gradient = context.compute(partial(replica.gradient, current))
        last = current == job.workload.rounds - 1
        losses[peer.index] = gradient.loss
        pushed_us = context.now_us()
        node.publish(
            current, Publication(VersionHead(gradient.loss, gradient.scales, last), cut(gradient.values, job.lanes))
        )
        node.serve()
        # A version takes at least as long as its own push, or the network would never catch up.
        if not node.serve_until(lambda: node.all_sent):
            return False
        replica.apply_own(gradient)
        applied = [(peer.index, current)]
        heard = [gradient.loss]
        for publisher, number, version in arrived:
            assert version.head is not None
            replica.apply(join(version.fragments, job.values), version.head.scales)
            losses[publisher] = version.head.loss
            applied.append((publisher, number))
            heard.append(version.head.loss)
        arrived.clear()
        mean_loss = sum(losses[index] for index in sorted(losses)) / len(losses)
        enough = job.target_loss is not None and len(losses) == len(job.publishers) and mean_loss < job.target_loss
        context.emit(
            "version",
            version=current,
            seconds=(context.now_us() - pushed_us) / 1e6,
            total_seconds=(context.now_us() - start_us) / 1e6,
            now_us=context.now_us(),
            weights_sha256=replica.digest(),
            loss=gradient.loss,
            mean_loss=mean_loss,
            clipped=gradient.clipped,
            applied=applied,
            losses=heard,
            **({"accuracy": replica.accuracy()} if peer.index == 0 else {}),
        )
        if enough:
            break
    return True
