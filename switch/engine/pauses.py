"""Links with PFC that wait for each other for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import EndlessCircle
from gradbed.switch.engine.statistics import Direction


@dataclass(frozen=True)
class Pause:
    """A priority of one direction of a link, by the port that has it, which is not sent."""

    device_id: int
    port: int
    direction: Direction
    priority: int

    @classmethod
    def of(cls, row: Any) -> Pause:
        """row: struct gb_pause."""
        return cls(row.device_id, row.port, "out" if row.outwards else "in", row.priority)


class LinksDeadlocked(EndlessCircle):
    """Each of these waits until the next one goes on. Its text is one line that names the links."""

    def __init__(self, circle: Sequence[Pause], link_name: Callable[[int, int], str]) -> None:
        """link_name: of a link, by its sender's device id and port."""
        self.circle = tuple(circle)
        links = [link_name(each.device_id, each.port) for each in circle]
        priorities = sorted({each.priority for each in circle})
        named = f"priority {priorities[0]}" if len(priorities) == 1 else f"priorities {_list(priorities)}"
        super().__init__(
            f"deadlock: links that PFC paused wait for each other in a circle, {' for '.join([*links, links[0]])} "
            f"({named}): route without such circles, or take PFC off a link of it"
        )


def _list(priorities: Sequence[int]) -> str:
    return ", ".join(map(str, priorities))
