"""A recorded rank as nodes: its operators in the order in which they ran, and communications beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradbed.hosts.systems.training.execution import Kind, Node
from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile
from gradbed.hosts.systems.training.traces.recording.communications import (
    Communication,
    communication_of,
    is_communication,
)
from gradbed.hosts.systems.training.traces.recording.operators import Operator, Operators

GROUP = "gradbed group "
"""How an annotation begins that names the ranks of what it is around (hosts/torch_hook/recorder.py)."""


def nodes_of(operators: Operators, ranks: int, data_parallel: tuple[int, ...]) -> list[Node]:
    """Operators that no other operator called, with the time that they took without communications inside.

    Each waits for the one before it, and for the communications whose memory it uses; a communication waits for the
    operator before it and for the one before it in its group. Where the script waited, the next operator does.
    data_parallel: the group of communications that no annotation is around, DistributedDataParallel's.
    """
    made = _Conversion(operators, data_parallel, tuple(range(ranks)))
    for operator in sorted(_outermost(operators), key=_order):
        made.add(operator)
    return made.nodes


def _order(operator: Operator) -> tuple[float, int]:
    """By time, where there is one: threads count apart."""
    return (operator.start_us if operator.start_us is not None else 0.0, operator.number)


def _outermost(operators: Operators) -> Iterator[Operator]:
    """Operators, and not what is around them: annotations and steps of the autograd engine."""
    waiting = operators.roots()
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each.number in seen:
            continue
        seen.add(each.number)
        if is_communication(each) or each.schema:
            yield each
        else:
            waiting += operators.called(each)


@dataclass
class _Conversion:
    operators: Operators
    data_parallel: tuple[int, ...]
    everybody: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    _before: tuple[int, ...] = ()
    _in_group: dict[tuple[int, ...], int] = field(default_factory=dict)
    _using: dict[int, int] = field(default_factory=dict)
    """Storage -> the communication that was last with it, if nobody has waited for that yet."""

    def add(self, operator: Operator) -> None:
        if is_communication(operator):
            self._communicate(operator)
            return
        inside = list(self.operators.inside(operator))
        begun = [each for each in inside if is_communication(each)]
        storages = {storage for each in inside if each not in begun for storage in each.storages}
        own_us = operator.duration_us - sum(each.duration_us for each in begun)
        self.nodes.append(
            Node(
                operator.number,
                operator.name,
                Kind.COMPUTE,
                (*self._before, *self._waited(storages)),
                duration_ns=max(0, round(own_us * 1000)),
            )
        )
        self._before = (operator.number,)
        for each in begun:
            self._communicate(each)

    def _communicate(self, operator: Operator) -> None:
        group = self._group(operator)
        what = communication_of(operator, group)
        after = [*self._before, *self._waited(set(operator.storages))]
        if what.node["kind"] is Kind.COLLECTIVE and group in self._in_group:
            after.append(self._in_group[group])
        fields = dict(what.node)
        if fields.get("group") == self.everybody:
            fields["group"] = ()
        self.nodes.append(Node(operator.number, operator.name, after=tuple(dict.fromkeys(after)), **fields))
        self._begun(what, group)

    def _begun(self, what: Communication, group: tuple[int, ...]) -> None:
        number = what.operator.number
        if what.node["kind"] is Kind.COLLECTIVE:
            self._in_group[group] = number
        if what.waits:
            self._before = (number,)
        elif what.node["kind"] is not Kind.SEND:  # what is sent may be read
            self._using |= dict.fromkeys(what.operator.storages, number)

    def _waited(self, storages: set[int]) -> list[int]:
        """Communications of these storages; from now on they are complete."""
        found = list(dict.fromkeys(self._using[storage] for storage in sorted(storages) if storage in self._using))
        self._using = {storage: number for storage, number in self._using.items() if number not in found}
        return found

    def _group(self, operator: Operator) -> tuple[int, ...]:
        for caller in self.operators.callers(operator):
            if caller.name.startswith(GROUP):
                words = caller.name.removeprefix(GROUP).split(",")
                if not all(word.isdecimal() and int(word) < len(self.everybody) for word in words):
                    raise BrokenFile(f"node {caller.number} ({caller.name}) names no ranks")
                return tuple(map(int, words))
        return self.data_parallel
