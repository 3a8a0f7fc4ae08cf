"""What a Chakra file says of a node, whichever way it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """A node of a file. attributes: by name, as they are. values: what the file says of its inputs."""

    number: int
    name: str
    type: int
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    duration_us: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    values: str = ""


class BrokenFile(ValueError):
    """What is wrong with a file, in words."""
