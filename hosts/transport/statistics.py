"""What agents count. Frames and bytes are whole Ethernet frames without FCS, as switches count them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Traffic:
    """Frames of one kind in one direction."""

    frames: int = 0
    bytes: int = 0

    def add(self, frames: int, frame_bytes: int) -> None:
        """Count `frames` frames of `frame_bytes` bytes each."""
        self.frames += frames
        self.bytes += frames * frame_bytes


@dataclass
class EndpointStatistics:
    """The traffic of one agent on its interface.

    The received kinds count every well-formed gradient packet that came in, wanted or not, so that they can be
    compared with a switch's port counters.
    """

    gradient_sent: Traffic = field(default_factory=Traffic)
    gradient_received: Traffic = field(default_factory=Traffic)
    acknowledgement_sent: Traffic = field(default_factory=Traffic)
    """NACKs, too."""
    acknowledgement_received: Traffic = field(default_factory=Traffic)
    malformed: int = 0
    """Frames to the gradient port that are no gradient packets with this job's number of lanes."""
    misdirected: int = 0
    """Well-formed ones of other jobs, kinds, destinations or senders than this agent's."""
    socket_drops: int = 0
    """Frames that the kernel dropped because the receive buffer was full."""
    send_failures: int = 0
    """Frames that the kernel would not take."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class WindowStatistics:
    """A worker's congestion window, in fragments, and what moved it."""

    least: int = 0
    greatest: int = 0
    mean: float = 0.0
    """Over ACKs: what the window was when they came."""
    last: int = 0
    decreases: int = 0
    congestion_marks: int = 0
    """ACKs that were marked, or whose sum was."""


@dataclass
class StreamStatistics:
    """Repeated transmissions of a worker to the next one on a ring, in packets."""

    timeout_resends: int = 0
    early_resends: int = 0
    stale_acknowledgements: int = 0
    """They told nothing new."""
    window: WindowStatistics = field(default_factory=WindowStatistics)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class ReceiverStatistics:
    """Counts of what a worker of a ring did not need of what came from the one before it, in packets."""

    duplicates: int = 0
    rejected: int = 0
    """Sequence numbers that lie too far ahead, or contents that fit no round, step and fragment."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
