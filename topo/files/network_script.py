"""network.py of p4-utils: a script that describes a network to a NetworkAPI, of which this is the part that listens.

The script runs up to startNetwork(); nothing of what it wants to be started is.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from common.errors import UserError
from topo.files.description import Described
from topo.files.p4_utils import Network, link_order, natural

_MODULE = "p4utils.mininetlib.network_API"


def describe(path: Path) -> Described:
    """What the script says. UserError with the line where it raises an exception."""
    made: list[NetworkAPI] = []
    with _in_place_of_p4_utils(made), contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(_Started):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except OSError as error:
            if error.filename == str(path):
                raise UserError(f"it cannot be read: {error.strerror}") from None
            raise UserError(_described(path, error)) from None
        except _Started:
            raise
        except (Exception, SystemExit) as error:
            raise UserError(_described(path, error)) from None
    if not made:
        raise UserError("it makes no NetworkAPI(), as network.py of p4-utils does")
    return made[0].network.described()


class _Started(Exception):
    """The network is described."""


class NetworkAPI:
    """Takes in what p4utils.mininetlib.network_API.NetworkAPI would. Methods that set what is no part of a topology
    (logs, captures, the prompt) do nothing."""

    def __init__(self) -> None:
        self.network = Network(form="network.py of p4-utils")

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith(("set", "enable", "disable", "add", "exec", "print", "describe", "save")):
            raise AttributeError(f"gradbed does not know NetworkAPI.{name}")
        return lambda *_, **__: None

    # ---- Nodes ----

    def addHost(self, name: str, **options: Any) -> str:
        self.network.hosts[name] = options
        return name

    def addP4Switch(self, name: str, **options: Any) -> str:
        self.network.switches[name] = options
        return name

    addP4RuntimeSwitch = addP4Switch

    def addSwitch(self, name: str, **_: Any) -> str:
        raise UserError(f"{name} is no P4 switch: networks from files have P4 switches alone")

    addRouter = addTofino = addSwitch

    def hosts(self, *_: Any, **__: Any) -> list[str]:
        return sorted(self.network.hosts, key=natural)

    def p4switches(self, *_: Any, **__: Any) -> list[str]:
        return sorted(self.network.switches, key=natural)

    switches = p4rtswitches = p4switches

    def nodes(self, *_: Any, **__: Any) -> list[str]:
        return sorted([*self.network.hosts, *self.network.switches], key=natural)

    def setP4Source(self, name: str, p4_src: str) -> None:
        self.network.switches[name]["p4_src"] = p4_src

    def setP4SourceAll(self, p4_src: str) -> None:
        self.network.program = p4_src
        for options in self.network.switches.values():
            options.pop("p4_src", None)

    def setP4CliInput(self, name: str, cli_input: str) -> None:
        self.network.switches[name]["cli_input"] = cli_input

    def setP4SwitchId(self, name: str, id: int) -> None:
        self.network.switches[name]["device_id"] = id

    def setDefaultRoute(self, name: str, default_route: str) -> None:
        self.network.hosts[name]["defaultRoute"] = default_route

    # ---- Links ----

    def addLink(
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, **options: Any
    ) -> None:
        for name in (node1, node2):
            if name not in self.network.hosts and name not in self.network.switches:
                raise UserError(f"a link of {name}, which is no node")
        self.network.links.append((node1, node2, {**options, "port1": port1, "port2": port2}))

    def links(self, *_: Any, **__: Any) -> list[tuple[str, str]]:
        return sorted(((a, b) for a, b, _ in self.network.links), key=link_order)

    def setIntfPort(self, node1: str, node2: str, port: int, **_: Any) -> None:
        for a, b, options in self.network.links:
            if {a, b} == {node1, node2}:
                options["port1" if a == node1 else "port2"] = port

    def setIntfIp(self, node1: str, node2: str, ip: str, **_: Any) -> None:
        if node1 in self.network.hosts:
            self.network.hosts[node1]["ip"] = ip

    def setIntfMac(self, node1: str, node2: str, mac: str, **_: Any) -> None:
        if node1 in self.network.hosts:
            self.network.hosts[node1]["mac"] = mac

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
        """Of the link between two nodes, or of all."""
        for a, b, options in self.network.links:
            if not ends or {a, b} == set(ends):
                options[what] = value

    # ---- Addresses, and the end ----

    def l2(self) -> None:
        self.network.strategy = "l2"

    def mixed(self) -> None:
        self.network.strategy = "mixed"

    def l3(self) -> None:
        self.network.strategy = "l3"

    def startNetwork(self) -> None:
        raise _Started


@contextlib.contextmanager
def _in_place_of_p4_utils(made: list[NetworkAPI]) -> Iterator[None]:
    """What scripts import as NetworkAPI is ours, and is told in `made`."""

    def network_api(*_: Any, **__: Any) -> NetworkAPI:
        made.append(NetworkAPI())
        return made[-1]

    modules = {}
    parts = _MODULE.split(".")
    for last in range(1, len(parts) + 1):
        modules[".".join(parts[:last])] = ModuleType(".".join(parts[:last]))
    vars(modules[_MODULE])["NetworkAPI"] = network_api
    before = {name: sys.modules.get(name) for name in modules}
    arguments = sys.argv
    sys.modules.update(modules)
    sys.argv = sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = arguments
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _described(path: Path, error: BaseException) -> str:
    """The exception with the innermost line of the script that was on the way to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else next(iter(reversed(lines)), 1)
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"line {line}: {' '.join(text.split())}"
