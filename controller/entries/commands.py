"""Commands of BMv2's simple_switch_CLI (sX-commands.txt of p4-utils): what one switch holds.

The commands are those of switch/simple_switch/cli, on a switch that only remembers what it is written.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from gradbed.common.errors import UserError
from gradbed.controller.entries.collection import Collection, Precedence
from gradbed.controller.entries.document import FilePosition, blamed
from gradbed.controller.planning.plan import DefaultAction, MeterCell, MeterRates, RegisterValue
from gradbed.controller.southbound.p4runtime.codec import (
    decode_clone,
    decode_entry,
    decode_group,
    decode_params,
    number,
)
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
from gradbed.switch.simple_switch.cli.arguments import CommandError
from gradbed.switch.simple_switch.cli.command import SimpleSwitchShell

_RANK = Precedence(2)
OF_THE_NETWORK = {
    "set_queue_depth": "queues are those of the links: queue_packets in the topology, or --queue-packets",
    "set_queue_rate": "rates are those of the links: rate_mbps in the topology, or --rate-mbps",
    "port_add": "ports are those of the topology",
    "port_remove": "ports are those of the topology",
}
"""Commands for what the topology and its options say here."""

_WITHOUT_EFFECT = ("counter_write", "counter_reset", "help", "exit", "quit", "EOF")
"""Counts begin at 0, and no program can read them."""

_SKIPPED = {**OF_THE_NETWORK, "counter_write": "counters begin at 0"}

_SHOWING = re.compile(
    r"show_\w+|\w+_(dump|dump_\w+|info|show_actions|num_entries|read|get|get_rates)|switch_info|get_\w+"
)


def read_commands(file: Path, p4info: Any, schema: ProgramSchema, collection: Collection) -> None:
    """Take in what the commands of a file write. EntriesError for a command that the shell does not take."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not text in UTF-8") from None
    memory = _Memory(p4info)
    shell = _Shell(memory)
    for line_number, line in enumerate(lines, 1):
        place = memory.place = FilePosition(file, line_number, 1)
        words = line.split()
        if not words or words[0].startswith(("#", "//")) or _is_left_out(words[0]):
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                shell.onecmd(line.strip())
        except CommandError as error:
            raise place.error(str(error)) from None
    for place, entity in memory.written():
        with blamed(place):
            memory.resolve(entity)
        for value in _values(entity, schema, place):
            collection.add(value, _RANK, place)


def not_applied(file: Path) -> list[str]:
    """Return a line for each command of a file that changes nothing here, though it would change BMv2."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []  # read_commands says why
    found = []
    for line_number, line in enumerate(lines, 1):
        words = line.split()
        if words and words[0] in _SKIPPED:
            found.append(f"{file}:{line_number}: {' '.join(words)} is not applied: {_SKIPPED[words[0]]}")
    return found


def _is_left_out(command: str) -> bool:
    return command in (*OF_THE_NETWORK, *_WITHOUT_EFFECT) or _SHOWING.fullmatch(command) is not None


class _Shell(SimpleSwitchShell):
    """A shell whose mistakes are the caller's."""

    def __init__(self, memory: _Memory) -> None:
        super().__init__(memory)  # type: ignore[arg-type]

    def onecmd(self, line: str) -> bool:
        return bool(super(SimpleSwitchShell, self).onecmd(line))


