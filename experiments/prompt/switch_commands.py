"""plan, counters, restart, wait: what switches should hold, what they count, and how they come back."""

from __future__ import annotations

import time

from gradbed.common.errors import UserError
from gradbed.controller.planning.text import switch_text
from gradbed.experiments.prompt.base import BasePrompt

RETURN_TIMEOUT_S = 20.0
RETRY_S = 0.05


class SwitchCommands(BasePrompt):
    """By the controller, for switches of every kind."""

    complete_plan = complete_counters = complete_restart = BasePrompt.complete_switches

    def do_plan(self, line: str) -> None:
        """Show what the switches should hold now: table entries, multicast groups, registers, flows.
        Usage: plan [SWITCH ...]"""
        names = self.switches(line)
        plan = self.testbed.client.plan()
        for name in names:
            self.say(switch_text(name, plan[name]))

    def do_counters(self, line: str) -> None:
        """Show the counters of the switches, those of their cells that are not zero.
        Usage: counters [SWITCH ...]"""
        for name in self.switches(line):
            counted = {counter: cells for counter, cells in self.testbed.counters(name).items() if cells}
            self.say(f"{name}: {len(counted)} of its counters are not zero")
            for counter, cells in counted.items():
                self.say(f"  {counter}")
                for cell in cells:
                    self.say(f"    {cell['index']:>5} {cell['packets']:>10} packets {cell['bytes']:>13} bytes")

    def do_restart(self, line: str) -> None:
        """Switch a switch off and on: program, tables and registers are lost, and the controller brings them back.
        Usage: restart SWITCH"""
        words = self.words(line, 1)
        if not words:
            raise UserError("which switch? restart SWITCH")
        name = self.switch(words[0])
        started_s = time.monotonic()
        self.testbed.restart_switch(name)
        # A switch without its program has no counters to read, and the program comes with the whole plan.
        while True:
            try:
                self.testbed.counters(name)
                break
            except UserError as error:
                if time.monotonic() - started_s > RETURN_TIMEOUT_S:
                    raise UserError(f"{name} is not back after {RETURN_TIMEOUT_S:.0f} s: {error}") from None
                time.sleep(RETRY_S)
        self.say(f"{name} holds its part of the plan again, after {1e3 * (time.monotonic() - started_s):.0f} ms")

    def do_wait(self, line: str) -> None:
        """Wait until every switch is connected, and ask each whether it holds its part of the plan.
        Usage: wait
        Registers and meters are not asked for: packets change them."""
        self.words(line, 0)
        deadline_s = time.monotonic() + RETURN_TIMEOUT_S
        while away := [row["name"] for row in self.testbed.client.switches() if not row["connected"]]:
            if time.monotonic() > deadline_s:
                raise UserError(f"not there after {RETURN_TIMEOUT_S:.0f} s: {', '.join(away)}")
            time.sleep(RETRY_S)
        names = [switch.name for switch in self.topology.switches]
        found = {name: self.testbed.client.differences(name) for name in names}
        for name, lines in found.items():
            if lines:
                more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
                self.say(
                    f"{name} does not hold its part of the plan: {lines[0]}{more}; restart {name} brings it back"
                )
        if silent := [name for name, lines in found.items() if lines is None]:
            self.say(f"these cannot tell what they hold: {', '.join(silent)}")
        if not any(found.values()) and not silent:
            self.say(f"all {len(names)} switches hold their part of the plan")
