"""STF files on the reference. Of switch/stf only the reader of the language is used, which knows no compiler."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import UserError
from gradbed.switch.reference.pipeline import ReferenceSwitch
from gradbed.switch.reference.tables import RuntimeEntry, RuntimeKey, RuntimeTable
from gradbed.switch.stf import statements as s


class ReferenceCheckFailed(Exception):
    """A counter or register is not as the file says. The text is one line."""


@dataclass(frozen=True)
class ReferenceOutcome:
    """Outcome of an STF file."""

    failures: tuple[str, ...]
    """One line each, `file:line: what`."""
    misfit: str | None = None
    """The first failure that is a mistake of the file."""

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def not_possible(self) -> tuple[str, ...]:
        """Return nothing: what the reference lacks is refused when it reads the program."""
        return ()


def run_on_reference(switch: ReferenceSwitch, script: s.Script) -> ReferenceOutcome:
    """Run a file on a fresh switch, and compare for each port what leaves with what is expected."""
    target = ReferenceTarget(switch)
    failures: list[str] = []
    received: dict[int, list[bytes]] = defaultdict(list)
    expected: dict[int, list[s.Expect]] = defaultdict(list)
    for statement in script.statements:
        where = f"{script.path}:{statement.line}"
        try:
            if isinstance(statement, s.Packet):
                for port, frame in switch.process(statement.port, statement.frame):
                    received[port].append(frame)
            elif isinstance(statement, s.Expect):
                expected[statement.port].append(statement)
            elif isinstance(statement, s.NoPacket):
                for port, frames in sorted(received.items()):
                    for frame in frames[len(expected[port]) :]:
                        failures.append(f"{where}: a packet left by port {port}: {frame.hex()}")
            else:
                target.apply(statement)
        except ReferenceCheckFailed as failure:
            failures.append(f"{where}: {failure}")
        except UserError as error:
            failures.append(f"{where}: {error}")
            return ReferenceOutcome(tuple(failures), failures[-1])
    last = script.statements[-1].line if script.statements else 0
    for port in sorted(script.ports):
        for expect, frame in zip(expected[port], received[port]):  # noqa: B905
            if not expect.describes(frame):
                wanted = f"{expect.digits}{'$' if expect.exact else ''}"
                failures.append(f"{script.path}:{expect.line}: port {port}: expected {wanted}, got {frame.hex()}")
        for expect in expected[port][len(received[port]) :]:
            failures.append(f"{script.path}:{expect.line}: port {port}: no packet came")
        for frame in received[port][len(expected[port]) :]:
            failures.append(f"{script.path}:{last}: port {port}: a packet came that no expect is for: {frame.hex()}")
    return ReferenceOutcome(tuple(failures))


class ReferenceTarget:
    """Carries out the statements of STF files that are no packets."""

    def __init__(self, switch: ReferenceSwitch) -> None:
        self._switch = switch
        self._entries: list[tuple[str | None, str, RuntimeEntry]] = []
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._groups: dict[int, list[int]] = {}
        self._value_sets: dict[str, list[int]] = {}

    def apply(self, statement: s.StfStatement) -> None:
        """Carry out any statement but packet, expect and no_packet.

        Raises UserError where it does not fit the program.
        """
        switch = self._switch
        match statement:
            case s.Wait() | s.MeterGetRates() | s.MirroringGet():
                """Every packet has come to rest."""
            case s.Add():
                self._add(statement)
            case s.SetDefault(table=table, call=call):
                switch.set_default(table, call.action, dict(call.arguments))
            case s.Remove(entry=name):
                gone = [each for each in self._entries if name is None or each[0] == name]
                if name is not None and not gone:
                    raise UserError(f"there is no entry {name}")
                for each in gone:
                    switch.remove(each[1], each[2])
                    self._entries.remove(each)
            case s.CheckCounter(counter=counter, index=index, unit=unit, condition=condition):
                packets, bytes_ = self._counted(counter, index)
                _check(f"counter {counter}({index})", condition, packets if unit == "packets" else bytes_)
            case s.CounterRead(counter=counter, index=index):
                self._counted(counter, index)
            case s.CounterWrite(counter=counter, index=index, packets=packets, bytes=bytes_):
                switch.write_counter(counter, index, packets, bytes_)
            case s.RegisterRead(register=register, index=index, condition=condition):
                value = _cell(switch.register(register), index, register)
                if condition is not None:
                    _check(f"register {register}[{index}]", condition, value)
            case s.RegisterWrite(register=register, index=index, value=value):
                _cell(switch.register(register), index, register)
                switch.write_register(register, index, value)
            case s.RegisterReset(register=register):
                for index in range(len(switch.register(register))):
                    switch.write_register(register, index, 0)
            case s.MeterSetRates(meter=meter, index=index, rates=(committed, peak)):
                rates = (committed.rate_per_us, committed.burst), (peak.rate_per_us, peak.burst)
                if isinstance(index, str):
                    switch.set_entry_meter(self._entry(index), *rates)
                else:
                    switch.write_meter(meter, index, *rates)
            case s.ValueSetAdd(value_set=name, value=value):
                self._value_sets.setdefault(name, []).append(value)
                switch.set_value_set(name, self._value_sets[name])
            case s.ValueSetClear(value_set=name):
                self._value_sets.pop(name, None)
                switch.set_value_set(name, [])
            case _:
                self._replicate(statement)

    def _replicate(self, statement: s.StfStatement) -> None:
        switch = self._switch
        match statement:
            case s.MirroringAdd(session=session, port=port):
                switch.set_mirror(session, port)
            case s.MirroringAddMulticast(session=session, group=group):
                switch.set_mirror(session, group=group)
            case s.MirroringDelete(session=session):
                switch.remove_mirror(session)
            case s.GroupCreate(group=group):
                self._groups[group] = []
            case s.NodeCreate(instance=instance, ports=ports):
                self._nodes.append((instance, ports))
            case s.NodeUpdate(node=node, ports=ports):
                self._nodes[node] = (self._nodes[node][0], ports)
            case s.NodeAssociate(group=group, node=node):
                self._groups[group].append(node)
            case _:
                raise UserError(f"{type(statement).__name__} is not in the reference")
        for group, nodes in self._groups.items():
            replicas = [(port, self._nodes[node][0]) for node in nodes for port in self._nodes[node][1]]
            switch.set_multicast_group(group, replicas)

    def _add(self, statement: s.Add) -> None:
        table = self._switch.table(statement.table)
        if table.has_priorities and statement.priority is None:
            raise UserError(f"an entry of table {table.name} needs a priority: add {table.name} PRIORITY ...")
        match = {}
        for given in statement.matches:
            key = _key(table, given.key)
            match[key.name] = _match(key, given.value)
        call = statement.call
        if statement.others:
            members = [(each.action, dict(each.arguments)) for each in (call, *statement.others)]
            entry = self._switch.insert_group(table.name, match, members, statement.priority)
        else:
            entry = self._switch.insert(table.name, match, call.action, dict(call.arguments), statement.priority)
        self._entries.append((statement.entry, table.name, entry))

    def _counted(self, counter: str, index: int | str) -> tuple[int, int]:
        """Return the packets and bytes of a counter's cell, or of the direct counter of a named entry."""
        if isinstance(index, int):
            packets, bytes_ = _cell(self._switch.counter(counter), index, counter)
            return packets, bytes_
        found = self._entry(index)
        return found.packets, found.bytes

    def _entry(self, wanted: str) -> RuntimeEntry:
        found = next((entry for name, _, entry in self._entries if name == wanted), None)
        if found is None:
            raise UserError(f"there is no entry {wanted}")
        return found


