"""Every switch of a network a simple_switch_grpc process of BMv2, with links of the kernel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyroute2 import IPRoute

from emulation.fabric import Fabric, ForeignSwitches
from emulation.links import interface_counters, traffic_control
from emulation.links.link_statistics import DirectionStatistics
from emulation.switches.fabric_layout import interface_name
from topo.graph import Topology

if TYPE_CHECKING:
    from mininet.net import Mininet

    from emulation.nodes.bmv2_node import Bmv2Switch

QUIET_S = 0.05
"""With BMv2 nobody knows how many packets are on their way; this long without any sent counts as none."""


class Bmv2Switches(Fabric):
    """A back end of EmulatedNetwork (emulation.network.SwitchRunner)."""

    def __init__(self, topology: Topology, foreign: ForeignSwitches | None = None) -> None:
        super().__init__(topology, foreign)
        self._nodes: dict[str, Bmv2Switch] = {}
        self._host_pids: dict[str, int] = {}

    def check(self) -> None:
        """UserError without BMv2, or if the kernel lacks what the links need."""
        from switch.p4lang.bmv2_programs import find_simple_switch_grpc

        find_simple_switch_grpc()
        traffic_control.require_kernel_support(link.model for link in self.topology.links)

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from emulation.nodes.bmv2_node import Bmv2Switch, free_ports
        from switch.p4lang.bmv2_programs import find_simple_switch_grpc

        self._host_pids = {host.name: host.pid for host in net.hosts}
        binary = find_simple_switch_grpc()
        ports = iter(free_ports(2 * len(self.topology.switches)))
        for switch in self.topology.switches:
            if switch.name in self.foreign:
                continue
            self._nodes[switch.name] = net.addSwitch(
                switch.name,
                cls=Bmv2Switch,
                number=switch.number,
                binary=binary,
                grpc_port=next(ports),
                thrift_port=next(ports),
                log=run_dir / f"{switch.name}.log",
            )

    def start(self, run_dir: Path) -> None:
        self._shape_links()
        for node in self._nodes.values():
            node.start([])
        for node in self._nodes.values():
            node.wait_ready()

    def _shape_links(self) -> None:
        at_switches: list[str] = []
        for link in self.topology.links:
            for end in (link.a, link.b):
                lines = traffic_control.commands(interface_name(end), link.model)
                if end.node in self._host_pids:
                    traffic_control.apply(lines, self._host_pids[end.node])
                else:
                    at_switches += lines
        traffic_control.apply(at_switches)

    def stop(self) -> None:
        for node in self._nodes.values():
            node.terminate_process()
        for node in self._nodes.values():
            node.stop()
        self._nodes = {}

    def _p4runtime_address(self, switch: str) -> str:
        return self._nodes[switch].grpc_address

    def thrift_ports(self) -> dict[str, int]:
        return {name: node.thrift_port for name, node in self._nodes.items() if node.has_thrift}

    def link_statistics(self) -> list[DirectionStatistics]:
        """From the kernel's counters: links with loss or duplication have no rows.

        The kernel does not tell lost packets from those that found the queue full, nor duplicates from originals.
        """
        at_switches = interface_counters.sent()
        rows = []
        for link in self.topology.links:
            if link.model.loss or link.model.duplicate:
                continue
            for end in (link.a, link.b):
                pid = self._host_pids.get(end.node)
                sent = (at_switches if pid is None else interface_counters.sent(pid))[interface_name(end)]
                rows.append(
                    DirectionStatistics(
                        from_node=end.node,
                        to_node=link.other(end.node).node,
                        packets=sent.packets,
                        bytes=sent.bytes,
                        queue_drops=sent.drops,
                        queue_drop_bytes=None if sent.drops else 0,
                        losses=0,
                        lost_bytes=0,
                        duplicates=0,
                        duplicate_bytes=0,
                    )
                )
        return rows

    def _quiesce(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        before = interface_counters.sent()
        while time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = interface_counters.sent()
            if now == before:
                return True
            before = now
        return False

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        link = self.topology.link(a, b)
        end = link.b if link.a.node in self._host_pids else link.a
        with IPRoute() as netlink:
            (index,) = netlink.link_lookup(ifname=interface_name(end))
            netlink.link("set", index=index, state="up" if up else "down")

    def _restart_switch(self, switch: str) -> None:
        node = self._nodes[switch]
        node.stop()
        node.start([])
        node.wait_ready()
