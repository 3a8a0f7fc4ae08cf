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
class SenderStatistics:
    """A worker's repeated transmissions and useless ACKs, in packets."""

    timeout_resends: int = 0
    early_resends: int = 0
    direct_copies: int = 0
    """Fragments sent past all switches because the server asked for them."""
    given_up: int = 0
    """Among the first two: those that told switches to give up their sums."""
    duplicate_acks: int = 0
    stale_acks: int = 0
    """For other rounds or fragments never sent."""
    stale_requests: int = 0
    """Requests for a fragment that has its global sum, or is of another round."""
    window: WindowStatistics = field(default_factory=WindowStatistics)

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
    overflows: int = 0
    """Packets that a switch did not add, since the sum might have left int32."""
    congestion_marks: int = 0
    """Packets that met a long queue, or whose sum contains one that did."""
    repeats: int = 0
    """Global sums sent again to a worker that asked."""
    suppressed_repeats: int = 0
    """Requests too soon after the last ACK to the same worker."""
    requests: int = 0
    """NACKs: a worker was asked for its gradient alone."""
    suppressed_requests: int = 0
    """Too soon after the last one to the same worker."""
    shifted_acks: int = 0
    """ACKs, new and repeated, whose sum had left the range of int32 and was rounded."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
    """What a worker of a ring did not need of what came from the one before it, in packets."""

    duplicates: int = 0
    rejected: int = 0
    """Sequence numbers that lie too far ahead, or contents that fit no round, step and fragment."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
