"""Layer 2: hosts of one subnet send to each other's MAC addresses, and switches need not be routers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.workload.system import WorkloadSystem
from gradbed.experiments.traffic.packet_options import Template
from gradbed.topo.addressing import addressed
from gradbed.topo.registry import parse_topology
from tests.unit.workload.runs import OWN, configuration, run, table

BRIDGE = OWN.with_name("bridge.p4")
STATIC = """
tables:
  addresses:
    - routes: shortest
      match: {hdr.ethernet.dst_addr: $dst_mac}
      action: forward
      params: {port: $port}
"""
FLOODED = "multicast: {1: tree}\n"


def two_racks(addressing: str | None) -> dict[str, Any]:
    return {"kind": "leaf-spine:2,2,2", **({"addressing": addressing} if addressing else {})}


LEARNING = Path(__file__).parents[3] / "cli" / "templates" / "exercises" / "learn" / "solution" / "learn.p4"
"""The exercise's solution."""


@pytest.mark.parametrize(("addressing", "received"), [("l2", 300), ("l3", 0), (None, 0)])
def test_a_static_mac_table(addressing: str | None, received: int, tmp_path: Path) -> None:
    """Of hosts that address their gateway, it knows no packet."""
    result = run(tmp_path, STATIC, program={"path": BRIDGE}, topology=two_racks(addressing))
    assert (result.metrics["received_packets"], result.metrics["no_entry_drops"]) == (received, 300 - received)
    assert list(result.failures) == []


@pytest.mark.thorough
def test_a_learning_switch_floods_until_it_knows(tmp_path: Path) -> None:
    program = {"path": LEARNING, "registers": ["port_of"]}
    result = run(tmp_path, FLOODED, program=program, topology=two_racks("l2"))
    assert list(result.failures) == []
    assert (result.metrics["received_packets"], result.metrics["duplicates"]) == (300, 0)
    # Who has not sent yet is flooded for: three copies at most come to others.
    assert 0 < int(str(result.metrics["misdelivered"])) < 60
    # Every switch on the flooded tree knows every host, and by the port that leads there.
    topology = configuration(tmp_path, FLOODED, topology=two_racks("l2")).topology.build(Scale())
    learned = {(row["switch"], row["index"]): row["value"] for row in table(result, "registers")}
    for host in topology.hosts:
        index = int(IPv4Address(host.ip)) & 0xFFFF
        edge = topology.attachment(host.name).name
        assert learned[edge, index] == topology.port(edge, host.name)
        assert {switch for switch, place in learned if place == index} >= {"l1", "l2"}


def test_gradients_beside_the_traffic_are_addressed_likewise(tmp_path: Path) -> None:
    background = {"workers": ["all"], "values": 200}
    result = run(tmp_path, STATIC, program={"path": BRIDGE}, topology=two_racks("l2"), background=background)
    assert list(result.failures) == [] and int(str(result.metrics["background_rounds"])) > 0


@pytest.mark.parametrize("kind", ["leaf-spine:2,2,2", "fat-tree:4", "star:1", "star:250"])
def test_all_hosts_are_of_one_subnet(kind: str) -> None:
    topology = addressed(parse_topology(kind), "l2")
    networks = {host.network for host in topology.hosts}
    assert len(networks) == 1
    (network,) = networks
    addresses = [IPv4Address(host.ip) for host in topology.hosts]
    assert all(address in network for address in addresses)
    # No smaller one has them all.
    assert network.prefixlen == 30 or not all(
        address in IPv4Network(f"{addresses[0]}/{network.prefixlen + 1}", strict=False) for address in addresses
    )
    for a in topology.hosts[:3]:
        for b in topology.hosts[-3:]:
            assert topology.destination_mac(a.name, b.name) == b.mac
            back = addressed(topology, "l3")
            assert back.destination_mac(a.name, b.name) == a.gateway_mac


@pytest.mark.parametrize("addressing", ["l2", "l3"])
def test_variables_mean_in_templates_what_they_mean_in_entries(addressing: str, tmp_path: Path) -> None:
    """$dst_mac is the host's own; $next_mac the first hop's, to which a frame goes that names no destination."""
    topology = addressed(parse_topology("leaf-spine:2,1,1"), addressing)  # type: ignore[arg-type]
    one, other = topology.hosts
    first_hop = other.mac if addressing == "l2" else topology.attachment(one.name).mac

    def destination(text: str) -> str:
        (header,) = Template(text).headers(topology, 100)((one.name, other.name), 1)
        return str(Ether(bytes.fromhex(header)).dst)

    assert destination("Ether(dst=$dst_mac)/IP(dst=$dst)") == other.mac
    assert destination("Ether(dst=$next_mac)/IP(dst=$dst)") == destination("Ether()/IP(dst=$dst)") == first_hop


def test_frames_on_the_wire_bear_the_receivers_address(tmp_path: Path) -> None:
    chosen = configuration(tmp_path, STATIC, program={"path": BRIDGE}, topology=two_racks("l2"))
    topology = chosen.topology.build(Scale())
    run_trial(WorkloadSystem(), TrialTask(chosen, 1, Scale(), tmp_path, capture=True))
    macs = {host.ip: host.mac for host in topology.hosts}
    frames = rdpcap(str(tmp_path / "pcap" / "h1.pcapng"))
    assert len(frames) > 100 and all(macs[frame["IP"].dst] == frame.dst for frame in frames)
