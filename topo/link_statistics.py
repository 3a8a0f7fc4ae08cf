"""What a network's links did to packets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DirectionStatistics:
    """What one direction of a link did to packets since the start.

    `packets` and `bytes` reached `to_node`, duplicates included. `queue_drop_bytes` is None where nobody counted
    them (BMv2).
    """

    from_node: str
    to_node: str
    packets: int
    bytes: int
    queue_drops: int
    queue_drop_bytes: int | None
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int

    @property
    def offered(self) -> int:
        """Packets that `from_node` handed to the link, once none is on its way any more."""
        return self.packets - self.duplicates + self.losses + self.queue_drops
