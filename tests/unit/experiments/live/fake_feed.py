"""The network's end of the channel, without a page at the other end."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from gradbed.experiments.live.observer import Feed


class FakeFeed(Feed):
    """Keeps rows as they would arrive. Commands come one by one, while the clock is paused."""

    def __init__(self, *commands: Mapping[str, Any]) -> None:
        self.is_open = True
        self.rows: list[dict[str, Any]] = []
        self.waiting = deque(commands)

    def send(self, row: Mapping[str, Any]) -> None:
        self.rows.append(json.loads(json.dumps(row)))

    def has_room(self) -> bool:
        return True

    def commands(self, timeout_s: float = 0.0) -> list[dict[str, Any]]:
        return [dict(self.waiting.popleft())] if timeout_s and self.waiting else []

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == kind]
