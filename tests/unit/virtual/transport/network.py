"""Hosts on a line of switches that run p4src/forward.p4; a star is a line of one. Their NICs' queue pairs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np

from gradbed.common.resources import Closing
from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch, Program
from gradbed.switch.engine.queue_pairs import HostQueuePairs, NicCompletion
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.link import LinkModel

FORWARD = Path(__file__).parents[4] / "p4src" / "forward.p4"
SENT, RECEIVED, FAILED = 0, 1, 2
LEFT, RIGHT = 500, 501
"""Ports to the neighbours on the line."""


@functools.cache
def program(file: Path = FORWARD) -> Program:
    return build_program(json.loads(Path(compiled_files(file, {}).json).read_text()))


def ip(host: int) -> int:
    return int(IPv4Address("10.0.0.0")) + host


def mac(host: int) -> bytes:
    return bytes([2, 0, 0, 0, host >> 8, host & 255])


class Line(Closing):
    """Hosts are numbered from 1; host_switches: on which switch each is, from 1."""

    def __init__(
        self,
        host_switches: Sequence[int],
        link: LinkModel,
        between: LinkModel | None = None,
        *,
        threads: int = 1,
        file: Path = FORWARD,
        prepare: Callable[[SimulatedNetwork], None] = lambda simulated: None,
    ) -> None:
        self.switches = max(host_switches)
        self.host_switches = host_switches
        config = NetworkConfig(
            switches=tuple(SwitchConfig(device_id=i, name=f"s{i}") for i in range(1, self.switches + 1)),
            interfaces=tuple(
                InterfaceConfig(device_id=at, port=host, interface=f"s{at}-eth{host}", link=link, seed=host)
                for host, at in enumerate(host_switches, 1)
            ),
            links=tuple(
                LinkConfig(a=(i, RIGHT), b=(i + 1, LEFT), link=between or link, seed=1000 + i)
                for i in range(1, self.switches)
            ),
        )
        self.simulated = SimulatedNetwork(config, threads=threads)
        for number in range(1, self.switches + 1):
            self.load(number, file)
        prepare(self.simulated)
        self.interfaces = [self.simulated.interface(at, host) for host, at in enumerate(host_switches, 1)]
        self.pairs: dict[int, HostQueuePairs] = {}
        self.done: dict[int, list[NicCompletion]] = {host: [] for host in range(1, len(host_switches) + 1)}

    def load(self, switch: int, file: Path = FORWARD) -> None:
        """The program; forward.p4 with routes to all hosts."""
        device = self.simulated.devices[switch]
        device.load(program(file))
        if file != FORWARD:
            return
        for host, at in enumerate(self.host_switches, 1):
            port = host if at == switch else RIGHT if at > switch else LEFT
            forward = ActionCall("ForwardIngress.forward", (port, int.from_bytes(mac(host))))
            device.state.tables.insert("ForwardIngress.ipv4_routes", [KeyMatch(ip(host), prefix_bits=32)], forward, 0)

    def interface(self, host: int) -> HostInterface:
        return self.interfaces[host - 1]

    def open(self, host: int) -> HostQueuePairs:
        if host not in self.pairs:
            self.pairs[host] = self.interface(host).open_queue_pairs()
        return self.pairs[host]

    def connect(self, a: int, b: int, number_a: int = 1, number_b: int = 1, **options: Any) -> None:
        """A queue pair at each, with the same options."""
        self.connect_end(a, b, number_a, number_b, **options)
        self.connect_end(b, a, number_b, number_a, **options)

    def connect_end(self, here: int, there: int, number: int, peer_number: int, **options: Any) -> None:
        values: dict[str, Any] = {
            "mtu_bytes": 4096,
            "window_bytes": 0,
            "rate_bps": 0,
            "timeout_ns": 1_000_000,
            "give_up_after": 30,
            "acknowledge_every": 4,
            "priority": 0,
            "reordering_packets": 0,
            "congestion_control": "none",
            "recovery": "go-back-n",
            **options,
        }
        self.open(here).connect(
            number, peer_number, src_mac=mac(here), dst_mac=b"\x02\x01\0\0\0\1", src_ip=ip(here), dst_ip=ip(there),
            **values,
        )  # fmt: skip

    def run(self, until_ns: int | None = None) -> None:
        """Until nothing happens any more; completions come to `done`, by host."""
        while True:
            stop = self.simulated.run_until(until_ns)
            for interface in stop.interfaces:
                host = self.interfaces.index(interface) + 1
                if host in self.pairs:
                    self.done[host] += self.pairs[host].completions()
            if stop.idle or stop.time_ns == until_ns:
                return

    def received(self, host: int) -> list[NicCompletion]:
        return [each for each in self.done[host] if each.kind == RECEIVED]

    def close(self) -> None:
        self.simulated.close()


def contents(size_bytes: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, size_bytes, np.uint8)
