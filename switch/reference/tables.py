"""Tables: what their entries match, which entry wins, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gradbed.switch.reference.scope import Subroutine, TypedExpression
from gradbed.switch.reference.values import Value

PRIORITY_KINDS = frozenset(("ternary", "range", "optional"))


class Matcher(Protocol):
    """Match of one key field of an entry, or one set of a select."""

    def matches(self, value: Value) -> bool: ...


@dataclass(frozen=True)
class ExactMatcher:
    value: Value

    def matches(self, value: Value) -> bool:
        return bool(value == self.value)


@dataclass(frozen=True)
class MaskedMatcher:
    value: int
    mask: int

    def matches(self, value: Value) -> bool:
        return bool(int(value) & self.mask == self.value & self.mask)


@dataclass(frozen=True)
class RangeMatcher:
    """A range with both of its ends."""

    low: int
    high: int

    def matches(self, value: Value) -> bool:
        return bool(self.low <= value <= self.high)


@dataclass(frozen=True)
class AnyValue:
    """`_` and `default`."""

    def matches(self, value: Value) -> bool:
        return True


@dataclass
class RuntimeKey:
    """A key field of a table."""

    name: str
    match: str
    typed: TypedExpression
    width: int | None
    """Width in bits; None for what has none (errors, enums without numbers)."""


@dataclass
class RuntimeActionCall:
    """action, with what the control plane gives it. bound: runs it with these arguments."""

    action: str
    arguments: tuple[Value, ...] = ()


@dataclass
class SelectorGroup:
    """Members of an action selector, of which the packet's hash chooses one."""

    members: list[RuntimeActionCall]


@dataclass
class RuntimeEntry:
    matches: tuple[Matcher, ...]
    call: RuntimeActionCall | SelectorGroup
    priority: int = 0
    packets: int = 0
    bytes: int = 0
    constant: bool = False
    meter: Any = None


@dataclass
class ListedAction:
    """An action of a table."""

    name: str
    subroutine: Subroutine
    run: Callable[[Sequence[Value]], None]
    """Runs it with the control plane's arguments, by the calling convention."""


@dataclass
class RuntimeTable:
    """A table and its entries. The larger priority wins; of prefixes the longest."""

    name: str
    """Name as the control plane has it."""
    keys: list[RuntimeKey]
    actions: dict[str, ListedAction]
    default: RuntimeActionCall
    entries: list[RuntimeEntry] = field(default_factory=list)
    counter: Any = None
    meter: Any = None
    profile: Any = None
    current: RuntimeEntry | None = None

    @property
    def matched_keys(self) -> list[RuntimeKey]:
        """Return those of entries: a selector's only choose among members."""
        return [key for key in self.keys if key.match != "selector"]

    @property
    def has_priorities(self) -> bool:
        return any(key.match in PRIORITY_KINDS for key in self.keys)

    def values(self) -> list[Value]:
        """Evaluate the key, left to right."""
        return [key.typed.run() for key in self.keys]

    def find(self, values: Sequence[Value]) -> RuntimeEntry | None:
        of_match = [v for v, key in zip(values, self.keys, strict=True) if key.match != "selector"]
        best: RuntimeEntry | None = None
        for entry in self.entries:
            if all(m.matches(v) for m, v in zip(entry.matches, of_match, strict=True)) and (
                best is None or self._rank(entry) > self._rank(best)
            ):
                best = entry
        return best

    def _rank(self, entry: RuntimeEntry) -> int:
        if self.has_priorities:
            return entry.priority
        return sum(
            m.mask.bit_count()
            for m, key in zip(entry.matches, self.matched_keys, strict=True)
            if key.match == "lpm" and isinstance(m, MaskedMatcher)
        )
