"""Names that are unique in their kind."""

from __future__ import annotations

from collections.abc import Iterable


class NameSet:
    """Hands out each name once; a name that is taken gets a number: x, x_0, x_1."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        if name not in self._taken:
            self._taken.add(name)
            return name
        number = self._next.get(name, 0)
        while f"{name}_{number}" in self._taken:
            number += 1
        self._next[name] = number + 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"
