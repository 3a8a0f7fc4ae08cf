"""NDN's agents, as the launcher starts them: peers that train, and observers."""

from __future__ import annotations

import numpy as np

from gradbed.formats.ndn import ETHER_TYPE, MULTICAST_MAC
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.learning.workload import prepare_workload, sum_digest
from gradbed.hosts.systems.ndn.config import ObserverConfig, PeerConfig
from gradbed.hosts.systems.ndn.node import NdnNode
from gradbed.hosts.systems.ndn.reception import Version
from gradbed.hosts.systems.ndn.training import mean_of, total_of, train_asynchronously, train_synchronously

TRAIN, LEAVE = 2, 3
"""Agents begin three times: to subscribe, once the interfaces of all are open; to train, once all have subscribed; to
leave, once all have trained, so that nobody's last push finds a tree that is half gone."""


def prepare(config: PeerConfig | ObserverConfig) -> None:
    """Load what all peers need."""
    prepare_workload(config.job.workload)


def peer(context: AgentContext, config: PeerConfig) -> None:
    """Subscribe to all others, train, delete the subscriptions; answer until stop."""
    job, index = config.job, config.index
    with context.open(ether_type=ETHER_TYPE) as interface:
        interface.join(MULTICAST_MAC)
        context.emit("ready")
        node = NdnNode(context, interface, job, config.mac, job.publishers[index], index)
        if context.wait_for_begin() and node.join():
            context.emit("subscribed")
            train = train_synchronously if job.mode == "synchronous" else train_asynchronously
            if node.wait_for_all(TRAIN) and train(node, config) | node.gave_up():
                context.emit("trained")
                if node.wait_for_begin(LEAVE):
                    node.hear_out()
                    _leave(node)
        node.linger()
        context.emit("final", statistics=node.report())


def _leave(node: NdnNode) -> None:
    if node.leave():
        node.context.emit("left")


def _observe(node: NdnNode, observation: VersionObserver, until_us: int | None) -> None:
    """Follow to the last version, or what there is of it: who comes late may have missed the first ones."""
    context = node.context
    if node.serve_until(lambda: observation.over or context.begins >= LEAVE, until_us) and not observation.over:
        # All has been pushed, and may be on its way.
        node.serve_until(lambda: observation.over, context.now_us() + node.job.first_probe_us)
        if observation.follows:
            node.serve_until(lambda: observation.over, until_us)


def _listen(context: AgentContext, interface: Interface, until_us: int) -> None:
    """Take in what comes, and nothing else."""
    while not context.stopped and context.now_us() < until_us:
        interface.receive()
        context.wait(until_us)


def observer(context: AgentContext, config: ObserverConfig) -> None:
    """Subscribe at its time, follow all versions, leave at its time or at the end."""
    with context.open(ether_type=ETHER_TYPE) as interface:
        interface.join(MULTICAST_MAC)
        context.emit("ready")
        node = NdnNode(context, interface, config.job, config.mac, config.name, None)
        if node.wait_for_begin(TRAIN):
            begin_us = context.now_us()
            _listen(context, interface, begin_us + config.join_us)
            observation = VersionObserver(node, config)
            until_us = None if config.leave_us is None else begin_us + config.leave_us
            _observe(node, observation, until_us)
            if node.gave_up() or not context.stopped:
                _leave(node)
        node.linger()
        context.emit("final", statistics=node.report())


# ---- An observer ----


class VersionObserver:
    """An observer of the versions that begin after this host has joined."""

    def __init__(self, node: NdnNode, observer: ObserverConfig) -> None:
        self._node = node
        self._job = observer.job
        self._next: int | None = None
        self._complete: dict[int, dict[int, Version]] = {}
        self.over = False
        node.tell_of_versions(self._take)

    @property
    def follows(self) -> bool:
        """Something of the version that it waits for is there."""
        receptions = self._node.receptions.values()
        return self._next is not None and any(each.version(self._next).head is not None for each in receptions)

    def _take(self, publisher: int, number: int, version: Version) -> None:
        if self._next is None:
            # Of the version that is under way others may have come before this host had joined.
            self._next = number + 1
            for other in self._node.receptions:
                self._node.wait_for(other, self._next)
        if number < self._next:
            return
        if number == self._next:
            self._node.stop_waiting(publisher, None)
        self._complete.setdefault(number, {})[publisher] = version
        while len(self._complete.get(self._next, {})) == len(self._job.publishers):
            self._finish(self._complete.pop(self._next), self._next)

    def _finish(self, versions: dict[int, Version], number: int) -> None:
        fragments = np.zeros((self._job.fragments, self._job.lanes), np.int64)
        for publisher, version in sorted(versions.items()):
            fragments += version.fragments
            self._node.receptions[publisher].end(number)
            assert version.head is not None
            self.over |= version.head.last
        # Peers that have reached their target make no further version; they did not know when they pushed this one.
        loss = mean_of([version.head.loss for version in versions.values() if version.head is not None])
        self.over |= self._job.target_loss is not None and loss < self._job.target_loss
        total = total_of(fragments, self._job.values, self._job.lanes)
        self._node.context.emit("observed", version=number, sum_sha256=sum_digest(total), mean_loss=loss)
        self._next = number + 1
        if self.over:
            return
        for publisher in versions:
            if publisher not in self._complete.get(self._next, {}):
                self._node.wait_for(publisher, self._next)
