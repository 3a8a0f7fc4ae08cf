"""The prompt of all systems, with all commands.

A system adds its own commands by a subclass (experiments.system.System.prompt).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND, attribute
from gradbed.experiments.prompt.base import BasePrompt
from gradbed.experiments.prompt.network_commands import LinkCommands, SwitchCommands
from gradbed.experiments.prompt.traffic_commands import CaptureCommands, TrafficCommands

if TYPE_CHECKING:
    from gradbed.experiments.runtimes.real import RealRuntime
    from gradbed.experiments.setup import TrialTask
    from gradbed.experiments.system import System


# ---- Programs of others ----


LOOK_ONLY = "0,0"
"""Election id below the controller's, which stays primary (P4Runtime specification, client arbitration)."""


class ProgramCommands(BasePrompt):
    """Commands that run other programs in the network's namespaces."""

    complete_p4sh = BasePrompt.complete_switches
    complete_xterm = complete_gterm = BasePrompt.completedefault

    def do_p4sh(self, line: str) -> None:
        """Look around in a P4 switch with p4runtime-shell, p4lang's P4Runtime client, until 'exit' there.
        Usage: p4sh SWITCH
        The controller stays the one who writes. ./gradbed p4 shell --install installs it, outside the network."""
        from gradbed.switch.p4lang.p4runtime_shell import installed_python, shell_arguments

        words = self.words(line, 1)
        if not words:
            raise UserError("which switch? p4sh SWITCH")
        name = self.switch(words[0])
        target = self.runtime.targets().get(name)
        if target is None:
            raise UserError(f"{name} is no P4 switch: 'dpctl dump-flows' shows what it holds")
        python = installed_python()
        if python is None:
            raise UserError(
                f"p4runtime-shell is not installed: in another terminal, as this user, {COMMAND} p4 shell --install"
            )
        arguments = shell_arguments(target["address"], target["device_id"], LOOK_ONLY, None)
        # What a script has on its next lines is for the prompt.
        source = None if self.isatty() else subprocess.DEVNULL
        self.stdout.flush()
        status = subprocess.run([python, *arguments], stdin=source, check=False).returncode
        if status:
            raise UserError(f"p4runtime-shell ended with status {status}")

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Open a terminal window on each of these nodes.
        Usage: xterm NODE ..."""
        names = self.words(line, len(self.mn))
        if not names:
            raise UserError(f"on which node? {term} NODE ...")
        for name in names:
            if name not in self.mn:
                raise UserError(f"there is no node {name!r}; see 'nodes'")
        if not os.environ.get("DISPLAY"):
            raise UserError(f"{term} needs a display, and DISPLAY is not set: {names[0]} COMMAND runs a command here")
        program = {"gterm": "gnome-terminal"}.get(term, term)
        if shutil.which(program) is None:
            raise UserError(f"the program {program} is missing: apt-get install {program}")
        super().do_xterm(line, term)

    def do_x(self, line: str) -> None:
        """Run a program with windows on a node.
        Usage: x NODE COMMAND"""
        if len(line.split()) < 2:
            raise UserError("what, and where? x NODE COMMAND")
        if not os.environ.get("DISPLAY"):
            raise UserError(f"{line.split()[1]} needs a display, and DISPLAY is not set")
        super().do_x(line)


# ---- The prompt ----


class Prompt(LinkCommands, SwitchCommands, TrafficCommands, CaptureCommands, ProgramCommands):
    """Mininet's commands, and gradbed's for networks of any system."""


def run_prompt(system: System, runtime: RealRuntime, task: TrialTask) -> None:
    """Read commands until the last one."""
    try:
        kind = attribute(system.tools.prompt)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the prompt of {system.name} cannot be loaded from {system.tools.prompt}: {error}") from None
    prompt = kind(system, runtime, task)
    prompt.close()
