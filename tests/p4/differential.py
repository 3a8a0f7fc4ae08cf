"""The same packets through our switch and through BMv2, with the same program and the same table entries."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from gradbed.emulation.veth import VethPair, create_pairs
from gradbed.switch.codegen import build_program
from gradbed.switch.p4lang.bmv2 import THRIFT_MOST, Shell, require_simple_switch
from gradbed.switch.p4lang.p4c import find_p4c
from gradbed.switch.program_cache import CompiledFiles, compiled_files
from tests.p4.switch_under_test import PACKET_TIMEOUT_S, bmv2_switch, open_socket, serve_gradbed
from tests.unit.p4runtime.client import INSERT, Client, ids, lpm
from tools.recordings.random_inputs import PORTS, canonical, parser_frames, random_entries
from tools.recordings.record import mend_ipv4_checksum

ENTRIES = 25
CHUNK_UPDATES = 200
MIN_FRAME_BYTES = 14  # a packet socket sends no less than an Ethernet header

Outputs = dict[int, list[bytes]]
"""Frames that came out, by port."""

Reader = Callable[[Iterable[p4i.Register]], Mapping[str, list[int]]]
"""Of all cells of registers, by name."""


Names = Mapping[str, int]
"""Ids by alias; of the profile of a table by "TABLE.profile"."""


@dataclass(frozen=True)
class Case:
    """A program, and how to tell that the switch is done with a frame.

    marker: a frame that comes out by the first port alone when it came in by the second. entities: what the tables
    need for that, written after the random entries. given: tables that have no other entries than those. rounds: how
    often markers are sent; one more than a frame goes round in the switch. frame: makes one, where the parser alone
    does not say enough of what the program looks for. undamaged: frames stay as they are made, for what a program
    does with damaged ones depends on time. time: bits of registers that hold times, which differ between two runs.
    """

    source: Path
    marker: Callable[[int, int], bytes]
    is_marker: Callable[[bytes], bool]
    entities: Callable[[Names], Sequence[Any]]
    defines: tuple[tuple[str, str], ...] = ()
    rounds: int = 1
    frame: Callable[[random.Random], bytes] | None = None
    given: frozenset[str] = frozenset()
    undamaged: bool = False
    time: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """frames: what became of each. state: by register or counter its cells that are not zero, without times."""

    frames: list[Outputs]
    state: dict[str, dict[int, Any]]


def names_of(info: p4i.P4Info) -> Names:
    # A profile's own name is the compiler's choice where the program gives none.
    tables = {each.preamble.id: each.preamble.alias for each in info.tables}
    return ids(info) | {f"{tables[each.table_ids[0]]}.profile": each.preamble.id for each in info.action_profiles}


def outcome(case: Case, kind: str, compiler: str, seed: int, frames: int, folder: Path) -> Outcome:
    """What a fresh switch of that kind ("gradbed", "bmv2") did with random frames."""
    files = _compile(case, compiler)
    info = text_format.Parse(files.p4info.read_text(), p4i.P4Info())
    rng = random.Random(seed)
    given = case.entities(names_of(info))
    taken = [_key(each) for each in given if isinstance(each, p4r.TableEntry)]
    drawn = [each for each in random_entries(info, rng, ENTRIES, case.given) if _key(each) not in taken]
    updates = [(INSERT, each) for each in (*drawn, *given)]
    # Ours, whatever the compiler: the same frames for all.
    sent = _frames(case, json.loads(_compile(case, "gradbed").json.read_text()), random.Random(seed), frames)
    if kind == "gradbed":
        build_program(json.loads(files.json.read_text()))  # a push does not wait for gcc on a busy machine
    with _serve(kind, folder) as (address, sockets, registers_of):
        client = Client(address)
        stream = client.become_primary()
        client.push(pipeline=p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=files.json.read_bytes()))
        for first in range(0, len(updates), CHUNK_UPDATES):
            client.write(*updates[first : first + CHUNK_UPDATES])
        try:
            came_out = [_exchange(case, sockets, port, frame) for port, frame in sent]
            registers = (registers_of or functools.partial(_registers, client))(info.registers)
            return Outcome(came_out, {**_without_times(case, registers), **_counters(client, info)})
        finally:
            stream.close()
            client.close()


def _key(entry: p4r.TableEntry) -> tuple[int, list[bytes]]:
    return entry.table_id, [part.SerializeToString(deterministic=True) for part in entry.match]


def _registers(client: Client, registers: Iterable[p4i.Register]) -> dict[str, list[int]]:
    return {
        each.preamble.name: [
            int.from_bytes(cell.data.bitstring, "big")
            for cell in client.read(p4r.RegisterEntry(register_id=each.preamble.id))
        ]
        for each in registers
    }


def _registers_by_thrift(thrift_port: int, registers: Iterable[p4i.Register]) -> dict[str, list[int]]:
    """BMv2's P4Runtime reads none."""
    shell = Shell(require_simple_switch()[1], thrift_port)
    try:
        return {each.preamble.name: shell.register(each.preamble.name) for each in registers}
    finally:
        shell.end()


