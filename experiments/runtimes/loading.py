"""The processes of a network in real time, which load their modules while it is still being planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.emulation.switches.gradbed_switches import LOG, SwitchProcess, switch_process_command


@dataclass(frozen=True)
class Loading:
    """Both wait to be told of their configuration."""

    controller: JsonLinesProcess
    switches: SwitchProcess


@contextmanager
def loading(folder: Path) -> Iterator[Loading]:
    """Killed at the end, if they are still there: a network has stopped those that it was given, and others would
    load all their modules first. folder: of the trial."""
    controller = controller_process("-", folder / "controller.log")
    try:
        switches = SwitchProcess(switch_process_command("-"), folder / LOG)
        try:
            yield Loading(controller, switches)
        finally:
            switches.stop(0)
    finally:
        controller.stop(0)


def controller_process(argument: str, log: Path, keep_open: Sequence[int] = ()) -> JsonLinesProcess:
    """argument: the file with its configuration, or "-"."""
    return JsonLinesProcess("controller", own_program("gradbed.controller.app", argument), log, keep_open)
