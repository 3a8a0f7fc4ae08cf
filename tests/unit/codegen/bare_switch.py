"""A program driven by hand: parse, ingress, egress and deparse called directly, with no engine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradbed.common.c_headers import CHeaders
from gradbed.switch.codegen import BuiltProgram
from gradbed.switch.runtime.library import RUNTIME_DIR
from gradbed.switch.state.device import SwitchState

HEADROOM = 4096

_HEADERS = CHeaders(RUNTIME_DIR / "program.h")


@_HEADERS.declare("gb_packet_context")
class Pass(ctypes.Structure):
    """The PHV is behind it."""


@_HEADERS.declare("gb_packet")
class Packet(ctypes.Structure):
    """One packet."""


@_HEADERS.declare("gb_program")
class _Program(ctypes.Structure):
    """A program's code."""


_CONTROL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Packet))
_DIGEST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint32)
_COPY = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.POINTER(Packet), ctypes.POINTER(Packet))
_RESET = ctypes.CFUNCTYPE(None, ctypes.POINTER(Packet))
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


@dataclass
class InFlight:
    """A packet with the memory that it lies in."""

    packet: Packet
    memory: ctypes.Array[ctypes.c_uint8]
    pass_memory: ctypes.Array[ctypes.c_uint64]

    @property
    def std(self) -> ctypes.Structure:
        return self.packet.pass_.contents.std

    @property
    def requests(self) -> ctypes.Structure:
        return self.packet.pass_.contents.requests

    @property
    def phv(self) -> Sequence[int]:
        return self.pass_memory[ctypes.sizeof(Pass) // 8 :]

    @property
    def frame(self) -> bytes:
        return ctypes.string_at(self.packet.data, self.packet.length) if self.packet.length else b""


@dataclass
class BareSwitch:
    """One switch of a program, without engine; logs and digests are kept in lists."""

    built: BuiltProgram
    logs: list[str] = field(default_factory=list)
    digests: list[tuple[int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = SwitchState(self.built)
        self.program = _Program.in_dll(ctypes.CDLL(str(self.built.library)), "gb_program")
        self._digest = _DIGEST(lambda _, number, words, count: self.digests.append((number, words[:count])))
        self._log = _LOG(lambda _, line: self.logs.append(line.decode()))
        record = self.state.record.contents
        record.digest = ctypes.cast(self._digest, ctypes.c_void_p)
        record.log = ctypes.cast(self._log, ctypes.c_void_p)

    def new(self, frame: bytes, port: int = 0, headroom: int = HEADROOM) -> InFlight:
        memory = (ctypes.c_uint8 * (headroom + len(frame) + 1)).from_buffer_copy(bytes(headroom) + frame + b"\0")
        before = ctypes.sizeof(Pass) // 8
        words = (ctypes.c_uint64 * (before + self.program.phv_words))(*[0] * before)
        words[before:] = [0xA5A5A5A5A5A5A5A5] * self.program.phv_words
        packet = Packet(ctypes.addressof(memory) + headroom, len(frame), headroom)
        packet.pass_ = ctypes.cast(words, ctypes.POINTER(Pass))
        made = InFlight(packet, memory, words)
        made.std.ingress_port = port
        made.std.packet_length = len(frame)
        return made

    def _run(self, function: int, packet: InFlight) -> InFlight:
        _CONTROL(function)(self.state.pointer, ctypes.byref(packet.packet))
        return packet

    def reset_metadata(self, packet: InFlight) -> None:
        _RESET(self.program.reset_metadata)(packet.packet)

    def copy_field_list(self, number: int, target: InFlight, source: InFlight) -> None:
        _COPY(self.program.copy_field_list)(number, target.packet, source.packet)

    def parse(self, packet: InFlight) -> InFlight:
        return self._run(self.program.parse, packet)

    def ingress(self, packet: InFlight) -> InFlight:
        return self._run(self.program.ingress, packet)

    def egress(self, packet: InFlight) -> InFlight:
        return self._run(self.program.egress, packet)

    def deparse(self, packet: InFlight) -> InFlight:
        return self._run(self.program.deparse, packet)

    def through(self, frame: bytes, port: int = 0) -> InFlight:
        """Parser, ingress, egress, deparser, as for a unicast packet."""
        packet = self.ingress(self.parse(self.new(frame, port)))
        packet.std.egress_port = packet.std.egress_spec
        return self.deparse(self.egress(packet))


def field_bits(values: Sequence[tuple[int, int]]) -> bytes:
    """(value, width) pairs packed from the most significant bit on; the total is whole bytes."""
    number = total = 0
    for value, width in values:
        number = number << width | value & ((1 << width) - 1)
        total += width
    assert total % 8 == 0
    return number.to_bytes(total // 8, "big")
