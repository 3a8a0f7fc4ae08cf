"""Tables under P4Runtime: what P4Info and BMv2 JSON say of each, ready to read and write messages quickly, and one
table of one device, with its entries by key, its default entry, and what the device knows them by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from finsy.proto import p4i

from gradbed.switch.bmv2_json import model as m
from gradbed.switch.device import ActionCall, Counts, EntryCall, GroupReference, KeyMatch, MeterCounts
from gradbed.switch.p4runtime.calls import ActionCodec, ActionSet, ActionValue, AnyCall
from gradbed.switch.p4runtime.match_keys import Key, KeyCodec, match_fields
from gradbed.switch.p4runtime.status import denied, invalid
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state.action_profiles import ProfileCodec, ProfileState
from gradbed.switch.state.meters import MeterConfig, MeterSpec
from gradbed.switch.state.tables import Tables

# ---- P4Info and BMv2 JSON ----


UNLIMITED = 1 << 63


class InitialEntry(NamedTuple):
    """An entry that is part of the program."""

    key: Key
    priority: int
    call: ActionValue
    is_const: bool


@dataclass(frozen=True)
class TableActionRef:
    """An action of a table, and where the table may use it."""

    action: ActionCodec
    in_entries: bool
    as_default: bool


class TableCodec:
    """Codec of one table: its properties in P4Info and BMv2 JSON, and the translation of its keys and actions."""

    def __init__(
        self,
        table: Any,
        info: Any,
        program: m.ProgramModel,
        actions: Mapping[int, ActionCodec],
        profiles: Mapping[int, ProfileCodec],
        translations: Translations,
    ) -> None:
        """Read a p4.config.v1.Table. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
        self.table_id: int = table.preamble.id
        self.name: str = table.preamble.name
        self.is_const: bool = table.is_const_table
        self.has_const_default: bool = table.const_default_action_id != 0
        self.has_idle_timeout: bool = table.idle_timeout_behavior != p4i.Table.NO_TIMEOUT
        in_program = program.tables.get(self.name)
        if in_program is None:
            raise ValueError(f"table {self.name!r} of the P4Info is not in the BMv2 JSON")
        if self.has_idle_timeout and not in_program.with_timeouts:
            raise ValueError(f"table {self.name!r} has idle timeouts in the P4Info, none in the BMv2 JSON")
        self.profile: ProfileCodec | None = None
        if table.implementation_id:
            self.profile = profiles.get(table.implementation_id)
            if self.profile is None:
                raise ValueError(f"table {self.name!r}: its implementation is no action profile of the P4Info")
        self.size = min(table.size or UNLIMITED, in_program.max_size or UNLIMITED)
        self.direct_counter_id = _direct_resource(info.direct_counters, self.table_id)
        if self.direct_counter_id is not None and not in_program.with_counters:
            raise ValueError(f"table {self.name!r} has a direct counter in the P4Info, none in the BMv2 JSON")
        self.direct_meter_id = _direct_resource(info.direct_meters, self.table_id)
        if self.direct_meter_id is not None and in_program.direct_meter is None:
            raise ValueError(f"table {self.name!r} has a direct meter in the P4Info, none in the BMv2 JSON")
        keys = [(key.match, key.width) for key in in_program.key]
        where = f"table {self.name}"
        self.fields = match_fields(table.match_fields, keys, where, info.type_info, translations)
        self._keys = KeyCodec(self.fields, where)
        self.needs_priority = self._keys.needs_priority
        self.actions: dict[int, TableActionRef] = {}
        for reference in table.action_refs:
            if reference.id not in actions:
                raise ValueError(f"table {self.name!r} refers to action {reference.id}, which the P4Info lacks")
            self.actions[reference.id] = TableActionRef(
                actions[reference.id],
                reference.scope != p4i.ActionRef.DEFAULT_ONLY,
                reference.scope != p4i.ActionRef.TABLE_ONLY,
            )
        self._action_ids = {reference.action.name: i for i, reference in self.actions.items()}
        # None where the table has none that P4Info knows (tables with an implementation).
        default = in_program.default
        self.initial_default = self._call(default, program) if default is not None else None
        self.initial_entries = [self._initial_entry(entry, program) for entry in in_program.entries]

    def decode_key(self, matches: Iterable[Any]) -> Key:
        """Return the canonical key of FieldMatch messages in any order. Raises RequestError."""
        return self._keys.decode(matches)

    def encode_key(self, key: Key, entry: Any) -> None:
        """Add the FieldMatch messages of a key to a TableEntry."""
        self._keys.encode(key, entry.match)

    def device_key(self, key: Key) -> list[KeyMatch]:
        return self._keys.to_device(key)

    def check_priority(self, priority: int) -> None:
        """Raise INVALID_ARGUMENT where the specification demands another priority."""
        if self.needs_priority:
            if priority <= 0:
                raise invalid(f"table {self.name} needs a priority greater than 0, got {priority}")
        elif priority:
            raise invalid(f"table {self.name} takes no priority (it has no ternary, range or optional field)")

    def decode_action(self, action: Any, as_default: bool = False) -> ActionValue:
        """Build it from an Action message. Raises RequestError."""
        action_id: int = action.action_id
        reference = self.actions.get(action_id)
        if reference is None:
            raise invalid(f"table {self.name} has no action {action_id}")
        if not (reference.as_default if as_default else reference.in_entries):
            use = "the default action" if as_default else "entries"
            raise denied(f"table {self.name}: action {reference.action.name} may not be used in {use}")
        return ActionValue(action_id, reference.action.decode(action.params))

    def encode_action(self, call: ActionValue, action: Any) -> None:
        self.actions[call.action_id].action.encode(call.arguments, action)

    def device_call(self, call: ActionValue) -> ActionCall:
        """Return what the device is to do for an entry. A one-shot group is made; `release` undoes it.

        Raises NOT_FOUND for other references.
        """
        return ActionCall(self.actions[call.action_id].action.name, call.arguments)

    def _initial_entry(self, entry: m.ProgramEntry, program: m.ProgramModel) -> InitialEntry:
        call = self._call(entry.call, program)
        if call is None:
            raise ValueError(f"BMv2 JSON: an entry of table {self.name!r} uses an action that is not in P4Info")
        key = tuple(field.of_program(value) for field, value in zip(self.fields, entry.key, strict=True))
        priority = entry.priority if self.needs_priority else 0
        return InitialEntry(key, priority, call, self.is_const or entry.is_const)

    def _call(self, call: m.ActionEntry, program: m.ProgramModel) -> ActionValue | None:
        action = program.actions[call.action_id].name
        action_id = self._action_ids.get(action)
        if action_id is None:
            return None
        expected = self.actions[action_id].action.parameter_count
        if len(call.arguments) != expected:
            raise ValueError(f"BMv2 JSON: action {action!r} takes {expected} arguments, got {len(call.arguments)}")
        return ActionValue(action_id, call.arguments)


