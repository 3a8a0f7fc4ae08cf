"""Run a network.py of p4-utils as a program of its own, and report the network that it describes.

    python network_script_process.py SCRIPT DESCRIPTOR

writes a JSON object to that open file: `network` (what was set in NetworkAPI; null if none was made), or `error`, a
line with the number of the script's line. It imports the standard library alone, as a script that is no module of
ours: so no module beside the user's script, whatever its name, is taken for one of ours, nor one of ours for theirs.

The user's script runs up to startNetwork(); nothing of what it wants to be started is.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

_MODULE = "p4utils.mininetlib.network_API"


class _Started(BaseException):
    """The network is described. No Exception, so that a script which catches those ends here all the same."""


class _Refused(Exception):
    """A line of a script that asks for what networks from files cannot have."""


class NetworkAPI:
    """A stand-in for p4utils.mininetlib.network_API.NetworkAPI that records the topology.

    Methods for anything else (logs, captures, the prompt) do nothing.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        _made.append(self)
        self.declared_hosts: dict[str, dict[str, Any]] = {}
        self.declared_switches: dict[str, dict[str, Any]] = {}
        self.declared_links: list[tuple[str, str, dict[str, Any]]] = []
        self.settings: dict[str, str | None] = {"strategy": None, "program": None}

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith(("set", "enable", "disable", "add", "exec", "print", "describe", "save")):
            raise AttributeError(f"gradbed does not know NetworkAPI.{name}")
        return lambda *_, **__: None

    # ---- Nodes ----

    def addHost(self, name: str, **options: Any) -> str:
        self.declared_hosts[name] = options
        return name

    def addP4Switch(self, name: str, **options: Any) -> str:
        self.declared_switches[name] = options
        return name

    addP4RuntimeSwitch = addP4Switch

    def addSwitch(self, name: str, **_: Any) -> str:
        raise _Refused(f"{name} is no P4 switch: networks from files have P4 switches alone")

    addRouter = addTofino = addSwitch

    def hosts(self, *_: Any, **__: Any) -> list[str]:
        return sorted(self.declared_hosts, key=_natural)

    def p4switches(self, *_: Any, **__: Any) -> list[str]:
        return sorted(self.declared_switches, key=_natural)

    switches = p4rtswitches = p4switches

    def nodes(self, *_: Any, **__: Any) -> list[str]:
        return sorted([*self.declared_hosts, *self.declared_switches], key=_natural)

    def setP4Source(self, name: str, p4_src: str) -> None:
        self.declared_switches[name]["p4_src"] = p4_src

    def setP4SourceAll(self, p4_src: str) -> None:
        self.settings["program"] = p4_src
        for options in self.declared_switches.values():
            options.pop("p4_src", None)

    def setP4CliInput(self, name: str, cli_input: str) -> None:
        self.declared_switches[name]["cli_input"] = cli_input

    def setP4SwitchId(self, name: str, id: int) -> None:
        self.declared_switches[name]["device_id"] = id

    def setDefaultRoute(self, name: str, default_route: str) -> None:
        self.declared_hosts[name]["defaultRoute"] = default_route

    # ---- Links ----

    def addLink(
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, **options: Any
    ) -> None:
        for name in (node1, node2):
            if name not in self.declared_hosts and name not in self.declared_switches:
                raise _Refused(f"a link of {name}, which is no node")
        self.declared_links.append((node1, node2, {**options, "port1": port1, "port2": port2}))

    def links(self, *_: Any, **__: Any) -> list[tuple[str, str]]:
        return sorted(((a, b) for a, b, _ in self.declared_links), key=lambda link: [_natural(end) for end in link])

    def setIntfPort(self, node1: str, node2: str, port: int, **_: Any) -> None:
        for a, b, options in self.declared_links:
            if {a, b} == {node1, node2}:
                options["port1" if a == node1 else "port2"] = port

    def setIntfIp(self, node1: str, node2: str, ip: str, **_: Any) -> None:
        if node1 in self.declared_hosts:
            self.declared_hosts[node1]["ip"] = ip

    def setIntfMac(self, node1: str, node2: str, mac: str, **_: Any) -> None:
        if node1 in self.declared_hosts:
            self.declared_hosts[node1]["mac"] = mac

    def setBw(self, node1: str, node2: str, bw: float, **_: Any) -> None:
        self._set("bw", bw, node1, node2)

    def setDelay(self, node1: str, node2: str, delay: float, **_: Any) -> None:
        self._set("delay", delay, node1, node2)

    def setLoss(self, node1: str, node2: str, loss: float, **_: Any) -> None:
        self._set("loss", loss, node1, node2)

    def setMaxQueueSize(self, node1: str, node2: str, max_queue_size: int, **_: Any) -> None:
        self._set("max_queue_size", max_queue_size, node1, node2)

    def setBwAll(self, bw: float) -> None:
        self._set("bw", bw)

    def setDelayAll(self, delay: float) -> None:
        self._set("delay", delay)

    def setLossAll(self, loss: float) -> None:
        self._set("loss", loss)

    def setMaxQueueSizeAll(self, max_queue_size: int) -> None:
        self._set("max_queue_size", max_queue_size)

    def _set(self, what: str, value: float, *ends: str) -> None:
        """Set a property of the link between two nodes, or of all."""
        for a, b, options in self.declared_links:
            if not ends or {a, b} == set(ends):
                options[what] = value

    # ---- Addresses, and the end ----

    def l2(self) -> None:
        self.settings["strategy"] = "l2"

    def mixed(self) -> None:
        self.settings["strategy"] = "mixed"

    def l3(self) -> None:
        self.settings["strategy"] = "l3"

    def startNetwork(self) -> None:
        raise _Started


_made: list[NetworkAPI] = []


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Sorts s2 before s10, as p4-utils does."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", name)]


def _run(script: str) -> dict[str, Any]:
    """Run the script to its end or to startNetwork(), and report what it described."""
    parts = _MODULE.split(".")
    for last in range(1, len(parts) + 1):
        name = ".".join(parts[:last])
        sys.modules[name] = ModuleType(name)
    vars(sys.modules[_MODULE])["NetworkAPI"] = NetworkAPI
    sys.argv = [script]
    sys.path[:] = [os.path.dirname(script), *(each for each in sys.path if each != os.path.dirname(__file__))]
    try:
        runpy.run_path(script, run_name="__main__")
    except _Started:
        pass
    except (Exception, SystemExit) as error:
        return {"error": _described(script, error)}
    if not _made:
        return {"network": None}
    first = _made[0]
    return {
        "network": {
            "hosts": first.declared_hosts,
            "switches": first.declared_switches,
            "links": first.declared_links,
            **first.settings,
        }
    }


def _described(script: str, error: BaseException) -> str:
    """Describe an exception with the innermost line of the script on the way to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == script else None
    line = line or next(iter(reversed(lines)), 1)
    text = str(error) if isinstance(error, _Refused) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"line {line}: {' '.join(text.split())}"


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's; of classes, paths and what else an option may be, the text."""
    try:
        return value.item()
    except Exception:
        return str(value)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as answer:
        json.dump(_run(sys.argv[1]), answer, default=_plain)
    # Whatever the script has started meanwhile (threads of a library) is of no use any more.
    sys.stdout.flush()
    os._exit(0)
