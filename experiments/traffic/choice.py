"""Choice of the packet to trace, such as dst=10.0.1.2 and nth=3."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address

from gradbed.common.errors import UserError
from gradbed.common.suggestion import suggestion
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.topo.graph import Topology

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
