"""One router with p4src/ndn.p4 on the virtual clock, for tests: frames in, frames out, counters by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np

from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import LoadedService, NoSettings
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.controller.systems.ndn.entries import components, fib_entry
from gradbed.controller.systems.ndn.service import NdnService
from gradbed.emulation.layout import network_config
from gradbed.experiments.programs import Program
from gradbed.formats import tlv
from gradbed.hosts.systems.ndn.packets import VersionHead, ethernet, interest_frame, version_frames
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology

LANES = 64
MACROS = {"LANES": LANES, "CONTENTS": 64, "SUBSCRIPTIONS": 64, "PENDING": 64}
SMALL = {"CONTENTS": 2, "SUBSCRIPTIONS": 2, "PENDING": 2}
"""Two rows for everything."""
EPOCH_US = 1 << 20
TICK_US = 1024

ETHERNET = ethernet(bytes.fromhex("020000000001"))


def name(*parts: str) -> tuple[bytes, ...]:
    return tuple(tlv.generic(part) for part in parts)


def gradient_name(first: str, second: str, version: int, segment: int) -> tuple[bytes, ...]:
    return (*name(first, second), tlv.numbered(tlv.VERSION, version), tlv.numbered(tlv.SEGMENT, segment))


def interest(*parts: str, nonce: int = 1, lifetime_ms: int = 1000, fresh: bool = False) -> bytes:
    return interest_frame(ETHERNET, name(*parts), nonce, lifetime_ms, fresh)


class OneRouter:
    """star:HOSTS: host i is behind port i. prefixes: name to host number."""

    def __init__(self, hosts: int = 4, prefixes: Mapping[str, int] | None = None, **macros: object) -> None:
        self.topology = parse_topology(f"star:{hosts}", LinkModel())
        self.simulated = SimulatedNetwork(network_config(self.topology, "memory", 1, ()))
        (switch,) = self.topology.switches
        self._switch = switch.name
        self._device = self.simulated.devices[switch.number]
        files = Program.own("ndn", **{**MACROS, **macros}).compiled()
        self._json = json.loads(files.json.read_text())
        self.southbound = LocalSouthbound(
            self.simulated, {switch.name: switch.number}, {"ndn": Pipeline.load("ndn", files.json, files.p4info)}
        )
        fib = [fib_entry(components(name), port) for name, port in (prefixes or {}).items()]

        class Routed(NdnService):
            """With names of no job's."""

            def base(self) -> Plan:
                return super().base().merged(Plan(switches={switch.name: SwitchPlan.of("ndn", fib)}))

        self.controller = Controller(
            self.topology,
            self.southbound,
            [LoadedService("ndn", Routed, NoSettings())],
            {switch.name: "ndn"},
        )
        self.southbound.listen(self.controller)
        self.controller.start(0.0)
        self._ports = {port: self.simulated.interface(switch.number, port) for port in range(1, hosts + 1)}

    def __enter__(self) -> OneRouter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.simulated.close()

    def plan(self) -> Plan:
        return self.controller.plan()

    def exchange(self, port: int, *frames: bytes) -> dict[int, list[bytes]]:
        """What leaves the router, by port, because of frames that come in by `port`."""
        for frame in frames:
            self._ports[port].send(np.frombuffer(frame, np.uint8).reshape(1, -1))
        while not (stop := self.simulated.run_until(None)).idle:
            for message in stop.messages:
                self.southbound.take(message.device_id, message.message)
        for message in stop.messages:
            self.southbound.take(message.device_id, message.message)
        return {out: found for out in self._ports if (found := self._received(out))}

    def _received(self, port: int) -> list[bytes]:
        found = []
        while True:
            buffer, lengths = self._ports[port].receive()
            if not len(lengths):
                return found
            found += [buffer[row, :length].tobytes() for row, length in enumerate(lengths)]

    def wait(self, time_us: int) -> None:
        end_ns = self.simulated.now_ns + 1000 * time_us
        while self.simulated.now_ns < end_ns:
            self.simulated.run_until(end_ns)

    def register(self, name: str) -> list[int]:
        """All cells of the register with this name."""
        return self._device.state.registers.read_all(self._full_names(name)[0])

    def clear(self, stem: str) -> None:
        """Write 0 to all cells of the registers whose names begin like this."""
        for full in self._full_names(stem):
            for index in range(len(self._device.state.registers.read_all(full))):
                self._device.state.registers.write(full, index, 0)

    def _full_names(self, stem: str) -> list[str]:
        names = (array["name"] for array in self._json["register_arrays"])
        return [full for full in names if full.rsplit(".", 1)[-1].startswith(stem)]

    def counts(self) -> dict[str, int]:
        """Packets by counter, where there are any; those by port and kind apart."""
        return {
            full.rsplit(".", 1)[-1]: cells[0].packets
            for full, cells in self.southbound.counters(self._switch).items()
            if "ndn_" not in full and cells[0].packets
        }


def drops(counts: Mapping[str, int]) -> dict[str, int]:
    return {key.removeprefix("dropped_"): count for key, count in counts.items() if key.startswith("dropped_")}


def ports(outputs: Mapping[int, Sequence[bytes]]) -> list[int]:
    """Where one frame each came out."""
    assert all(len(frames) == 1 for frames in outputs.values())
    return sorted(outputs)


def gradient_frame(*parts: str, version: int = 1, segment: int = 0, lane: int = 0) -> bytes:
    """Data of a gradient's form; every lane has the same value."""
    batches = version_frames(
        ETHERNET, name(*parts), version, VersionHead(0.5), np.full((segment + 1, LANES), lane, np.int32)
    )
    return list(batches)[-1][-1].tobytes()
