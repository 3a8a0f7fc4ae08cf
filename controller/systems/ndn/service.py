"""The NDN service: routes for names, and multicast groups for sets of ports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.controller.core.service import NoSettings, Service
from gradbed.controller.planning.multicast import MulticastTree, multicast_tree
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import Routes, equal_cost_path
from gradbed.controller.southbound.interface import Digest, Message
from gradbed.controller.systems.ndn.entries import (
    MOST_PORTS,
    NDN_PROGRAM,
    all_sets_of,
    components,
    fib_entry,
    group_of,
    job_name,
    one_set,
)
from gradbed.topo.graph import Topology

# ---- Requests and answers of the REST interface; the examples are on star:2 ----

_EXAMPLE: dict[str, Any] = {
    "prefixes": [{"name": "/digits/h1", "host": "h1"}, {"name": "/digits/h2", "host": "h2"}],
    "consumers": ["h1", "h2"],
}
_INSTALLED: dict[str, Any] = {
    **_EXAMPLE,
    "prefixes": [{"name": "/digits-1/h1", "host": "h1"}, {"name": "/digits-1/h2", "host": "h2"}],
}


class Prefix(BaseModel):
    """A name prefix and the host that Interests for it are routed to.

    The first component of a job's names ends with its number: prefix /a/b of a request is /a-7/b in the answer of
    job 7.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    host: str
    consumers: tuple[str, ...] | None = None
    """Hosts that request the data; null: all consumers of the job. For a single one routers choose among equally
    short paths by a hash of the name, as ECMP does; for several they follow a tree of few links."""


class NdnRequest(BaseModel):
    """Prefixes to route to their hosts, along trees of few links that span the consumers."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _EXAMPLE})

    prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)]
    consumers: tuple[str, ...] = ()


class NdnAnswer(NdnRequest):
    """The job as it is installed, with the names of its prefixes."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"example": {"job": 1, "tree_edges": [2, 2], **_INSTALLED}}
    )

    job: int
    tree_edges: tuple[int, ...]
    """Number of links of each prefix's tree, that to its host included."""


# ---- The service ----

PORTS_WITH_ALL_SETS = 8
"""Switches with at most this many ports get the groups of all sets (255) at once; with more, a set gets its group
when a subscription needs it, which takes a plan of the whole network."""


# Called for every switch whenever one of them needs another group.
@lru_cache
def _all_groups(ports: tuple[int, ...]) -> SwitchPlan:
    return SwitchPlan.of(NDN_PROGRAM, *all_sets_of(ports))


@lru_cache(maxsize=4096)
def _groups(sets: frozenset[int]) -> SwitchPlan:
    asked = sorted(sets)
    return SwitchPlan.of(NDN_PROGRAM, [one_set(bits) for bits in asked], [group_of(bits) for bits in asked])


class NdnJob(NdnRequest):
    """The state of a job: the request."""


class NdnService(Service[NoSettings, NdnRequest, NdnJob, NdnAnswer]):
    """Implements gradbed.controller.core.service.Service."""

    Settings = NoSettings
    Request = NdnRequest
    State = NdnJob
    Answer: type[NdnAnswer] = NdnAnswer
    Listed: type[BaseModel] = NdnAnswer
    programs = (NDN_PROGRAM,)

    def __init__(self, topology: Topology, routes: Routes, settings: NoSettings) -> None:
        super().__init__(topology, routes, settings)
        self._sets: dict[str, set[int]] = {}
        """Sets of ports that switches with many ports have asked for, by switch."""

    def base(self) -> Plan:
        switches = {}
        for switch in self.topology.switches:
            ports = tuple(sorted(self.topology.neighbours(switch.name).values()))
            asked = frozenset(self._sets.get(switch.name, ()))
            switches[switch.name] = _all_groups(ports) if len(ports) <= PORTS_WITH_ALL_SETS else _groups(asked)
        return Plan(switches=switches)

    def admit(self, number: int, request: NdnRequest, others: Mapping[int, NdnJob]) -> NdnJob:
        for switch in self.topology.switches:
            if max(self.topology.neighbours(switch.name).values(), default=0) > MOST_PORTS:
                raise UserError(f"{switch.name} has more than {MOST_PORTS} ports, which an NDN router cannot have")
        for prefix in request.prefixes:
            components(prefix.name)
            components(job_name(prefix.name, number))
            self.topology.host(prefix.host)
        for consumer in (*request.consumers, *(each for p in request.prefixes for each in p.consumers or ())):
            self.topology.host(consumer)
        names = [prefix.name for prefix in request.prefixes]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{name} has a route already: names of different publishers must differ")
        return NdnJob(**request.model_dump())

    def plan(self, number: int, state: NdnJob) -> Plan:
        entries: dict[str, list[TableEntry]] = {switch.name: [] for switch in self.topology.switches}
        for prefix in state.prefixes:
            name = components(job_name(prefix.name, number))
            for switch, hop in self._next_hops(prefix, self._tree(prefix, state)).items():
                entries[switch].append(fib_entry(name, self.topology.port(switch, hop)))
        return Plan(switches={name: SwitchPlan.of(NDN_PROGRAM, found) for name, found in entries.items()})

    def answer(self, number: int, state: NdnJob) -> NdnAnswer:
        return NdnAnswer(
            job=number,
            tree_edges=tuple(1 + len(self._tree(prefix, state).edges()) for prefix in state.prefixes),
            prefixes=tuple(each.model_copy(update={"name": job_name(each.name, number)}) for each in state.prefixes),
            consumers=state.consumers,
        )

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        return None  # a switch that only forwards does not parse names

    def on_message(self, switch: str, message: Message) -> Plan | None:
        """Add a group for the set of ports to which a switch has to send copies."""
        if not isinstance(message, Digest):
            return None
        known = self._sets.setdefault(switch, set())
        asked = {entry["ports"] for entry in message.entries} - known
        ports = self.topology.neighbours(switch).values()
        asked = {bits for bits in asked if bits and not bits & ~sum(1 << (port - 1) for port in ports)}
        if not asked:
            return None
        known |= asked
        return self.base()

    def _tree(self, prefix: Prefix, state: NdnJob) -> MulticastTree:
        asking = state.consumers if prefix.consumers is None else prefix.consumers
        consumers = [name for name in dict.fromkeys(asking) if name != prefix.host]
        if len(consumers) != 1:
            return multicast_tree(self.topology, prefix.host, consumers, ())
        ends = [self.topology.attachment(name).name for name in (prefix.host, *consumers)]
        path = equal_cost_path(self.topology, ends[0], ends[1], prefix.name)
        return MulticastTree(path[0], dict(zip(path, ((each,) for each in (*path[1:], *consumers)), strict=True)))

    def _next_hops(self, prefix: Prefix, tree: MulticastTree) -> dict[str, str]:
        """Return the next hop of Interests for each switch: along the tree, or on the shortest path."""
        parents = {child: parent for parent, child in tree.edges()}
        return {
            switch.name: prefix.host
            if switch.name == tree.root
            else parents.get(switch.name) or self.routes.next_hop(switch.name, tree.root)
            for switch in self.topology.switches
        }
