"""Networks of p4-utils: its ports, its address strategies, and p4app.json, its JSON format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gradbed.common.errors import UserError
from gradbed.topo.files.description import Described, HostDescription, LinkDescription

FORM = "p4app.json of p4-utils"
_MININETS = IPv4Network("10.0.0.0/8")
STRATEGIES = ("l2", "mixed", "l3", "manual")


@dataclass
class P4UtilsNetwork:
    """A network as it is described to p4-utils. Without a strategy hosts keep their addresses, or take the next ones
    of 10.0.0.0/8."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    switches: dict[str, dict[str, Any]] = field(default_factory=dict)
    links: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    strategy: str | None = None
    program: str | None = None
    form: str = FORM

    def described(self) -> Described:
        """Links in natural order, as p4-utils numbers ports. UserError for what p4-utils would refuse, too."""
        addresses = _Addresses(self)
        programs = {
            name: program
            for name, options in self.switches.items()
            if (program := options.get("p4_src") or options.get("program"))
        }
        return Described(
            hosts=tuple(addresses.of(name) for name in self.hosts),
            switches=tuple(self.switches),
            links=tuple(_link(*link) for link in sorted(self.links, key=link_order)),
            entries={
                name: options["cli_input"] for name, options in self.switches.items() if options.get("cli_input")
            },
            programs=programs,
            program=self.program,
            form=self.form,
        )

    def switch_of(self, host: str) -> str:
        """Return the switch that a host is linked to."""
        ends = ((a, b) for one, other, _ in self.links for a, b in ((one, other), (other, one)))
        found = next((b for a, b in ends if a == host and b in self.switches), None)
        if found is None:
            raise UserError(f"host {host} is not linked to any switch")
        return found


class _P4UtilsSwitch(BaseModel):
    device_id: int | None = None


class _Network(BaseModel):
    hosts: dict[str, dict[str, Any]]
    switches: dict[str, _P4UtilsSwitch]
    links: list[Annotated[list[Any], Field(min_length=2, max_length=3)]]
    default: dict[str, Any] | None = None


class _P4UtilsFile(BaseModel):
    """The fields that the file must have, and their types."""

    topology: _Network
    p4_src: str | None = None
    program: str | None = None


def describe(data: Mapping[str, Any]) -> Described:
    """Read a p4app.json of p4-utils.

    Raises:
        ValidationError: Of pydantic.
    """
    _P4UtilsFile.model_validate(data)
    network = data["topology"]
    usual = network.get("default") or {}
    for a, b, *options in network["links"]:
        if not (isinstance(a, str) and isinstance(b, str) and all(isinstance(each, dict) for each in options)):
            raise UserError(f'the link {[a, b, *options]!r}: write ["h1", "s1"] or ["h1", "s1", {{"bw": 10}}]')
    strategy = network.get("assignment_strategy")
    if strategy not in (None, *STRATEGIES):
        raise UserError(f"assignment_strategy {strategy!r}: {', '.join(STRATEGIES)} are known; or give hosts an ip")
    return P4UtilsNetwork(
        hosts=dict(network["hosts"]),
        switches=dict(network["switches"]),
        links=[(link[0], link[1], {**usual, **(link[2] if len(link) > 2 else {})}) for link in network["links"]],
        strategy=strategy,
        program=data.get("p4_src") or data.get("program"),
    ).described()


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Sorts s2 before s10."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", name)]


def link_order(link: Sequence[Any]) -> list[list[tuple[bool, int, str]]]:
    """Sorts links by their ends."""
    return [natural(end) for end in link[:2]]


def _link(a: str, b: str, options: Mapping[str, Any]) -> LinkDescription:
    return LinkDescription(
        a,
        b,
        a_port=options.get("port1"),
        b_port=options.get("port2"),
        latency=options.get("delay"),
        rate_mbps=options.get("bw"),
        loss_percent=options.get("loss"),
        queue_packets=options.get("queue_length") or options.get("max_queue_size"),
    )


class _Addresses:
    """l2: one subnet 10.0.0.0/16. mixed: 10.0.SWITCH.HOST/24. l3: 10.SWITCH.HOST.2/24, a subnet for each host. SWITCH
    is its place among the switches unless it has a device_id, HOST the number in a name such as h3, else the first
    that is free. MAC addresses are 00:00 and the IP address, those of gateways 00:01. manual:
    Mininet's own, 10.0.0.I/8 for the I-th host."""

    def __init__(self, network: P4UtilsNetwork) -> None:
        self._network = network
        given = {name: int(each["device_id"]) for name, each in network.switches.items() if each.get("device_id")}
        free = (number for number in range(1, 1 << 16) if number not in given.values())
        self._switch_ids = {
            name: given[name] if name in given else next(free) for name in sorted(network.switches, key=natural)
        }
        self._free: dict[str, Iterator[int]] = {}

    def of(self, name: str) -> HostDescription:
        options = self._network.hosts[name]
        switch = self._network.switch_of(name)
        if options.get("ip"):
            via = options.get("gw") or options.get("gateway") or options.get("defaultRoute")
            return HostDescription(
                name, str(options["ip"]), options.get("mac"), via and str(via).removeprefix("via ")
            )
        strategy = self._network.strategy or "l2"
        if strategy == "manual":
            place = list(self._network.hosts).index(name) + 1
            return HostDescription(name, f"{_MININETS.network_address + place}/8", options.get("mac"))
        one_subnet = strategy == "l2"
        number = self._number(name, "" if one_subnet else switch)
        if one_subnet:
            ip = f"10.0.{number >> 8}.{number & 255}"
            return HostDescription(name, f"{ip}/16", options.get("mac") or _mac(ip))
        place = self._switch_ids[switch]
        if strategy == "mixed":
            ip, gateway = f"10.{place >> 8}.{place & 255}.{number}", f"10.{place >> 8}.{place & 255}.254"
        else:
            ip, gateway = f"10.{place}.{number}.2", f"10.{place}.{number}.1"
        return HostDescription(name, f"{ip}/24", options.get("mac") or _mac(ip), gateway, _mac(ip, 1))

    def _number(self, name: str, subnet: str) -> int:
        """Return the number of a host in its subnet."""
        if found := re.fullmatch(r"h([0-9]+)", name):
            return int(found[1])
        if subnet not in self._free:
            taken = {
                int(other[1:])
                for other in self._network.hosts
                if re.fullmatch(r"h[0-9]+", other) and (not subnet or self._network.switch_of(other) == subnet)
            }
            self._free[subnet] = (number for number in range(1, 1 << 16) if number not in taken)
        return next(self._free[subnet])


def _mac(ip: str, prefix: int = 0) -> str:
    return f"00:{prefix:02x}:" + IPv4Interface(ip).ip.packed.hex(":")
