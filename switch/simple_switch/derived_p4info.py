"""A P4Info for a program of which there is nothing but BMv2 JSON.

It lets P4Runtime clients (our simple_switch_CLI is one) see and write what a switch runs that was started with a JSON
file. Names, widths and identifiers are those that p4c writes; what the JSON does not say is missing: @id, @alias and
other annotations, user-defined types, digests. Tables and actions that the compiler made up are left out.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable, Mapping
from typing import Any

from finsy.proto import p4i

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import ProgramModel, Table
from gradbed.switch.compiler.p4info.preamble import PREFIX, one_at_a_time
from gradbed.switch.state.externs import EXTERNS

_MATCH = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
}
_METER_UNITS = {"packets": p4i.MeterSpec.PACKETS, "bytes": p4i.MeterSpec.BYTES}


def derived_p4info(document: Mapping[str, Any]) -> Any:
    """Return the P4Info of BMv2 JSON. Raises ValueError where the JSON cannot be read."""
    model = load_program(dict(document))
    tables = [table for table in model.tables.values() if table.key or not table.name.startswith("tbl_")]
    ids = _Identifiers(model, tables)
    info = p4i.P4Info()
    info.pkg_info.arch = "v1model"
    for table in tables:
        _add_table(info.tables.add(), table, ids)
    actions = {action.name: action for table in tables for action in table.actions}
    for name, action in actions.items():
        described = info.actions.add()
        ids.name("action", name, described)
        for number, parameter in enumerate(action.parameters, 1):
            described.params.add(id=number, name=parameter.name, bitwidth=parameter.width)
    for profile in model.profiles.values():
        described = info.action_profiles.add(size=profile.max_size, with_selector=profile.selector is not None)
        ids.name("action_profile", profile.name, described)
        described.table_ids.extend(ids.of("table", t.name) for t in tables if t.profile == profile.name)
    _add_arrays(info, model, ids)
    return info


class _Identifiers:
    """Ids by kind and name, and the shortest end of a name that only one object of the program has."""

    def __init__(self, model: ProgramModel, tables: Iterable[Table]) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self._ends: Multiset[str] = Multiset()
        named = {
            "table": [table.name for table in tables],
            "action": [action.name for table in tables for action in table.actions],
            "action_profile": list(model.profiles),
            "counter": [name for name, counter in model.counters.items() if counter.table is None],
            "direct_counter": [name for name, counter in model.counters.items() if counter.table is not None],
            "meter": [name for name, meter in model.meters.items() if meter.table is None],
            "direct_meter": [name for name, meter in model.meters.items() if meter.table is not None],
            "register": list(model.registers),
            "value_set": list(model.value_sets),
            **{kind: [name for name, each in model.externs.items() if each.kind == kind] for kind in EXTERNS},
        }
        for kind, names in named.items():
            taken: set[int] = set()
            for name in sorted(set(names)):
                suffix = one_at_a_time(name) & 0xFFFFFF
                while suffix in taken:
                    suffix = (suffix + 1) & 0xFFFFFF
                taken.add(suffix)
                self._ids[kind, name] = PREFIX[kind] << 24 | suffix
                self._ends.update(_ends(name))

    def of(self, kind: str, name: str) -> int:
        return self._ids[kind, name]

    def name(self, kind: str, name: str, described: Any) -> None:
        """Fill in an object's preamble."""
        described.preamble.id = self.of(kind, name)
        described.preamble.name = name
        described.preamble.alias = next((end for end in _ends(name) if self._ends[end] == 1), name)


def _ends(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[first:]) for first in reversed(range(len(parts)))]


def _add_table(described: Any, table: Table, ids: _Identifiers) -> None:
    ids.name("table", table.name, described)
    described.size = table.max_size
    for number, field in enumerate(table.key, 1):
        described.match_fields.add(id=number, name=field.name, bitwidth=field.width, match_type=_MATCH[field.match])
    described.action_refs.extend(p4i.ActionRef(id=ids.of("action", action.name)) for action in table.actions)
    if table.default_is_const and table.default is not None:
        names = [action.name for action in table.actions if action.id == table.default.action_id]
        described.const_default_action_id = ids.of("action", names[0]) if names else 0
    if table.profile is not None:
        described.implementation_id = ids.of("action_profile", table.profile)
    if table.with_timeouts:
        described.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL


def _add_arrays(info: Any, model: ProgramModel, ids: _Identifiers) -> None:
    described_tables = {table.preamble.name: table for table in info.tables}
    for counter in model.counters.values():
        if counter.table is None:
            described = info.counters.add(size=counter.size)
            ids.name("counter", counter.name, described)
        elif counter.table in described_tables:
            described = info.direct_counters.add(direct_table_id=ids.of("table", counter.table))
            ids.name("direct_counter", counter.name, described)
            described_tables[counter.table].direct_resource_ids.append(described.preamble.id)
        else:
            continue
        described.spec.unit = p4i.CounterSpec.BOTH
    for meter in model.meters.values():
        if meter.table is None:
            described = info.meters.add(size=meter.size)
            ids.name("meter", meter.name, described)
        elif meter.table in described_tables:
            described = info.direct_meters.add(direct_table_id=ids.of("table", meter.table))
            ids.name("direct_meter", meter.name, described)
            described_tables[meter.table].direct_resource_ids.append(described.preamble.id)
        else:
            continue
        described.spec.unit = _METER_UNITS[meter.unit]
    for register in model.registers.values():
        described = info.registers.add(size=register.size)
        ids.name("register", register.name, described)
        described.type_spec.bitstring.bit.bitwidth = register.width
    for kind in dict.fromkeys(extern.kind for extern in model.externs.values()):
        type_ = info.externs.add(extern_type_id=EXTERNS[kind].type_id, extern_type_name=kind)
        for extern in model.externs.values():
            if extern.kind == kind:
                ids.name(kind, extern.name, type_.instances.add())
    for value_set in model.value_sets.values():
        described = info.value_sets.add()
        ids.name("value_set", value_set.name, described)
        described.match.add(id=1, name="value", bitwidth=value_set.width, match_type=p4i.MatchField.TERNARY)
