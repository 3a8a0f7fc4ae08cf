"""Networks of p4src/training.p4 for tests of flow control: frames with priorities, routes as the test says."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch, Program
from gradbed.switch.engine.statistics import LinkStatistics
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel

SOURCE = Path(__file__).parents[4] / "p4src" / "training.p4"
BALANCE = "TrainingIngress.balance"
LEAST_BYTES = 50
"""Of frames with a number."""


@cache
def program() -> Program:
    return build_program(json.loads(Path(compiled_files(SOURCE, {}).json).read_text()))


def address(host: int) -> int:
    return 0x0A000000 | host


def frame(to_host: int, length: int, priority: int = 0, number: int = 0) -> bytes:
    """An Ethernet frame with UDP; its number is in the last eight bytes of the first fifty."""
    header = struct.pack(">BBHIBBHII", 0x45, priority << 5, length - 14, 0, 64, 17, 0, address(255), address(to_host))
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    header = header[:10] + checksum.to_bytes(2, "big") + header[12:]
    udp = struct.pack(">HHHH", 0xC000, 4791, length - 34, 0)
    return (bytes(12) + b"\x08\0" + header + udp + number.to_bytes(8, "big")).ljust(length, b"\0")


def number_of(text: bytes) -> int:
    return int.from_bytes(text[42:50], "big")


def route(simulated: SimulatedNetwork, switch: int, ports: Mapping[int, int]) -> None:
    """ports: by the number of the destination host."""
    for host, port in ports.items():
        simulated.devices[switch].state.tables.insert(
            f"{BALANCE}.destinations",
            [KeyMatch(address(host), prefix_bits=32)],
            ActionCall(f"{BALANCE}.forward", (port, 1)),
            0,
        )


def star(links: Iterable[LinkModel], threads: int = 1) -> SimulatedNetwork:
    """Switch 1 with host i at port i, each by a link of its own."""
    models = list(links)
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1, name="s1"),),
        interfaces=tuple(
            InterfaceConfig(device_id=1, port=host, interface=f"h{host}", link=model)
            for host, model in enumerate(models, 1)
        ),
    )
    simulated = loaded(config, threads)
    route(simulated, 1, {host: host for host in range(1, len(models) + 1)})
    return simulated


def loaded(config: NetworkConfig, threads: int = 1) -> SimulatedNetwork:
    simulated = SimulatedNetwork(config, threads=threads)
    for device in simulated.devices.values():
        device.load(program())
    return simulated


def ring(count: int, link: LinkModel, outside: LinkModel | None = None) -> NetworkConfig:
    """Switches s1.. in a ring: host i at port 1 of si, port 2 leads to the next one, port 3 to the one before."""
    return NetworkConfig(
        switches=tuple(SwitchConfig(device_id=i, name=f"s{i}") for i in range(1, count + 1)),
        interfaces=tuple(
            InterfaceConfig(device_id=i, port=1, interface=f"h{i}", link=outside or link) for i in range(1, count + 1)
        ),
        links=tuple(LinkConfig(a=(i, 2), b=(i % count + 1, 3), link=link) for i in range(1, count + 1)),
    )


def of_topology(topology: Topology, link: LinkModel) -> NetworkConfig:
    """Every link as `link`; device ids are the switches' numbers."""
    number = {switch.name: switch.number for switch in topology.switches}

    def ends(each: object) -> tuple[tuple[int, int], tuple[int, int]]:
        a, b = each.a, each.b  # type: ignore[attr-defined]
        return (number[a.node], a.port), (number[b.node], b.port)

    interfaces = []
    for each in topology.host_links:
        host, switch = (each.a, each.b) if topology.is_host(each.a.node) else (each.b, each.a)
        interfaces.append(
            InterfaceConfig(device_id=number[switch.node], port=switch.port, interface=host.node, link=link)
        )
    return NetworkConfig(
        switches=tuple(SwitchConfig(device_id=each.number, name=each.name) for each in topology.switches),
        interfaces=tuple(interfaces),
        links=tuple(LinkConfig(a=ends(each)[0], b=ends(each)[1], link=link) for each in topology.switch_links),
    )


def quiet_interfaces(simulated: SimulatedNetwork, config_ports: Iterable[tuple[int, int]]) -> list[HostInterface]:
    interfaces = [simulated.interface(*place) for place in config_ports]
    for interface in interfaces:
        interface.set_quiet(True)
    return interfaces


def send(interface: HostInterface, frames: Iterable[bytes], times_ns: Iterable[int] | None = None) -> None:
    texts = list(frames)
    if not texts:
        return
    rows = np.zeros((len(texts), max(map(len, texts))), np.uint8)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    lengths = np.array([len(text) for text in texts], np.uint32)
    interface.send(rows, lengths, None if times_ns is None else np.array(list(times_ns), np.int64))


def run(simulated: SimulatedNetwork) -> None:
    while not simulated.run_until(None).idle:
        pass


def rows(simulated: SimulatedNetwork) -> dict[tuple[int, int, str], LinkStatistics]:
    """By device id, port and direction."""
    return {(row.device_id, row.port, row.direction): row for row in simulated.engine.link_statistics()}
