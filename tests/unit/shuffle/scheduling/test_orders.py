"""In which order packets are sent: no scheduler may have all senders serve one worker after the other."""

from __future__ import annotations

import pytest

from gradbed.controller.systems.shuffle.scheduling.instance import epochs
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS, scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.topo.registry import parse_topology


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name not in ("coded-master", "exact")])
def test_the_first_packets_of_all_senders_are_for_many_workers(name: str) -> None:
    """With nothing but the own part stored, so that nothing is coded and all have the same packets to send: the first
    of each of 16 senders would be for one worker, or two, if demands were taken in order."""
    topology = parse_topology("fat-tree:4")
    hosts = [host.name for host in topology.hosts]
    instance = next(epochs(hosts, [100] * 480, 1 / 16, seed=1))
    schedule = scheduler_named(name).schedule(instance, Trees(topology, hosts, 4), seed=1)
    for place in (0, 1, 5):
        sent = [schedule.transmissions[queue[place]] for queue in schedule.queues]
        most = [worker for packet in sent for worker, _ in packet.receivers]
        assert max(map(most.count, most)) <= 5
