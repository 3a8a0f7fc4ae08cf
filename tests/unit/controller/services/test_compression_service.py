"""What the controller plans for compression jobs."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.compression.service import (
    CompressionJobRequest,
    CompressionService,
    CompressionSettings,
)
from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel


def service(topology: Topology, packets: int | None = None) -> CompressionService:
    return CompressionService(topology, shortest_routes(topology), CompressionSettings(congestion_packets=packets))


def test_sums_reach_all_workers_along_one_tree() -> None:
    topology = fat_tree(4, LinkModel(rate_bps=10_000_000))
    made = service(topology)
    job = CompressionJobRequest(workers=("h3", "h9", "h16"), server="h1")
    plan, answer = made.plan(5, job), made.answer(5, job)
    reached: set[str] = set()
    for name, switch in plan.switches.items():
        (group,) = switch.groups
        (entry,) = switch.entries
        assert (group.id, entry.table) == (80, "multicast_routes")
        ports = {port: neighbour for neighbour, port in topology.neighbours(name).items()}
        reached |= {ports[port] for port in group.ports}
    assert {"h3", "h9", "h16"} == {name for name in reached if topology.is_host(name)}
    assert answer.server_link_bps == 10_000_000
    assert answer.multicast.ip == "239.66.0.80"


def test_every_port_marks_where_that_is_asked_for() -> None:
    topology = fat_tree(4)
    assert service(topology).base().switches == {}
    plan = service(topology, 20).base()
    assert {len(switch.entries) for switch in plan.switches.values()} == {4}
    entry = plan["e1"].entries[0]
    assert service(topology, 20).plain("e1", entry) is None


@pytest.mark.parametrize(
    ("workers", "server", "words"),
    [
        (("h1", "h1"), "h2", "worker named twice: h1"),
        (("h1",), "h1", "h1 cannot be both"),
        (("h99",), "h1", "h99"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(workers: tuple[str, ...], server: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        service(fat_tree(4)).admit(1, CompressionJobRequest(workers=workers, server=server), {})
