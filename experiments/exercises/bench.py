"""Check a solution by a conversation: a Python file with `check(bench)`, which sends and looks at what leaves.

The bench is a switch of its own that runs the solution: every port is open, and time passes only with what is
sent.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.experiments.exercises.solution import (
    PACKET_US,
    Detail,
    Refusal,
    Solution,
    SolutionFinding,
    WatchedSwitch,
    frame_text,
    outputs_text,
)
from gradbed.switch.engine.device import EngineDevice
from gradbed.switch.stf import parse_stf
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.names import NoFit, register
from gradbed.switch.stf.runner import difference
from gradbed.switch.stf.statements import Expect
from gradbed.switch.stf.target import CheckFailed
from gradbed.topo.link import LinkModel

if TYPE_CHECKING:
    from typing import Self


# ---- The bench ----


CPU_PORT = 510
WATCHED = 100
"""Number of packets before the refused one that are traced."""
ENDLESS = "the packet and its copies go round in circles and never come to rest"
Output = tuple[int, bytes]


class Bench:
    """A context manager with a switch that runs the solution.

    Ports are numbers below 510; the outputs of a frame are [(port, frame), ...].
    """

    def __init__(self, subject: Solution, unwatched: int | None = None) -> None:
        """Start the switch.

        Args:
            unwatched: number of sends after which the program's decisions are recorded, which is slow; None: never.
        """
        self.watch: WatchedSwitch | None = None
        self.sent = 0
        self.digests: list[tuple[int, ...]] = []
        """Fields of each digest that the program has sent."""
        with ExitStack() as stack:
            if unwatched is not None:
                self.watch = stack.enter_context(WatchedSwitch(subject, CPU_PORT, unwatched))
                self._target = self.watch.switch.target
            else:
                self._target = stack.enter_context(EngineTarget(subject.built, frozenset(), CPU_PORT))
            self._device.on_digest(lambda _, words: self.digests.append(words))
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _device(self) -> EngineDevice:
        return self._target.device

    def do(self, commands: str) -> None:
        """Run commands of the STF language: add, setdefault, register_write, mc_mgrp_create ...

        Raises:
            Refusal: the program lacks what they name.
        """
        for statement in parse_stf(commands, Path("check")).statements:
            try:
                self._target.apply(statement)
            except (NoFit, CheckFailed) as error:
                raise Refusal(str(error)) from None

    def send(self, port: int, frame: bytes, duration_us: float = PACKET_US) -> list[Output]:
        """Send a frame and return everything that leaves in that time."""
        if self.watch is not None:
            self.sent += 1
            try:
                return self.watch.send(port, frame, duration_us).outputs
            except UserError:
                raise Refusal(ENDLESS) from None
        self._target.engine.inject(self._device.device_id, port, frame)
        return self._pass(duration_us)

    def send_together(self, frames: Iterable[Output], duration_us: float) -> list[Output]:
        """Send frames at one moment and return what has left after that time."""
        for port, frame in frames:
            self._target.engine.inject(self._device.device_id, port, frame)
        return self._pass(duration_us)

    def _pass(self, duration_us: float) -> list[Output]:
        self.sent += 1
        try:
            if self.watch is not None:
                return self.watch.let_pass(duration_us).outputs
            self._target.engine.advance(duration_us, 100_000)
        except (RuntimeError, UserError):
            raise Refusal(ENDLESS) from None
        return self._target.drain()

    def expect(self, about: str, port: int, frame: bytes, *expected: Output) -> None:
        """Send a frame and compare what leaves, by each port in order.

        Raises:
            Refusal: anything else leaves.
        """
        outputs = self.send(port, frame)
        wrong = self._difference(outputs, expected)
        if wrong:
            raise Refusal(f"{about}: {wrong}", outputs_text(expected), outputs_text(outputs))

    def _difference(self, outputs: Sequence[Output], expected: Sequence[Output]) -> str:
        for port in sorted({port for port, _ in (*outputs, *expected)}):
            came, wanted = (_by_port(each, port) for each in (outputs, expected))
            if len(came) != len(wanted):
                return f"{len(came)} packets left by port {port}, not {len(wanted)}"
            for frame, other in zip(came, wanted, strict=True):
                if frame != other:
                    told = difference(self._target.model, Expect(0, port, other.hex(), True), frame)
                    return f"port {port}: {told.partition('; expected')[0]}"
        return ""

    def slow_down(self, port: int, link: LinkModel) -> None:
        """Let what leaves by a port go over such a link."""
        self._target.engine.set_link(self._device.device_id, port, link, ["out"])

    def register(self, name: str, index: int) -> int:
        """Return a cell of a register.

        Raises:
            Refusal: there is no such register.
        """
        try:
            return self._device.state.registers.read(register(self._target.model, name), index)
        except (NoFit, IndexError) as error:
            raise Refusal(str(error)) from None


def _by_port(outputs: Iterable[Output], port: int) -> list[bytes]:
    return [frame for out, frame in outputs if out == port]


def check_conversation(subject: Solution, script: Path) -> SolutionFinding | None:
    """Return what the script's `check(bench)` refuses; None: nothing."""
    check = _load(script)
    try:
        with Bench(subject) as bench:
            check(bench)
        return None
    except Refusal as refusal:
        found = refusal.finding
        sent = bench.sent
    # Repeat it with the last packets watched: checks are deterministic.
    with Bench(subject, max(0, sent - WATCHED)) as bench:
        assert bench.watch is not None
        try:
            check(bench)
        except Refusal:
            return SolutionFinding(found.what, (*_packet(bench.watch), *found.details, *bench.watch.details()))
    return found


