"""Packets as people write them: headers for --template, and the packet to follow for --trace."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError, suggestion, unforeseen
from gradbed.experiments.traffic.configuration import Pair
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.traffic import TRAILER_BYTES
from gradbed.hosts.traffic.frames import FIRST_PORT
from gradbed.topo.graph import Topology

# ---- Headers ----


_VARIABLE = re.compile(r"\$(\w+)")
_PLAIN = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple),
    *(ast.BinOp, ast.Div, ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.LShift, ast.BitOr, ast.UnaryOp, ast.USub),
)
"""Allowed syntax. There are no attributes but the one below: attributes of any value lead to all that Python can
do.
"""
_METHOD = "to_bytes"
"""Method of integers that Raw needs."""


class Template:
    """A packet with variables.

    They are $src, $dst (IP addresses), $src_mac, $dst_mac, $next_mac (of the first hop, to which a frame without any
    destination goes), $src_number, $dst_number (numbers of the hosts, from 1), $flow (from 0) and $port (of the
    flow). Names and meanings are those of entries (controller/entries/values.py).

    The text, which may come with a study, can make layers and calculate with numbers, and no more. The file of layers
    runs as Python.
    """

    def __init__(self, text: str, layers: Path | None = None) -> None:
        """Compile the text.

        Args:
            layers: a Python file with Scapy layers (and bind_layers), whose names the text may use.

        Raises:
            UserError: the text cannot be read.
        """
        self._text = text
        self._names = {**_scapy_names(), **(_layers(layers) if layers is not None else {})}
        for name in _VARIABLE.findall(text):
            if name not in _VARIABLES:
                raise self._error(f"there is no ${name}{suggestion(name, _VARIABLES)}")
        try:
            tree = ast.parse(_VARIABLE.sub(r"_\1", text).strip(), "template", "eval")
            self._check(tree)
            self._code = compile(tree, "template", "eval")
        except (SyntaxError, ValueError) as error:
            raise self._error(getattr(error, "msg", str(error))) from None
        except (RecursionError, MemoryError):
            raise self._error("it is nested too deeply") from None

    def _check(self, tree: ast.Expression) -> None:
        for node in ast.walk(tree):
            plain = isinstance(node, _PLAIN) or (isinstance(node, ast.Attribute) and node.attr == _METHOD)
            if not plain or (isinstance(node, ast.keyword) and node.arg is None):
                raise self._error(
                    f"{type(node).__name__} cannot stand here: write layers with values, joined by /; what is more "
                    "belongs into the file that --layers names"
                )

    def headers(self, topology: Topology, frame_bytes: int) -> Callable[[Pair, int], tuple[str, ...]]:
        """Return the argument of plan_traffic: headers of a pair's flows in frames of this length."""
        places = {host.name: number for number, host in enumerate(topology.hosts, 1)}

        def of_pair(pair: Pair, flows: int) -> tuple[str, ...]:
            sender, receiver = (topology.host(name) for name in pair)
            values: dict[str, str | int] = {
                "src": sender.ip,
                "dst": receiver.ip,
                "src_mac": sender.mac,
                "dst_mac": receiver.mac,
                "next_mac": topology.destination_mac(*pair),
                "src_number": places[sender.name],
                "dst_number": places[receiver.name],
            }
            return tuple(
                self.header({**values, "flow": flow, "port": FIRST_PORT + flow}, frame_bytes).hex()
                for flow in range(flows)
            )

        return of_pair

    def header(self, values: dict[str, str | int], frame_bytes: int) -> bytes:
        """Return all that Scapy makes before the payload, with the lengths and checksums of a frame of this
        length.

        A UDP checksum that is not given is 0, which means none (RFC 768): the payload is known only when the frame is
        sent.

        Raises:
            UserError: Scapy cannot make the packet, or it is too long.
        """
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        from scapy.packet import Packet, Raw

        names = {"__builtins__": {}, **self._names, **{f"_{name}": value for name, value in values.items()}}
        try:
            packet = eval(self._code, names)
        except Exception as error:
            raise self._error(unforeseen(error)) from None
        if not isinstance(packet, Packet):
            raise self._error(f"it makes no Scapy packet, but {type(packet).__name__}")
        for layer, fields in (
            (Ether, {"src": values["src_mac"], "dst": values["next_mac"]}),
            (IP, {"src": values["src"], "dst": values["dst"]}),
            (UDP, {"chksum": 0, "sport": values["port"]}),
        ):
            if packet.haslayer(layer):
                for name, value in fields.items():
                    packet[layer].fields.setdefault(name, value)
        try:
            length = len(packet)
            if length + TRAILER_BYTES > frame_bytes:
                raise self._error(
                    f"its headers are {length} bytes long, and do not fit a frame of {frame_bytes} bytes with the "
                    f"{TRAILER_BYTES} at its end by which it is known"
                )
            return bytes(packet / Raw(bytes(frame_bytes - length)))[:length]
        except UserError:
            raise
        except Exception as error:
            raise self._error(f"Scapy cannot make it: {error}") from None

    def _error(self, message: str) -> UserError:
        return UserError(f"--template: {self._text!r}: {' '.join(message.split())}")


