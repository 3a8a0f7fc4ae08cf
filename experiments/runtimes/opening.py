"""Which runtime a trial runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.setup import NetworkSetup, Served, TrialTask

if TYPE_CHECKING:
    from gradbed.experiments.runtimes.loading import Loading


@contextmanager
def loading_runtime(task: TrialTask) -> Iterator[Loading | None]:
    """What can be begun of a trial's runtime before its network is planned."""
    if task.configuration.clock == "virtual":
        yield None
        return
    from gradbed.experiments.runtimes.loading import loading

    with loading(task.folder) as found:
        yield found


def open_runtime(system: Served, network: NetworkSetup, task: TrialTask, loading: Loading | None = None) -> Runtime:
    """The network of a trial on the clock that its configuration names. loading: of loading_runtime."""
    if task.configuration.clock == "virtual":
        from gradbed.experiments.runtimes.virtual import VirtualRuntime

        return VirtualRuntime(system, network, task)
    from gradbed.experiments.runtimes.real import RealRuntime

    return RealRuntime(system, network, task, loading=loading)
