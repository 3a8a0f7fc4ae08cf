"""Tables and actions of one program, ready to read and write P4Runtime messages of them quickly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from finsy.proto import p4i

from switch.device import ActionCall, KeyMatch
from switch.p4runtime import bytestrings
from switch.p4runtime.bmv2_json import Bmv2Json, number
from switch.p4runtime.match_fields import KINDS, MatchField
from switch.p4runtime.p4_types import controller_width_bits
from switch.p4runtime.status import RequestError, denied, invalid

Key = tuple[Any, ...]

UNLIMITED = 1 << 63


class Call(NamedTuple):
    """An action by its P4Info id, with its arguments in declaration order."""

    action_id: int
    arguments: tuple[int, ...]


class InitialEntry(NamedTuple):
    """An entry that is part of the program."""

    key: Key
    priority: int
    call: Call


class ActionCodec:
    """One action."""

    def __init__(self, name: str, action_id: int, parameters: Sequence[tuple[int, str, int]]) -> None:
        """`parameters`: id, name and width in bits of each, in declaration order."""
        self.name = name
        self.action_id = action_id
        self._parameters = {p[0]: (index, p[1], p[2]) for index, p in enumerate(parameters)}
        self._ids = [p[0] for p in parameters]

    @property
    def parameter_count(self) -> int:
        return len(self._ids)

    def decode(self, parameters: Sequence[Any]) -> tuple[int, ...]:
        """Arguments in declaration order from Action.Param messages in any order. Raises RequestError."""
        if len(parameters) != len(self._ids):
            raise invalid(f"action {self.name} takes {len(self._ids)} parameters, got {len(parameters)}")
        arguments: list[int | None] = [None] * len(self._ids)
        for parameter in parameters:
            known = self._parameters.get(parameter.param_id)
            if known is None:
                raise invalid(f"action {self.name} has no parameter {parameter.param_id}")
            index, name, width_bits = known
            if arguments[index] is not None:
                raise invalid(f"action {self.name}, parameter {name}: given twice")
            try:
                arguments[index] = bytestrings.decode(parameter.value, width_bits)
            except RequestError as error:
                raise RequestError(error.code, f"action {self.name}, parameter {name}: {error.message}") from None
        return tuple(arguments)  # type: ignore[arg-type]

    def encode(self, arguments: Iterable[int], action: Any) -> None:
        action.action_id = self.action_id
        for parameter_id, value in zip(self._ids, arguments, strict=True):
            action.params.add(param_id=parameter_id, value=bytestrings.encode(value))


@dataclass(frozen=True)
class ActionReference:
    """An action of a table, and where the table may use it."""

    action: ActionCodec
    in_entries: bool
    as_default: bool


class TableCodec:
    """One table: its properties in P4Info and BMv2 JSON, and the translation of its keys and actions."""

    def __init__(self, table: Any, info: Any, program: Bmv2Json, actions: Mapping[int, ActionCodec]) -> None:
        """From a p4.config.v1.Table. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
        self.table_id: int = table.preamble.id
        self.name: str = table.preamble.name
        self.is_const: bool = table.is_const_table
        self.has_const_default: bool = table.const_default_action_id != 0
        self.is_indirect: bool = table.implementation_id != 0
        self.has_idle_timeout: bool = table.idle_timeout_behavior != p4i.Table.NO_TIMEOUT
        if self.name not in program.tables:
            raise ValueError(f"table {self.name!r} of the P4Info is not in the BMv2 JSON")
        document = program.tables[self.name]
        self.size = min(table.size or UNLIMITED, document.get("max_size") or UNLIMITED)
        self.direct_counter_id = _direct_resource(info.direct_counters, self.table_id)
        if self.direct_counter_id is not None and not document.get("with_counters"):
            raise ValueError(f"table {self.name!r} has a direct counter in the P4Info, none in the BMv2 JSON")
        self.direct_meter_id = _direct_resource(info.direct_meters, self.table_id)
        self.fields = _match_fields(table, info, program)
        self._fields = {field.field_id: (i, field) for i, field in enumerate(self.fields)}
        self._absent = [field.absent for field in self.fields]
        self._required = [i for i, field in enumerate(self.fields) if field.required]
        self.needs_priority = any(field.needs_priority for field in self.fields)
        self.actions: dict[int, ActionReference] = {}
        for reference in table.action_refs:
            if reference.id not in actions:
                raise ValueError(f"table {self.name!r} refers to action {reference.id}, which the P4Info lacks")
            self.actions[reference.id] = ActionReference(
                actions[reference.id],
                reference.scope != p4i.ActionRef.DEFAULT_ONLY,
                reference.scope != p4i.ActionRef.TABLE_ONLY,
            )
        self._action_ids = {reference.action.name: i for i, reference in self.actions.items()}
        self.initial_default = self._initial_default(program)
        self.initial_entries = self._initial_entries(program)

    def decode_key(self, matches: Iterable[Any]) -> Key:
        """Canonical key from FieldMatch messages in any order. Raises RequestError."""
        values = self._absent.copy()
        seen = 0
        for match in matches:
            known = self._fields.get(match.field_id)
            if known is None:
                raise invalid(f"table {self.name} has no match field {match.field_id}")
            index, field = known
            if seen >> index & 1:
                raise invalid(f"table {self.name}, field {field.name}: given twice")
            seen |= 1 << index
            kind = match.WhichOneof("field_match_type")
            if kind != field.kind:
                raise invalid(
                    f"table {self.name}, field {field.name}: match kind is {field.kind}, got {kind or 'none'}"
                )
            try:
                values[index] = field.decode(match)
            except RequestError as error:
                raise RequestError(error.code, f"table {self.name}, field {field.name}: {error.message}") from None
        for index in self._required:
            if not seen >> index & 1:
                raise invalid(
                    f"table {self.name}, field {self.fields[index].name}: an exact field cannot be left out"
                )
        return tuple(values)

    def encode_key(self, key: Key, entry: Any) -> None:
        """Add the FieldMatch messages of a key to a TableEntry."""
        for field, value in zip(self.fields, key, strict=True):
            if field.required or value != field.absent:
                field.encode(value, entry.match.add(field_id=field.field_id))

    def device_key(self, key: Key) -> list[KeyMatch]:
        return [field.to_device(value) for field, value in zip(self.fields, key, strict=True)]

    def check_priority(self, priority: int) -> None:
        """Raises INVALID_ARGUMENT where the specification demands another priority."""
        if self.needs_priority:
            if priority <= 0:
                raise invalid(f"table {self.name} needs a priority greater than 0, got {priority}")
        elif priority:
            raise invalid(f"table {self.name} takes no priority (it has no ternary, range or optional field)")

    def decode_action(self, action: Any, as_default: bool = False) -> Call:
        """From an Action message. Raises RequestError."""
        action_id: int = action.action_id
        reference = self.actions.get(action_id)
        if reference is None:
            raise invalid(f"table {self.name} has no action {action_id}")
        if not (reference.as_default if as_default else reference.in_entries):
            use = "the default action" if as_default else "entries"
            raise denied(f"table {self.name}: action {reference.action.name} may not be used in {use}")
        return Call(action_id, reference.action.decode(action.params))

    def encode_action(self, call: Call, action: Any) -> None:
        self.actions[call.action_id].action.encode(call.arguments, action)

    def device_call(self, call: Call) -> ActionCall:
        return ActionCall(self.actions[call.action_id].action.name, call.arguments)

    def _initial_default(self, program: Bmv2Json) -> Call | None:
        """None where the table has none that P4Info knows (tables with an implementation)."""
        default = program.tables[self.name].get("default_entry")
        if default is None:
            return None
        return self._call(*program.action_call(default))

    def _initial_entries(self, program: Bmv2Json) -> list[InitialEntry]:
        entries = program.entries(self.name)
        # In BMv2 JSON the smallest number goes first; in P4Runtime the greatest, and the last of N entries has 1.
        ranks = [number(entry.get("priority", i + 1)) for i, entry in enumerate(entries)]
        last = max(ranks, default=0)
        result = []
        for entry, rank in zip(entries, ranks, strict=True):
            keys = entry.get("match_key")
            if not isinstance(keys, list) or len(keys) != len(self.fields):
                raise ValueError(f"BMv2 JSON: an entry of table {self.name!r} has not {len(self.fields)} key fields")
            call = self._call(*program.action_call(entry.get("action_entry")))
            if call is None:
                raise ValueError(f"BMv2 JSON: an entry of table {self.name!r} uses an action that is not in P4Info")
            key = tuple(field.from_json(value) for field, value in zip(self.fields, keys, strict=True))
            result.append(InitialEntry(key, last + 1 - rank if self.needs_priority else 0, call))
        return result

    def _call(self, action: str, arguments: tuple[int, ...]) -> Call | None:
        action_id = self._action_ids.get(action)
        if action_id is None:
            return None
        expected = self.actions[action_id].action.parameter_count
        if len(arguments) != expected:
            raise ValueError(f"BMv2 JSON: action {action!r} takes {expected} arguments, got {len(arguments)}")
        return Call(action_id, arguments)


