"""One switch of the data plane: an engine's switch and the state of its program, as a
gradbed.switch.state.device.Device."""

from __future__ import annotations

import errno
import logging

from gradbed.switch.bmv2_json.drop_sites import DropSite
from gradbed.switch.device import Program
from gradbed.switch.engine import abi
from gradbed.switch.engine.abi import EngineHandle
from gradbed.switch.engine.statistics import DeviceClasses, DeviceStatistics
from gradbed.switch.state.device import DigestCallback, PacketInCallback, SwitchState
from gradbed.switch.state.replication import Replication

_logger = logging.getLogger("gradbed.switch.p4")


class EngineDevice:
    """Made by Engine.add_switch. Methods may be called from any thread, also while packets are moving."""

    def __init__(self, engine: EngineHandle, device_id: int, name: str) -> None:
        self._engine = engine
        self._device_id = device_id
        self._name = name
        self._start_ns = engine.call("switch_start", device_id)
        self._program: Program | None = None
        self._state: SwitchState | None = None
        self._packet_in: PacketInCallback | None = None
        self._digest: DigestCallback | None = None
        self.replication = Replication(engine.call, device_id, f"switch {name}")

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def name(self) -> str:
        return self._name

    @property
    def program(self) -> Program | None:
        return self._program

    def load(self, program: Program) -> None:
        """Run another program from the next packet on, with fresh state.

        Packets between the ingress and the egress of the old one are dropped and counted (swap_drops), as are packets
        that come before the first program (no_program_drops). Packets on links stay. Multicast groups and clone
        sessions go with the old program. If the new one cannot be loaded, the old one goes on.
        """
        state = SwitchState(program, self._engine.guard, self._clock_us)
        self._engine.call("load", self._device_id, state.record)
        old, self._state, self._program = self._state, state, program
        logging.getLogger(__name__).info("switch %s: a program was loaded", self._name)
        if old is not None:
            old.close()
        self._listen()

    def restart(self) -> None:
        """Lose the program and all state, as in a power failure.

        Ports, links and what travels on them stay, and so do the callbacks of `on_packet_in` and `on_digest`. Packets
        that arrive before the next program are dropped (no_program_drops).
        """
        self._close()
        self._program = None

    @property
    def state(self) -> SwitchState:
        """Return what the running program keeps. KeyError before the first program."""
        if self._state is None:
            raise KeyError(f"switch {self._name} has no program yet")
        return self._state

    def new_state(self, program: Program) -> SwitchState:
        """Return the fresh state of a program, which no packet passes; the caller closes it."""
        return SwitchState(program, clock_us=self._clock_us)

    @property
    def start_ns(self) -> int:
        """Return when the switch was added, of the engine's clock."""
        return self._start_ns

    def clock_ns(self) -> int:
        """Return the nanoseconds since the switch was added; its timestamps are microseconds of this clock."""
        return self._engine.now_ns() - self._start_ns

    def has_port(self, port: int) -> bool:
        return 0 <= port < abi.MAX_PORTS and bool(self._engine.call("has_port", self._device_id, port))

    def statistics(self) -> DeviceStatistics:
        row = abi.DeviceStatisticsStruct()
        self._engine.call("device_statistics", self._device_id, row)
        return DeviceStatistics(**abi.values(row))

    def program_drops(self) -> dict[DropSite, int]:
        """Return how many packets the running program has dropped since it was loaded, by where it did."""
        return {} if self._state is None else self._state.program_drops()

    def classes(self) -> DeviceClasses:
        """Return counts by class; all zero while packets are not counted by class."""
        row = abi.DeviceClassesStruct()
        self._engine.call("device_classes", self._device_id, row)
        return DeviceClasses.of(row)

    # Packets and messages between the switch and its controller

    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port."""
        if len(frame) > abi.MAX_FRAME_BYTES:
            raise ValueError(f"a frame has at most {abi.MAX_FRAME_BYTES} bytes, this one {len(frame)}")
        if self._engine.call("packet_out", self._device_id, frame, len(frame)) == -errno.EINVAL:
            raise ValueError(f"switch {self._name} has no CPU port")

    def on_packet_in(self, callback: PacketInCallback | None) -> None:
        """Call back, from the engine's host event thread, with each frame sent to the CPU port. None: drop them."""
        self._packet_in = callback
        self._listen()

    def on_digest(self, callback: DigestCallback | None) -> None:
        """Call back, from the engine's host event thread, with learn list id and 64-bit words of each digest."""
        self._digest = callback
        self._listen()

    # Private

    def _clock_us(self) -> int:
        return self.clock_ns() // 1000

    def _listen(self) -> None:
        kinds = 0
        if self._packet_in is not None:
            kinds |= 1 << abi.HOST_EVENT_PACKET_IN
        if self._digest is not None:
            kinds |= 1 << abi.HOST_EVENT_DIGEST
        if _logger.isEnabledFor(logging.INFO):
            kinds |= 1 << abi.HOST_EVENT_LOG
        self._engine.call("listen", self._device_id, kinds)

    def _on_host_event(self, kind: int, list_id: int, data: bytes) -> None:
        packet_in, digest = self._packet_in, self._digest
        if kind == abi.HOST_EVENT_PACKET_IN and packet_in is not None:
            packet_in(data)
        elif kind == abi.HOST_EVENT_DIGEST and digest is not None:
            digest(list_id, tuple(memoryview(data).cast("Q")))
        elif kind == abi.HOST_EVENT_LOG:
            _logger.info("%s: %s", self._name, data.decode(errors="replace"))

    def _close(self) -> None:
        if self._state is not None:
            self._engine.call("load", self._device_id, None)
            self._state.close()
            self._state = None
