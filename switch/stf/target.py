"""What an STF file is run against."""

from __future__ import annotations

from typing import Protocol

from switch.bmv2_json.model import ProgramModel
from switch.stf.statements import Condition, Packet, Statement


class Target(Protocol):
    """A switch that runs the program under test.

    `apply` and `send` raise NoFit where the statement does not fit the program, CheckFailed where something is not as
    the statement says, and NotPossible where no program would help: this switch cannot do that.
    """

    @property
    def model(self) -> ProgramModel: ...

    def apply(self, statement: Statement) -> None:
        """Everything but packet, expect and no_packet."""

    def send(self, packet: Packet) -> None: ...

    def drain(self) -> list[tuple[int, bytes]]:
        """Let all packets come to rest; what has left since the last call, (port, frame), in order for each port."""


class CheckFailed(Exception):
    """A counter or register is not as expected. The text says how, in one line."""


class NotPossible(Exception):
    """What the statement asks is beyond the switch, whatever the program. The text says why, in one line.

    ends: what follows is of no worth, since the statement was to change something.
    """

    def __init__(self, why: str, *, ends: bool) -> None:
        super().__init__(why)
        self.ends = ends


def check(what: str, condition: Condition, got: int, unit: str = "") -> None:
    """CheckFailed unless the condition holds of the value."""
    if not condition.holds(got):
        wanted = f"{condition.operator} {condition.value}"
        raise CheckFailed(f"{what} is {got}{unit and ' ' + unit}, should be {wanted}")
