"""What all commands have at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy.proto import p4r

from gradbed.switch.simple_switch.cli import values
from gradbed.switch.simple_switch.cli.catalogue import Program
from gradbed.switch.simple_switch.cli.client import Client
from gradbed.switch.simple_switch.cli.errors import CommandError


class Commands:
    """A part of the shell. A method do_NAME is the command NAME, and its documentation is what help says."""

    client: Client
    program: Program

    def action(self, action: Any, parameters: Sequence[str]) -> Any:
        """The Action message of an action and its parameters as text."""
        if len(parameters) != len(action.params):
            raise CommandError(
                f"action {action.preamble.name} needs {len(action.params)} parameters, not {len(parameters)}"
            )
        message = p4r.Action(action_id=action.preamble.id)
        for parameter, text in zip(action.params, parameters, strict=True):
            value = values.encode_text(text, parameter.bitwidth, f"parameter {parameter.name}")
            message.params.add(param_id=parameter.id, value=value)
        return message

    def dump_action(self, message: Any) -> None:
        action = self.program.actions.get(message.action_id)
        widths = {parameter.id: parameter.bitwidth for parameter in action.params}
        shown = ", ".join(values.digits(part.value, widths[part.param_id]) for part in message.params)
        print(f"Action entry: {action.preamble.name} - {shown}")
