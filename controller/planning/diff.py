"""What to write so that a switch goes from one plan to another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controller.planning.plan import Flow, MulticastGroup, RegisterValue, SwitchPlan, TableEntry
from controller.planning.text import entry_text, flow_text

T = TypeVar("T")


@dataclass(frozen=True)
class Changes(Generic[T]):
    """What to insert, what to change in place and what to delete; deletions carry the old contents."""

    insert: tuple[T, ...] = ()
    modify: tuple[T, ...] = ()
    delete: tuple[T, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.insert or self.modify or self.delete)

    def __len__(self) -> int:
        return len(self.insert) + len(self.modify) + len(self.delete)


@dataclass(frozen=True)
class SwitchDiff:
    """The way from one SwitchPlan to another. False when there is nothing to do."""

    entries: Changes[TableEntry]
    groups: Changes[MulticastGroup]
    registers: tuple[RegisterValue, ...]
    flows: Changes[Flow] = field(default_factory=Changes)

    def __bool__(self) -> bool:
        return bool(self.entries or self.groups or self.registers or self.flows)

    def __str__(self) -> str:
        lines = [
            f"{sign} {entry.table}: {entry_text(entry)}"
            for sign, entries in (
                ("-", self.entries.delete),
                ("~", self.entries.modify),
                ("+", self.entries.insert),
            )
            for entry in entries
        ]
        lines += [
            f"{sign} multicast group {group.id}: {group.ports}"
            for sign, groups in (("-", self.groups.delete), ("~", self.groups.modify), ("+", self.groups.insert))
            for group in groups
        ]
        lines += [f"~ {cell.register_name}[{cell.index}] = {cell.value}" for cell in self.registers]
        lines += [
            f"{sign} flow: {flow_text(flow)}"
            for sign, flows in (("-", self.flows.delete), ("~", self.flows.modify), ("+", self.flows.insert))
            for flow in flows
        ]
        return "\n".join(lines)


def switch_diff(old: SwitchPlan, new: SwitchPlan) -> SwitchDiff:
    """Names must be spelt alike in both plans. Register cells that `new` does not mention are left alone."""
    before = set(old.registers)
    return SwitchDiff(
        entries=_changes(old.entries, new.entries, lambda entry: entry.key),
        groups=_changes(old.groups, new.groups, lambda group: group.id),
        registers=tuple(cell for cell in new.registers if cell not in before),
        flows=_changes(old.flows, new.flows, lambda flow: flow.key),
    )


def _changes(old: Sequence[T], new: Sequence[T], key: Callable[[T], Hashable]) -> Changes[T]:
    before = {key(value): value for value in old}
    after = {key(value): value for value in new}
    return Changes(
        insert=tuple(value for k, value in after.items() if k not in before),
        modify=tuple(value for k, value in after.items() if k in before and before[k] != value),
        delete=tuple(value for k, value in before.items() if k not in after),
    )
