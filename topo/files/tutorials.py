"""topology.json of p4lang/tutorials: hosts, switches with runtime files, links such as ["h1", "s1-p1", "5ms", 10]."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gradbed.common.errors import UserError
from gradbed.topo.files.description import Described, HostDescription, LinkDescription

_GATEWAY = re.compile(r"(?:default\s+gw|default\s+via)\s+([0-9.]+)")
_NEIGHBOUR = re.compile(r"(?:arp\s.*-s|neigh\s+add)\s+([0-9.]+)\s+(?:lladdr\s+)?([0-9a-fA-F:]{17})")


FORM = "topology.json of p4lang/tutorials"


class _TutorialHost(BaseModel):
    ip: str | None
    mac: str | None = None
    commands: tuple[str, ...] = ()


class _TutorialFile(BaseModel):
    """The fields that the file must have, and their types."""

    hosts: dict[str, _TutorialHost]
    switches: dict[str, dict[str, Any]]
    links: list[Annotated[list[Any], Field(min_length=2, max_length=4)]]


class _OldFile(BaseModel):
    """A file of the tutorials before 2019: hosts have their addresses by rule."""

    hosts: list[str]
    switches: dict[str, dict[str, Any]]
    links: list[Annotated[list[Any], Field(min_length=2, max_length=4)]]


def describe(data: Mapping[str, Any]) -> Described:
    """Read a topology.json of p4lang/tutorials.

    Raises:
        UserError: It is none; also pydantic's ValidationError.
    """
    if isinstance(data.get("hosts"), list):
        _OldFile.model_validate(data)
        links = ordered_links(data["links"], data["hosts"], data["switches"])
        return _with_switches(data, numbered_hosts(data["hosts"], links), links)
    _TutorialFile.model_validate(data)
    hosts = tuple(_host(name, host) for name, host in data["hosts"].items())
    return _with_switches(data, hosts, tuple(_link(link, data["hosts"]) for link in data["links"]))


def _with_switches(
    data: Mapping[str, Any], hosts: tuple[HostDescription, ...], links: tuple[LinkDescription, ...]
) -> Described:
    switches = data["switches"]
    return Described(
        hosts=hosts,
        switches=tuple(switches),
        links=links,
        entries={
            name: switch.get("runtime_json") or switch["cli_input"]
            for name, switch in switches.items()
            if "runtime_json" in switch or "cli_input" in switch
        },
        programs={name: switch["program"] for name, switch in switches.items() if "program" in switch},
        form=FORM,
    )


def ordered_links(
    links: Sequence[Sequence[Any]], hosts: Collection[str], switches: Collection[str], sort_switches: bool = True
) -> tuple[LinkDescription, ...]:
    """Links without ports in the order in which p4lang's utilities number these: those of hosts by name, then those
    between switches, by name too or as the file has them. UserError for an end that is no node."""
    named = []
    for link in links:
        for end in link[:2]:
            if end not in hosts and end not in switches:
                raise UserError(f"a link of {end!r}, which is neither a host nor a switch")
        a, b = (link[1], link[0]) if link[1] in hosts else link[:2]
        if sort_switches and a not in hosts:
            a, b = sorted((a, b))
        named.append((a, b, *link[2:]))
    of_hosts = sorted((link for link in named if link[0] in hosts), key=lambda link: link[0] + link[1])
    between = [link for link in named if link[0] not in hosts]
    if sort_switches:
        between.sort(key=lambda link: link[0] + link[1])
    return tuple(
        LinkDescription(link[0], link[1], **dict(zip(("latency", "rate_mbps"), link[2:], strict=False)))
        for link in (*of_hosts, *between)
    )


def numbered_hosts(names: Sequence[str], links: Sequence[LinkDescription]) -> tuple[HostDescription, ...]:
    """Host I of switch J is 10.0.J.I/24, its gateway 10.0.J.254. UserError for a name without a number."""
    switch_of = {link.a: link.b for link in reversed(links)}
    return tuple(_numbered_host(name, switch_of.get(name)) for name in names)


def _numbered_host(name: str, switch: str | None) -> HostDescription:
    if switch is None:
        raise UserError(f"host {name}: it is not linked to any switch")
    numbers = []
    for node in (switch, name):
        digits = re.search(r"[0-9]+$", node)
        if digits is None or not 0 < int(digits[0]) < 255:
            raise UserError(f"{node}: hosts get their addresses of numbers from 1 to 254 at the end of names")
        numbers.append(int(digits[0]))
    place, number = numbers
    return HostDescription(
        name, f"10.0.{place}.{number}/24", f"00:00:00:00:{place:02x}:{number:02x}", f"10.0.{place}.254"
    )


def program_of(runtime: Path) -> str | None:
    """Return the program that a runtime file is for, if it names one."""
    if runtime.suffix != ".json":
        return None
    try:
        return str(json.loads(runtime.read_text(encoding="utf-8"))["bmv2_json"])
    except (ValueError, KeyError, TypeError):
        return None  # what is wrong with it is said when its entries are read


def _host(name: str, host: Mapping[str, Any]) -> HostDescription:
    if host["ip"] is None:
        raise UserError(
            f"host {name}: ip null asks for an address by DHCP, and hosts have theirs from the beginning: write one"
        )
    commands = "\n".join(host.get("commands", ()))
    gateway = _GATEWAY.search(commands)
    macs = dict(_NEIGHBOUR.findall(commands))
    return HostDescription(
        name,
        host["ip"],
        host.get("mac"),
        gateway[1] if gateway else None,
        macs.get(gateway[1]) if gateway else None,
    )


def _link(link: Any, hosts: Mapping[str, Any]) -> LinkDescription:
    a, a_port = _end(link[0], hosts)
    b, b_port = _end(link[1], hosts)
    return LinkDescription(a, b, a_port, b_port, **dict(zip(("latency", "rate_mbps"), link[2:], strict=False)))


def _end(text: Any, hosts: Mapping[str, Any]) -> tuple[str, int | None]:
    if isinstance(text, str) and text in hosts:
        return text, None
    found = re.fullmatch(r"(\w+)-p([0-9]+)", text) if isinstance(text, str) else None
    if not found:
        raise UserError(f"{text!r} is no end of a link: write SWITCH-pPORT, or the name of a host")
    return found[1], int(found[2])
