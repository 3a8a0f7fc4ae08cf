"""p4app.json of p4-utils: links such as ["h1", "s1", {"bw": 10}], and addresses by one of its strategies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Interface
from typing import Any

from switch.errors import UserError
from topo.files.description import Described, HostDescription, LinkDescription

_STRATEGIES = ("l2", "mixed", "l3")


def describe(data: Mapping[str, Any]) -> Described:
    """What the file says.

    Links whose first end is a host come first, as p4-utils numbers ports. Strategies: l2, one subnet 10.0.0.0/16;
    mixed, 10.0.SWITCH.HOST/24; l3, 10.SWITCH.HOST.2/24, a subnet for each host. MAC addresses are 00:00 and the IP
    address, those of gateways 00:01.
    """
    network = data["topology"]
    hosts, switches = network["hosts"], network["switches"]
    usual = network.get("default") or {}
    links = sorted(network["links"], key=lambda link: link[0] not in hosts)
    strategy = network.get("assignment_strategy") or "l2"
    return Described(
        hosts=tuple(_host(name, hosts[name], strategy, links, list(switches)) for name in hosts),
        switches=tuple(switches),
        links=tuple(_link(link, usual) for link in links),
        entries={name: switch["cli_input"] for name, switch in switches.items() if switch.get("cli_input")},
        programs={name: switch["p4_src"] for name, switch in switches.items() if switch.get("p4_src")},
        program=data.get("p4_src"),
    )


def _link(link: Sequence[Any], usual: Mapping[str, Any]) -> LinkDescription:
    options = {**usual, **(link[2] if len(link) > 2 else {})}
    return LinkDescription(
        link[0],
        link[1],
        options.get("port1"),
        options.get("port2"),
        options.get("delay"),
        options.get("bw"),
        options.get("loss"),
        options.get("queue_length") or options.get("max_queue_size"),
    )


def _host(
    name: str, host: Mapping[str, Any], strategy: str, links: Sequence[Sequence[Any]], switches: Sequence[str]
) -> HostDescription:
    if host.get("ip"):
        return HostDescription(name, host["ip"], host.get("mac"), host.get("gw") or host.get("gateway"))
    if strategy not in _STRATEGIES:
        raise UserError(f"assignment_strategy {strategy!r}: {', '.join(_STRATEGIES)} are known; or give hosts an ip")
    number = _number(name)
    own = next((other for a, b, *_ in links for mine, other in ((a, b), (b, a)) if mine == name), None)
    if own not in switches:
        raise UserError(f"host {name} is not linked to any switch")
    switch = _number(str(own))
    if strategy == "l2":
        return HostDescription(
            name, f"10.0.{number >> 8}.{number & 255}/16", _mac(f"10.0.{number >> 8}.{number & 255}")
        )
    if strategy == "mixed":
        ip, gateway = f"10.0.{switch}.{number}", f"10.0.{switch}.254"
    else:
        ip, gateway = f"10.{switch}.{number}.2", f"10.{switch}.{number}.1"
    return HostDescription(name, f"{ip}/24", _mac(ip), gateway, _mac(ip, 1))


def _mac(ip: str, prefix: int = 0) -> str:
    return f"00:{prefix:02x}:" + IPv4Interface(ip).ip.packed.hex(":")


def _number(name: str) -> int:
    """The digits at the end of a name."""
    found = re.search(r"[0-9]+$", name)
    if not found:
        raise UserError(f"{name} has no number at its end, from which p4-utils makes addresses")
    return int(found[0])
