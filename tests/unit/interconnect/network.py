"""A whole interconnect on the virtual clock, programs, plans and all; tests are its hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address
from types import TracebackType
from typing import Any

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.emulation.layout import network_config
from gradbed.experiments.programs import Program
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.graph import Host, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.optical_electrical import HYBRID, optical_electrical, with_circuits, with_wavelengths

RATE_BPS = 8_000_000
"""A byte takes a microsecond."""
PAYLOAD_BYTES = 58
FRAME_BYTES = 100


class Interconnect:
    """A context manager. Frames have FRAME_BYTES, and FRAME_BYTES + 4 as light."""

    def __init__(
        self,
        n: int,
        *,
        channels: bool = True,
        circuits: tuple[int, int] | None = None,
        queue_packets: int = 1000,
        seed: int = 1,
        **settings: Any,
    ) -> None:
        """circuits: slot and guard time in us."""
        topology = optical_electrical(n, LinkModel(rate_bps=RATE_BPS, delay_us=1, queue_packets=queue_packets))
        if circuits is not None:
            topology = with_circuits(topology, *circuits)
        elif channels:
            topology = with_wavelengths(topology)
        self.n = n
        self.topology: Topology = topology
        self.simulated = SimulatedNetwork(network_config(topology, "memory", seed, ()))
        programs = {
            "interconnect": Program.own("interconnect"),
            "optical": Program.own("optical", UNITS=n, CHANNELS=int(channels and circuits is None)),
        }
        files = {name: program.compiled() for name, program in programs.items()}
        pipelines = {name: Pipeline.load(name, each.json, each.p4info) for name, each in files.items()}
        device_ids = {switch.name: switch.number for switch in topology.switches}
        self.southbound = LocalSouthbound(self.simulated, device_ids, pipelines)
        service = ServiceConfig(
            name="interconnect",
            service="gradbed.controller.systems.interconnect.service:InterconnectService",
            settings={"per_wavelength": channels, "seed": seed, **settings},
        )
        self.controller = Controller(
            topology,
            self.southbound,
            load_services([service]),
            {each.name: "interconnect" if each.tier == HYBRID else "optical" for each in topology.switches},
            unrouted_programs=tuple(pipelines),
        )
        self.southbound.listen(self.controller)
        self.controller.start(0.0)
        self.interfaces: dict[str, HostInterface] = {}
        for host in topology.hosts:
            edge = topology.attachment(host.name)
            port = topology.port(edge.name, host.name)
            self.interfaces[host.name] = self.simulated.interface(edge.number, port)

    def __enter__(self) -> Interconnect:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.simulated.close()

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.topology.hosts]

    def send(self, sender: str, receivers: Iterable[str], *, flow: int = 0) -> None:
        """One frame to each, now. flow: the UDP source port."""
        source = self.topology.host(sender)
        frames = [frame(source, self.topology.host(receiver), flow) for receiver in receivers]
        self.interfaces[sender].send(np.stack(frames))

    def settle(self, until_us: int | None = None) -> None:
        """Until nothing is on its way, or it is that time."""
        until_ns = None if until_us is None else 1000 * until_us
        while not (stop := self.simulated.run_until(until_ns)).idle and stop.time_ns != until_ns:
            pass

    def received(self, host: str) -> list[bytes]:
        """Frames that have come since the last call."""
        found: list[bytes] = []
        while True:
            buffer, lengths = self.interfaces[host].receive()
            if not len(lengths):
                return found
            found += [bytes(row[:length]) for row, length in zip(buffer, lengths, strict=False)]

    def carried(self) -> Counter[tuple[str, str]]:
        """Packets of every direction between switches."""
        from dataclasses import asdict

        from gradbed.emulation.layout import name_statistics

        rows = name_statistics(self.topology, "memory", map(asdict, self.simulated.engine.link_statistics()))
        return Counter({(row.from_node, row.to_node): row.packets for row in rows})

    def counter(self, switch: str, name: str) -> dict[int, int]:
        """Packets by index, where there are some."""
        return {cell.index: cell.packets for cell in self.southbound.counters(switch)[name] if cell.packets}

    def dropped(self) -> Counter[int]:
        """Packets by cause (p4src/interconnect.p4), of all hybrid switches."""
        total: Counter[int] = Counter()
        for switch in self.topology.switches:
            if switch.tier == HYBRID:
                total.update(self.counter(switch.name, "dropped"))
        return total


def frame(source: Host, destination: Host, flow: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    packet = (
        Ether(src=source.mac, dst=source.gateway_mac)
        / IP(src=source.ip, dst=destination.ip)
        / UDP(sport=flow, dport=7)
        / bytes(PAYLOAD_BYTES)
    )
    return np.frombuffer(bytes(packet), np.uint8)


def ttl(received: bytes) -> int:
    return int(IP(received[14:]).ttl)


def source_of(received: bytes) -> IPv4Address:
    return IPv4Address(received[26:30])
