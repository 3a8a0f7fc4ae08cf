"""What the kernel's interfaces have sent, from rtnetlink."""

from __future__ import annotations

from dataclasses import dataclass

from pyroute2 import IPRoute

from common.namespaces import in_network_namespace


@dataclass(frozen=True)
class Sent:
    """Frames that left through an interface, and frames that its queueing discipline dropped before."""

    packets: int
    bytes: int
    drops: int


def sent(pid: int | None = None) -> dict[str, Sent]:
    """By interface name, in the network namespace of a process, or of the caller."""
    return _read() if pid is None else in_network_namespace(pid, _read)


def _read() -> dict[str, Sent]:
    with IPRoute() as netlink:
        drops = {
            qdisc["index"]: qdisc.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"]
            for qdisc in netlink.get_qdiscs()
            if qdisc["parent"] == _ROOT and qdisc.get_attr("TCA_STATS2") is not None
        }
        counters = {}
        for link in netlink.get_links():
            statistics = link.get_attr("IFLA_STATS64")
            counters[link.get_attr("IFLA_IFNAME")] = Sent(
                statistics["tx_packets"], statistics["tx_bytes"], drops.get(link["index"], 0)
            )
        return counters


_ROOT = 0xFFFFFFFF  # TC_H_ROOT, <linux/pkt_sched.h>