_VARIABLES = ("src", "dst", "src_mac", "dst_mac", "next_mac", "src_number", "dst_number", "flow", "port")


def _scapy_names() -> dict[str, Any]:
    """Return the layers that can be written without an import, and Scapy's random values."""
    import scapy.layers.inet
    import scapy.layers.inet6
    import scapy.layers.l2
    import scapy.packet
    import scapy.volatile

    found: dict[str, Any] = {"bytes": bytes}
    for module in (scapy.packet, scapy.layers.l2, scapy.layers.inet, scapy.layers.inet6):
        for name, value in vars(module).items():
            # Those modules also have names such as os, and sendp.
            if isinstance(value, type) and issubclass(value, (scapy.packet.Packet, scapy.volatile.VolatileValue)):
                found[name] = value
    return found


def _layers(path: Path) -> dict[str, Any]:
    """Return the names of a Python file.

    Raises:
        UserError: the file cannot be read, or fails.
    """
    if not path.is_file():
        raise UserError(f"cannot read the layers {path}: there is no such file")
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except Exception as error:
        line = _line(error, path)
        raise UserError(f"{path}{line}: {unforeseen(error)}") from None
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _line(error: Exception, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    numbers = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            numbers.append(trace.tb_lineno)
        trace = trace.tb_next
    return f":{numbers[-1]}" if numbers else ""


# ---- The packet to trace ----


_KEYS = ("src", "dst", "sport", "dport", "nth")
_PORT_PROTOCOLS = (6, 17)


def packet_choice(text: str, topology: Topology) -> Callable[[bytes], bool]:
    """Return a predicate that tells the chosen packet among all frames that come.

    Conditions are joined by "and": src and dst (names of hosts, or IP addresses), sport and dport (UDP or TCP), and
    nth, the number of the packet among those that meet the other conditions, from 1.

    Raises:
        UserError: the text is no such condition.
    """
    conditions: dict[str, int] = {}
    for part in text.split(" and "):
        key, separator, value = (word.strip() for word in part.partition("="))
        if not separator or key not in _KEYS:
            hint = suggestion(key, _KEYS)
            raise UserError(f"--trace: {part.strip()!r} is no condition such as dst=h2 or nth=3{hint}")
        conditions[key] = _address(value, topology) if key in ("src", "dst") else _number(key, value)
    nth, left = conditions.pop("nth", 1), [0]

    def chosen(frame: bytes) -> bool:
        if any(_fields(frame).get(key) != value for key, value in conditions.items()):
            return False
        left[0] += 1
        return left[0] == nth

    return chosen


def _fields(frame: bytes) -> dict[str, int]:
    """Return the fields of an IPv4 frame; none of other frames."""
    ip = frame[ETHERNET_BYTES:]
    if frame[12:14] != b"\x08\x00" or len(ip) < 20:
        return {}
    found = {"src": int.from_bytes(ip[12:16], "big"), "dst": int.from_bytes(ip[16:20], "big")}
    ports = ip[4 * (ip[0] & 15) :]
    if ip[9] in _PORT_PROTOCOLS and len(ports) >= 4:
        found |= {"sport": int.from_bytes(ports[:2], "big"), "dport": int.from_bytes(ports[2:4], "big")}
    return found


def _address(text: str, topology: Topology) -> int:
    hosts = {host.name: host.ip for host in topology.hosts}
    try:
        return int(IPv4Address(hosts.get(text, text)))
    except ValueError:
        raise UserError(f"--trace: {text!r} is no host and no IP address{suggestion(text, list(hosts))}") from None


def _number(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UserError(f"--trace: {key} is a whole number from 1 on, got {text!r}")
    return int(text)
