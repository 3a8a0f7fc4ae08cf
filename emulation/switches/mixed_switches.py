"""A network of two kinds of switches: P4 ones, run by one of the back ends, and bridges of Open vSwitch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from emulation.links.link_statistics import DataPlaneStatistics, DirectionStatistics
from emulation.switches.ovs_switches import OvsSwitches
from topo.graph import Link
from topo.link import LinkModel

if TYPE_CHECKING:
    from mininet.net import Mininet

    from emulation.network import SwitchBackend
    from switch.insight.fabric_recorder import Recording

QUIET_S = 0.02
"""Open vSwitch does not tell what it holds; this long without a packet on any link counts as nothing."""


class MixedSwitches:
    """Both back ends as one (SwitchBackend of network.py). `p4` runs the P4 switches and models every link."""

    def __init__(self, p4: SwitchBackend, openflow: OvsSwitches) -> None:
        self._p4 = p4
        self._openflow = openflow
        self._openflow_names = frozenset(each.name for each in openflow.switches)

    def check(self) -> None:
        self._p4.check()
        self._openflow.check()

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        self._p4.add_nodes(net, run_dir)
        self._openflow.add_nodes(net, run_dir)

    def start(self, net: Mininet, run_dir: Path) -> None:
        self._openflow.start(run_dir)
        self._p4.start(net, run_dir)

    def stop(self) -> None:
        self._openflow.stop()
        self._p4.stop()

    def p4runtime_address(self, switch: str) -> str:
        return self._p4.p4runtime_address(switch)

    def link_statistics(self) -> list[DirectionStatistics]:
        return self._p4.link_statistics()

    def device_statistics(self) -> dict[str, dict[str, int]]:
        return self._p4.device_statistics()

    def start_capture(self, file: Path, host: str) -> None:
        self._p4.start_capture(file, host)

    def records(self, file: Path) -> Recording:
        return self._p4.records(file)

    def data_plane_statistics(self) -> DataPlaneStatistics | None:
        return self._p4.data_plane_statistics()

    def set_link(self, link: Link, model: LinkModel) -> None:
        self._p4.set_link(link, model)

    def set_link_up(self, link: Link, up: bool) -> None:
        self._p4.set_link_up(link, up)

    def restart_switch(self, switch: str) -> None:
        (self._openflow if switch in self._openflow_names else self._p4).restart_switch(switch)

    def quiesce(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        before: list[DirectionStatistics] | None = None
        while (left_s := deadline - time.monotonic()) > 0:
            if not self._p4.quiesce(left_s):
                return False
            now = self._p4.link_statistics()
            if now == before:
                return True
            before = now
            time.sleep(QUIET_S)
        return False
