"""Arguments of commands: how many, numbers, and names of a program's objects; CommandError for what is wrong with
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class CommandError(Exception):
    """One line that says what is wrong with a command."""


def integer(text: str, what: str) -> int:
    """Decimal, or hexadecimal with 0x. CommandError if it is neither, or negative."""
    try:
        number = int(text, 0)
    except ValueError:
        raise CommandError(f"{what} is a number, not {text!r}") from None
    if number < 0:
        raise CommandError(f"{what} is not negative, but {number} is")
    return number


def expect(arguments: list[str], least: int, usage: str, most: int | None = None) -> None:
    """CommandError unless there are that many arguments; `most` None means exactly `least`."""
    if not least <= len(arguments) <= (least if most is None else most):
        raise CommandError(f"usage: {usage}")


# ---- Objects by name: whole, or any end of it that only one object has ----


class Catalogue:
    """Objects of one kind. `what` is the kind in messages."""

    def __init__(self, what: str, objects: Iterable[Any]) -> None:
        self._what = what
        self.all = sorted(objects, key=lambda item: item.preamble.name)
        self._by_end: dict[str, list[Any]] = {}
        for item in self.all:
            parts = item.preamble.name.split(".")
            for first in range(len(parts)):
                self._by_end.setdefault(".".join(parts[first:]), []).append(item)

    def find(self, name: str) -> Any:
        """CommandError if there is no such object, or several."""
        exact = [item for item in self.all if item.preamble.name == name]
        found = exact or self._by_end.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(item.preamble.name for item in found)
            raise CommandError(f"{self._what} {name!r} could be any of {names}")
        raise CommandError(f"there is no {self._what} {name!r}")

    def get(self, object_id: int) -> Any:
        """By id; None if there is none."""
        return next((item for item in self.all if item.preamble.id == object_id), None)

    def names(self) -> list[str]:
        return [item.preamble.name for item in self.all]


class ProgramCatalogue:
    """The objects of a P4Info by name."""

    def __init__(self, p4info: Any) -> None:
        self.tables = Catalogue("table", p4info.tables)
        self.actions = Catalogue("action", p4info.actions)
        self.profiles = Catalogue("action profile", p4info.action_profiles)
        self.counters = Catalogue("counter", [*p4info.counters, *p4info.direct_counters])
        self.meters = Catalogue("meter", [*p4info.meters, *p4info.direct_meters])
        self.registers = Catalogue("register", p4info.registers)
        self.value_sets = Catalogue("parser value set", p4info.value_sets)

    def action_of(self, owner: Any, name: str) -> Any:
        """An action of a table or action profile. For the latter, of any table that uses it."""
        action = self.actions.find(name)
        references = getattr(owner, "action_refs", None)
        if references is None:
            references = [
                reference
                for table in self.tables.all
                if table.preamble.id in owner.table_ids
                for reference in table.action_refs
            ]
        if action.preamble.id not in {reference.id for reference in references}:
            raise CommandError(f"{owner.preamble.name} has no action {name}")
        return action
