"""Making a recording: a program on a pair of compiler and switch.

Entries and frames are random, or those of another recording.
"""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from finsy.proto import p4i, p4r

from gradbed.common.errors import UserError
from tools.recordings.random_inputs import PORTS, parser_frames, random_entries
from tools.recordings.recording import (
    Exchange,
    Recording,
    encode_entity,
    ends_in_tag,
    sources_of,
    state_of,
)

ENTRIES = 25
"""For each table."""
RIGHT_CHECKSUMS = 0.9
SHORTEST_FRAME_BYTES, LONGEST_FRAME_BYTES = 14, 1500
"""As interfaces of Linux carry them."""


class SwitchToRecord(Protocol):
    """A switch with ports 1 to n, met as a controller and its neighbours meet it."""

    name: str
    """With its version."""

    def push(self, bmv2_json: Mapping[str, Any], info: p4i.P4Info) -> None:
        """Load a program."""

    def insert(self, entity: p4r.Entity) -> str:
        """Insert an entity; return why the switch refuses it in one line, or an empty string."""

    def exchange(self, port: int, frame: bytes) -> dict[int, list[bytes]]:
        """Send a frame, and return what came out by which port until the switch was idle."""

    def registers(self, info: p4i.P4Info) -> dict[str, list[int]]:
        """Return all cells, by name."""

    def counters(self, info: p4i.P4Info) -> dict[str, dict[int, tuple[int, int]]]:
        """Return packets and bytes by index, by name."""


@dataclass(frozen=True)
class RecordedCompiler:
    """A compiler whose program is recorded."""

    name: str
    """With its version."""
    compile: Callable[[Path, Mapping[str, str]], tuple[dict[str, Any], p4i.P4Info]]
    """Returns BMv2 JSON and P4Info of a program with macros."""


def record(
    program: Path,
    defines: Mapping[str, str],
    compiler: RecordedCompiler,
    switch: SwitchToRecord,
    *,
    frames: int,
    seed: int,
    times: Mapping[str, int],
    like: Recording | None = None,
) -> Recording:
    """Run a program and record what the switch does.

    times: see Recording. like: take entries and frames of this recording, with no random ones.
    """
    bmv2_json, info = compiler.compile(program, defines)
    root = _root_of(program, defines)
    switch.push(bmv2_json, info)
    rng = random.Random(seed)
    if like is None:
        wanted = [p4r.Entity(table_entry=entry) for entry in random_entries(info, rng, ENTRIES)]
        sent = [(rng.randint(1, PORTS), frame) for frame in _random_frames(program, defines, rng, frames)]
    else:
        wanted = like.entities()
        sent = [(each.in_port, bytes.fromhex(each.sent)) for each in like.frames]
        sent = [(port, frame) for port, frame in sent if not ends_in_tag(frame)]
    inserted = [entity for entity in wanted if not switch.insert(entity)]
    if like is not None and len(inserted) < len(wanted):
        raise UserError(f"{switch.name} refuses {len(wanted) - len(inserted)} entries of the other recording")
    exchanges = []
    for port, frame in sent:
        came_out = switch.exchange(port, frame)
        out = {left_by: [data.hex() for data in out] for left_by, out in sorted(came_out.items())}
        exchanges.append(Exchange.model_validate({"in_port": port, "in": frame.hex(), "out": out}))
    return Recording(
        program=program.resolve().relative_to(root).as_posix(),
        sources=sources_of(program, defines, root),
        defines=sorted(defines.items()),
        seed=seed,
        switch=switch.name,
        compiler=compiler.name,
        ports=PORTS,
        p4info=str(info),
        bmv2_json=bmv2_json,
        inserted=[encode_entity(_inner(entity)) for entity in inserted],
        frames=exchanges,
        state=state_of(switch.registers(info), switch.counters(info), info, times),
        times=dict(times),
    )


def _root_of(program: Path, defines: Mapping[str, str]) -> Path:
    """The current folder, where all sources are below it; else the folder that they have in common."""
    here = Path.cwd().resolve()
    files = [here / name for name in _absolute_names(program, defines)]
    if all(file.is_relative_to(here) for file in files):
        return here
    return Path(os.path.commonpath([file.parent for file in files]))


def _absolute_names(program: Path, defines: Mapping[str, str]) -> list[str]:
    top = Path(program.resolve().anchor)
    return [str(top / name) for name in sources_of(program, defines, top)]


def _random_frames(program: Path, defines: Mapping[str, str], rng: random.Random, count: int) -> list[bytes]:
    """Made for the program's parser as our compiler has it, one in three damaged."""
    from gradbed.switch.compiler import compile_p4

    made = parser_frames(json.loads(compile_p4(program, defines=defines).json_text), rng, count)
    frames = (_damaged(frame, rng) for frame in made)
    return [frame for frame in frames if not ends_in_tag(frame)]


def _damaged(frame: bytes, rng: random.Random) -> bytes:
    data = bytearray(frame.ljust(SHORTEST_FRAME_BYTES, b"\0")[:LONGEST_FRAME_BYTES])
    if rng.random() < 1 / 3:
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 1 / 5:
            del data[max(SHORTEST_FRAME_BYTES, rng.randrange(len(data))) :]
    if rng.random() < RIGHT_CHECKSUMS:
        mend_ipv4_checksum(data)
    return bytes(data)


def mend_ipv4_checksum(frame: bytearray) -> None:
    """RFC 1071, if an IPv4 header follows the Ethernet header: most programs drop packets with a wrong one."""
    length = 4 * (frame[14] & 15) if len(frame) > 14 else 0
    if frame[12:14] != b"\x08\0" or length < 20 or len(frame) < 14 + length:
        return
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack(f">{length // 2}H", frame[14 : 14 + length]))
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF)


def _inner(entity: p4r.Entity) -> Any:
    """What a recording keeps of an entity: the message in it."""
    message = getattr(entity, str(entity.WhichOneof("entity")))
    if isinstance(message, p4r.PacketReplicationEngineEntry):
        return getattr(message, str(message.WhichOneof("type")))
    return message
