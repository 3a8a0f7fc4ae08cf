"""A switch of its own that runs an instrumented program: every port open, time standing still but for its packets."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

from gradbed.common.errors import UserError
from gradbed.switch.engine.abi import DROP_PORT, MAX_FRAME_BYTES
from gradbed.switch.engine.device import EngineDevice
from gradbed.switch.insight.recorder import (
    InstrumentedProgram,
    Level,
    Record,
    RecordedEntry,
    as_words,
    read_entries,
    read_records,
    recording,
)
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.names import NoFit
from gradbed.switch.stf.statements import Expect, NoPacket, Packet, Script, StfError
from gradbed.switch.stf.target import CheckFailed

DEFAULT_CPU_PORT = 510
# Microseconds that pass with each packet, and how much may happen meanwhile.
_PACKET_US = 1000
_MAX_EVENTS = 2_000


@dataclass(frozen=True)
class Passage:
    """Records of one packet, and what left the switch meanwhile: (port, frame), in order for each port."""

    records: list[Record]
    outputs: list[tuple[int, bytes]]


class TracedSwitch:
    """Use it as a context manager, in one thread."""

    def __init__(
        self, program: InstrumentedProgram, level: Level = Level.VALUES, cpu_port: int = DEFAULT_CPU_PORT
    ) -> None:
        if not 0 <= cpu_port < DROP_PORT:
            raise UserError(f"the CPU port is one of 0..{DROP_PORT - 1}, not {cpu_port}")
        self.program = program
        self._cpu_port = cpu_port
        self._packet_ins: list[bytes] = []
        with ExitStack() as stack:
            self._target = stack.enter_context(EngineTarget(program, frozenset(), cpu_port))
            self._recorder = stack.enter_context(recording(level))
            self.device.on_packet_in(self._packet_ins.append)
            self._stack = stack.pop_all()

    def __enter__(self) -> TracedSwitch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def device(self) -> EngineDevice:
        return self._target.device

    @property
    def target(self) -> EngineTarget:
        """Return the target that STF statements are applied to."""
        return self._target

    def set_up(self, script: Script) -> None:
        """Do what an STF file says but for its packets. StfError (a UserError) where it does not fit the program."""
        for statement in script.statements:
            if isinstance(statement, (Packet, Expect, NoPacket)):
                continue
            try:
                self._target.apply(statement)
            except (NoFit, CheckFailed) as error:
                raise StfError(script.path, statement.line, str(error)) from None

    def send(self, port: int, frame: bytes, duration_us: float = _PACKET_US, *, recorded: bool = True) -> Passage:
        """Let a frame arrive, and everything happen that comes of it. Arriving at the CPU port it is a packet-out."""
        if not 0 <= port < DROP_PORT:
            raise UserError(f"ports are 0..{DROP_PORT - 1}, so there is no port {port}")
        if not frame or len(frame) > MAX_FRAME_BYTES:
            raise UserError(f"a frame has 1 to {MAX_FRAME_BYTES} bytes, this one has {len(frame)}")
        if port == self._cpu_port:
            self.device.packet_out(frame)
        else:
            self._target.engine.inject(self.device.device_id, port, frame)
        return self.let_pass(duration_us, recorded=recorded)

    def let_pass(self, duration_us: float, max_events: int = _MAX_EVENTS, *, recorded: bool = True) -> Passage:
        """Let time pass, and return what happens, with the records of all packets unless `recorded` is False.

        Reading records takes time.
        """
        try:
            self._target.engine.advance(duration_us, max_events)
        except RuntimeError:
            raise UserError(
                "the packet and its copies go round in circles (recirculate, resubmit or clone without end)"
            ) from None
        outputs = self._target.drain() + [(self._cpu_port, frame) for frame in self._packet_ins]
        self._packet_ins.clear()
        words = as_words(self._recorder.take())
        with_values = self._recorder.level == Level.VALUES
        return Passage(read_records(self.program, with_values, words) if recorded else [], outputs)

    def entries(self, table: str) -> list[RecordedEntry]:
        """Return the entries of a table as they are now."""
        words = self._recorder.entries(self.device.state, len(self.program.model.tables))
        return [entry for entry in read_entries(self.program, as_words(words)) if entry.table == table]
