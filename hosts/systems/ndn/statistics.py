"""What a peer counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class PeerStatistics:
    """Packets, unless the name says otherwise. answered_at_once, answered_later: probes, by this publisher; the
    latter were for versions that did not exist yet. recovery_us: from a fragment's first probe until it came."""

    pushed: int = 0
    received_pushes: int = 0
    received_answers: int = 0
    duplicates: int = 0
    malformed: int = 0
    unwanted: int = 0
    probes: int = 0
    probes_received: int = 0
    insertions: int = 0
    deletions: int = 0
    acknowledged: int = 0
    answered_at_once: int = 0
    answered_later: int = 0
    superseded_versions: int = 0
    recovery_us: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
