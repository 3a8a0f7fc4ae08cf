"""The same packets through our switch and through BMv2, with the same program and the same table entries."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from switch.p4c import find_p4c
from switch.program_cache import CompiledFiles, compiled_files
from tests.fuzz.parser_frames import parser_frames
from tests.p4.random_entries import PORTS, random_entries
from tests.p4.switch_under_test import PACKET_TIMEOUT_S, open_socket, serve_bmv2, serve_gradbed
from tests.unit.p4runtime.client import INSERT, Client
from topo.machine.veth import VethPair, create_pairs

ENTRIES = 25
CHUNK_UPDATES = 200
MIN_FRAME_BYTES = 14  # a packet socket sends no less than an Ethernet header

Outputs = dict[int, list[bytes]]
"""Frames that came out, by port."""


@dataclass(frozen=True)
class Case:
    """A program, and how to tell that the switch is done with a frame.

    marker: a frame that comes out by the given port alone. entities: what the tables need for that, written after the
    random entries. rounds: how often markers are sent; one more than a frame goes round in the switch. frame: makes
    one, where the parser alone does not say enough of what the program looks for.
    """

    source: Path
    marker: Callable[[int], bytes]
    is_marker: Callable[[bytes], bool]
    entities: Callable[[Names], Sequence[Any]]
    defines: tuple[tuple[str, str], ...] = ()
    rounds: int = 1
    frame: Callable[[random.Random], bytes] | None = None


class Names:
    """Ids by alias."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._ids = {
            described.preamble.alias: described.preamble.id
            for group in (info.tables, info.actions, info.action_profiles, info.value_sets)
            for described in group
        }

    def __getitem__(self, alias: str) -> int:
        return self._ids[alias]


def outputs(case: Case, kind: str, compiler: str, seed: int, frames: int, folder: Path) -> list[Outputs]:
    """What became of each frame in a fresh switch of that kind ("gradbed", "bmv2")."""
    files = _compile(case, compiler)
    info = text_format.Parse(files.p4info.read_text(), p4i.P4Info())
    rng = random.Random(seed)
    updates = [(INSERT, each) for each in random_entries(info, rng, ENTRIES)]
    updates += [(INSERT, each) for each in case.entities(Names(info))]
    # Ours, whatever the compiler: the same frames for all.
    sent = _frames(case, json.loads(_compile(case, "gradbed").json.read_text()), random.Random(seed), frames)
    with _serve(kind, folder) as (address, sockets):
        client = Client(address)
        stream = client.become_primary()
        client.push(pipeline=p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=files.json.read_bytes()))
        for first in range(0, len(updates), CHUNK_UPDATES):
            client.write(*updates[first : first + CHUNK_UPDATES])
        try:
            return [_exchange(case, sockets, port, frame) for port, frame in sent]
        finally:
            stream.close()
            client.close()


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
def _serve(kind: str, folder: Path) -> Iterator[tuple[str, dict[int, socket.socket]]]:
    with contextlib.ExitStack() as stack:
        serve = serve_gradbed if kind == "gradbed" else serve_bmv2
        address = stack.enter_context(serve(PORTS, folder))
        yield address, {p: stack.enter_context(open_socket(f"t{p}")) for p in range(1, PORTS + 1)}


# ---- Frames ----


def _frames(case: Case, program: dict[str, Any], rng: random.Random, count: int) -> list[tuple[int, bytes]]:
    """(port, frame): made for the parser, one in three damaged."""
    made = [case.frame(rng) for _ in range(count)] if case.frame else parser_frames(program, rng, count)
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


def mend_ipv4_checksum(frame: bytearray) -> None:
    """RFC 1071, if there is an IPv4 header behind the Ethernet header."""
    length = 4 * (frame[14] & 15) if len(frame) > 14 else 0
    if frame[12:14] != b"\x08\0" or length < 20 or len(frame) < 14 + length:
        return
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack(f">{length // 2}H", frame[14 : 14 + length]))
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF)


def _exchange(case: Case, sockets: dict[int, socket.socket], port: int, frame: bytes) -> Outputs:
    """Queues are first in, first out: when the markers are out, so is what was before them."""
    sockets[port].send(frame)
    out: Outputs = {}
    for _ in range(case.rounds):
        for marked in sockets:
            sockets[port].send(case.marker(marked))
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
