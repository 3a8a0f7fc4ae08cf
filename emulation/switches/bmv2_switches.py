"""The P4 switches of a network, each a simple_switch_grpc process of BMv2."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from mininet.net import Mininet

    from gradbed.emulation.nodes import Bmv2Switch


class Bmv2Switches:
    """Runs the switches `names` of the topology. Links are not its business
    (gradbed.emulation.backend.ForeignSwitches)."""

    def __init__(self, topology: Topology, names: Collection[str]) -> None:
        self.topology = topology
        self.names = frozenset(names)
        self._nodes: dict[str, Bmv2Switch] = {}

    def check(self) -> None:
        """Raise UserError without BMv2, and for links that its ports are not made for."""
        from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

        find_simple_switch_grpc()
        if any(link.model.channels > 1 for link in self.topology.links):
            raise UserError("BMv2's ports are one channel: drop `--switch bmv2`, or take links of one channel")

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from gradbed.emulation.nodes import Bmv2Switch, free_ports
        from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

        binary = find_simple_switch_grpc()
        ports = iter(free_ports(2 * len(self.names)))
        for switch in self.topology.switches:
            if switch.name in self.names:
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
        for node in self._nodes.values():
            node.start([])
        for node in self._nodes.values():
            node.wait_ready()

    def stop(self) -> None:
        for node in self._nodes.values():
            node.terminate_process()
        for node in self._nodes.values():
            node.stop()
        self._nodes = {}

    def control_address(self, switch: str) -> str:
        return self._nodes[switch].grpc_address

    def thrift_ports(self) -> dict[str, int]:
        return {name: node.thrift_port for name, node in self._nodes.items() if node.has_thrift}

    def restart_switch(self, switch: str) -> None:
        node = self._nodes[switch]
        node.stop()
        node.start([])
        node.wait_ready()
