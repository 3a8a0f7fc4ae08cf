"""The controller process against the P4 switches of a whole fabric: what it programs is what packets meet.

Hosts are open ports of the engine, so that neither root nor namespaces are needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controller.client import ControllerClient
from experiments.systems.aggregation.counts import EVENT_JOBS, event_at
from formats.aggregation import Flags
from formats.lanes import frame_bytes
from hosts.systems.aggregation.gradient import Gradient, gradient_frame
from switch.engine import Engine
from switch.program_cache import compiled_files
from switch.server import P4RuntimeServer
from topo.graph import Topology
from topo.registry import parse_topology

ROOT = Path(__file__).parents[3]
LANES = 32
SERVICE = "controller.systems.aggregation.service:AggregationService"
PATIENCE_S = 60.0


class Fabric:
    """All switches of a topology in one engine, served over P4Runtime and programmed by a controller process."""

    def __init__(self, topology: Topology, directory: Path) -> None:
        self.topology = topology
        self.engine = Engine()
        devices = {s.number: self.engine.add_switch(s.number, s.name) for s in topology.switches}
        for link in topology.switch_links:
            a, b = ((topology.switch(end.node).number, end.port) for end in (link.a, link.b))
            self.engine.add_link(a, b, link.model, seed=1)
        self._port_of = {
            host.name: (topology.attachment(host.name).number, self._edge_port(host.name)) for host in topology.hosts
        }
        self._host_at = {port: name for name, port in self._port_of.items()}
        for device_id, port in self._host_at:
            self.engine.add_open_port(device_id, port)
        self.engine.start()
        self.address = f"unix:{directory}/p4rt.sock"
        self.server = P4RuntimeServer(devices, [self.address])
        self.server.start()
        self._controller = self._start_controller(directory)
        self.client = ControllerClient(str(directory / "rest.sock"), timeout_s=PATIENCE_S)

    def _edge_port(self, host: str) -> int:
        return self.topology.port(self.topology.attachment(host).name, host)

    def _start_controller(self, directory: Path) -> subprocess.Popen[str]:
        program = compiled_files(ROOT / "p4src" / "aggregation.p4", {"LANES": str(LANES)})
        config = {
            "topology": json.loads(self.topology.to_json()),
            "targets": {switch.name: self.address for switch in self.topology.switches},
            "programs": {"aggregation": {"json": str(program.json), "p4info": str(program.p4info)}},
            "switches": {switch.name: "aggregation" for switch in self.topology.switches},
            "services": [{"name": "aggregation", "service": SERVICE}],
            "rest_address": str(directory / "rest.sock"),
        }
        (directory / "controller.json").write_text(json.dumps(config))
        controller = subprocess.Popen(
            [sys.executable, "-m", "controller.app", str(directory / "controller.json")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert controller.stdout is not None
        assert json.loads(controller.stdout.readline()) == {"event": "ready"}
        return controller

    def add_job(self, workers: list[str], server: str, **options: Any) -> dict[str, Any]:
        return self.client.add_job("aggregation", {"workers": workers, "server": server, **options})

    def delete_job(self, job: dict[str, Any]) -> None:
        self.client.delete_job("aggregation", job["job"])

    def send(self, host: str, frame: Any) -> None:
        self.engine.inject(*self._port_of[host], bytes(frame))

    def received(self) -> list[tuple[str, Any]]:
        """(host, frame) of all that has arrived at hosts since the last call, once the network is quiet."""
        assert self.engine.quiesce(PATIENCE_S)
        return [(self._host_at[device_id, port], Ether(frame)) for device_id, port, frame in self.engine.drain()]

    def gradient(self, job: dict[str, Any], workers: list[str], server: str, index: int, packet_number: int) -> Any:
        """What worker `index` sends: its lanes are index + 1 times the lane's place."""
        worker, target = self.topology.host(workers[index]), self.topology.host(server)
        labels = job["designations"][index]
        label = labels[packet_number % len(labels)] if labels else {}
        return gradient_frame(
            src_mac=worker.mac,
            dst_mac=worker.gateway_mac,
            src_ip=worker.ip,
            dst_ip=target.ip,
            job=job["job"],
            packet_number=packet_number,
            worker_bitmap=1 << index,
            lanes=[(index + 1) * lane for lane in range(LANES)],
            **label,
        )

    def events(self, job: int) -> dict[str, dict[str, int]]:
        """switch -> event -> packets of the job."""
        return {
            switch.name: {
                event: cell["packets"]
                for cell in self.client.counters(switch.name)["events"]
                for of_job, event in [event_at(cell["index"])]
                if of_job == job % EVENT_JOBS
            }
            for switch in self.topology.switches
        }

    def close(self) -> None:
        self._controller.terminate()
        self._controller.communicate()
        self.server.stop()
        self.engine.close()


