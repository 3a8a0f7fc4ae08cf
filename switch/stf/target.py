"""What an STF file is run against."""

from __future__ import annotations

from typing import Protocol

from switch.stf.statements import Packet, Statement


class Target(Protocol):
    """A switch that runs the program under test.

    `apply` and `send` raise NoFit where the statement does not fit the program, and CheckFailed where something is
    not as the statement says.
    """

    def apply(self, statement: Statement) -> None:
        """Everything but packet, expect and no_packet."""

    def send(self, packet: Packet) -> None: ...

    def drain(self) -> list[tuple[int, bytes]]:
        """Let all packets come to rest; what has left since the last call, (port, frame), in order for each port."""


class CheckFailed(Exception):
    """A counter or register is not as expected. The text says how, in one line."""
