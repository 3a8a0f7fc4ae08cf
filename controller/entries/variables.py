"""Words in entries that stand for what the network is: $dst_ip, $h1.mac, $to.s2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gradbed.common.suggestion import suggestion
from gradbed.controller.entries.document import Element
from gradbed.controller.planning.routing import Routes, prefix_routes, prefixes_behind
from gradbed.topo.graph import Switch, Topology

_VARIABLE = re.compile(r"\$(\w+(?:\.\w+)?)")

Values = Mapping[str, int | str]


class Variables:
    """What variables stand for on one switch. values: those of a rule, for one of its entries."""

    def __init__(self, topology: Topology, routes: Routes, switch: Switch, values: Values | None = None) -> None:
        self._topology = topology
        self._routes = routes
        self._switch = switch
        self._values = {"switch_number": switch.number, "switch_mac": switch.mac, **(values or {})}

    def bound(self, values: Values) -> Variables:
        """With those of a rule, too."""
        return Variables(self._topology, self._routes, self._switch, values)

    def filled_in(self, element: Element) -> str:
        """A text with its variables' values in their places."""
        return _VARIABLE.sub(lambda found: str(self._value(found[1], element)), element.text())

    def _value(self, name: str, element: Element) -> int | str:
        first, _, second = name.partition(".")
        if first == "to" and second:
            self._known(second, element)
            if second == self._switch.name:
                raise element.error(f"{second} has no port towards itself")
            return port_towards(self._topology, self._routes, self._switch.name, second)
        if second:
            return self._of_node(first, second, element)
        if name not in self._values:
            raise element.error(f"there is no variable ${name} here{suggestion(name, list(self._values))}")
        return self._values[name]

    def _of_node(self, node: str, what: str, element: Element) -> int | str:
        self._known(node, element)
        found = node_values(self._topology, node)
        if what not in found:
            raise element.error(f"{node} has no {what!r}{suggestion(what, list(found))}")
        return found[what]

    def _known(self, node: str, element: Element) -> None:
        if node not in self._topology.graph:
            raise element.error(f"the network has no node {node!r}{suggestion(node, list(self._topology.graph))}")

    # What rules make entries for.

    def destinations(self, to_switches: bool, every_next_hop: bool) -> Iterator[Values]:
        """For each host (or each other switch): how this switch reaches it, over one or over all of the equally short
        ways."""
        topology = self._topology
        nodes = topology.switches if to_switches else topology.hosts
        towards: dict[str, list[str]] = {}
        for destination in (node.name for node in nodes if node.name != self._switch.name):
            target = destination if to_switches else topology.attachment(destination).name
            if target == self._switch.name:
                hops = [destination]
            elif target in towards:
                hops = towards[target]
            else:
                hops = towards[target] = next_hops(topology, self._routes, self._switch.name, target)
            common = {f"dst_{name}": value for name, value in node_values(topology, destination).items()} | {
                "distance": 0 if target == self._switch.name else self._routes.distance(self._switch.name, target),
                "choices": len(hops),
            }
            for choice, hop in enumerate(hops if every_next_hop else hops[:1]):
                yield {**common, "choice": choice, **self._neighbour(hop)}

    def prefixes(self) -> Iterator[Values]:
        """For each prefix of this switch's shortest routes: those that together name every host once."""
        topology = self._topology
        routes = prefix_routes(topology, self._routes, self._switch.name, prefixes_behind(topology))
        for prefix, hop in routes.items():
            yield {"dst_prefix": str(prefix), **self._neighbour(hop)}

    def ports(self, hosts: bool, switches: bool) -> Iterator[Values]:
        """For each port that leads to a host, or to a switch."""
        for neighbour in self._topology.neighbours(self._switch.name):
            if hosts if self._topology.is_host(neighbour) else switches:
                yield self._neighbour(neighbour)

    def _neighbour(self, name: str) -> dict[str, int | str]:
        found = {f"next_{what}": value for what, value in node_values(self._topology, name).items()}
        return {"port": self._topology.port(self._switch.name, name), **found}


def node_values(topology: Topology, node: str) -> dict[str, int | str]:
    """number, mac, and of hosts ip. Hosts are numbered from 1."""
    if topology.is_host(node):
        host = topology.host(node)
        return {"number": topology.host_number(node), "mac": host.mac, "ip": host.ip}
    switch = topology.switch(node)
    return {"number": switch.number, "mac": switch.mac}


def next_hops(topology: Topology, routes: Routes, switch: str, destination: str) -> list[str]:
    """The neighbours on shortest paths to a node, that of the routes first."""
    target = topology.attachment(destination).name if topology.is_host(destination) else destination
    if target == switch:
        return [destination]
    chosen = routes.next_hop(switch, target)
    nearer = [
        name
        for name in topology.neighbours(switch)
        if not topology.is_host(name) and routes.distance(name, target) == routes.distance(switch, target) - 1
    ]
    return [chosen, *(name for name in nearer if name != chosen)]


def port_towards(topology: Topology, routes: Routes, switch: str, node: str) -> int:
    """The port by which the routes lead from a switch to a node."""
    if topology.graph.has_edge(switch, node):
        return topology.port(switch, node)
    return topology.port(switch, next_hops(topology, routes, switch, node)[0])
