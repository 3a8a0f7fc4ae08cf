"""Differences between plans of a switch: the changes that lead from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    Flow,
    MeterCell,
    MulticastGroup,
    RegisterValue,
    SwitchPlan,
    TableEntry,
)
from gradbed.controller.planning.text import (
    clone_text,
    default_text,
    entry_text,
    flow_text,
    group_text,
    meter_text,
    register_text,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Changes(Generic[T]):
    """Changes from one plan to another: inserted, changed in place and deleted; deletions have the old contents."""

    insert: tuple[T, ...] = ()
    modify: tuple[T, ...] = ()
    delete: tuple[T, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.insert or self.modify or self.delete)

    def __len__(self) -> int:
        return len(self.insert) + len(self.modify) + len(self.delete)


@dataclass(frozen=True)
class SwitchDiff:
    """The changes from one SwitchPlan to another; false if there are none."""

    entries: Changes[TableEntry]
    groups: Changes[MulticastGroup]
    registers: tuple[RegisterValue, ...]
    flows: Changes[Flow] = field(default_factory=Changes)
    defaults: Changes[DefaultAction] = field(default_factory=Changes)
    clones: Changes[CloneSession] = field(default_factory=Changes)
    meters: Changes[MeterCell] = field(default_factory=Changes)

    def __bool__(self) -> bool:
        parts = (self.entries, self.groups, self.registers, self.flows, self.defaults, self.clones, self.meters)
        return any(parts)

    def __str__(self) -> str:
        return "\n".join(
            [
                *_lines(self.defaults, default_text),
                *_lines(self.entries, lambda entry: f"{entry.table}: {entry_text(entry)}"),
                *_lines(self.groups, group_text),
                *_lines(self.clones, clone_text),
                *(f"~ {register_text(cell)}" for cell in self.registers),
                *_lines(self.meters, meter_text),
                *_lines(self.flows, lambda flow: f"flow: {flow_text(flow)}"),
            ]
        )


def switch_diff(old: SwitchPlan, new: SwitchPlan) -> SwitchDiff:
    """Return the changes from one plan to another, whose names must be spelt alike.

    Register cells that `new` does not mention stay as they are.
    """
    before = set(old.registers)
    # A register is filled anew if its fill is new, or to overwrite a cell that has no value of its own any more.
    held = {(cell.register_name, cell.index) for cell in new.registers}
    stale = {cell.register_name for cell in before if (cell.register_name, cell.index) not in held}
    fills = [cell for cell in new.registers if cell.index is None]
    filled = {cell.register_name for cell in fills if cell not in before or cell.register_name in stale}
    return SwitchDiff(
        entries=_changes(old.entries, new.entries, lambda entry: entry.key),
        groups=_changes(old.groups, new.groups, lambda group: group.id),
        registers=tuple(cell for cell in new.registers if cell not in before or cell.register_name in filled),
        flows=_changes(old.flows, new.flows, lambda flow: flow.key),
        defaults=_changes(old.defaults, new.defaults, lambda default: default.table),
        clones=_changes(old.clones, new.clones, lambda session: session.id),
        meters=_changes(old.meters, new.meters, lambda cell: (cell.meter_name, cell.index)),
    )


def _changes(old: Sequence[T], new: Sequence[T], key: Callable[[T], Hashable]) -> Changes[T]:
    before = {key(value): value for value in old}
    after = {key(value): value for value in new}
    return Changes(
        insert=tuple(value for k, value in after.items() if k not in before),
        modify=tuple(value for k, value in after.items() if k in before and before[k] != value),
        delete=tuple(value for k, value in before.items() if k not in after),
    )


def _lines(changes: Changes[T], text: Callable[[T], str]) -> list[str]:
    return [
        f"{sign} {text(item)}"
        for sign, items in (("-", changes.delete), ("~", changes.modify), ("+", changes.insert))
        for item in items
    ]
