"""The sections of a YAML file of entries, as one switch reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Collection as AnyCollection
from dataclasses import dataclass
from typing import Any

import networkx as nx

from gradbed.common.errors import suggestion
from gradbed.controller.entries.collection import Collection, EntryRates, Precedence
from gradbed.controller.entries.document import Element
from gradbed.controller.entries.values import Values, Variables, parse_match, parse_param
from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    MeterCell,
    MeterRates,
    MulticastGroup,
    RegisterValue,
    Replicas,
    TableEntry,
)
from gradbed.controller.planning.routing import Routes
from gradbed.controller.southbound.p4runtime.schema import (
    ActionSchema,
    ArraySchema,
    FieldSchema,
    MatchType,
    Names,
    ProgramSchema,
    TableSchema,
)
from gradbed.topo.graph import Switch, Topology

# ---- Entries of tables: one mapping each, written out or made by a rule ----


_FIELDS = ("match", "action", "params", "priority", "meter", "default_action", "routes", "to", "each")
RATES = ("committed_rate", "committed_burst", "peak_rate", "peak_burst")


def read_item(
    table: TableSchema, item: Element, variables: Variables, collection: Collection, rank: Precedence
) -> None:
    """Take in one item of a table's list: an entry, a rule, or the default action."""
    read_table(table, item.fields(_FIELDS), item, variables, collection, rank)


def read_table(
    table: TableSchema,
    fields: Mapping[str, Element],
    item: Element,
    variables: Variables,
    collection: Collection,
    rank: Precedence,
) -> None:
    """Read entries of a table as `read_item` does, from the item's fields."""
    if "default_action" in fields:
        _read_default(table, fields, item, variables, collection, rank)
        return
    if table.is_const:
        raise item.error(f"{table.name}: the program has its entries as constants")
    if "action" not in fields:
        raise item.error("action is missing")
    rank = Precedence(rank.scope, written="routes" not in fields and "each" not in fields)
    entry = _entries(table, fields, item)
    for values in _of_rule(fields, variables):
        collection.add(entry(variables if values is None else variables.bound(values)), rank, item.place)


def _of_rule(fields: Mapping[str, Element], variables: Variables) -> Iterator[Values | None]:
    """Return the values of each entry that is to be made; None: the one that is written."""
    if "routes" in fields:
        which = _word(fields["routes"], ("shortest", "all", "prefixes"))
        if which == "prefixes":
            if "to" in fields:
                raise fields["to"].error("'to' goes with 'routes: shortest': prefixes are those of hosts")
            yield from variables.prefixes()
            return
        to = _word(fields["to"], ("hosts", "switches")) if "to" in fields else "hosts"
        yield from variables.destinations(to == "switches", which == "all")
    elif "to" in fields:
        raise fields["to"].error("'to' goes with 'routes: shortest'")
    elif "each" in fields:
        which = _word(fields["each"], ("port", "host-port", "switch-port"))
        yield from variables.ports(which != "switch-port", which != "host-port")
    else:
        yield None


def _word(element: Element, known: tuple[str, ...]) -> str:
    if element.text() not in known:
        raise element.error(f"{element.text()!r} is no rule{suggestion(element.text(), known)}")
    return element.text()


def _entries(table: TableSchema, fields: Mapping[str, Element], item: Element) -> Callable[[Variables], TableEntry]:
    """Yield an item's entries, of which a rule can have many thousand: they differ in their variables alone."""
    given: list[tuple[FieldSchema, Element]] = []
    for key, value in fields["match"].pairs() if "match" in fields else []:
        with key.blamed():
            given.append((table.fields[key.text()], value))
    names = {field.name for field, _ in given}
    for field in table.fields:
        if field.match_type == MatchType.EXACT and field.name not in names:
            raise fields.get("match", item).error(f"{table.name}: an entry must give {field.name}")
    with fields["action"].blamed():
        action = table.actions[fields["action"].text()]
    priority = fields["priority"].integer(least=1) if "priority" in fields else 0
    if priority and not table.needs_priority:
        raise fields["priority"].error(f"{table.name} takes no priority: it has no ternary, range or optional field")
    meter = None
    if "meter" in fields:
        if not table.has_meter:
            raise fields["meter"].error(f"{table.name}: its entries have no meter")
        meter = read_rates(fields["meter"])
    params = _params(action, fields.get("params"), fields["action"])

    def entry(variables: Variables) -> TableEntry:
        match = {field.name: parse_match(value, field, variables) for field, value in given}
        return TableEntry(
            table=table.name,
            match={name: how for name, how in match.items() if how is not None},
            action=action.name,
            params={param.name: parse_param(value, param, variables) for param, value in params},
            priority=priority,
            meter=meter,
        )

    return entry


