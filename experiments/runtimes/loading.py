"""Controller and switch process of a network in real time, which load their modules while it is being planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.emulation.switches.gradbed_switches import LOG, SwitchProcess, switch_process_command
from gradbed.experiments.setup import TrialTask


@dataclass(frozen=True)
class Loading:
    """Processes of a network in real time that load their modules, and wait for their configurations."""

    controller: JsonLinesProcess
    switches: SwitchProcess


@contextmanager
def loading_runtime(task: TrialTask) -> Iterator[Loading | None]:
    """Start the processes of a trial's runtime before its network is planned; None on the virtual clock.

    They are killed at the end, if they are still there: a network has stopped those that it was given, and others
    would load all their modules first.
    """
    if task.configuration.clock == "virtual":
        yield None
        return
    controller = controller_process("-", task.folder / "controller.log")
    try:
        switches = SwitchProcess(switch_process_command("-"), task.folder / LOG)
        try:
            yield Loading(controller, switches)
        finally:
            switches.stop(0)
    finally:
        controller.stop(0)


def controller_process(argument: str, log: Path, keep_open: Sequence[int] = ()) -> JsonLinesProcess:
    """Start a controller. argument: the file with its configuration, or "-" for one that is sent later."""
    return JsonLinesProcess("controller", own_program("gradbed.controller.app", argument), log, keep_open)
