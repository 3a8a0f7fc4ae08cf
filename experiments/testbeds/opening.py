"""Which test bed a point runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradbed.experiments.setup import NetworkSetup, PointTask, Served
from gradbed.experiments.testbeds.interface import Testbed

if TYPE_CHECKING:
    from gradbed.experiments.testbeds.loading import Loading


@contextmanager
def loading_testbed(task: PointTask) -> Iterator[Loading | None]:
    """What can be begun of a point's test bed before its network is planned."""
    if task.configuration.clock == "virtual":
        yield None
        return
    from gradbed.experiments.testbeds.loading import loading

    with loading(task.folder) as found:
        yield found


def open_testbed(system: Served, network: NetworkSetup, task: PointTask, loading: Loading | None = None) -> Testbed:
    """The network of a point on the clock that its configuration names. loading: of loading_testbed."""
    if task.configuration.clock == "virtual":
        from gradbed.experiments.testbeds.virtual_testbed import VirtualTestbed

        return VirtualTestbed(system, network, task)
    from gradbed.experiments.testbeds.mininet_testbed import MininetTestbed

    return MininetTestbed(system, network, task, loading=loading)
