"""topology.json of p4lang/tutorials: hosts, switches with runtime files, links such as ["h1", "s1-p1", "5ms", 10]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from common.errors import UserError
from topo.files.description import Described, HostDescription, LinkDescription

_GATEWAY = re.compile(r"(?:default\s+gw|default\s+via)\s+([0-9.]+)")
_NEIGHBOUR = re.compile(r"(?:arp\s.*-s|neigh\s+add)\s+([0-9.]+)\s+(?:lladdr\s+)?([0-9a-fA-F:]{17})")


class _Host(BaseModel):
    ip: str
    mac: str | None = None
    commands: tuple[str, ...] = ()


class _File(BaseModel):
    """What has to be there, and of which type."""

    hosts: dict[str, _Host]
    switches: dict[str, dict[str, Any]]
    links: list[Annotated[list[Any], Field(min_length=2, max_length=4)]]


def describe(data: Mapping[str, Any]) -> Described:
    """What the file says. pydantic.ValidationError."""
    _File.model_validate(data)
    switches = data["switches"]
    return Described(
        hosts=tuple(_host(name, host) for name, host in data["hosts"].items()),
        switches=tuple(switches),
        links=tuple(_link(link, data["hosts"]) for link in data["links"]),
        entries={
            name: switch.get("runtime_json") or switch["cli_input"]
            for name, switch in switches.items()
            if "runtime_json" in switch or "cli_input" in switch
        },
        programs={name: switch["program"] for name, switch in switches.items() if "program" in switch},
        form="topology.json of p4lang/tutorials",
    )


def program_of(runtime: Path) -> str | None:
    """The program that a runtime file is for, if it says so."""
    if runtime.suffix != ".json":
        return None
    try:
        return str(json.loads(runtime.read_text(encoding="utf-8"))["bmv2_json"])
    except (ValueError, KeyError, TypeError):
        return None  # what is wrong with it is said when its entries are read


def _host(name: str, host: Mapping[str, Any]) -> HostDescription:
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
