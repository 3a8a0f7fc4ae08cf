"""NDN's agents, as the launcher starts them: peers that train, and observers."""

from __future__ import annotations

from gradbed.formats.ndn import ETHER_TYPE, MULTICAST_MAC
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.learning.workload import prepare_workload
from gradbed.hosts.systems.ndn.description import ObserverDescription, PeerDescription
from gradbed.hosts.systems.ndn.node import NdnNode
from gradbed.hosts.systems.ndn.observing import Observation
from gradbed.hosts.systems.ndn.training import train_asynchronously, train_synchronously

TRAIN, LEAVE = 2, 3
"""Agents begin three times: to subscribe, once the interfaces of all are open; to train, once all have subscribed; to
leave, once all have trained, so that nobody's last push finds a tree that is half gone."""


def prepare(description: PeerDescription | ObserverDescription) -> None:
    """Load what all peers need."""
    prepare_workload(description.job.workload)


def peer(context: AgentContext, description: PeerDescription) -> None:
    """Subscribe to all others, train, delete the subscriptions; answer until stop."""
    job, index = description.job, description.index
    with context.open(ether_type=ETHER_TYPE) as interface:
        interface.join(MULTICAST_MAC)
        context.emit("ready")
        node = NdnNode(context, interface, job, description.mac, job.publishers[index], index)
        if context.wait_for_begin() and node.join():
            context.emit("subscribed")
            train = train_synchronously if job.mode == "synchronous" else train_asynchronously
            if node.wait_for_all(TRAIN) and train(node, description) | node.gave_up():
                context.emit("trained")
                if node.wait_for_begin(LEAVE):
                    node.hear_out()
                    _leave(node)
        node.linger()
        context.emit("final", statistics=node.report())


def _leave(node: NdnNode) -> None:
    if node.leave():
        node.context.emit("left")


def _observe(node: NdnNode, observation: Observation, until_us: int | None) -> None:
    """To the last version, or what of it there is: who comes late may have missed the beginning of all."""
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


def observer(context: AgentContext, description: ObserverDescription) -> None:
    """Subscribe at its time, follow all versions, leave at its time or at the end."""
    with context.open(ether_type=ETHER_TYPE) as interface:
        interface.join(MULTICAST_MAC)
        context.emit("ready")
        node = NdnNode(context, interface, description.job, description.mac, description.name, None)
        if node.wait_for_begin(TRAIN):
            begin_us = context.now_us()
            _listen(context, interface, begin_us + description.join_us)
            observation = Observation(node, description)
            until_us = None if description.leave_us is None else begin_us + description.leave_us
            _observe(node, observation, until_us)
            if node.gave_up() or not context.stopped:
                _leave(node)
        node.linger()
        context.emit("final", statistics=node.report())
