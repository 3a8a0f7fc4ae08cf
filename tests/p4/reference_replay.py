"""A recording of tests/p4/recorded/bmv2 on the reference: its P4Runtime entities, frames and state."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from gradbed.common.errors import UserError
from gradbed.switch.reference import ReferenceSwitch

MOST = (1 << 63) - 1
"""BMv2's Thrift knows no larger number."""
TAGS = (b"\x81\0", b"\x88\xa8")


def read(path: Path) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return recorded


def replay(recorded: dict[str, Any], folder: Path) -> list[str]:
    """Where the reference differs, in frames and state; [] if nowhere."""
    for name, text in recorded["sources"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    switch = ReferenceSwitch(
        folder / recorded["program"], ports=range(1, recorded["ports"] + 1), defines=dict(recorded["defines"])
    )
    info = text_format.Parse(recorded["p4info"], p4i.P4Info())
    _Writer(switch, info).write(recorded["inserted"])
    return [*_frames(switch, recorded), *_state(switch, recorded, info)]


def _frames(switch: ReferenceSwitch, recorded: dict[str, Any]) -> Iterator[str]:
    markers = [(int(way.split(">")[0]), bytes.fromhex(frame)) for way, frame in recorded["markers"].items()]
    for number, exchange in enumerate(recorded["frames"]):
        frame, came_by = bytes.fromhex(exchange["in"]), exchange["in_port"]
        out: dict[str, list[str]] = {}
        # Linux drops what ends within a tag, and takes tags off before packet sockets that do not ask for them.
        if not (recorded["untagged"] and frame[12:14] in TAGS and len(frame) < 20):
            for port, left in switch.process(came_by, frame):
                cut = recorded["untagged"] and left[12:14] in TAGS
                out.setdefault(str(port), []).append((left[:12] + left[16:] if cut else left).hex())
        if out != exchange["out"]:
            yield f"frame {number} by port {came_by}: {out} instead of {exchange['out']}"
        for _ in range(recorded["rounds"]):
            for start, marker in markers:
                if start == came_by:
                    switch.process(came_by, marker)


def _state(switch: ReferenceSwitch, recorded: dict[str, Any], info: p4i.P4Info) -> Iterator[str]:
    units = {each.preamble.name: each.spec.unit for each in info.counters}
    for name, cells in recorded["state"].items():
        found: dict[str, Any] = {}
        if name in units:
            has_packets, has_bytes = units[name] != p4i.CounterSpec.BYTES, units[name] != p4i.CounterSpec.PACKETS
            for index, (packets, size) in enumerate(switch.counter(name)):
                if packets:
                    found[str(index)] = [packets * has_packets, size * has_bytes]
        else:
            times = recorded["times"].get(name.rsplit(".", 1)[-1], 0)
            for index, cell in enumerate(switch.register(name)):
                if kept := min(cell, MOST) & ~times:
                    found[str(index)] = kept
        if found != cells:
            differ = {
                i: (found.get(i), cells.get(i)) for i in found.keys() | cells.keys() if found.get(i) != cells.get(i)
            }
            yield f"{name}: (here, recorded) {differ}"


class _Writer:
    """P4Runtime entities to calls of the reference."""

    def __init__(self, switch: ReferenceSwitch, info: p4i.P4Info) -> None:
        self._switch = switch
        self._tables = {each.preamble.id: each for each in info.tables}
        self._actions = {each.preamble.id: each for each in info.actions}
        self._members: dict[tuple[int, int], tuple[str, dict[str, int]]] = {}
        self._groups: dict[tuple[int, int], list[int]] = {}

    def write(self, inserted: list[list[str]]) -> None:
        for kind, text in inserted:
            message: Any = getattr(p4r, kind)()
            message.ParseFromString(base64.b64decode(text))
            getattr(self, f"_{kind}")(message)

    def _call(self, action: p4r.Action) -> tuple[str, dict[str, int]]:
        known = self._actions[action.action_id]
        names = {each.id: each.name for each in known.params}
        values = {names[each.param_id]: int.from_bytes(each.value, "big") for each in action.params}
        return known.preamble.name, values

    def _ActionProfileMember(self, member: p4r.ActionProfileMember) -> None:
        self._members[member.action_profile_id, member.member_id] = self._call(member.action)

    def _ActionProfileGroup(self, group: p4r.ActionProfileGroup) -> None:
        self._groups[group.action_profile_id, group.group_id] = [each.member_id for each in group.members]

    def _MulticastGroupEntry(self, group: p4r.MulticastGroupEntry) -> None:
        replicas = [(each.egress_port, each.instance) for each in group.replicas]
        self._switch.set_multicast_group(group.multicast_group_id, replicas)

    def _CloneSessionEntry(self, session: p4r.CloneSessionEntry) -> None:
        replicas = [(each.egress_port, each.instance) for each in session.replicas]
        cut = session.packet_length_bytes or None
        self._switch.set_mirror_replicas(session.session_id, replicas, cut)

    def _TableEntry(self, entry: p4r.TableEntry) -> None:
        known = self._tables[entry.table_id]
        name = known.preamble.name
        keys = self._switch.table(name).matched_keys
        fields = {each.id: key for each, key in zip(known.match_fields, keys, strict=True)}
        match = {fields[each.field_id].name: _match(each) for each in entry.match}
        which = entry.action.WhichOneof("type")
        if which == "action":
            action, values = self._call(entry.action.action)
            if entry.is_default_action:
                self._switch.set_default(name, action, values)
            else:
                self._switch.insert(name, match, action, values, entry.priority)
            return
        profile = known.implementation_id
        if which == "action_profile_member_id":
            members = [entry.action.action_profile_member_id]
        elif which == "action_profile_group_id":
            members = self._groups[profile, entry.action.action_profile_group_id]
        else:
            raise UserError(f"{which} is in no recording")
        chosen = [self._members[profile, member] for member in members]
        self._switch.insert_group(name, match, chosen, entry.priority)


def _match(field: p4r.FieldMatch) -> Any:
    kind = field.WhichOneof("field_match_type")
    found = getattr(field, kind)
    if kind in ("exact", "optional"):
        return int.from_bytes(found.value, "big")
    if kind == "lpm":
        return int.from_bytes(found.value, "big"), found.prefix_len
    if kind == "ternary":
        return int.from_bytes(found.value, "big"), int.from_bytes(found.mask, "big")
    return int.from_bytes(found.low, "big"), int.from_bytes(found.high, "big")
