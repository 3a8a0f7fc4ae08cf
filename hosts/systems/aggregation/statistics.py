"""What workers and the server count of their transports, beside traffic (gradbed.hosts.transport.statistics)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gradbed.hosts.transport.statistics import WindowStatistics


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
    """ACKs for other rounds, or for fragments that were never sent."""
    stale_requests: int = 0
    """Requests for a fragment that has its global sum, or is of another round."""
    window: WindowStatistics = field(default_factory=WindowStatistics)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class CollectorStatistics:
    """Counts of what became of packets at the server's collector; the first five add up to all of them."""

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
    signs_of_life: int = 0
    """Global sums sent again to a worker that waits for the others."""
    shifted_acks: int = 0
    """ACKs, new and repeated, whose sum had left the range of int32 and was rounded."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
