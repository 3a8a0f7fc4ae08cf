"""What a device may offer beyond switch.device.Device. Each is looked for by its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from switch.device import Replica


@runtime_checkable
class CloneSessions(Protocol):
    """Copies of packets, made by clone and clone_preserving_field_list."""

    def clone_session_set(self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        """Create or replace. `truncate_bytes` 0 copies whole packets."""

    def clone_session_delete(self, session_id: int) -> None: ...


@runtime_checkable
class InitialEntryHandles(Protocol):
    """Access to the entries that a program brings along."""

    def table_initial_handles(self, table: str) -> Sequence[int]:
        """Handles of the entries in the BMv2 JSON, in its order."""
