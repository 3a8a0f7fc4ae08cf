"""A host whose kernel answers nothing, since an agent is all that the host is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pyroute2 import IPRoute, NetlinkError

from gradbed.common.errors import UserError

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
