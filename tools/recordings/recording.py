"""A recording: a program with its sources, entries, frames in and out, and the state at the end, as one file."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format
from pydantic import BaseModel, Field, ValidationError

from gradbed.common.errors import UserError

Outputs = dict[int, list[str]]
"""Frames that came out, by port, in order; hexadecimal."""
State = dict[str, dict[int, int | tuple[int, int]]]
"""By register or counter its cells that are not zero: a number, or packets and bytes."""

SUFFIX = ".json.gz"
STANDARD_INCLUDES = Path(__file__).resolve().parents[2] / "switch" / "compiler" / "p4include"


class Exchange(BaseModel):
    """One frame, and what came out because of it."""

    in_port: int
    sent: str = Field(alias="in")
    out: Outputs


class Recording(BaseModel):
    """What one switch did. Written and read as JSON, compressed."""

    program: str
    """Path of the program among `sources`."""
    sources: dict[str, str]
    """Text of the program and of each file of its own that it includes, by path; core.p4 and v1model.p4 left out."""
    defines: list[tuple[str, str]] = []
    seed: int
    """Of the random frames and entries."""
    switch: str
    """Name and version of the switch that was recorded."""
    compiler: str
    """Name and version of the compiler whose program ran on it."""
    ports: int
    """The switch has ports 1 to this."""
    p4info: str
    bmv2_json: dict[str, Any]
    inserted: list[tuple[str, str]]
    """P4Runtime entities in the order of their insertion: type, and the message in base 64."""
    markers: dict[str, str] = {}
    """Frames sent after each frame, from its port, to know when the switch is done with it: by "CAME_BY>PORT". The
    one for a port leaves by that port alone. Empty: the recorder waited instead."""
    rounds: int = 0
    """How often the markers are sent."""
    frames: list[Exchange]
    """Without the markers that came out."""
    state: State
    """At the end; without the bits of `times`, and no number above 2^63 - 1, the most that BMv2 can say."""
    times: dict[str, int] = {}
    """Bits of registers that hold times, which differ between two runs, by the last part of the register's name."""
    untagged: bool = False
    """Whether the frames in `out` lack their first 802.1Q tag: Linux takes it off before packet sockets, and not
    every recorder asks for it. Frames that end within such a tag did not reach the switch: Linux drops them."""

    def info(self) -> p4i.P4Info:
        """Return the P4Info."""
        return text_format.Parse(self.p4info, p4i.P4Info())

    def entities(self) -> list[p4r.Entity]:
        """Return the entities in the order of their insertion."""
        return [decode_entity(kind, text) for kind, text in self.inserted]

    def markers_from(self, came_by: int) -> list[tuple[int, bytes]]:
        """(port, frame): the marker to each port for frames that came by one."""
        return [
            (int(port), bytes.fromhex(frame))
            for way, frame in self.markers.items()
            for start, _, port in [way.partition(">")]
            if int(start) == came_by
        ]

    def changed_sources(self, root: Path) -> list[str]:
        """Recorded files that are different or missing below this folder, and new ones that are included there."""
        now = sources_of(root / self.program, dict(self.defines), root)
        return sorted(name for name in now.keys() | self.sources.keys() if now.get(name) != self.sources.get(name))


def read_recording(path: Path) -> Recording:
    """UserError if the file is no recording."""
    try:
        return Recording.model_validate_json(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path} is no recording: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def write_recording(recording: Recording, path: Path) -> None:
    """The same recording gives the same bytes."""
    text = json.dumps(recording.model_dump(mode="json", by_alias=True), separators=(",", ":"))
    try:
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def sources_of(program: Path, defines: Mapping[str, str], root: Path) -> dict[str, str]:
    """Text of a program and of what it includes, but the standard includes, by path from `root`; {} without it."""
    from gradbed.switch.compiler import input_files

    if not program.is_file():
        return {}
    files = {file.path.resolve(): file.text for file in input_files(program, defines=defines) if file.path.is_file()}
    root = root.resolve()
    return {
        PurePosixPath(path.relative_to(root)).as_posix(): text
        for path, text in sorted(files.items())
        if path.parent != STANDARD_INCLUDES
    }


_TAGS = (b"\x81\0", b"\x88\xa8")  # IEEE 802.1Q
_PULLED_BYTES = 20
"""Ethernet header, tag, and two bytes behind it: Linux drops a frame with a tag that has less (skb_vlan_untag)."""


def without_tag(frame: bytes) -> bytes:
    """As a packet socket of Linux has it that does not ask for tags."""
    return frame[:12] + frame[16:] if frame[12:14] in _TAGS else frame


def ends_in_tag(frame: bytes) -> bool:
    """Whether an interface of Linux drops the frame for its 802.1Q tag."""
    return frame[12:14] in _TAGS and len(frame) < _PULLED_BYTES


# ---- Entities ----

_FIELDS = {field.message_type.name: field.name for field in p4r.Entity.DESCRIPTOR.fields}


def encode_entity(message: Any) -> tuple[str, str]:
    """Return the type of a message, and the message in base 64."""
    return message.DESCRIPTOR.name, base64.b64encode(message.SerializeToString(deterministic=True)).decode()


def decode_entity(kind: str, text: str) -> p4r.Entity:
    """UserError if there is no such kind."""
    field = _FIELDS.get(kind)
    if field is not None:
        return _entity(field, base64.b64decode(text))
    if kind in ("MulticastGroupEntry", "CloneSessionEntry"):
        part = "multicast_group_entry" if kind == "MulticastGroupEntry" else "clone_session_entry"
        entity = p4r.Entity()
        getattr(entity.packet_replication_engine_entry, part).ParseFromString(base64.b64decode(text))
        return entity
    raise UserError(f"a recording has no entities of type {kind}")


def _entity(field: str, message: bytes) -> p4r.Entity:
    entity = p4r.Entity()
    getattr(entity, field).ParseFromString(message)
    getattr(entity, field).SetInParent()
    return entity


# ---- State ----

MOST = (1 << 63) - 1


def state_of(
    registers: Mapping[str, Sequence[int]],
    counters: Mapping[str, Mapping[int, tuple[int, int]]],
    info: p4i.P4Info,
    times: Mapping[str, int],
) -> State:
    """Return the state of registers (all cells) and counters (packets and bytes by index) as a recording keeps it."""
    state: State = {}
    for name, cells in registers.items():
        masked = times.get(name.rsplit(".", 1)[-1], 0)
        kept = ((index, min(cell, MOST) & ~masked) for index, cell in enumerate(cells))
        state[name] = {index: cell for index, cell in kept if cell}
    units = {each.preamble.name: each.spec.unit for each in info.counters}
    for name, counts in counters.items():
        # BMv2 counts packets and bytes in any case.
        has_packets, has_bytes = units[name] != p4i.CounterSpec.BYTES, units[name] != p4i.CounterSpec.PACKETS
        state[name] = {
            index: (packets * has_packets, size * has_bytes) for index, (packets, size) in counts.items() if packets
        }
    return state