def _without_times(case: Case, registers: Mapping[str, list[int]]) -> dict[str, dict[int, int]]:
    """And no number is larger than BMv2 can tell."""
    kept = {}
    for name, cells in registers.items():
        times = case.time.get(name.rsplit(".", 1)[-1], 0)
        kept[name] = {index: left for index, cell in enumerate(cells) if (left := min(cell, THRIFT_MOST) & ~times)}
    return kept


def _counters(client: Client, info: p4i.P4Info) -> dict[str, dict[int, tuple[int, int]]]:
    """Packets and bytes, or 0 for what the counter does not count: BMv2 counts both in any case."""
    found = {}
    for each in info.counters:
        unit = each.spec.unit
        cells = client.read(p4r.CounterEntry(counter_id=each.preamble.id))
        found[each.preamble.name] = {
            cell.index.index: (
                cell.data.packet_count * (unit != p4i.CounterSpec.BYTES),
                cell.data.byte_count * (unit != p4i.CounterSpec.PACKETS),
            )
            for cell in cells
            if cell.data.packet_count
        }
    return found


def make_interfaces() -> None:
    create_pairs(
        [
            VethPair(f"s1-eth{p}", f"02:00:00:00:01:{p:02x}", f"t{p}", f"02:00:00:00:02:{p:02x}")
            for p in range(1, PORTS + 1)
        ],
        group=7,
    )


def _compile(case: Case, compiler: str) -> CompiledFiles:
    p4c = find_p4c() if compiler == "p4c" else None
    return compiled_files(case.source, dict(case.defines), p4c)


@contextlib.contextmanager
def _serve(kind: str, folder: Path) -> Iterator[tuple[str, dict[int, socket.socket], Reader | None]]:
    """Address, a socket for each port, and how registers are read that P4Runtime does not read."""
    with contextlib.ExitStack() as stack:
        reader: Reader | None = None
        if kind == "gradbed":
            address = stack.enter_context(serve_gradbed(PORTS, folder))
        else:
            node = stack.enter_context(bmv2_switch(PORTS, folder))
            address, reader = node.grpc_address, functools.partial(_registers_by_thrift, node.thrift_port)
        yield address, {p: stack.enter_context(open_socket(f"t{p}")) for p in range(1, PORTS + 1)}, reader


# ---- Frames ----


def _frames(case: Case, program: dict[str, Any], rng: random.Random, count: int) -> list[tuple[int, bytes]]:
    """(port, frame): made for the parser, one in three damaged."""
    made = [case.frame(rng) for _ in range(count)] if case.frame else parser_frames(program, rng, count)
    if case.undamaged:
        return [(rng.randint(1, PORTS), frame) for frame in made]
    return [(rng.randint(1, PORTS), _finish(case, frame, rng)) for frame in made]


def _finish(case: Case, frame: bytes, rng: random.Random) -> bytes:
    data = bytearray(frame.ljust(MIN_FRAME_BYTES, b"\0")[:1500])
    if rng.random() < 0.3:
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[max(MIN_FRAME_BYTES, rng.randrange(len(data))) :]
    if rng.random() < 0.9:
        mend_ipv4_checksum(data)
    return bytes(MIN_FRAME_BYTES) if case.is_marker(bytes(data)) else bytes(data)


def _exchange(case: Case, sockets: dict[int, socket.socket], port: int, frame: bytes) -> Outputs:
    """Queues are first in, first out: when the markers are out, so is what was before them."""
    sockets[port].send(frame)
    out: Outputs = {}
    for _ in range(case.rounds):
        for marked in sockets:
            sockets[port].send(case.marker(marked, port))
        for marked, receiver in sockets.items():
            for received in _until_marker(case, receiver):
                out.setdefault(marked, []).append(received)
    return out


def _until_marker(case: Case, receiver: socket.socket) -> Iterator[bytes]:
    receiver.settimeout(PACKET_TIMEOUT_S)
    while True:
        try:
            frame = receiver.recv(9000)
        except TimeoutError:
            pytest.fail("a marker did not come out")
        if case.is_marker(frame):
            return
        yield frame


# ---- Markers of programs that route IPv4 ----

MARKER_SOURCE, MARKER_NETWORK = 0x0AFF0101, 0x0AFF0000  # 10.255.1.1, 10.255.0.0
MARKER = b"marker"
MARKER_PROTOCOL = 253
UDP = 17


def ipv4_marker(port: int, came_by: int, protocol: int = MARKER_PROTOCOL) -> bytes:
    """To 10.255.0.port; the text is where a UDP payload would be."""
    ports = struct.pack(">HHHH", 9, 9, 34, 0)
    header = struct.pack(">BBHHHBBHII", 0x45, 0, 54, 0, 0, 64, protocol, 0, MARKER_SOURCE, MARKER_NETWORK + port)
    frame = bytearray(bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + header + ports + MARKER + bytes(20))
    mend_ipv4_checksum(frame)
    return bytes(frame)


def is_ipv4_marker(frame: bytes) -> bool:
    return frame[42 : 42 + len(MARKER)] == MARKER


def to_marker(field: int, port: int) -> p4r.FieldMatch:
    return lpm(field, canonical(MARKER_NETWORK + port), 32)
