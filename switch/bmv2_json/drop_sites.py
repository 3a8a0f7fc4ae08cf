"""The drop sites of a program: calls of mark_to_drop, distinguished by the caller of their action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gradbed.switch.bmv2_json.model import ProgramModel, Source


@dataclass(frozen=True)
class DropSite:
    """A way in which a program drops packets."""

    action: str | None = None
    """The action that calls mark_to_drop, or "mark_to_drop in ingress" (or egress) for a control's own statement;
    None: the packet's egress_spec became the drop port without such a call."""
    table: str | None = None
    """The table that ran the action, None where the control calls it by itself."""
    missed: bool = False
    """Whether the table ran it as its default action, since no entry matched the packet."""
    source: Source | None = None
    """The line of mark_to_drop; of an action that a control calls by itself, the line of that call."""

    def __str__(self) -> str:
        """Describe it in words that follow "dropped", such as "by I.drop on a miss in table I.routes, at a.p4:31"."""
        if self.action is None:
            return "because egress_spec was the drop port"
        text = f"by {self.action}"
        if self.table is not None:
            text += f" on a {'miss' if self.missed else 'hit'} in table {self.table}"
        return f"{text}, at {self.source}" if self.source is not None else text


class DropSites:
    """The drop sites of a program, by the numbers under which its compiled code counts them.

    A call of mark_to_drop has a block of numbers: an even one where the control calls its action, then two for each
    table that may run the action, even after a hit and odd after a miss (tables without a key have no misses).
    Number 0 is a drop without mark_to_drop.
    """

    def __init__(self, model: ProgramModel) -> None:
        self._model = model
        self._callers: dict[int, dict[str, int]] = {}
        """By id of an action that drops, in the order of their blocks: its tables, with their offset in a block."""
        dropping = {a.id for a in model.actions.values() if any(p.op == "mark_to_drop" for p in a.primitives)}
        for action_id in model.actions:
            if action_id in dropping:
                tables = [t.name for t in model.tables.values() if any(a.id == action_id for a in t.actions)]
                self._callers[action_id] = {name: 2 * number for number, name in enumerate(tables, 1)}
        self._first: dict[tuple[int, int], int] = {}
        self.count = 2
        for action_id, callers in self._callers.items():
            for index, primitive in enumerate(model.actions[action_id].primitives):
                if primitive.op == "mark_to_drop":
                    self._first[action_id, index] = self.count
                    self.count += 2 + 2 * len(callers)

    def first(self, action_id: int, index: int) -> int:
        """Return the first number of a call: the primitive of the action with that index, a mark_to_drop."""
        return self._first[action_id, index]

    def caller(self, action_id: int, table: str | None) -> int | None:
        """Return what a caller adds to the first number, after a hit; None if the action drops nothing."""
        callers = self._callers.get(action_id)
        if callers is None:
            return None
        return 0 if table is None else callers[table]

    @cached_property
    def by_number(self) -> dict[int, DropSite]:
        return dict(self._numbered())

    def _numbered(self) -> Iterator[tuple[int, DropSite]]:
        yield 0, DropSite()
        pipeline_of = {node: name for name, pipeline in self._model.pipelines.items() for node in pipeline.nodes}
        for (action_id, index), first in self._first.items():
            action = self._model.actions[action_id]
            source = action.primitives[index].source or action.source
            yield first, DropSite(action.name, None, False, source)
            for table, offset in self._callers[action_id].items():
                caller = self._model.tables[table]
                if caller.key:
                    yield first + offset, DropSite(action.name, table, False, source)
                    yield first + offset + 1, DropSite(action.name, table, True, source)
                elif "." in action.name:
                    # Compilers make a table without a key of a call in a control: its line tells more.
                    yield first + offset, DropSite(action.name, None, False, caller.source or source)
                else:
                    # Compilers name the actions that they make of a control's statements without the control's name.
                    yield first + offset, DropSite(f"mark_to_drop in {pipeline_of[table]}", None, False, source)
