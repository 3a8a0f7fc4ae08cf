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
    """One agent's traffic on its interface.

    The received kinds count every well-formed gradient packet that came in, wanted or not, so that they can be
    compared with a switch's port counters.
    """

    gradient_sent: Traffic = field(default_factory=Traffic)
    gradient_received: Traffic = field(default_factory=Traffic)
    acknowledgement_sent: Traffic = field(default_factory=Traffic)
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
class SenderStatistics:
    """A worker's resends and useless answers, in packets."""

    timeout_resends: int = 0
    early_resends: int = 0
    duplicate_answers: int = 0
    stale_answers: int = 0
    """For other rounds or fragments never sent."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class CollectorStatistics:
    """What became of the packets that reached the server's collector; the first five add up to all of them."""

    merged_singles: int = 0
    merged_partials: int = 0
    """Sums made in switches."""
    duplicates: int = 0
    """Nothing in them was new."""
    overlaps: int = 0
    """Sums that had some of the gradients that were there and not others, and were dropped."""
    rejected: int = 0
    """Packet numbers outside the rounds that are kept, or bitmaps that no worker of the job sends."""
    superseded: int = 0
    """Among the merged: sums that took the place of what was there, since they contained it."""
    repeats: int = 0
    """Global sums sent again to a worker that asked."""
    suppressed_repeats: int = 0
    """Requests too soon after the last answer to the same worker."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
