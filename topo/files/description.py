"""The description of a network that all file formats are read into."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, host_mac, make_host, make_switch
from gradbed.topo.graph import Endpoint, Host, Link, Switch, Topology
from gradbed.topo.link import LinkModel, pfc_thresholds

TIER = "switch"
"""Of all switches: the files know no tiers."""

MININET_PREFIX_BITS = 8
"""Of addresses without one."""

_TIME_US = {"us": 1, "ms": 1_000, "s": 1_000_000}


@dataclass(frozen=True)
class HostDescription:
    """A host as a file describes it."""

    name: str
    ip: str | None = None
    """Address such as "10.0.1.1/24"; without a prefix length it has Mininet's, 8 bits; None: the next one of its
    switch, in 10.0.SWITCH.0/24."""
    mac: str | None = None
    gateway_ip: str | None = None
    gateway_mac: str | None = None
    on_link: bool = True
    """As that of gradbed.topo.graph.Host."""


@dataclass(frozen=True)
class LinkDescription:
    """A link as a file describes it; properties that are None are those of the command's options."""

    a: str
    b: str
    a_port: int | None = None
    """Port at a; None where the file leaves the choice."""
    b_port: int | None = None
    """Port at b; None where the file leaves the choice."""
    latency: Any = None
    """Delay as "5ms", or in milliseconds."""
    rate_mbps: float | None = None
    loss_percent: float | None = None
    queue_packets: int | None = None
    jitter_us: float | None = None
    duplicate: float | None = None
    bit_error_rate: float | None = None
    pfc_xoff_bytes: int | None = None
    pfc_xon_bytes: int | None = None

    @property
    def ends(self) -> tuple[tuple[str, int | None], tuple[str, int | None]]:
        """Node and port of both ends."""
        return (self.a, self.a_port), (self.b, self.b_port)

    def model(self, usual: LinkModel, scale_factor: float) -> LinkModel:
        model = usual
        if self.latency is not None:
            model = replace(model, delay_us=round(time_us(self.latency) / scale_factor))
        if self.rate_mbps is not None:
            model = replace(model, rate_bps=max(1, round(self.rate_mbps * 1e6 * scale_factor)))
        if self.loss_percent is not None:
            model = replace(model, loss=self.loss_percent / 100)
        if self.queue_packets is not None:
            model = replace(model, queue_packets=self.queue_packets)
        if self.jitter_us is not None:
            model = replace(model, jitter_us=round(self.jitter_us / scale_factor))
        if self.duplicate is not None:
            model = replace(model, duplicate=self.duplicate)
        if self.bit_error_rate is not None:
            model = replace(model, bit_error_rate=self.bit_error_rate)
        if self.pfc_xoff_bytes is not None or self.pfc_xon_bytes is not None:
            xoff, xon = pfc_thresholds(model, self.pfc_xoff_bytes, self.pfc_xon_bytes)
            model = replace(model, pfc_xoff_bytes=xoff, pfc_xon_bytes=xon)
        # Jitter is never more than the delay.
        return replace(model, jitter_us=min(model.jitter_us, model.delay_us))


@dataclass(frozen=True)
class Described:
    """entries, programs, tiers, numbers: by switch, as the file spells them. program: for all other switches. form:
    as of gradbed.topo.files.TopologyFile. labels: what else nodes are called."""

    hosts: tuple[HostDescription, ...]
    switches: tuple[str, ...]
    links: tuple[LinkDescription, ...]
    entries: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    program: str | None = None
    tiers: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    form: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def build(self, name: str, usual: LinkModel, scale_factor: float) -> Topology:
        """Return the network.

        Raises:
            UserError: It cannot be; also ValueError, such as pydantic's ValidationError.
        """
        numbers = {**_numbers(self.switches), **self.numbers}
        switches = {}
        for each in self.switches:
            with about(f"switch {each}"):
                switches[each] = make_switch(each, numbers[each], self.tiers.get(each, TIER))
        ports = _Ports(self)
        links = []
        for link in self.links:
            with about(f"the link of {link.a} and {link.b}"):
                ends = [Endpoint(node=node, port=ports.of(node, port)) for node, port in link.ends]
                links.append(Link(a=ends[0], b=ends[1], model=link.model(usual, scale_factor)))
        first_switch: dict[str, Switch] = {}
        for link in self.links:
            for node, other in ((link.a, link.b), (link.b, link.a)):
                if node not in switches and other in switches:
                    first_switch.setdefault(node, switches[other])
        below: Counter[str] = Counter()
        hosts = []
        for host in self.hosts:
            with about(f"host {host.name}"):
                hosts.append(_host(host, first_switch, below))
        return Topology(
            name=name,
            hosts=tuple(hosts),
            switches=tuple(switches.values()),
            links=tuple(links),
            labels=tuple(self.labels.items()),
        )


