"""One switch with a program and a plan, our own or BMv2, met only as a user meets it: P4Runtime and packets.

For tests that run in a sandbox (tests.emulation.sandboxed).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.controller.planning.plan import Lpm, Plan, SwitchPlan, TableEntry
from gradbed.controller.southbound.interface import Target
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.emulation.switches.gradbed_switches import SwitchProcess, switch_process_command
from gradbed.emulation.veth import VethPair, create_pairs
from gradbed.switch.p4lang.p4c import find_p4c
from gradbed.switch.program_cache import compiled_files
from gradbed.topo.link import LinkModel

if TYPE_CHECKING:
    from gradbed.emulation.nodes import Bmv2Switch

P4_SOURCES = Path(__file__).resolve().parents[2] / "p4src"
DEVICE_ID = 1
PACKET_TIMEOUT_S = 10.0
MARKER_NETWORK = 0x0AFF0000  # 10.255.0.0, host part is the port
MARKER = b"marker"

BMV2 = shutil.which(os.environ.get("GRADBED_BMV2", "simple_switch_grpc"))

needs_bmv2 = pytest.mark.skipif(BMV2 is None, reason="BMv2's simple_switch_grpc is not installed")

needs_p4c = pytest.mark.skipif(find_p4c() is None, reason="p4c is not installed")
on_every_pair = pytest.mark.parametrize(
    ("kind", "compiler"),
    [
        ("gradbed", "gradbed"),
        pytest.param("bmv2", "gradbed", marks=needs_bmv2),
        # p4c's programs on our switch: test_stf.py; on both: test_differential.py.
        pytest.param("gradbed", "p4c", marks=[needs_p4c, pytest.mark.nightly]),
        pytest.param("bmv2", "p4c", marks=[needs_bmv2, needs_p4c, pytest.mark.nightly]),
    ],
)
"""Of switch and compiler. What is not installed is skipped before a sandbox is made for it."""


@dataclass
class SwitchUnderTest:
    """Send frames in by ports 1 to n, see what comes out."""

    program: str
    sockets: Mapping[int, socket.socket]
    start: Callable[[], P4RuntimeSouthbound]
    southbound: P4RuntimeSouthbound

    def renew(self) -> None:
        """Push program and plan again: all tables, registers and counters start afresh."""
        # BMv2 keeps multicast groups when it is given a new pipeline.
        self.southbound.apply(Plan(switches={"s1": SwitchPlan(program=self.program)}))
        self.southbound.stop()
        self.southbound = self.start()

    def exchange(self, port: int, frame: bytes) -> dict[int, list[bytes]]:
        """Send one frame in by `port`; what left the switch because of it, by port.

        A marker to each port follows it the same way in; queues are first in, first out, so when the marker has
        come out, everything before it has.
        """
        self.sockets[port].send(frame)
        for out in self.sockets:
            self.sockets[port].send(bytes(_marker(out)))
        return {out: frames for out in self.sockets if (frames := self._until_marker(out))}

    def counter(self, name: str) -> dict[int, tuple[int, int]]:
        """Index to packets and bytes, where they are not zero."""
        cells = self.southbound.counters("s1")[name]
        return {cell.index: (cell.packets, cell.bytes) for cell in cells if cell.packets}

    def _until_marker(self, port: int) -> list[bytes]:
        frames = []
        self.sockets[port].settimeout(PACKET_TIMEOUT_S)
        while True:
            try:
                frame = self.sockets[port].recv(2048)
            except TimeoutError:
                pytest.fail(f"the marker to port {port} did not come out")
            if frame[42 : 42 + len(MARKER)] == MARKER:
                return frames
            frames.append(frame)


def _marker(port: int) -> Ether:
    return (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="10.255.1.1", dst=f"10.255.0.{port}")
        / UDP(sport=9, dport=9)
        / (MARKER + bytes(20))
    )


def marker_routes(ports: int) -> list[TableEntry]:
    return [
        TableEntry(
            table="ipv4_routes",
            match={"hdr.ipv4.dst_addr": Lpm(value=MARKER_NETWORK + port, prefix_bits=32)},
            action="forward",
            params={"port": port, "dst_mac": 0x020000000000 + port},
        )
        for port in range(1, ports + 1)
    ]


@contextlib.contextmanager
def switch_under_test(
    kind: str,
    compiler: str,
    program: str,
    defines: Mapping[str, str],
    plan: SwitchPlan,
    ports: int,
    folder: Path,
    name: str = "s1",
) -> Iterator[SwitchUnderTest]:
    """A switch with the plan and routes for the markers. kind and compiler: as of on_every_pair."""
    p4c = find_p4c() if compiler == "p4c" else None
    create_pairs(
        [
            VethPair(f"{name}-eth{p}", f"02:00:00:00:01:{p:02x}", f"{name}-t{p}", f"02:00:00:00:02:{p:02x}")
            for p in range(1, ports + 1)
        ],
        group=7,
    )
    files = compiled_files(P4_SOURCES / f"{program}.p4", defines, p4c)
    pipeline = Pipeline.load(program, files.json, files.p4info)
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(
            serve_gradbed(ports, folder, name) if kind == "gradbed" else serve_bmv2(ports, folder, name)
        )
        whole = SwitchPlan.of(program, [*plan.entries, *marker_routes(ports)], plan.groups)

        def start() -> P4RuntimeSouthbound:
            southbound = P4RuntimeSouthbound({"s1": Target(address, DEVICE_ID)}, {program: pipeline})
            southbound.start(Plan(switches={"s1": whole}))
            southbound.wait_ready(60.0)
            return southbound

        sockets = {p: stack.enter_context(open_socket(f"{name}-t{p}")) for p in range(1, ports + 1)}
        switch = SwitchUnderTest(program, sockets, start, start())
        stack.callback(lambda: switch.southbound.stop())
        yield switch


def open_socket(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    ignore_outgoing = 23  # PACKET_IGNORE_OUTGOING of <linux/if_packet.h>
    end.setsockopt(263, ignore_outgoing, 1)
    end.bind((interface, 3))  # ETH_P_ALL
    return end


@contextlib.contextmanager
def serve_gradbed(ports: int, folder: Path, name: str = "s1") -> Iterator[str]:
    config = folder / f"{name}.json"
    config.write_text(
        json.dumps(
            {
                "grpc_addresses": ["127.0.0.1:0"],
                "switches": [{"device_id": DEVICE_ID, "name": name}],
                "interfaces": [
                    {
                        "device_id": DEVICE_ID,
                        "port": p,
                        "interface": f"{name}-eth{p}",
                        "link": LinkModel().to_json(),
                        "seed": p,
                    }
                    for p in range(1, ports + 1)
                ],
                "links": [],
            }
        )
    )
    process = SwitchProcess(switch_process_command(config), folder / f"{name}.log")
    try:
        process.wait_ready()
        yield f"127.0.0.1:{process.grpc_ports[0]}"
    finally:
        process.stop()


@contextlib.contextmanager
def serve_bmv2(ports: int, folder: Path, name: str = "s1") -> Iterator[str]:
    with bmv2_switch(ports, folder, name) as switch:
        yield switch.grpc_address


@contextlib.contextmanager
def bmv2_switch(ports: int, folder: Path, name: str = "s1") -> Iterator[Bmv2Switch]:
    from gradbed.emulation.nodes import Bmv2Switch, free_ports

    assert BMV2 is not None
    grpc_port, thrift_port = free_ports(2)
    switch = Bmv2Switch(name, DEVICE_ID, BMV2, grpc_port, thrift_port, folder / f"{name}.log")
    switch.intfs = {p: _Interface(f"{name}-eth{p}") for p in range(1, ports + 1)}
    switch.start([])
    try:
        switch.wait_ready()
        yield switch
    finally:
        switch.stop(deleteIntfs=False)


@dataclass
class _Interface:
    """As much of Mininet's as the node looks at."""

    name: str


def only(outputs: Mapping[int, Sequence[bytes]], port: int) -> bytes:
    """The one frame that came out, by this port."""
    assert {p: len(frames) for p, frames in outputs.items()} == {port: 1}
    return outputs[port][0]