def _check(what: str, condition: s.StfCondition, got: int) -> None:
    if not condition.holds(got):
        raise ReferenceCheckFailed(f"{what} is {got}, should be {condition.operator} {condition.value}")


def _cell(cells: list[Any], index: int, name: str) -> Any:
    if index >= len(cells):
        raise UserError(f"{name} has {len(cells)} cells, no index {index}")
    return cells[index]


def _key(table: RuntimeTable, wanted: str) -> RuntimeKey:
    """Return a key field by its name or the end of it: stack[1] or stack$1, and valid, $valid$ or isValid()."""
    known = {_plain(key.name): key for key in table.matched_keys}
    name = _plain(wanted)
    found = [key for plain, key in known.items() if plain == name or plain.endswith(f".{name}")]
    if len(found) != 1:
        raise UserError(f"table {table.name} has no key field {wanted}; there are: {', '.join(known)}")
    return found[0]


def _plain(name: str) -> str:
    name = re.sub(r"\$(\d+)", r"[\1]", name)
    return re.sub(r"(^|\.)(isValid\(\)|\$?valid\$?)$", r"\1$valid$", name)


def _match(key: RuntimeKey, value: s.MatchValue) -> Any:
    if isinstance(value, s.Prefix):
        return value.value, value.bits
    if isinstance(value, s.Masked):
        return value.value, value.mask
    if isinstance(value, s.Range):
        return value.low, value.high
    whole = (1 << (key.width or 0)) - 1
    if key.match in ("ternary", "optional") and value.mask is not None:
        # Digits that are not written match anything, as p4c's runner has it.
        return (value.value, value.mask & whole) if value.mask & whole != whole else value.value
    if key.match == "lpm" and value.has_wildcards:
        assert value.mask is not None and value.written is not None
        free = value.written & ~value.mask & whole
        return value.value, (key.width or 0) - free.bit_length()
    return value.value
