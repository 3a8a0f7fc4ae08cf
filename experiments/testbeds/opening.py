"""Which test bed a point runs on."""

from __future__ import annotations

from experiments.setup import NetworkSetup, PointTask, Served
from experiments.testbeds.interface import Testbed


def open_testbed(system: Served, network: NetworkSetup, task: PointTask) -> Testbed:
    """The network of a point on the clock that its configuration names."""
    if task.configuration.clock == "virtual":
        from experiments.testbeds.virtual_testbed import VirtualTestbed

        return VirtualTestbed(system, network, task)
    from experiments.testbeds.mininet_testbed import MininetTestbed

    return MininetTestbed(system, network, task)
