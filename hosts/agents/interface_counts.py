"""What an agent's interfaces carried, counted beneath the agent: the same for every system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class InterfaceCounts:
    """Whole Ethernet frames without FCS, as switches count them. drops: frames that had no room in the buffer."""

    sent_frames: int = 0
    sent_bytes: int = 0
    received_frames: int = 0
    received_bytes: int = 0
    drops: int = 0

    def add_sent(self, frames: NDArray[Any], taken: int, lengths: NDArray[np.uint32] | None = None) -> None:
        """frames: one per row, of which the first were taken. lengths (frames,): of each; None: whole rows."""
        if taken:
            self.sent_frames += taken
            self.sent_bytes += (
                taken * (frames.nbytes // len(frames)) if lengths is None else int(lengths[:taken].sum())
            )

    def add_received(self, lengths: NDArray[np.uint32]) -> None:
        self.received_frames += len(lengths)
        self.received_bytes += int(lengths.sum())

    def __add__(self, other: InterfaceCounts) -> InterfaceCounts:
        return InterfaceCounts(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        return tuple(asdict(self).values())


def by_interface(opened: Iterable[tuple[str, InterfaceCounts]]) -> dict[str, dict[str, int]]:
    """As JSON, by the interface's name; what was opened several times counts together."""
    found: dict[str, InterfaceCounts] = {}
    for name, counts in opened:
        found[name] = found.get(name, InterfaceCounts()) + counts
    return {name: asdict(counts) for name, counts in found.items()}