@pytest.fixture(scope="module", params=["fat-tree:4", "leaf-spine:3,2,2", "star:5"])
def fabric(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    fabric = Fabric(parse_topology(request.param), tmp_path_factory.mktemp("fabric"))
    yield fabric
    fabric.close()


def test_every_switch_is_programmed(fabric: Fabric) -> None:
    switches = fabric.client.switches()
    assert [switch["number"] for switch in switches] == [s.number for s in fabric.topology.switches]
    assert all(switch["connected"] and switch["pipeline"].startswith("aggregation ") for switch in switches)


def test_every_host_reaches_every_other(fabric: Fabric) -> None:
    hosts = fabric.topology.hosts
    for source, destination in permutations(hosts, 2):
        packet = (
            Ether(src=source.mac, dst=source.gateway_mac)
            / IP(src=source.ip, dst=destination.ip)
            / UDP(sport=1, dport=2)
            / b"payload"
        )
        fabric.send(source.name, packet)
    arrived = fabric.received()
    assert sorted((frame[IP].src, host) for host, frame in arrived) == sorted(
        (source.ip, destination.name) for source, destination in permutations(hosts, 2)
    )
    for host, frame in arrived:
        receiver = fabric.topology.host(host)
        assert (frame[IP].dst, frame.dst, frame.src) == (receiver.ip, receiver.mac, receiver.gateway_mac)


@pytest.mark.parametrize("explicit", [False, True])
def test_a_job_is_summed_at_its_switches_and_acknowledged_along_its_tree(fabric: Fabric, explicit: bool) -> None:
    server, *workers = [host.name for host in fabric.topology.hosts]
    # Explicitly: switches off the shortest paths, too.
    names = [switch.name for switch in fabric.topology.switches][-3:]
    options: dict[str, Any] = {"placement": "explicit", "switches": names} if explicit else {}
    job = fabric.add_job(workers, server, **options)
    labels = job["designations"][0]
    fragments = 2 * len(labels)
    total = sum(range(1, len(workers) + 1))
    for packet_number in range(fragments):
        for index, worker in enumerate(workers):
            fabric.send(worker, fabric.gradient(job, workers, server, index, packet_number))
    sums = fabric.received()
    assert sorted(frame[Gradient].packet_number for _, frame in sums) == list(range(fragments))
    for host, frame in sums:
        assert host == server
        assert frame.dst == fabric.topology.host(server).mac
        assert frame[Gradient].flags == Flags.PARTIAL
        assert frame[Gradient].worker_bitmap == (1 << len(workers)) - 1
        assert frame[Gradient].lanes == [total * lane for lane in range(LANES)]

    for packet_number in range(fragments):
        group = job["multicast"][packet_number % len(job["multicast"])]
        target = fabric.topology.host(server)
        fabric.send(
            server,
            gradient_frame(
                src_mac=target.mac,
                dst_mac=group["mac"],
                src_ip=target.ip,
                dst_ip=group["ip"],
                job=job["job"],
                packet_number=packet_number,
                worker_bitmap=(1 << len(workers)) - 1,
                lanes=[total * lane for lane in range(LANES)],
                flags=Flags.ACK,
            ),
        )
    answers = [(host, frame[Gradient].packet_number) for host, frame in fabric.received()]
    assert sorted(answers) == sorted((worker, number) for worker in workers for number in range(fragments))

    # Every designated switch claimed and released slots for the fragments that name it, at the first level or at the
    # second, and no other switch any.
    events = fabric.events(job["job"])
    for switch in fabric.topology.switches:
        expected = 2 * sum(switch.number in (label["switch_number"], label["next_switch"]) for label in labels)
        for event in ("claimed", "released"):
            assert events[switch.name].get(event, 0) == expected, (switch.name, event)
    fabric.delete_job(job)


def test_after_its_end_a_job_is_no_longer_summed(fabric: Fabric) -> None:
    server, *workers = [host.name for host in fabric.topology.hosts]
    job = fabric.add_job(workers, server)
    fabric.delete_job(job)
    for index, worker in enumerate(workers):
        fabric.send(worker, fabric.gradient(job, workers, server, index, 0))
    arrived = fabric.received()
    assert [host for host, _ in arrived] == [server] * len(workers)
    assert sorted(frame[Gradient].worker_bitmap for _, frame in arrived) == [1 << i for i in range(len(workers))]


def test_counters_are_what_the_ports_carried(fabric: Fabric) -> None:
    server, *workers = [host.name for host in fabric.topology.hosts]
    edge = fabric.topology.attachment(server).name
    port = fabric.topology.port(edge, server)

    def towards_server() -> tuple[int, int]:
        cells = {cell["index"]: cell for cell in fabric.client.counters(edge)["gradient_out"]}
        cell = cells.get(port, {"packets": 0, "bytes": 0})
        return cell["packets"], cell["bytes"]

    job = fabric.add_job(workers, server, placement="none")
    packets, size = towards_server()
    for index, worker in enumerate(workers):
        fabric.send(worker, fabric.gradient(job, workers, server, index, 0))
    assert len(fabric.received()) == len(workers)
    assert towards_server() == (packets + len(workers), size + len(workers) * frame_bytes(LANES))
    fabric.delete_job(job)
