"""What a switch holds, changed bit by bit, in the form of files of entries (docs/entries.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import yaml

from gradbed.common.errors import UserError
from gradbed.controller.entries.collection import Collection
from gradbed.controller.entries.document import EntriesError, parse_document
from gradbed.controller.entries.sections import Reader
from gradbed.controller.planning.plan import DefaultAction, Lpm, Match, Range, SwitchPlan, TableEntry, Ternary
from gradbed.controller.planning.routing import Routes
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
from gradbed.topo.graph import Topology

_PLACE = re.compile(r"^<values>:\d+:\d+: ")
_IPV4_BITS = 32


class Contents:
    """The plan of one switch. What changes it returns the new one; UserError for what does not fit the program."""

    def __init__(self, topology: Topology, routes: Routes, switch: str, schema: ProgramSchema) -> None:
        self._reader = Reader(topology, routes, topology.switch(switch), schema)
        self._schema = schema

    def read(self, sections: Mapping[str, Any], program: str) -> SwitchPlan:
        """What a mapping in the form of a file of entries says for this switch alone."""
        try:
            text = yaml.safe_dump(dict(sections), sort_keys=False)
        except yaml.YAMLError as error:
            raise UserError(f"entries cannot hold this: {' '.join(str(error).split())}") from None
        collection = Collection(self._schema)
        try:
            self._reader.read(parse_document(text, Path("<values>")), collection, own=True)
            return collection.plan(program)
        except EntriesError as error:
            raise UserError(_PLACE.sub("", str(error))) from None

    def inserted(self, plan: SwitchPlan, table: str, entry: Mapping[str, Any], known: bool) -> SwitchPlan:
        """With one entry more, or (known) with other contents of one that is there."""
        name = self._schema.tables[table].name
        if "default_action" in entry:
            made = self.read({"tables": {name: [entry]}}, plan.program)
            (default,) = made.defaults
            return plan.model_copy(update={"defaults": (*_others(plan, default), default)})
        if self._schema.tables[name].needs_priority and not entry.get("priority"):
            raise UserError(f"{name} matches ternary, range or optional fields: give priority, the highest wins")
        made = self.read({"tables": {name: [entry]}}, plan.program)
        keys = {each.key for each in plan.entries}
        for each in made.entries:
            if not known and each.key in keys:
                raise UserError(f"{name} has an entry with this match already: modify it")
            if known and each.key not in keys:
                raise UserError(f"{name} has no entry with this match: insert it")
        new = {each.key: each for each in made.entries}
        kept = [each for each in plan.entries if each.key not in new]
        return plan.model_copy(update={"entries": (*kept, *new.values())})

    def without(self, plan: SwitchPlan, table: str, match: Mapping[str, Any], priority: int) -> SwitchPlan:
        """Without the entry of this match."""
        schema = self._schema.tables[table]
        if schema.is_const:
            raise UserError(f"{schema.name}: the program has its entries as constants")
        wanted = self._match(schema.name, match, plan.program)
        found = [
            each
            for each in plan.entries
            if each.table == schema.name and dict(each.match) == dict(wanted) and priority in (0, each.priority)
        ]
        if not found:
            raise UserError(f"{schema.name} has no entry with this match")
        if len(found) > 1:
            raise UserError(f"{schema.name} has {len(found)} entries with this match: give priority")
        return plan.model_copy(update={"entries": tuple(each for each in plan.entries if each is not found[0])})

    def cleared(self, plan: SwitchPlan, table: str) -> SwitchPlan:
        """Without any entry of a table."""
        name = self._schema.tables[table].name
        return plan.model_copy(update={"entries": tuple(each for each in plan.entries if each.table != name)})

    def entries(self, plan: SwitchPlan, table: str) -> list[dict[str, Any]]:
        """Each entry as `inserted` takes it."""
        schema = self._schema.tables[table]
        bits = {field.name: field.bits for field in schema.fields}
        return [_as_given(each, bits) for each in plan.entries if each.table == schema.name]

    def merged(self, plan: SwitchPlan, sections: Mapping[str, Any]) -> SwitchPlan:
        """With all that the sections say, in place of what has the same keys."""
        new = self.read(sections, plan.program)
        return SwitchPlan.of(
            plan.program,
            {each.key: each for each in (*plan.entries, *new.entries)}.values(),
            {each.id: each for each in (*plan.groups, *new.groups)}.values(),
            {(each.register_name, each.index): each for each in (*plan.registers, *new.registers)}.values(),
            defaults={each.table: each for each in (*plan.defaults, *new.defaults)}.values(),
            clones={each.id: each for each in (*plan.clones, *new.clones)}.values(),
            meters={(each.meter_name, each.index): each for each in (*plan.meters, *new.meters)}.values(),
        )

    def with_register(
        self, plan: SwitchPlan, name: str, index: int | None, value: int
    ) -> tuple[SwitchPlan, SwitchPlan]:
        """Two plans, to be written one after the other: without the cell, and with it. A cell that the program has
        changed since it was written would else be left as it is."""
        array = self._schema.registers[name]
        if index is not None:
            array.check_index("register", index)
        cell = self.read({"registers": {array.name: value if index is None else {index: value}}}, plan.program)
        others = tuple(
            each
            for each in plan.registers
            if each.register_name != array.name or (index is not None and each.index != index)
        )
        first = plan.model_copy(update={"registers": others})
        return first, first.model_copy(update={"registers": (*others, *cell.registers)})

    def _match(self, table: str, match: Mapping[str, Any], program: str) -> Mapping[str, Match]:
        """As entries of the table have it: read as part of one whose action does nothing to the match."""
        schema = self._schema.tables[table]
        action = next(iter(schema.actions))
        params = {param.name: 0 for param in action.params}
        item = {"match": dict(match), "action": action.name, "params": params}
        (entry,) = self.read({"tables": {table: [item]}}, program).entries
        return entry.match


def _others(plan: SwitchPlan, default: DefaultAction) -> tuple[DefaultAction, ...]:
    return tuple(each for each in plan.defaults if each.table != default.table)


def _as_given(entry: TableEntry, bits: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "match": {field: _match_value(how, bits[field]) for field, how in entry.match.items()},
        "action": entry.action,
        "params": dict(entry.params),
    }
    return {**found, "priority": entry.priority} if entry.priority else found


def _match_value(how: Match, bits: int) -> int | str:
    if isinstance(how, Lpm):
        return f"{IPv4Address(how.value) if bits == _IPV4_BITS else how.value}/{how.prefix_bits}"
    if isinstance(how, Ternary):
        return f"{how.value:#x} &&& {how.mask:#x}"
    if isinstance(how, Range):
        return f"{how.low}..{how.high}"
    return how
