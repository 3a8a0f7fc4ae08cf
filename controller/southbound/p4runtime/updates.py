"""A difference between plans as P4Runtime updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from finsy.proto import p4r

from gradbed.controller.planning.diff import SwitchDiff, switch_diff
from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.planning.text import default_text, entry_text, register_text
from gradbed.controller.southbound.p4runtime.codec import (
    encode_clone,
    encode_default,
    encode_entry,
    encode_group,
    encode_meter,
    encode_register,
)
from gradbed.controller.southbound.p4runtime.schema import MatchType, ProgramSchema

T = TypeVar("T")


class Update(NamedTuple):
    """A p4.v1.Update, and how to name it in an error."""

    message: Any
    subject: str


def batches(schema: ProgramSchema, held: SwitchPlan, wanted: SwitchPlan) -> list[list[Update]]:
    """From one normalised plan to another, in the order in which they are to be written: updates of one Write may
    take effect in any order, so what must be there first is in an earlier batch."""
    diff = switch_diff(held, wanted)
    lasting = _tables_that_keep_prefixes(schema, held, diff)
    insert, modify, delete = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
    meter, default = partial(encode_meter, schema), partial(encode_default, schema)

    def updates(kind: int, items: Iterable[T], encode: Callable[[T], Any], name: Callable[[T], str]) -> list[Update]:
        return [Update(p4r.Update(type=kind, entity=encode(item)), name(item)) for item in items]

    def entries(kind: int, items: Iterable[Any]) -> list[Update]:
        return updates(kind, items, partial(encode_entry, schema), lambda e: f"{e.table}: {entry_text(e)}")

    def copies(kind: int, groups: Iterable[Any], sessions: Iterable[Any]) -> list[Update]:
        return [
            *updates(kind, groups, encode_group, lambda group: f"multicast group {group.id}"),
            *updates(kind, sessions, encode_clone, lambda session: f"clone session {session.id}"),
        ]

    def cells(whole: bool) -> list[Update]:
        items = (cell for cell in diff.registers if (cell.index is None) == whole)
        return updates(modify, items, partial(encode_register, schema), register_text)

    def meters(items: Iterable[Any], encode: Callable[[Any], Any]) -> list[Update]:
        return updates(modify, items, encode, lambda cell: f"{cell.meter_name}[{cell.index}]")

    return [
        [
            *entries(delete, (entry for entry in diff.entries.delete if entry.table not in lasting)),
            *copies(insert, diff.groups.insert, diff.clones.insert),
            *copies(modify, diff.groups.modify, diff.clones.modify),
            *cells(whole=True),
            *meters(diff.meters.delete, partial(meter, reset=True)),
            *meters((*diff.meters.insert, *diff.meters.modify), meter),
            *updates(modify, diff.defaults.delete, partial(default, reset=True), default_text),
        ],
        [
            *entries(insert, diff.entries.insert),
            *entries(modify, diff.entries.modify),
            *cells(whole=False),
            *updates(modify, (*diff.defaults.insert, *diff.defaults.modify), default, default_text),
        ],
        entries(delete, (entry for entry in diff.entries.delete if entry.table in lasting)),
        copies(delete, diff.groups.delete, diff.clones.delete),
    ]


def _tables_that_keep_prefixes(schema: ProgramSchema, held: SwitchPlan, diff: SwitchDiff) -> Collection[str]:
    """Tables of prefixes in which what is to go stays until the new is there, since there is room for both: where a
    prefix becomes its parts, or parts one prefix, no address is without a route in between."""
    entries = Counter(entry.table for entry in (*held.entries, *diff.entries.insert))

    def keeps(name: str) -> bool:
        table = schema.tables[name]
        prefixes = any(field.match_type == MatchType.LPM for field in table.fields) and not table.needs_priority
        return prefixes and not table.has_own_entries and entries[name] <= table.size

    return {name for name in {entry.table for entry in diff.entries.delete} if keeps(name)}