def _packet(watch: WatchedSwitch) -> list[Detail]:
    if watch.last is None:
        return []
    port, frame, _ = watch.last
    return [Detail("packet", f"by port {port}: {frame_text(frame)}")]


def _load(script: Path):  # type: ignore[no-untyped-def]
    """Return the function `check` of a file of gradbed's own."""
    spec = importlib.util.spec_from_file_location(f"check_{script.stem}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check


__all__ = ["Bench", "LinkModel", "Mapping", "Refusal", "check_conversation"]


# ---- Frames ----
#
# They are made without any library, so that thousands of them take no seconds.


ETHER_TYPE_IPV4 = 0x0800
TCP, UDP = 6, 17


def mac(number: int) -> bytes:
    """Return the MAC address 02:00:00:00:00:00 plus a number."""
    return (0x02 << 40 | number).to_bytes(6, "big")


def ethernet(dst: int, src: int, ether_type: int, payload: bytes) -> bytes:
    """Return an Ethernet frame; `dst` and `src` are numbers of MAC addresses."""
    return mac(dst) + mac(src) + struct.pack("!H", ether_type) + payload


def ipv4(
    src: str,
    dst: str,
    ports: tuple[int, int],
    payload: bytes = b"",
    *,
    protocol: int = UDP,
    ttl: int = 64,
    dscp_ecn: int = 0,
) -> bytes:
    """Return an IPv4 packet of UDP or TCP, without the checksum of these."""
    if protocol == UDP:
        transport = struct.pack("!4H", *ports, 8 + len(payload), 0)
    else:
        transport = struct.pack("!2H2I4H", *ports, 0, 0, 0x5000, 0, 0, 0)
    length = 20 + len(transport) + len(payload)
    addresses = IPv4Address(src).packed + IPv4Address(dst).packed
    header = struct.pack("!BBHHHBBH", 0x45, dscp_ecn, length, 0, 0, ttl, protocol, 0) + addresses
    checksum = ~ones_sum(header) & 0xFFFF
    return header[:10] + struct.pack("!H", checksum) + header[12:] + transport + payload


def routed(packet: bytes, port_mac: int = 1, host_mac: int = 2) -> bytes:
    """Return a frame as a host sends it to its gateway."""
    return ethernet(port_mac, host_mac, ETHER_TYPE_IPV4, packet)


def ones_sum(data: bytes) -> int:
    """Return the one's complement sum of 16-bit words (RFC 1071); 0xffff over a header with its right checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