def action_codecs(info: Any, program: Bmv2Json) -> dict[int, ActionCodec]:
    """The actions of a P4Info by id. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
    codecs = {}
    for action in info.actions:
        name = action.preamble.name
        widths_bits = program.parameter_widths_bits.get(name)
        # Compilers drop actions that no table uses from the JSON, and keep them in P4Info.
        if widths_bits is not None and len(widths_bits) != len(action.params):
            raise ValueError(
                f"action {name!r} has {len(action.params)} parameters in the P4Info, {len(widths_bits)} in the JSON"
            )
        parameters = []
        for index, parameter in enumerate(action.params):
            width_bits = controller_width_bits(parameter, info.type_info)
            if widths_bits is not None:
                width_bits = min(width_bits, widths_bits[index])
            parameters.append((parameter.id, parameter.name, width_bits))
        codecs[action.preamble.id] = ActionCodec(name, action.preamble.id, parameters)
    return codecs


def _match_fields(table: Any, info: Any, program: Bmv2Json) -> list[MatchField]:
    name = table.preamble.name
    keys = program.key(name)
    if len(keys) != len(table.match_fields):
        raise ValueError(
            f"table {name!r} has {len(table.match_fields)} key fields in the P4Info, {len(keys)} in the BMv2 JSON"
        )
    fields = []
    for described, key in zip(table.match_fields, keys, strict=True):
        kind = KINDS.get(described.match_type) if described.WhichOneof("match") == "match_type" else None
        if kind is None:
            raise ValueError(f"table {name!r}, field {described.name!r}: this match kind is not supported")
        json_kind = key.get("match_type")
        if json_kind != kind.kind and (kind.kind, json_kind) not in (("optional", "ternary"), ("exact", "valid")):
            raise ValueError(
                f"table {name!r}, field {described.name!r}: match kind is {kind.kind} in the P4Info, "
                f"{json_kind} in the BMv2 JSON"
            )
        width_bits = controller_width_bits(described, info.type_info)
        fields.append(kind(described.id, described.name, width_bits, program.key_width_bits(key) or width_bits))
    return fields


def _direct_resource(resources: Iterable[Any], table_id: int) -> int | None:
    for resource in resources:
        if resource.direct_table_id == table_id:
            resource_id: int = resource.preamble.id
            return resource_id
    return None
