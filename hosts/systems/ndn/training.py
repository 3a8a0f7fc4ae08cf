"""Training by pushed gradients: with a barrier after every version, and without."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.learning.fragments import as_sent, cut, join
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.learning.workload import Workload, sum_digest, workload
from gradbed.hosts.systems.ndn.asynchronous import AsynchronousReplica
from gradbed.hosts.systems.ndn.config import PeerConfig
from gradbed.hosts.systems.ndn.node import NdnNode, Publication
from gradbed.hosts.systems.ndn.packets import VersionHead
from gradbed.hosts.systems.ndn.reception import Version


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
