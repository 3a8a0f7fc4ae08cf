"""simple_switch_CLI: BMv2's commands for people and scripts, spoken over P4Runtime."""

from gradbed.switch.simple_switch.cli.command import main

__all__ = ["main"]