def _direct_resource(resources: Iterable[Any], table_id: int) -> int | None:
    for resource in resources:
        if resource.direct_table_id == table_id:
            resource_id: int = resource.preamble.id
            return resource_id
    return None


# ---- One table of one device ----


NO_COUNT: Counts = (0, 0)


class WrittenEntry(NamedTuple):
    """An entry as it was written, in canonical values; replaced, never changed."""

    key: Key
    priority: int
    call: AnyCall
    handle: int
    metadata: bytes = b""
    controller_metadata: int = 0
    meter: MeterConfig | None = None
    idle_timeout_ns: int = 0
    is_const: bool = False
    installed: EntryCall | None = None
    """The one-shot group that the entry refers to in the device."""


class DefaultEntry(NamedTuple):
    """A table's default entry."""

    call: ActionValue | None = None
    """The action and its arguments; None for the one that the program declares."""
    metadata: bytes = b""
    controller_metadata: int = 0


class TableState:
    def __init__(
        self, codec: TableCodec, tables: Tables, profile: ProfileState | None, meter_spec: MeterSpec | None
    ) -> None:
        """Create the state of a table; `profile` is its implementation, `meter_spec` that of its direct meter."""
        self.codec = codec
        self._tables = tables
        self.profile = profile
        self.meter_spec = meter_spec
        self.default = DefaultEntry()
        self.initial = {(entry.key, entry.priority): entry for entry in self._initial_entries()}
        self.entries = dict(self.initial)

    def _initial_entries(self) -> list[WrittenEntry]:
        codec = self.codec
        if not codec.initial_entries:
            return []
        handles = self._tables.initial_handles(codec.name)
        return [
            WrittenEntry(entry.key, entry.priority, entry.call, handle, is_const=entry.is_const)
            for entry, handle in zip(codec.initial_entries, handles, strict=True)
        ]

    # ---- What entries do ----

    def device_call(self, call: AnyCall) -> EntryCall:
        """Return the call for the device; a one-shot group is made, which `release` undoes. Raises NOT_FOUND."""
        if isinstance(call, ActionValue):
            return self.codec.device_call(call)
        assert self.profile is not None
        if isinstance(call, ActionSet):
            return self.profile.install(call)
        return self.profile.reference(call)

    def release(self, device_call: EntryCall, call: AnyCall) -> None:
        """Take back what `device_call` returned: it is not used, or not any more."""
        if isinstance(call, ActionSet):
            assert self.profile is not None and isinstance(device_call, GroupReference)
            self.profile.uninstall(device_call)

    def put(self, entry: WrittenEntry) -> None:
        """Remember an entry that is new or replaces the one with its key."""
        place = entry.key, entry.priority
        self._refer(entry.call, 1)
        old = self.entries.get(place)
        self.entries[place] = entry
        if old is not None:
            self._refer(old.call, -1)

    def remove(self, entry: WrittenEntry) -> None:
        del self.entries[entry.key, entry.priority]
        self._refer(entry.call, -1)

    def _refer(self, call: AnyCall, by: int) -> None:
        if not isinstance(call, ActionValue | ActionSet):
            assert self.profile is not None
            self.profile.refer(call, by)

    # ---- Direct resources ----

    def count(self, entry: WrittenEntry) -> Counts:
        """Return the packets and bytes of an entry's direct counter."""
        return self._tables.count(self.codec.name, entry.handle)

    def default_count(self) -> Counts:
        return self._tables.count(self.codec.name, None)

    def set_count(self, entry: WrittenEntry, counts: Counts) -> None:
        self._tables.write_count(self.codec.name, entry.handle, *counts)

    def set_default_count(self, counts: Counts) -> None:
        self._tables.write_count(self.codec.name, None, *counts)

    def meter_counts(self, entry: WrittenEntry) -> MeterCounts:
        """Return the counts of an entry's direct meter."""
        return self._tables.meter_counts(self.codec.name, entry.handle)

    def clear_meter_counts(self, entry: WrittenEntry) -> None:
        self._tables.clear_meter_counts(self.codec.name, entry.handle)

    def set_meter(self, handle: int, config: MeterConfig | None) -> None:
        """Configure an entry's direct meter; None makes everything green."""
        assert self.meter_spec is not None
        rates = None if config is None else self.meter_spec.rates(config)
        self._tables.write_meter(self.codec.name, handle, rates)