def _read_default(
    table: TableSchema,
    fields: Mapping[str, Element],
    item: Element,
    variables: Variables,
    collection: Collection,
    rank: Precedence,
) -> None:
    name = fields["default_action"]
    for other, element in fields.items():
        if other not in ("default_action", "params"):
            raise element.error(f"a default action has no {other!r}")
    if table.default_is_const:
        raise name.error(f"{table.name}: the program has its default action as a constant")
    with name.blamed():
        action = table.actions[name.text()]
    params = {
        param.name: parse_param(value, param, variables)
        for param, value in _params(action, fields.get("params"), name)
    }
    collection.add(DefaultAction(table=table.name, action=action.name, params=params), rank, item.place)


def _params(action: ActionSchema, given: Element | None, where: Element) -> list[tuple[FieldSchema, Element]]:
    """Return an action's parameters, after a check that all are there, and no others."""
    params: list[tuple[FieldSchema, Element]] = []
    for key, value in given.pairs() if given is not None else []:
        with key.blamed():
            params.append((action.params[key.text()], value))
    names = {param.name for param, _ in params}
    missing = [param.name for param in action.params if param.name not in names]
    if missing:
        raise (given or where).error(f"action {action.name} lacks {', '.join(missing)}")
    return params


def read_rates(element: Element) -> MeterRates:
    """Read a meter's rates and bursts."""
    fields = element.fields(RATES, RATES)
    rates = MeterRates(**{name: value.integer() for name, value in fields.items()})
    if rates.peak_rate < rates.committed_rate:
        raise fields["peak_rate"].error(f"the peak rate {rates.peak_rate} is below the committed rate")
    return rates


# ---- All sections ----


_SECTIONS = ("tables", "multicast", "clone", "registers", "meters")
_ALL, _TIER, _SWITCH = 0, 1, 2
_GREATEST_GROUP = 0xFFFF