@contextmanager
def about(what: str) -> Iterator[None]:
    """Make errors inside name this part of the file."""
    try:
        yield
    except ValidationError as error:
        raise UserError(f"{what}: {first_problem(error)}") from None
    except (UserError, ValueError) as error:
        raise UserError(f"{what}: {error}") from None


def time_us(text: Any) -> float:
    """Return the microseconds of "5ms", "10us" or "0"; numbers without a unit are milliseconds.

    Raises:
        UserError: It is nothing of these.
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*(us|ms|s)?\s*", str(text))
    try:
        if found:
            return float(found[1]) * _TIME_US[found[2] or "ms"]
    except ValueError:
        pass
    raise UserError(f"{text!r} is no time: write for example 5ms")


def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    """Return the digits at the end of each name, or, if they are no numbers of their own, places in the file."""
    digits = [re.search(r"[0-9]+$", name) for name in names]
    numbers = [int(found[0]) for found in digits if found]
    if len(set(numbers)) == len(names) and 0 not in numbers:
        return dict(zip(names, numbers, strict=True))
    return {name: number for number, name in enumerate(names, 1)}


class _Ports:
    """Ports in the order of links, from 1 at switches and 0 at hosts, where a link does not name its own."""

    def __init__(self, described: Described) -> None:
        self._hosts = {host.name for host in described.hosts}
        self._used: dict[str, set[int]] = {}
        for link in described.links:
            for node, port in link.ends:
                if port is not None and node not in self._hosts:
                    self._used.setdefault(node, set()).add(port)

    def of(self, node: str, wanted: int | None) -> int:
        if wanted is not None and node not in self._hosts:
            return wanted
        used = self._used.setdefault(node, set())
        port = 0 if node in self._hosts else 1
        while port in used:
            port += 1
        used.add(port)
        return port


def _host(host: HostDescription, switches: Mapping[str, Switch], below: Counter[str]) -> Host:
    """below: hosts that have got an address so far, by the switch that they hang on."""
    if host.name not in switches:
        raise UserError("it is not linked to any switch")
    if host.ip is None:
        switch = switches[host.name]
        below[switch.name] += 1
        if below[switch.name] > MAX_HOSTS_PER_SWITCH:
            raise UserError(f"more than {MAX_HOSTS_PER_SWITCH} hosts hang on {switch.name}: give them an ip")
        subnet = f"10.{switch.number >> 8}.{switch.number & 255}"
        made = make_host(host.name, subnet, below[switch.name] - 1, switch)
        return made if host.mac is None else Host(**{**made.model_dump(), "mac": host.mac.lower()})
    interface = IPv4Interface(host.ip if "/" in host.ip else f"{host.ip}/{MININET_PREFIX_BITS}")
    return Host(
        name=host.name,
        ip=str(interface.ip),
        prefix_bits=interface.network.prefixlen,
        mac=(host.mac or host_mac(str(interface.ip))).lower(),
        gateway_ip=host.gateway_ip or str(_other_address(interface)),
        gateway_mac=(host.gateway_mac or switches[host.name].mac).lower(),
        on_link=host.on_link,
    )


def _other_address(interface: IPv4Interface) -> object:
    """Return the last address of the host's subnet but the host's own."""
    network = IPv4Network(interface.network)
    last = network.broadcast_address if network.prefixlen >= 31 else network.broadcast_address - 1
    return last if last != interface.ip else last - 1
