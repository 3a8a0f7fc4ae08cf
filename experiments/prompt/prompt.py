"""The prompt that every system has; a system adds commands by a subclass
(gradbed.experiments.system.System.prompt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.experiments.prompt.capture_commands import CaptureCommands
from gradbed.experiments.prompt.link_commands import LinkCommands
from gradbed.experiments.prompt.program_commands import ProgramCommands
from gradbed.experiments.prompt.switch_commands import SwitchCommands
from gradbed.experiments.prompt.traffic_commands import TrafficCommands

if TYPE_CHECKING:
    from gradbed.experiments.setup import PointTask
    from gradbed.experiments.system import System
    from gradbed.experiments.testbeds.mininet_testbed import MininetTestbed


class Prompt(LinkCommands, SwitchCommands, TrafficCommands, CaptureCommands, ProgramCommands):
    """Mininet's commands, and ours for networks of any system."""


def run_prompt(system: System, testbed: MininetTestbed, task: PointTask) -> None:
    """Read commands until the last one."""
    try:
        kind = attribute(system.prompt)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the prompt of {system.name} cannot be loaded from {system.prompt}: {error}") from None
    prompt = kind(system, testbed, task)
    prompt.close()
