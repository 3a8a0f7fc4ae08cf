"""The graph of a network: hosts, switches, links. Planners, controller and emulation share this one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gradbed.common.errors import UserError
from gradbed.common.problems import Spelling, first_problem
from gradbed.topo.link import LinkModel

if TYPE_CHECKING:
    import networkx


Tier = Annotated[str, Spelling(r"[a-z][a-z0-9-]*", "a tier is a lower-case letter, then such letters, digits and -")]
"""What a switch is in its topology: core, aggregation, edge, spine, leaf, hub, or whatever a topology calls it."""

Direction = tuple[str, str]
"""Of a link: the names of sender and receiver."""

MAX_SWITCH_NUMBER = 65535
"""A switch number has 16 bits on the wire."""


def _ipv4(text: str) -> str:
    return str(IPv4Address(text))


def _known_fields(value: Any) -> Any:
    """Refuse unknown fields: a misspelt one would otherwise silently leave the link without it."""
    if isinstance(value, dict):
        unknown = value.keys() - LinkModel.__dataclass_fields__.keys()
        if unknown:
            raise ValueError(f"a link has no {', '.join(sorted(unknown))}")
    return value


NodeName = Annotated[
    str, Spelling(r"[A-Za-z][A-Za-z0-9_]*", "the name of a host or a switch is a letter, then letters, digits and _")
]
Ipv4 = Annotated[str, AfterValidator(_ipv4)]
Mac = Annotated[str, Spelling(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", "a MAC address is written 00:00:00:00:00:01")]
CheckedLinkModel = Annotated[LinkModel, BeforeValidator(_known_fields)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Node(_Value):
    name: NodeName
    mac: Mac


class Host(_Node):
    """An end system. Its gateway is the switch that its port 0 hangs on; mac is that port's. on_link: it reaches the
    others of its subnet by their own MAC addresses, rather than over the gateway."""

    ip: Ipv4
    prefix_bits: int = Field(ge=1, le=31)
    gateway_ip: Ipv4
    gateway_mac: Mac
    on_link: bool = False

    @property
    def network(self) -> IPv4Network:
        """The host's subnet."""
        return IPv4Network(f"{self.ip}/{self.prefix_bits}", strict=False)


class Switch(_Node):
    """A switch. `number` is its P4Runtime device id and its switch number in packets."""

    number: int = Field(ge=1, le=MAX_SWITCH_NUMBER)
    tier: Tier


class Endpoint(_Value):
    """An end of a link. The ports of a switch count from 1, those of a host from 0 without gaps."""

    node: str
    port: int = Field(ge=0)


class Link(_Value):
    """A cable between two nodes; the model holds for each direction on its own."""

    a: Endpoint
    b: Endpoint
    model: CheckedLinkModel = LinkModel()

    def end(self, node: str) -> Endpoint:
        """Return the end at `node`.

        Raises:
            UserError: The link does not touch it.
        """
        for end in (self.a, self.b):
            if end.node == node:
                return end
        raise UserError(f"the link between {self.a.node} and {self.b.node} does not touch {node}")

    def other(self, node: str) -> Endpoint:
        """Return the end away from `node`."""
        return self.b if self.end(node) == self.a else self.a


