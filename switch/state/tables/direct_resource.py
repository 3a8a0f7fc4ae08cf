"""What direct counters and direct meters have in common: each belongs to a table entry, which names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import invalid
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.tables.table_entry import TableEntries
from gradbed.switch.state.tables.table_state import Entry, TableState


class DirectResources(EntityKind):
    """Entities of one kind that exist with table entries, and are addressed by a TableEntry message."""

    def __init__(self, tables: TableEntries) -> None:
        self._tables = tables

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_entry.table_id
        return table_id

    def _has_resource(self, table: TableState) -> bool:
        """Whether the table's entries have one."""
        raise NotImplementedError

    def _check_table(self, table: TableState, which: Any) -> None:
        """Raise RequestError unless the entry that a TableEntry message means has one."""
        raise NotImplementedError

    def _addressed(self, message: Any) -> TableState:
        """The table that a Write means. Raises RequestError."""
        if not message.HasField("table_entry"):
            raise invalid(f"a {self.oneof} needs a table_entry")
        return self._table(message.table_entry)

    def _tables_to_read(self, which: Any, role: Role) -> list[TableState]:
        """Tables that a TableEntry message selects, id 0 being all, as far as the role may see them."""
        if which.table_id == 0:
            if which.match or which.priority:
                raise invalid("an entry can be asked for in one table only: table_id is not set")
            return [t for t in self._tables_with_resource() if role.reads(t.codec.table_id)]
        table = self._table(which)
        return [table] if role.reads(which.table_id) else []

    def _entries_to_read(self, which: Any, tables: list[TableState]) -> list[tuple[TableState, Entry]]:
        """Entries of those tables that the message selects: the one of its key, or all."""
        if which.match or which.priority:
            return [(table, self._tables.existing(table, which)) for table in tables]
        return [(table, entry) for table in tables for entry in table.entries.values()]

    def _tables_with_resource(self) -> Iterable[TableState]:
        return (table for table in self._tables.tables.values() if self._has_resource(table))

    def _table(self, which: Any) -> TableState:
        table = self._tables.table(which.table_id)
        self._check_table(table, which)
        return table