class _Memory:
    """A client as the shell's commands use it: entities by their keys, with the lines that wrote them last."""

    def __init__(self, p4info: Any) -> None:
        self.p4info = p4info
        self.place = FilePosition(Path(), 1, 1)
        self._entities: dict[bytes, tuple[FilePosition, Any]] = {}

    def written(self) -> list[tuple[FilePosition, Any]]:
        return list(self._entities.values())

    def insert(self, entity: Any) -> None:
        if _key(entity) in self._entities:
            raise CommandError("it is there already")
        self.modify(entity)

    def modify(self, entity: Any) -> None:
        if entity.WhichOneof("entity") == "direct_meter_entry":
            self._set_rates(entity.direct_meter_entry)
            return
        self._entities[_key(entity)] = (self.place, entity)

    def resolve(self, entity: Any) -> None:
        """Give an entry that refers to a member, or to a group of one, the member's action. UserError."""
        if entity.WhichOneof("entity") != "table_entry":
            return
        action = entity.table_entry.action
        profile = {table.preamble.id: table.implementation_id for table in self.p4info.tables}[
            entity.table_entry.table_id
        ]
        member = action.action_profile_member_id
        if group := action.action_profile_group_id:
            wanted = p4r.ActionProfileGroup(action_profile_id=profile, group_id=group)
            members = self._one(p4r.Entity(action_profile_group=wanted), f"group {group - 1}").members
            if len(members) != 1:
                raise UserError(
                    f"group {group - 1} has {len(members)} members: entries of a file have one action each"
                )
            member = members[0].member_id
        if member:
            wanted = p4r.ActionProfileMember(action_profile_id=profile, member_id=member)
            found = self._one(p4r.Entity(action_profile_member=wanted), f"member {member - 1}")
            action.action.CopyFrom(found.action)

    def _one(self, entity: Any, name: str) -> Any:
        if _key(entity) not in self._entities:
            raise UserError(f"there is no {name}")
        _, found = self._entities[_key(entity)]
        return getattr(found, found.WhichOneof("entity"))

    def _set_rates(self, message: Any) -> None:
        """Set the rates of a direct meter, which are those of its entry."""
        _, entity = self._entities[_key(p4r.Entity(table_entry=message.table_entry))]
        entity.table_entry.meter_config.CopyFrom(message.config)

    def delete(self, *entities: Any) -> None:
        for entity in entities:
            if self._entities.pop(_key(entity), None) is None:
                raise CommandError("it is not there")

    def read(self, entity: Any) -> Sequence[Any]:
        """Return the entities of a kind that have the given identifiers."""
        kind = entity.WhichOneof("entity")
        wanted = getattr(entity, kind)
        found = [getattr(each, kind) for _, each in self._entities.values() if each.WhichOneof("entity") == kind]
        if kind == "packet_replication_engine_entry":
            part = wanted.WhichOneof("type")
            return [each for each in found if each.WhichOneof("type") == part]
        if kind == "table_entry":
            found = [each for each in found if not each.is_default_action]
        names = [field.name for field in wanted.DESCRIPTOR.fields if field.name.endswith("_id")]
        asked = [(name, value) for name in names if (value := getattr(wanted, name))]
        found = [each for each in found if all(getattr(each, name) == value for name, value in asked)]
        if not found and len(asked) > 1:
            raise CommandError("it is not there")
        return found


def _key(entity: Any) -> bytes:
    """Return an entity without its contents."""
    bare = type(entity)()
    bare.CopyFrom(entity)
    inner = getattr(bare, bare.WhichOneof("entity"))
    if isinstance(inner, p4r.PacketReplicationEngineEntry):
        inner = getattr(inner, inner.WhichOneof("type"))
    for name in (
        "action",
        "members",
        "max_size",
        "data",
        "config",
        "replicas",
        "metadata",
        "meter_config",
        "packet_length_bytes",
        "idle_timeout_ns",
    ):
        if name in inner.DESCRIPTOR.fields_by_name:
            inner.ClearField(name)
    key: bytes = bare.SerializeToString(deterministic=True)
    return key


def _values(entity: Any, schema: ProgramSchema, place: FilePosition) -> list[Any]:
    """Return an entity as parts of a plan."""
    kind = entity.WhichOneof("entity")
    message = getattr(entity, kind)
    if kind == "table_entry" and message.is_default_action:
        table = schema.tables.by_id(message.table_id)
        action = None if table is None else table.actions.by_id(message.action.action.action_id)
        if table is None or action is None:
            return []  # back to the program's own
        params = decode_params(action, message.action.action) or {}
        return [DefaultAction(table=table.name, action=action.name, params=params)]
    if kind == "table_entry":
        entry = decode_entry(schema, message)
        if entry is None:
            raise place.error("entries of tables with the program's own entries cannot be given")
        return [entry]
    if kind == "packet_replication_engine_entry":
        if message.HasField("clone_session_entry"):
            return [decode_clone(message.clone_session_entry)]
        return [decode_group(message.multicast_group_entry)]
    if kind == "register_entry":
        register = schema.registers.by_id(message.register_id)
        assert register is not None
        with blamed(place):
            register.check_index("register", message.index.index)
        value = number(message.data.bitstring)
        return [RegisterValue(register_name=register.name, index=message.index.index, value=value)]
    if kind == "meter_entry":
        meter = schema.meters.by_id(message.meter_id)
        assert meter is not None
        with blamed(place):
            meter.check_index("meter", message.index.index)
        config = message.config
        rates = MeterRates(
            committed_rate=config.cir, committed_burst=config.cburst, peak_rate=config.pir, peak_burst=config.pburst
        )
        return [MeterCell(meter_name=meter.name, index=message.index.index, rates=rates)]
    if kind in ("action_profile_member", "action_profile_group"):
        return []  # in the entries that refer to them
    raise place.error(f"a {kind} cannot be given here")
