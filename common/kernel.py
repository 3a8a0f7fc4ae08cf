"""Features of the running kernel and system, probed in a temporary network namespace."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass

from pyroute2 import IPRoute, NetlinkError

from gradbed.common.namespaces import in_new_network_namespace
from gradbed.common.programs import find_program


@dataclass(frozen=True)
class Feature:
    """Something the emulation uses. `remedy` says what to do if it is not `present`."""

    name: str
    purpose: str
    present: bool
    remedy: str


def has_veth() -> bool:
    """Return whether virtual Ethernet pairs can be made.

    Raises:
        OSError: It is not root that asks.
    """

    def attempt() -> bool:
        with IPRoute() as netlink:
            try:
                netlink.link("add", ifname="a", kind="veth", peer={"ifname": "b"})
            except NetlinkError as error:
                if error.code == errno.EOPNOTSUPP:
                    return False
                raise OSError(error.code, f"veth: {error}") from error
            return True

    return in_new_network_namespace(attempt)


def has_network_namespaces() -> bool:
    """Return whether this process may make network namespaces."""
    return _works(lambda: in_new_network_namespace(lambda: None))


def has_packet_sockets() -> bool:
    """Return whether this process may open AF_PACKET sockets (packet(7))."""
    return _works(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())


def _works(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def features() -> tuple[Feature, ...]:
    """Everything the emulation may need, in the order in which it would be missed. Needs root."""
    namespaces = has_network_namespaces()
    privileged = "run as root; in a container, run it privileged"

    def feature(name: str, purpose: str, test: Callable[[], bool], remedy: str) -> Feature:
        return Feature(name, purpose, namespaces and test(), remedy)

    return (
        Feature("network namespaces", "hosts of their own", namespaces, privileged),
        feature("packet sockets", "switch ports", has_packet_sockets, privileged),
        feature("veth", "links to hosts", has_veth, "load the kernel module veth"),
        Feature(
            "Mininet",
            "hosts and the command line",
            find_program("mnexec") is not None,
            "apt-get install --no-install-recommends mininet",
        ),
    )