@dataclass(frozen=True)
class Reader:
    """Reads files for one switch. others: the programs of other switches, whose tables are no mistakes."""

    topology: Topology
    routes: Routes
    switch: Switch
    schema: ProgramSchema
    others: AnyCollection[ProgramSchema] = ()

    def read(self, document: Element, collection: Collection, own: bool = False) -> None:
        """Take in what a file says for this switch; own: the file is for it alone. EntriesError."""
        sections = document.fields(_SECTIONS if own else (*_SECTIONS, "tiers", "switches"))
        if own:
            self._read_sections(sections, collection, _SWITCH)
            return
        # Those that are closer come first: their entries have the greater priorities where none are written.
        switches = self.topology.switches
        for name, element in self._parts(sections.get("switches"), {s.name for s in switches}, "switch"):
            if name == self.switch.name:
                self._read_sections(element.fields(_SECTIONS), collection, _SWITCH)
        for name, element in self._parts(sections.get("tiers"), {s.tier for s in switches}, "tier"):
            if name == self.switch.tier:
                self._read_sections(element.fields(_SECTIONS), collection, _TIER)
        self._read_sections({k: v for k, v in sections.items() if k in _SECTIONS}, collection, _ALL)

    @staticmethod
    def _parts(section: Element | None, known: AnyCollection[str], kind: str) -> Iterable[tuple[str, Element]]:
        for key, value in section.pairs() if section is not None else ():
            if key.text() not in known:
                raise key.error(f"the network has no {kind} {key.text()!r}{suggestion(key.text(), sorted(known))}")
            yield key.text(), value

    @property
    def variables(self) -> Variables:
        return Variables(self.topology, self.routes, self.switch)

    def _read_sections(self, sections: Mapping[str, Element], collection: Collection, scope: int) -> None:
        reading: Mapping[str, Callable[[Element, Element, Collection, Precedence], None]] = {
            "tables": self._table,
            "multicast": self._multicast,
            "clone": self._clone,
            "registers": self._register,
            "meters": self._meter,
        }
        for name, element in sections.items():
            for key, value in element.pairs():
                with collection.leaving_out():
                    reading[name](key, value, collection, Precedence(scope))

    def _table(self, key: Element, value: Element, collection: Collection, rank: Precedence) -> None:
        if self._is_of_others(key, lambda schema: schema.tables, rank):
            return
        with key.blamed():
            table = self.schema.tables[key.text()]
        for item in value.items():
            with collection.leaving_out():
                read_item(table, item, self.variables, collection, rank)

    def _multicast(self, key: Element, value: Element, collection: Collection, rank: Precedence) -> None:
        collection.add(MulticastGroup(id=_group_number(key), **self._copies(value)), rank, key.place)

    def _clone(self, key: Element, value: Element, collection: Collection, rank: Precedence) -> None:
        fields = value.fields(("ports", "truncate_bytes"), ("ports",)) if value.is_mapping else {"ports": value}
        cut = fields["truncate_bytes"].integer(least=1) if "truncate_bytes" in fields else 0
        session = CloneSession(id=_group_number(key), truncate_bytes=cut, **self._copies(fields["ports"]))
        collection.add(session, rank, key.place)

    def _register(self, key: Element, value: Element, collection: Collection, rank: Precedence) -> None:
        if self._is_of_others(key, lambda schema: schema.registers, rank):
            return
        with key.blamed():
            array = self.schema.registers[key.text()]
        if not array.bits:
            raise key.error(f"register {array.name} does not hold numbers")
        cell = FieldSchema(array.id, f"register {array.name}", array.bits)
        for index, content in value.pairs() if value.is_mapping else [(None, value)]:
            number = parse_param(content, cell, self.variables)
            place = None if index is None else self._index(index, array, "register")
            collection.add(RegisterValue(register_name=array.name, index=place, value=number), rank, content.place)

    def _meter(self, key: Element, value: Element, collection: Collection, rank: Precedence) -> None:
        if self._is_of_others(key, lambda schema: schema.meters, rank):
            return
        with key.blamed():
            array = self.schema.meters[key.text()]
        if any(field.text() in RATES for field, _ in value.pairs()):
            _read_rates_of_all(array, value, collection, rank)
            return
        for index, content in value.pairs():
            cell = MeterCell(
                meter_name=array.name, index=self._index(index, array, "meter"), rates=read_rates(content)
            )
            collection.add(cell, rank, content.place)

    @staticmethod
    def _index(element: Element, array: ArraySchema, kind: str) -> int:
        with element.blamed():
            index = element.integer()
            array.check_index(kind, index)
        return index

    def _is_of_others(self, key: Element, names: Callable[[ProgramSchema], Names[Any]], rank: Precedence) -> bool:
        """Return whether a name in a section for several switches is that of another program alone."""
        return (
            rank.scope != _SWITCH
            and key.text() not in names(self.schema)
            and any(key.text() in names(schema) for schema in self.others)
        )

    def _copies(self, element: Element) -> dict[str, tuple[int, ...]]:
        """Ports of a group, or a word for some of them."""
        if not element.is_list:
            return Replicas.fields((port, 1) for port in self._ports_of_word(element))
        copies = []
        for item in element.items():
            if item.is_mapping:
                fields = item.fields(("port", "instance"), ("port",))
                instance = fields["instance"].integer() if "instance" in fields else 1
                copies.append((self._port(fields["port"]), instance))
            else:
                copies.append((self._port(item), 1))
            if copies[-1] in copies[:-1]:
                raise item.error(f"port {copies[-1][0]} is there twice: give the copies instances of their own")
        return Replicas.fields(copies)

    def _port(self, element: Element) -> int:
        return parse_param(element, FieldSchema(0, "the port", 9), self.variables)

    def _ports_of_word(self, element: Element) -> list[int]:
        neighbours = self.topology.neighbours(self.switch.name)
        hosts = [port for name, port in neighbours.items() if self.topology.is_host(name)]
        words = {"hosts": hosts, "all": list(neighbours.values()), "tree": [*hosts, *self._tree_ports()]}
        if element.text() not in words:
            known = suggestion(element.text(), words)
            raise element.error(f"a list of ports is expected here, or a word for them{known}")
        return words[element.text()]

    def _tree_ports(self) -> list[int]:
        """Towards the switches that are next in a spanning tree: what is copied along it arrives everywhere once."""
        graph = self.topology.graph.subgraph(switch.name for switch in self.topology.switches)
        tree = nx.bfs_tree(graph, self.topology.switches[0].name).to_undirected()
        return [self.topology.port(self.switch.name, name) for name in tree[self.switch.name]]


def _read_rates_of_all(array: ArraySchema, value: Element, collection: Collection, rank: Precedence) -> None:
    """Read the rates of each cell, or of each entry of the table that has the meter."""
    rates = read_rates(value)
    if array.table:
        collection.add(EntryRates(array.table, array.name, rates), rank, value.place)
    for index in range(array.size):
        cell = MeterCell(meter_name=array.name, index=index, rates=rates)
        collection.add(cell, Precedence(rank.scope, written=False), value.place)


def _group_number(key: Element) -> int:
    number = key.integer(least=1)
    if number > _GREATEST_GROUP:
        raise key.error(f"groups and sessions are numbered from 1 to {_GREATEST_GROUP}")
    return number
