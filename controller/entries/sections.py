"""The sections of a YAML file of entries, as one switch reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as AnyCollection
from dataclasses import dataclass
from typing import Any

import networkx as nx

from gradbed.common.suggestion import suggestion
from gradbed.controller.entries.collection import Collection, EntryRates, Rank
from gradbed.controller.entries.document import Element
from gradbed.controller.entries.tables import RATES, read_item, read_rates
from gradbed.controller.entries.values import parse_param
from gradbed.controller.entries.variables import Variables
from gradbed.controller.planning.plan import CloneSession, MeterCell, MulticastGroup, RegisterValue, Replicas
from gradbed.controller.planning.routing import Routes
from gradbed.controller.southbound.p4runtime.schema import ArraySchema, FieldSchema, Names, ProgramSchema
from gradbed.topo.graph import Switch, Topology

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
        reading: Mapping[str, Callable[[Element, Element, Collection, Rank], None]] = {
            "tables": self._table,
            "multicast": self._multicast,
            "clone": self._clone,
            "registers": self._register,
            "meters": self._meter,
        }
        for name, element in sections.items():
            for key, value in element.pairs():
                with collection.leaving_out():
                    reading[name](key, value, collection, Rank(scope))

    def _table(self, key: Element, value: Element, collection: Collection, rank: Rank) -> None:
        if self._is_of_others(key, lambda schema: schema.tables, rank):
            return
        with key.blamed():
            table = self.schema.tables[key.text()]
        for item in value.items():
            with collection.leaving_out():
                read_item(table, item, self.variables, collection, rank)

    def _multicast(self, key: Element, value: Element, collection: Collection, rank: Rank) -> None:
        collection.add(MulticastGroup(id=_group_number(key), **self._copies(value)), rank, key.place)

    def _clone(self, key: Element, value: Element, collection: Collection, rank: Rank) -> None:
        fields = value.fields(("ports", "truncate_bytes"), ("ports",)) if value.is_mapping else {"ports": value}
        cut = fields["truncate_bytes"].integer(least=1) if "truncate_bytes" in fields else 0
        session = CloneSession(id=_group_number(key), truncate_bytes=cut, **self._copies(fields["ports"]))
        collection.add(session, rank, key.place)

    def _register(self, key: Element, value: Element, collection: Collection, rank: Rank) -> None:
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

    def _meter(self, key: Element, value: Element, collection: Collection, rank: Rank) -> None:
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

    def _is_of_others(self, key: Element, names: Callable[[ProgramSchema], Names[Any]], rank: Rank) -> bool:
        """Whether a name of a section for several switches is that of another program alone."""
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


def _read_rates_of_all(array: ArraySchema, value: Element, collection: Collection, rank: Rank) -> None:
    """Of each cell, or of each entry of the table that has the meter."""
    rates = read_rates(value)
    if array.table:
        collection.add(EntryRates(array.table, array.name, rates), rank, value.place)
    for index in range(array.size):
        cell = MeterCell(meter_name=array.name, index=index, rates=rates)
        collection.add(cell, Rank(rank.scope, written=False), value.place)


def _group_number(key: Element) -> int:
    number = key.integer(least=1)
    if number > _GREATEST_GROUP:
        raise key.error(f"groups and sessions are numbered from 1 to {_GREATEST_GROUP}")
    return number
