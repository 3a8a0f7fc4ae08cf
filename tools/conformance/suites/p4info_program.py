"""A v1model program that has the objects of a P4Info: for tests that come with P4Info and without their program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LPM = 3
_MATCH_KINDS = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
_UNITS = {1: "bytes", 2: "packets", 3: "packets_and_bytes"}
_TABLE_ONLY, _DEFAULT_ONLY = 1, 2
_SCOPES = {1: "@tableonly ", 2: "@defaultonly "}
_STRING_BITS = 32
"""Of a key that controllers see as a string, in the data plane."""


@dataclass(frozen=True)
class MadeProgram:
    """A program made from a P4Info."""

    source: str
    left_out: Mapping[int, str]
    """What the program lacks of the P4Info, by identifier, and why."""


def program_of(p4info: Any) -> MadeProgram:
    """Make a program whose tables, actions, externs and headers are named, numbered and as wide as in a P4Info."""
    left_out: dict[int, str] = {}
    for table in p4info.tables:
        if sum(match.match_type == _LPM for match in table.match_fields) > 1:
            left_out[table.preamble.id] = f"table {table.preamble.name} has two lpm keys, and v1model none such"
    # v1model has a direct meter read by the actions of its table, and by no others: P4Info does not tell which.
    for meter in p4info.direct_meters:
        left_out[meter.preamble.id] = f"direct meter {meter.preamble.name} is read by no action"
    return MadeProgram(_Parts(p4info, left_out).source(), left_out)


class _Parts:
    def __init__(self, p4info: Any, left_out: Mapping[int, str]) -> None:
        self.p4info = p4info
        self.tables = [table for table in p4info.tables if table.preamble.id not in left_out]
        self.actions = {action.preamble.id: action.preamble for action in p4info.actions}
        self.fields: list[str] = []
        """Declarations of the metadata that tables match."""

    def source(self) -> str:
        tables = [line for table in self.tables for line in self._table(table)]
        indirect = [*self._indirect("counters", "counter"), *self._indirect("meters", "meter")]
        used = [f"{_variable(e.preamble.name)}.count(0);" for e in self.p4info.counters]
        used += [f"{_variable(e.preamble.name)}.execute_meter(0, meta.color);" for e in self.p4info.meters]
        digests = [_variable(e.preamble.name) for e in self.p4info.digests]
        used += [f"digest<{name}>(1, meta.{name}_0);" for name in digests]
        lines = [
            "#include <core.p4>",
            "#include <v1model.p4>",
            *self._types(),
            "struct headers_t {",
            *(f"  {m.preamble.name}_t {m.preamble.name};" for m in self.p4info.controller_packet_metadata),
            "}",
            "struct metadata_t { bit<32> color;",
            *(f"  {name} {name}_0;" for name in digests),
            *self.fields,
            "}",
            "parser P(packet_in p, out headers_t h, inout metadata_t meta, inout standard_metadata_t s) "
            "{ state start { transition accept; } }",
            "control V(inout headers_t h, inout metadata_t meta) { apply { } }",
            "control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t s) {",
            *self._actions(),
            *indirect,
            *tables,
            "apply {",
            *used,
            *(f"{_variable(table.preamble.name)}.apply();" for table in self.tables),
            "} }",
            "control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t s) { apply { } }",
            "control C(inout headers_t h, inout metadata_t meta) { apply { } }",
            "control D(packet_out p, in headers_t h) { apply { p.emit(h); } }",
            "V1Switch(P(), V(), I(), E(), C(), D()) main;",
        ]
        return "\n".join(lines) + "\n"

    def _types(self) -> Iterator[str]:
        for name, type_ in sorted(self.p4info.type_info.new_types.items()):
            shown = "string" if type_.translated_type.HasField("sdn_string") else type_.translated_type.sdn_bitwidth
            yield f'@p4runtime_translation("{type_.translated_type.uri}", {shown}) type bit<{_STRING_BITS}> {name};'
        for digest in self.p4info.digests:
            struct = self.p4info.type_info.structs[digest.type_spec.struct.name]
            members = (f"bit<{m.type_spec.bitstring.bit.bitwidth}> {m.name};" for m in struct.members)
            yield f"struct {_variable(digest.preamble.name)} {{ {' '.join(members)} }}"
        for header in self.p4info.controller_packet_metadata:
            name = header.preamble.name
            members = (f"bit<{m.bitwidth}> {m.name};" for m in header.metadata)
            yield f'@controller_header("{name}") header {name}_t {{ {" ".join(members)} }}'

    def _actions(self) -> Iterator[str]:
        for action in self.p4info.actions:
            if action.preamble.name != "NoAction":
                parameters = ", ".join(f"bit<{p.bitwidth}> {p.name}" for p in action.params)
                yield f"{_names(action.preamble)} action {_variable(action.preamble.name)}({parameters}) {{ }}"

    def _indirect(self, collection: str, extern: str) -> Iterator[str]:
        for each in getattr(self.p4info, collection):
            kind = f"{extern.capitalize()}Type.{_UNITS[each.spec.unit]}"
            yield f"{_names(each.preamble)} {extern}(32w{each.size}, {kind}) {_variable(each.preamble.name)};"

    def _table(self, table: Any) -> Iterator[str]:
        name = _variable(table.preamble.name)
        keys = [self._key(name, match) for match in table.match_fields]
        direct, properties = self._direct(table)
        yield from direct
        allowed = []
        for reference in table.action_refs:
            allowed.append(f"{_SCOPES.get(reference.scope, '')}{_variable(self.actions[reference.id].name)};")
        yield f"{_names(table.preamble)} table {name} {{"
        yield f"  key = {{ {' '.join(keys)} }}"
        yield f"  actions = {{ {' '.join(allowed)} }}"
        yield from properties
        if table.const_default_action_id:
            yield f"  const default_action = {self._default(table.const_default_action_id)};"
        elif all(self.actions[reference.id].name != "NoAction" for reference in table.action_refs):
            # Without a default action it would be NoAction, which the table does not have.
            default = next(reference.id for reference in table.action_refs if reference.scope != _TABLE_ONLY)
            yield f"  default_action = {self._default(default)};"
        if table.idle_timeout_behavior:
            yield "  support_timeout = true;"
        yield f"  size = {table.size};"
        if table.is_const_table:
            first = next(ref for ref in table.action_refs if ref.scope != _DEFAULT_ONLY)
            yield f"  const entries = {{ ({', '.join('1' for _ in keys)}) : {self._default(first.id)}; }}"
        yield "}"

    def _key(self, table: str, match: Any) -> str:
        variable = f"{table}_{match.id}"
        self.fields.append(f"  {match.type_name.name or f'bit<{match.bitwidth}>'} {variable};")
        return f'meta.{variable} : {_MATCH_KINDS[match.match_type]} @name("{match.name}");'

    def _default(self, action: int) -> str:
        parameters = next(a.params for a in self.p4info.actions if a.preamble.id == action)
        return f"{_variable(self.actions[action].name)}({', '.join('0' for _ in parameters)})"

    def _direct(self, table: Any) -> tuple[list[str], list[str]]:
        """The externs of a table: how they are declared, and its properties."""
        declared, properties = [], []
        for profile in self.p4info.action_profiles:
            if table.implementation_id == profile.preamble.id:
                made = f"action_profile(32w{profile.size})"
                if profile.with_selector:
                    made = f"action_selector(HashAlgorithm.crc16, 32w{profile.size}, 32w16)"
                limit = f"@max_group_size({profile.max_group_size}) " if profile.max_group_size else ""
                declared.append(f"{limit}{_names(profile.preamble)} {made} {_variable(profile.preamble.name)};")
                properties.append(f"  implementation = {_variable(profile.preamble.name)};")
        for counter in self.p4info.direct_counters:
            if counter.direct_table_id == table.preamble.id:
                kind = f"direct_counter(CounterType.{_UNITS[counter.spec.unit]})"
                declared.append(f"{_names(counter.preamble)} {kind} {_variable(counter.preamble.name)};")
                properties.append(f"  counters = {_variable(counter.preamble.name)};")
        return declared, properties


def _names(preamble: Any) -> str:
    return f'@name(".{preamble.name}") @id({preamble.id})'


def _variable(name: str) -> str:
    return name.replace(".", "_").replace("$", "_")
