"""What an agent's process asks of the kernel of its host: the network namespace, silence, and an /etc/hosts of its
own."""

from __future__ import annotations

import ctypes
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyroute2 import IPRoute, NetlinkError

from gradbed.common.errors import UserError
from gradbed.common.namespaces import CLONE_NEWNS, MS_BIND, MS_PRIVATE, MS_REC, in_network_namespace, mount, unshare

_CLONE_NEWNET = 0x40000000

_ICMP_INTERVAL = Path("/proc/sys/net/ipv4/icmp_ratelimit")
_NEVER_MS = 24 * 3600 * 1000

_libc = ctypes.CDLL(None, use_errno=True)


def enter_network_namespace(pid: int) -> None:
    """Move this process into the network namespace of process `pid`. Needs CAP_SYS_ADMIN; raises UserError."""
    try:
        descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"no network namespace of process {pid}: {error.strerror}") from None
    try:
        # os.setns exists from Python 3.12 on only.
        if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise UserError(f"cannot enter the network namespace of process {pid}: {reason}")
    finally:
        os.close(descriptor)


def forbid_unreachable(pid: int) -> None:
    """Let the kernel of the host that is process `pid` answer no packet with "port unreachable" any more: nobody
    answers for a program that is dead (icmp(7): so long between two such messages to one destination)."""
    in_network_namespace(pid, lambda: _ICMP_INTERVAL.write_text(str(_NEVER_MS)))


# ---- Host names ----


HOSTS = Path("/etc/hosts")


def name_hosts(names: Mapping[str, str]) -> None:
    """Let this process, and its children, see the machine's /etc/hosts, if it has one, with more names.

    names: by IPv4 address. UserError.
    """
    if not HOSTS.exists():
        return
    lines = [HOSTS.read_text().rstrip("\n")]
    # Sockets for both families see IPv4 addresses in the form of IPv6 (RFC 4291, section 2.5.5.2).
    lines += [f"{form}{ip} {name}" for ip, name in names.items() for form in ("", "::ffff:")]
    try:
        unshare(CLONE_NEWNS)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        with tempfile.NamedTemporaryFile("w", prefix="gradbed-hosts-") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.chmod(file.name, 0o644)
            # Stays when the file's name goes.
            mount(file.name, str(HOSTS), None, MS_BIND)
    except OSError as error:
        raise UserError(f"cannot give a host its own {HOSTS}: {error.strerror}") from None


# ---- A kernel that answers nothing ----


# <linux/rtnetlink.h>
_LOCAL_TABLE = 255
_RTN_LOCAL = 2
_LOCAL = {"table": _LOCAL_TABLE, "type": "local", "scope": 254, "proto": 2}
"""RT_SCOPE_HOST, RTPROT_KERNEL: as the kernel makes such a route when an interface gets its address."""


@contextmanager
def silent_kernel(interface: str) -> Iterator[None]:
    """The kernel does not take the interface's IPv4 addresses for its own: no "port unreachable", no reset, no reply
    to ARP or ping, whatever comes. UserError without the right to do that."""
    try:
        with IPRoute() as netlink:
            (index,) = netlink.link_lookup(ifname=interface)
            own = [
                f"{route.get_attr('RTA_DST')}/{route['dst_len']}"
                for route in netlink.get_routes(family=socket.AF_INET, table=_LOCAL_TABLE)
                if route["type"] == _RTN_LOCAL and route.get_attr("RTA_OIF") == index
            ]
            for address in own:
                netlink.route("del", dst=address, oif=index, **_LOCAL)
                netlink.route("add", table=_LOCAL_TABLE, type="blackhole", dst=address)
    except NetlinkError as error:
        raise UserError(f"cannot keep the kernel from answering on {interface}: {error}") from None
    try:
        yield
    finally:
        with IPRoute() as netlink:
            for address in own:
                netlink.route("del", table=_LOCAL_TABLE, type="blackhole", dst=address)
                netlink.route("add", dst=address, oif=index, **_LOCAL)