class Topology(_Value):
    """A network: named nodes and at most one link between any two of them.

    Making one checks that names, numbers and addresses are unique and that every link end is a port of
    its own on a known node; pydantic's ValidationError tells what is wrong. Lookups of unknown names raise
    UserError.
    """

    name: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    labels: tuple[tuple[str, str], ...] = ()
    """Of nodes, by their names: what else a file calls them, such as a city."""

    @model_validator(mode="after")
    def _consistent(self) -> Topology:
        nodes: tuple[_Node, ...] = (*self.hosts, *self.switches)
        _require_unique("name", (node.name for node in nodes))
        _require_unique("switch number", (switch.number for switch in self.switches))
        _require_unique("IP address", (host.ip for host in self.hosts))
        _require_unique("MAC address", (node.mac for node in nodes))
        _require_unique("link end", ((e.node, e.port) for link in self.links for e in (link.a, link.b)))
        _require_unique("link between", (frozenset((link.a.node, link.b.node)) for link in self.links))
        hosts = {host.name for host in self.hosts}
        switches = {switch.name for switch in self.switches}
        for link in self.links:
            if link.a.node == link.b.node:
                raise ValueError(f"{link.a.node} is linked to itself")
            if link.a.node in hosts and link.b.node in hosts:
                raise ValueError(f"the link between {link.a.node} and {link.b.node} has no switch at either end")
            for end in (link.a, link.b):
                if end.node not in hosts and end.node not in switches:
                    raise ValueError(f"a link ends at {end.node}, which is neither a host nor a switch")
                if end.port == 0 and end.node in switches:
                    raise ValueError(f"{end.node} cannot have port 0: the ports of a switch count from 1")
        ports_of: dict[str, list[int]] = {}
        for link in self.links:
            for end in (link.a, link.b):
                ports_of.setdefault(end.node, []).append(end.port)
        for host in self.hosts:
            ports = sorted(ports_of.get(host.name, []))
            if ports != list(range(len(ports))):
                raise ValueError(f"{host.name} has the ports {ports}: those of a host count from 0 without gaps")
        return self

    def __copy__(self) -> Topology:
        """Copy without what was computed from the fields, since `model_copy` may change these."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - Topology.model_fields.keys():
            del copied.__dict__[name]
        return copied

    @cached_property
    def graph(self) -> networkx.Graph:
        """Nodes with `kind` ("host" or "switch") and `tier` (None for hosts), edges with `link`. Do not modify."""
        import networkx  # not for hosts, which know the topology's values alone

        graph = networkx.Graph(name=self.name)
        graph.add_nodes_from((host.name, {"kind": "host", "tier": None}) for host in self.hosts)
        graph.add_nodes_from((switch.name, {"kind": "switch", "tier": switch.tier}) for switch in self.switches)
        graph.add_edges_from((link.a.node, link.b.node, {"link": link}) for link in self.links)
        return graph

    @cached_property
    def _hosts_by_name(self) -> dict[str, Host]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def _host_numbers(self) -> dict[str, int]:
        return {host.name: number for number, host in enumerate(self.hosts, 1)}

    def host_number(self, name: str) -> int:
        """Return the place of a host among all, from 1."""
        return self._host_numbers[self.host(name).name]

    @cached_property
    def _switches_by_name(self) -> dict[str, Switch]:
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def _switches_by_number(self) -> dict[int, Switch]:
        return {switch.number: switch for switch in self.switches}

    @cached_property
    def _names_by_label(self) -> dict[str, str]:
        """Labels that one node alone has, also with _ for blanks."""
        found: dict[str, set[str]] = {}
        for name, label in self.labels:
            for spelling in (label, "_".join(label.split())):
                found.setdefault(spelling, set()).add(name)
        return {label: next(iter(names)) for label, names in found.items() if len(names) == 1}

    def node_name(self, text: str) -> str:
        """Return the name of the node that is called or labelled so; else the text itself."""
        return text if text in self.graph else self._names_by_label.get(text, text)

    def host(self, name: str) -> Host:
        try:
            return self._hosts_by_name[name]
        except KeyError:
            raise UserError(f"{self.name} has no host {name!r}") from None

    def switch(self, name: str) -> Switch:
        try:
            return self._switches_by_name[name]
        except KeyError:
            raise UserError(f"{self.name} has no switch {name!r}") from None

    def switch_by_number(self, number: int) -> Switch:
        try:
            return self._switches_by_number[number]
        except KeyError:
            raise UserError(f"{self.name} has no switch with number {number}") from None

    def is_host(self, name: str) -> bool:
        """Return whether `name` is a host; else it is a switch.

        Raises:
            UserError: It is neither.
        """
        self._require_node(name)
        return name in self._hosts_by_name

    def _require_node(self, name: str) -> None:
        if name not in self.graph:
            raise UserError(f"{self.name} has no node {name!r}")

    def neighbours(self, name: str) -> dict[str, int]:
        """Return the nodes linked to `name`, each with the port of `name` that leads there, in order of ports."""
        self._require_node(name)
        ports = {other: data["link"].end(name).port for other, data in self.graph.adj[name].items()}
        return dict(sorted(ports.items(), key=lambda item: item[1]))

    def link(self, a: str, b: str) -> Link:
        """Return the link between two nodes, in whichever order they are named."""
        try:
            found: Link = self.graph.edges[a, b]["link"]
        except KeyError:
            raise UserError(f"{self.name} has no link between {a!r} and {b!r}") from None
        return found

    def port(self, node: str, neighbour: str) -> int:
        """Return the port of `node` that leads to `neighbour`."""
        return self.link(node, neighbour).end(node).port

    def destination_mac(self, sender: str, receiver: str) -> str:
        """Return the destination MAC address of a frame from one host to another, as it leaves the first."""
        source, target = self.host(sender), self.host(receiver)
        direct = source.on_link and IPv4Address(target.ip) in source.network
        return target.mac if direct else source.gateway_mac

    @cached_property
    def _attachments(self) -> dict[str, Switch]:
        ends = ((a, b) for link in self.links for a, b in ((link.a, link.b), (link.b, link.a)))
        return {a.node: self.switch(b.node) for a, b in ends if a.port == 0}

    def attachment(self, host: str) -> Switch:
        """Return the switch that a host's port 0 is linked to."""
        found = self._attachments.get(self.host(host).name)
        if found is None:
            raise UserError(f"host {host} of {self.name} is not linked to any switch")
        return found

    @cached_property
    def host_links(self) -> tuple[Link, ...]:
        """The links between a host and a switch."""
        return tuple(link for link in self.links if self._touches_host(link))

    @cached_property
    def switch_links(self) -> tuple[Link, ...]:
        """The links between two switches."""
        return tuple(link for link in self.links if not self._touches_host(link))

    def _touches_host(self, link: Link) -> bool:
        return link.a.node in self._hosts_by_name or link.b.node in self._hosts_by_name

    def with_links(self, chosen: Iterable[tuple[str, str]] | Callable[[Link], bool], **fields: Any) -> Topology:
        """Return the same network with some fields of the chosen links' models changed.

        `chosen` names links by their two nodes, or is a predicate; `fields` are fields of LinkModel. Example:
        topology.with_links([("h1", "e1")], rate_bps=10_000_000).
        """
        if callable(chosen):
            picked = {link for link in self.links if chosen(link)}
        else:
            picked = {self.link(a, b) for a, b in chosen}
        links = tuple(
            link.model_copy(update={"model": replace(link.model, **fields)}) if link in picked else link
            for link in self.links
        )
        return Topology(name=self.name, hosts=self.hosts, switches=self.switches, links=links)

    def to_json(self) -> str:
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Topology:
        """Return the topology of a text that `to_json` made.

        Raises:
            UserError: The text is no topology.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise UserError(f"not a topology: {first_problem(error)}") from None


def _require_unique(what: str, values: Iterable[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            shown = " and ".join(sorted(value)) if isinstance(value, frozenset) else value
            raise ValueError(f"two nodes or links share the {what} {shown}")
        seen.add(value)


# ---- Which links are hops: all but those inside a server ----


RELAY = "relay"
"""Tier of a switch that is the forwarding part of a server (gradbed.topo.generators)."""


def is_hop(topology: Topology, link: Link) -> bool:
    """Return whether crossing the link costs a hop."""
    ends = (link.a.node, link.b.node)
    hosts = [end for end in ends if topology.is_host(end)]
    return not hosts or all(topology.switch(end).tier != RELAY for end in ends if end not in hosts)
