"""What the P4Runtime server asks of a switch: the seam between protocol and data plane.

State is named as in BMv2 JSON (fully qualified, e.g. "RouterIngress.routes"). Values are plain non-negative integers;
widths are the program's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gradbed.switch.device import Program
from gradbed.switch.state.replication import Replication
from gradbed.switch.state.switch_state import SwitchState

PacketInCallback = Callable[[bytes], None]
DigestCallback = Callable[[int, tuple[int, ...]], None]
"""Learn list's id in the JSON, and the values: 64-bit words, least significant first, a run for each element."""


class Device(Protocol):
    """One switch."""

    @property
    def device_id(self) -> int: ...

    @property
    def program(self) -> Program | None: ...

    @property
    def state(self) -> SwitchState:
        """Return what the running program keeps. KeyError before the first program."""

    @property
    def replication(self) -> Replication:
        """The packet replication engine."""

    def load(self, program: Program) -> None:
        """Replace the running program; all state starts afresh, with the program's entries and defaults."""

    def restart(self) -> None:
        """Lose the program and all state, as when the power fails for a moment. Callbacks stay."""

    def new_state(self, program: Program) -> SwitchState:
        """Fresh state of a program, which no packet passes; to be closed."""

    def clock_ns(self) -> int:
        """Nanoseconds since the switch started, on the clock by which packets are timed."""

    def has_port(self, port: int) -> bool:
        """Return whether there is such a port, the CPU port included."""

    # Packets and messages between the switch and its controller (v1model's CPU port).
    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port. Raises ValueError."""

    def on_packet_in(self, callback: PacketInCallback | None) -> None:
        """Call back, from some thread, with each frame sent to the CPU port."""

    def on_digest(self, callback: DigestCallback | None) -> None:
        """Call back, from some thread, with each digest."""
