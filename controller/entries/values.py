"""Values and matches as people write them: numbers, addresses, prefixes, masks, ranges, and variables such as
$dst_ip."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from gradbed.common.errors import suggestion
from gradbed.controller.entries.document import Element
from gradbed.controller.planning.plan import Lpm, Match, Range, Ternary
from gradbed.controller.planning.routing import Routes, prefix_routes, prefixes_behind
from gradbed.controller.southbound.p4runtime.schema import FieldSchema, MatchType
from gradbed.topo.graph import Switch, Topology

# ---- Variables: words that stand for what the network is ($dst_ip, $h1.mac, $to.s2) ----


_VARIABLE = re.compile(r"\$(\w+(?:\.\w+)?)")

Values = Mapping[str, int | str]


class Variables:
    """Values of variables on one switch. values: those of a rule, for one of its entries."""

    def __init__(self, topology: Topology, routes: Routes, switch: Switch, values: Values | None = None) -> None:
        self._topology = topology
        self._routes = routes
        self._switch = switch
        self._values = {"switch_number": switch.number, "switch_mac": switch.mac, **(values or {})}

    def bound(self, values: Values) -> Variables:
        """Return these variables with those of a rule."""
        return Variables(self._topology, self._routes, self._switch, values)

    def filled_in(self, element: Element) -> str:
        """Return a text with its variables' values in their places."""
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
        """Yield for each host (or each other switch) how this switch reaches it, over one or all of the shortest
        paths."""
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
        """Yield each prefix of this switch's shortest routes; together they name every host once."""
        topology = self._topology
        routes = prefix_routes(topology, self._routes, self._switch.name, prefixes_behind(topology))
        for prefix, hop in routes.items():
            yield {"dst_prefix": str(prefix), **self._neighbour(hop)}

    def ports(self, hosts: bool, switches: bool) -> Iterator[Values]:
        """Yield each port that leads to a host, or to a switch."""
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
    """Return the neighbours on shortest paths to a node, that of the routes first."""
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
    """Return the port by which the routes lead from a switch to a node."""
    if topology.graph.has_edge(switch, node):
        return topology.port(switch, node)
    return topology.port(switch, next_hops(topology, routes, switch, node)[0])


# ---- Values and matches ----


_MAC = re.compile(r"[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}")
_NUMBERS = re.compile(r"(\d+) *- *(\d+)")
_WORDS = {"true": 1, "false": 0}
_ANY = ("*", "any")


def parse_param(element: Element, field: FieldSchema, variables: Variables) -> int:
    """Read an argument of an action, or a register's value."""
    if element.is_list and len(element.items()) == 1:  # as p4lang/tutorials may write it
        (element,) = element.items()
    return _number(variables.filled_in(element), field, element)


def parse_match(element: Element, field: FieldSchema, variables: Variables) -> Match | None:
    """Read a match of a field; None: anything.

    It is text, such as 10.0.0.0/8, 0x10 &&& 0xf0, 80..443, or a list of two: value and prefix length, value and mask,
    low and high.
    """
    if element.is_list:
        parts = [variables.filled_in(part) for part in element.items()]
        if len(parts) > 2 or not parts:
            raise element.error("a match is one value, or a list of two")
        pair = (parts[0], parts[1]) if len(parts) == 2 else None
        text = parts[0]
    else:
        text = variables.filled_in(element)
        pair = _pair(text, field.match_type)
    kind = field.match_type
    if pair is None and text in _ANY:
        if kind == MatchType.EXACT:
            raise element.error(f"{field.name} is matched exactly: it needs a value")
        return None
    if kind in (MatchType.EXACT, MatchType.OPTIONAL):
        if pair is not None:
            raise element.error(f"{field.name} is matched exactly: write one value")
        return _number(text, field, element)
    if kind == MatchType.LPM:
        return _prefix(text, pair, field, element)
    if kind == MatchType.RANGE:
        low, high = (_number(part, field, element) for part in pair or (text, text))
        if low > high:
            raise element.error(f"the range {text} is empty: its low end is above its high end")
        return Range(low=low, high=high)
    if kind == MatchType.TERNARY:
        return _masked(text, pair, field, element)
    raise element.error(f"{field.name} has a kind of match that entries cannot be written for")


_SEPARATORS = {
    MatchType.LPM: ("/",),
    MatchType.TERNARY: ("&&&", "/"),
    MatchType.RANGE: ("..", "->"),
    MatchType.OPTIONAL: ("/", "&&&"),
    MatchType.EXACT: ("/", "&&&", ".."),
}


def _pair(text: str, kind: int) -> tuple[str, str] | None:
    if kind == MatchType.RANGE and (numbers := _NUMBERS.fullmatch(text)):
        return numbers[1], numbers[2]
    for separator in _SEPARATORS.get(kind, ()):
        first, found, second = text.partition(separator)
        if found:
            return first.strip(), second.strip()
    return None


def _prefix(text: str, pair: tuple[str, str] | None, field: FieldSchema, element: Element) -> Lpm | None:
    value_text, length_text = pair or (text, str(field.bits))
    value = _number(value_text, field, element)
    bits = _prefix_bits(length_text, field, element)
    inside = value >> (field.bits - bits) << (field.bits - bits)
    if value != inside:
        raise element.error(f"{text} has bits beyond the first {bits}: the prefix is {_shown(inside, field)}/{bits}")
    return Lpm(value=value, prefix_bits=bits) if bits else None


def _masked(text: str, pair: tuple[str, str] | None, field: FieldSchema, element: Element) -> Ternary | None:
    every_bit = (1 << field.bits) - 1
    if pair is None:
        value, mask = _number(text, field, element), every_bit
    elif "/" in text and not element.is_list:
        value, bits = _number(pair[0], field, element), _prefix_bits(pair[1], field, element)
        mask = every_bit >> (field.bits - bits) << (field.bits - bits)
    else:
        value, mask = (_number(part, field, element) for part in pair)
    if value & ~mask:
        raise element.error(f"{text} has bits outside its mask: the value is {_shown(value & mask, field)}")
    return Ternary(value=value, mask=mask) if mask else None


def _prefix_bits(text: str, field: FieldSchema, element: Element) -> int:
    if not text.isdigit() or int(text) > field.bits:
        raise element.error(f"the prefix length {text} is no number from 0 to {field.bits}, the bits of {field.name}")
    return int(text)


def _number(text: str, field: FieldSchema, element: Element) -> int:
    if not field.bits:
        raise element.error(f"{field.name} is named by strings (@p4runtime_translation), which is not supported here")
    value = _read(text)
    if value is None:
        raise element.error(f"{field.name}: {text!r} is no number and no address")
    if value < 0 and -value <= 1 << field.bits - 1:
        value += 1 << field.bits  # two's complement, as int<N> has it
    if value < 0 or value.bit_length() > field.bits:
        raise element.error(f"{text} does not fit {field.name}, which has {field.bits} bits")
    return value


@functools.lru_cache(maxsize=1 << 16)
def _read(text: str) -> int | None:
    """Return the number that a text is, or None. Cached, as each switch has entries for the same addresses."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _MAC.fullmatch(text):
        return int(re.sub("[:-]", "", text), 16)
    try:
        if text.count(".") == 3:
            return int(IPv4Address(text))
        if ":" in text:
            return int(IPv6Address(text))
        return int(text, 0)
    except (AddressValueError, ValueError):
        return None


def _shown(value: int, field: FieldSchema) -> str:
    if field.bits == 32:
        return str(IPv4Address(value))
    return str(IPv6Address(value)) if field.bits == 128 else hex(value)
