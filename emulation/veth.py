"""Virtual Ethernet pairs and the addresses of hosts, through rtnetlink: a few milliseconds per host."""

from __future__ import annotations

import array
import errno
import fcntl
import secrets
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute, NetlinkError

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace
from gradbed.topo.graph import Host
from gradbed.topo.link import USUAL_MTU_BYTES

_LOOPBACK_INDEX = 1
_IFA_F_NOPREFIXROUTE = 0x200  # <linux/if_addr.h>
_RT_SCOPE_LINK = 253  # <linux/rtnetlink.h>
_SIOCETHTOOL = 0x8946  # <linux/sockios.h>
# <linux/ethtool.h>: ETHTOOL_STSO, SGSO, SGRO, STXCSUM, SRXCSUM, and SSG: without scatter-gather no TSO of any kind
_OFFLOADS = (0x1F, 0x24, 0x2C, 0x17, 0x15, 0x19)


@dataclass(frozen=True)
class VethPair:
    """A veth pair. One end stays in the caller's network namespace; the peer goes to that of process `peer_pid`, if
    given."""

    interface: str
    mac: str
    peer: str
    peer_mac: str
    peer_pid: int | None = None


def create_pairs(pairs: Iterable[VethPair], group: int, mtu_bytes: int = USUAL_MTU_BYTES) -> None:
    """Make the pairs, with the near ends (and peers that stay here) up, silent and in interface group `group`.

    Silent: no IPv6, so the kernel sends nothing of its own, and no offloads, so that a user-space switch sees
    frames as they would be on a wire. UserError if an interface of that name exists.
    """
    with IPRoute() as netlink:
        for pair in pairs:
            peer: dict[str, object] = {"ifname": pair.peer, "address": pair.peer_mac, "mtu": mtu_bytes}
            if pair.peer_pid is None:
                peer["IFLA_GROUP"] = group
            else:
                peer["net_ns_pid"] = pair.peer_pid
            try:
                netlink.link(
                    "add",
                    ifname=pair.interface,
                    address=pair.mac,
                    mtu=mtu_bytes,
                    kind="veth",
                    IFLA_GROUP=group,
                    peer=peer,
                )
            except NetlinkError as error:
                if error.code == errno.EEXIST:
                    raise UserError(
                        f"interface {pair.interface} exists already: another network is running here"
                    ) from error
                raise
            for name in (pair.interface,) if pair.peer_pid is not None else (pair.interface, pair.peer):
                _bring_up(netlink, name)


def delete_group(group: int) -> None:
    """Delete all interfaces of a group in the caller's network namespace, with their peers, at one go."""
    with IPRoute() as netlink:
        try:
            netlink.link("del", IFLA_GROUP=group)
        except NetlinkError as error:
            if error.code != errno.ENODEV:  # there are none
                raise


def delete_interfaces(names: Iterable[str]) -> None:
    """Delete interfaces of the caller's network namespace, at one go; those that are not there do not matter."""
    group = secrets.randbits(30) + 1
    with IPRoute() as netlink:
        for name in names:
            for index in netlink.link_lookup(ifname=name):
                netlink.link("set", index=index, IFLA_GROUP=group)
    delete_group(group)


def configure_host(host: Host, interface: str, pid: int, neighbours: Iterable[Host] = ()) -> None:
    """Give the host that is process `pid` its address, a route and the gateway's MAC address.

    The route leads everything to the gateway, neighbours in the same subnet too: a P4 router answers no ARP requests.
    A host that reaches its subnet directly (on_link) is told its neighbours' MAC addresses instead.
    """

    def configure() -> None:
        for scope in ("all", "default"):
            _disable_ipv6(scope)
        with IPRoute() as netlink:
            netlink.link("set", index=_LOOPBACK_INDEX, state="up")
            index = _bring_up(netlink, interface)
            flags = 0 if host.on_link else _IFA_F_NOPREFIXROUTE
            netlink.addr("add", index=index, address=host.ip, prefixlen=host.prefix_bits, IFA_FLAGS=flags)
            if not host.on_link:
                netlink.route("add", dst=f"{host.gateway_ip}/32", oif=index, scope=_RT_SCOPE_LINK)
            for other in neighbours:
                netlink.neigh("add", dst=other.ip, lladdr=other.mac, ifindex=index, state="permanent")
            netlink.route("add", dst="default", gateway=host.gateway_ip)
            netlink.neigh("add", dst=host.gateway_ip, lladdr=host.gateway_mac, ifindex=index, state="permanent")

    in_network_namespace(pid, configure)


def bring_up(interface: str, pid: int) -> None:
    """Bring up a further interface of the host that is process `pid`; it has no address of its own."""

    def configure() -> None:
        with IPRoute() as netlink:
            _bring_up(netlink, interface)

    in_network_namespace(pid, configure)


def _bring_up(netlink: IPRoute, interface: str) -> int:
    """Make an interface silent and bring it up; return its index."""
    _disable_ipv6(interface)
    disable_offloads(interface)
    index: int = netlink.link_lookup(ifname=interface)[0]
    netlink.link("set", index=index, state="up")
    return index


def _disable_ipv6(scope: str) -> None:
    setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
    if setting.exists():  # not where the kernel was built or booted without IPv6
        setting.write_text("1")


def disable_offloads(interface: str) -> None:
    """Do what `ethtool -K INTERFACE tso off gso off gro off tx off rx off sg off` does, without a process."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS:
            # struct ifreq with ifr_data pointing to struct ethtool_value {cmd, data}
            value = array.array("I", [command, 0])
            request = struct.pack("16sP16x", interface.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:  # the driver has no such offload
                    raise
