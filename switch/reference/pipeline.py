"""The reference switch: a v1model program interpreted from its source, packet by packet."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gradbed.common.errors import UserError
from gradbed.switch.reference.blocks import BlockInterpreter, RuntimeValueSet
from gradbed.switch.reference.expressions import ParserFailure
from gradbed.switch.reference.parse_declarations import parse_program
from gradbed.switch.reference.parse_expressions import parse_expressions
from gradbed.switch.reference.scope import Subroutine
from gradbed.switch.reference.statements import ExitSignal
from gradbed.switch.reference.syntax import CallNode, NameNode
from gradbed.switch.reference.tables import (
    AnyValue,
    ExactMatcher,
    ListedAction,
    MaskedMatcher,
    Matcher,
    RangeMatcher,
    RuntimeActionCall,
    RuntimeEntry,
    RuntimeKey,
    RuntimeTable,
    SelectorGroup,
)
from gradbed.switch.reference.tokens import preprocess, tokens
from gradbed.switch.reference.v1model import (
    DROP_PORT,
    PacketIn,
    PacketOut,
    Requests,
    RuntimeCounter,
    RuntimeMeter,
    RuntimeRegister,
    TwoRateMarker,
    V1Model,
    get,
    put,
)
from gradbed.switch.reference.values import Composite, RecordType, Value, ValueType, base_of, bits_of, copied, default

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
MAX_PASSES = 10_000
BETWEEN_PACKETS_US = 1000
Found = TypeVar("Found")


@dataclass
class Pass:
    """A packet before ingress or before egress, with its metadata."""

    frame: bytes
    port: int
    instance: int = NORMAL
    kept: dict[tuple[int, ...], Value] = field(default_factory=dict)
    length: int = 0
    packet: PacketIn | None = None
    headers: Composite | None = None
    """Headers of the program; None before ingress."""
    metadata: Composite | None = None
    standard: Composite | None = None
    truncate: int | None = None
    """Bytes that are left of it when it leaves; None for all. Egress begins with headers."""


@dataclass
class Session:
    """A clone session: a port, or a multicast group; the copy may be cut."""

    replicas: list[tuple[int, int]]
    truncate: int | None = None
    group: int | None = None


class ReferenceSwitch:
    """A v1model switch that interprets a P4_16 program as the specification says.

    It shares no code with the compiler and the data plane, so that the two can be held against each other. It is slow
    and in memory only: frames go in by `process` and come out as its result.

    Args:
        source: The program: a file, or its text.
        include_folders: Folders for `#include`, besides that of the file.
        ports: The ports that exist; None for all but the one that drops.
        defines: Macros, by name.
        seed: For `random`.
    """

    def __init__(
        self,
        source: str | Path,
        include_folders: Iterable[str | Path] = (),
        ports: Collection[int] | None = None,
        defines: Mapping[str, str] | None = None,
        seed: int = 1,
    ) -> None:
        folders = [Path(folder) for folder in include_folders]
        text = preprocess(source, folders, defines or {})
        self._ports = ports
        self._v1model = V1Model(seed)
        self.blocks = BlockInterpreter(parse_program(tokens(text)), self._v1model)
        self._groups: dict[int, list[tuple[int, int]]] = {}
        self._sessions: dict[int, Session] = {}
        self._load()

    def _load(self) -> None:
        if self.blocks.package is None:
            raise UserError("the program has no main: V1Switch(...) main;")
        arguments, package = self.blocks.package
        if package.name != "V1Switch" or len(arguments) != 6:
            raise UserError(f"the reference runs V1Switch programs, not {package.name}")
        made: list[Subroutine] = []
        names = [each.name for each in package.parameters]
        # Arguments may be named, and then stand in any order.
        by_name = {each.name: each for each in arguments if each.name is not None}
        for argument in [by_name[name] for name in names] if len(by_name) == len(names) else arguments:
            # What stands in a control is named after the control's type, as the package names no instances.
            called = argument.value.function if isinstance(argument.value, CallNode) else None
            path = called.name if isinstance(called, NameNode) else ""
            value = self.blocks.constructor_argument(argument, self.blocks.root, path).run()
            if not isinstance(value, Subroutine):
                raise UserError(f"{argument.position}: a parser or control is needed")
            made.append(value)
        self._parser, self._verify, self._ingress, self._egress, self._compute, self._deparser = made
        self._header_type = self._parser.parameters[1].type
        self._metadata_type = self._parser.parameters[2].type
        self._standard_type = self._parser.parameters[3].type
        self._field_lists: dict[int, list[tuple[int, ...]]] = {}
        self._find_field_lists(self._metadata_type, ())

    def _find_field_lists(self, type_: ValueType, path: tuple[int, ...]) -> None:
        base = base_of(type_)
        if not isinstance(base, RecordType):
            return
        for index, each in enumerate(base.fields):
            listed: Any = each.annotations.get("field_list")
            if listed is not None:
                for number in parse_expressions(listed):
                    which = self.blocks.natural(number, self.blocks.root)
                    self._field_lists.setdefault(which, []).append((*path, index))
            else:
                self._find_field_lists(each.type, (*path, index))

    # ---- Packets ----

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send a frame in by a port; return what leaves, (port, frame), in order."""
        outputs: list[tuple[int, bytes]] = []
        waiting = deque([Pass(frame, port, length=len(frame))])
        for _ in range(MAX_PASSES):
            if not waiting:
                break
            item = waiting.popleft()
            if item.headers is None:
                self._run_ingress(item, waiting)
            else:
                self._run_egress(item, waiting, outputs)
        else:
            raise UserError("the packet and its copies go round in circles and never come to rest")
        self._v1model.now_us += BETWEEN_PACKETS_US
        return outputs

    def _block(self, block: Subroutine, values: Sequence[Value]) -> list[Value]:
        """Run a parser or control on copies of these arguments; returns what it leaves in its parameters."""
        for cell, value in zip(block.cells, values, strict=True):
            cell[0] = copied(value)
        with suppress(ExitSignal):
            block.body()
        return [cell[0] for cell in block.cells]

    def _begin(self, item: Pass) -> None:
        """Parse and verify checksums."""
        v1model = self._v1model
        packet = PacketIn(item.frame)
        standard = default(self._standard_type)
        put(standard, "ingress_port", item.port)
        put(standard, "instance_type", item.instance)
        put(standard, "packet_length", item.length)
        put(standard, "ingress_global_timestamp", v1model.now_us)
        metadata = default(self._metadata_type)
        _restore(metadata, item.kept)
        v1model.packet, v1model.length, v1model.requests = packet, item.length, Requests()
        error = "NoError"
        for cell, value in zip(
            self._parser.cells, (packet, default(self._header_type), metadata, standard), strict=True
        ):
            cell[0] = value
        try:
            self._parser.body()
        except ParserFailure as failure:
            error = failure.error
        headers, metadata, standard = (cell[0] for cell in self._parser.cells[1:])
        put(standard, "parser_error", error)
        headers, metadata = self._block(self._verify, (headers, metadata))
        put(standard, "checksum_error", int(v1model.requests.checksum_error))
        item.packet, item.headers, item.metadata, item.standard = packet, headers, metadata, standard

    def _run_ingress(self, item: Pass, waiting: deque[Pass]) -> None:
        """Run parser and ingress, then clone, resubmit, multicast, drop or unicast, as simple_switch does."""
        v1model = self._v1model
        self._begin(item)
        v1model.requests = Requests()
        item.headers, item.metadata, item.standard = self._block(
            self._ingress, (item.headers, item.metadata, item.standard)
        )
        requests = v1model.requests
        if requests.clone is not None:
            session, fields = requests.clone
            clone = Pass(item.frame, item.port, kept=self._keep(item.metadata, fields), length=item.length)
            self._begin(clone)
            _restore(clone.metadata, clone.kept)
            self._clone(clone, session, INGRESS_CLONE, waiting)
        if requests.digest is not None:
            v1model.digests.append(requests.digest)
        if requests.resubmit is not None:
            kept = self._keep(item.metadata, requests.resubmit[0])
            waiting.append(Pass(item.frame, item.port, RESUBMITTED, kept, item.length))
            return
        item.truncate = requests.truncate
        group = get(item.standard, "mcast_grp")
        if group:
            for port, instance in self._groups.get(group, ()):
                self._to_egress(item, port, instance, REPLICATED, waiting)
            return
        port = get(item.standard, "egress_spec")
        if port != DROP_PORT:
            self._to_egress(item, port, 0, NORMAL, waiting)

    def _keep(self, metadata: Composite | None, fields: int | None) -> dict[tuple[int, ...], Value]:
        paths = self._field_lists.get(fields, ()) if fields is not None else ()
        return {path: copied(_at(metadata, path)) for path in paths}

    def _clone(self, clone: Pass, number: int, instance: int, waiting: deque[Pass]) -> None:
        session = self._sessions.get(number)
        if session is None:
            return
        replicas = session.replicas if session.group is None else self._groups.get(session.group, [])
        clone.truncate = session.truncate
        for port, rid in replicas:
            self._to_egress(clone, port, rid, instance, waiting)

    def _to_egress(self, item: Pass, port: int, rid: int, instance: int, waiting: deque[Pass]) -> None:
        made = Pass(item.frame, item.port, instance, length=item.length, packet=item.packet, truncate=item.truncate)
        made.headers, made.metadata = copied(item.headers), copied(item.metadata)
        standard = copied(item.standard)
        put(standard, "egress_port", port)
        put(standard, "egress_rid", rid)
        put(standard, "egress_spec", 0)
        put(standard, "instance_type", instance)
        put(standard, "egress_global_timestamp", self._v1model.now_us)
        made.standard = standard
        waiting.append(made)

    def _run_egress(self, item: Pass, waiting: deque[Pass], outputs: list[tuple[int, bytes]]) -> None:
        """Run egress, then clone, drop, or run checksums and deparser, then recirculate or send, as simple_switch
        does."""
        v1model = self._v1model
        assert item.packet is not None
        v1model.packet, v1model.length, v1model.requests = item.packet, item.length, Requests(truncate=item.truncate)
        port = get(item.standard, "egress_port")  # type: ignore[arg-type]
        headers, metadata, standard = self._block(self._egress, (item.headers, item.metadata, item.standard))
        requests = v1model.requests
        if requests.clone is not None:
            session, fields = requests.clone
            clone = Pass(item.frame, item.port, length=item.length, packet=item.packet, headers=headers)
            clone.metadata = default(self._metadata_type)
            _restore(clone.metadata, self._keep(metadata, fields))
            clone.standard = default(self._standard_type)
            put(clone.standard, "ingress_port", item.port)
            put(clone.standard, "packet_length", item.length)
            put(clone.standard, "ingress_global_timestamp", get(standard, "ingress_global_timestamp"))
            self._clone(clone, session, EGRESS_CLONE, waiting)
        if get(standard, "egress_spec") == DROP_PORT:
            return
        headers, metadata = self._block(self._compute, (headers, metadata))
        out = PacketOut()
        self._block(self._deparser, (out, headers))
        frame = out.frame + item.packet.payload
        if requests.truncate is not None:
            frame = frame[: requests.truncate]
        if requests.recirculate is not None:
            kept = self._keep(metadata, requests.recirculate[0])
            waiting.append(Pass(frame, item.port, RECIRCULATED, kept, len(frame)))
        elif frame and port != DROP_PORT and (self._ports is None or port in self._ports):
            outputs.append((port, frame))

    # ---- The control plane ----

    @property
    def time_us(self) -> int:
        """Microseconds since the start; each packet takes one thousand."""
        return self._v1model.now_us

    @property
    def digests(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return what digest() sent: (receiver, the fields' values in order)."""
        return self._v1model.digests

    @property
    def log(self) -> list[str]:
        """Return what log_msg() wrote."""
        return self._v1model.log

    def table(self, name: str) -> RuntimeTable:
        return named(self.blocks.tables, name, "table")

    def insert(
        self,
        table: str,
        match: Mapping[str, Any],
        action: str,
        arguments: Mapping[str, int] | Sequence[int] = (),
        priority: int | None = None,
    ) -> RuntimeEntry:
        """Add an entry; the larger priority wins.

        match: by the name of the key field: a number; for lpm also (value, prefix length), for ternary (value, mask),
        for range (low, high); None, or a field that is left out, matches everything.
        """
        held = self.table(table)
        entry = RuntimeEntry(self._matchers(held, match), self.action_call(held, action, arguments), priority or 0)
        return self._add(held, entry)

    def insert_group(
        self,
        table: str,
        match: Mapping[str, Any],
        members: Sequence[tuple[str, Mapping[str, int] | Sequence[int]]],
        priority: int | None = None,
    ) -> RuntimeEntry:
        """Add an entry of a table with an action selector: the packet's hash chooses a member."""
        held = self.table(table)
        group = SelectorGroup([self.action_call(held, action, arguments) for action, arguments in members])
        return self._add(held, RuntimeEntry(self._matchers(held, match), group, priority or 0))

    def _add(self, table: RuntimeTable, entry: RuntimeEntry) -> RuntimeEntry:
        rank = entry.priority if table.has_priorities else 0
        for other in table.entries:
            if other.matches == entry.matches and (not table.has_priorities or other.priority == rank):
                raise UserError(f"table {table.name} has an entry with this key")
        table.entries.append(entry)
        return entry

    def remove(self, table: str, entry: RuntimeEntry) -> None:
        """Remove an entry that `insert` returned."""
        held = self.table(table)
        held.entries = [other for other in held.entries if other is not entry]

    def set_default(self, table: str, action: str, arguments: Mapping[str, int] | Sequence[int] = ()) -> None:
        """Set a table's default action."""
        held = self.table(table)
        held.default = self.action_call(held, action, arguments)

    def action_call(
        self, table: RuntimeTable, action: str, arguments: Mapping[str, int] | Sequence[int]
    ) -> RuntimeActionCall:
        listed: ListedAction = named({each.name: each for each in table.actions.values()}, action, "action")
        local = next(name for name, each in table.actions.items() if each is listed)
        parameters = listed.subroutine.data
        if isinstance(arguments, Mapping):
            missing = [p.name for p in parameters if p.name not in arguments]
            if missing or len(arguments) != len(parameters):
                raise UserError(f"action {listed.name} takes {', '.join(p.name for p in parameters) or 'nothing'}")
            arguments = [arguments[p.name] for p in parameters]
        if len(arguments) != len(parameters):
            raise UserError(f"action {listed.name} takes {len(parameters)} arguments, not {len(arguments)}")
        values = tuple(_of_type(value, p.type) for value, p in zip(arguments, parameters, strict=True))
        return RuntimeActionCall(local, values)

    def _matchers(self, table: RuntimeTable, match: Mapping[str, Any]) -> tuple[Matcher, ...]:
        keys = {key.name: key for key in table.matched_keys}
        given = {named(keys, name, f"key field of {table.name}").name: value for name, value in match.items()}
        return tuple(_matcher(key, given.get(key.name), table) for key in table.matched_keys)

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Make a multicast group of (port, instance) pairs."""
        self._groups[group] = list(replicas)

    def set_mirror(
        self, session: int, port: int | None = None, group: int | None = None, truncate: int | None = None
    ) -> None:
        """Make a clone session to a port, or to a multicast group; truncate: bytes that are left of a clone."""
        replicas = [(port, 0)] if port is not None else []
        self._sessions[session] = Session(replicas, truncate, group)

    def set_mirror_replicas(
        self, session: int, replicas: Sequence[tuple[int, int]], truncate: int | None = None
    ) -> None:
        """Make a clone session to (port, instance) pairs."""
        self._sessions[session] = Session(list(replicas), truncate)

    def remove_mirror(self, session: int) -> None:
        """Remove a clone session; nothing happens if there is none."""
        self._sessions.pop(session, None)

    def set_value_set(self, name: str, members: Sequence[Any]) -> None:
        """Set a parser value set's members: numbers, or (value, mask); for several fields a list of these."""
        held: RuntimeValueSet = named(self.blocks.value_sets, name, "value set")
        made: list[tuple[Matcher, ...]] = []
        for member in members:
            fields = member if isinstance(member, list) else [member]
            made.append(
                tuple(
                    MaskedMatcher(*value) if isinstance(value, tuple) else ExactMatcher(_of_type(value, type_))
                    for value, type_ in zip(fields, held.types, strict=True)
                )
            )
        held.members = made

    def register(self, name: str) -> list[int]:
        """Return all cells of a register, as non-negative numbers."""
        held = self._object(name, RuntimeRegister)
        bits = bits_of(held.type)
        return [int(value) & bits.mask if bits is not None else int(value) for value in held.cells]

    def write_register(self, name: str, index: int, value: int) -> None:
        """Write a register's cell."""
        held = self._object(name, RuntimeRegister)
        held.cells[index] = _of_type(value, held.type)

    def counter(self, name: str) -> list[tuple[int, int]]:
        """Return all cells of a counter: (packets, bytes)."""
        return list(self._object(name, RuntimeCounter).cells)

    def write_counter(self, name: str, index: int, packets: int, bytes_: int) -> None:
        """Write a counter's cell."""
        self._object(name, RuntimeCounter).cells[index] = (packets, bytes_)

    def write_meter(
        self, name: str, index: int | None, committed: tuple[float, int], peak: tuple[float, int]
    ) -> None:
        """Set a meter's (rate per microsecond, burst); index None: of every cell."""
        held = self._object(name, RuntimeMeter)
        for cell in range(len(held.cells)) if index is None else (index,):
            held.cells[cell] = TwoRateMarker(*committed, *peak, at_us=self.time_us)

    def set_entry_meter(self, entry: RuntimeEntry, committed: tuple[float, int], peak: tuple[float, int]) -> None:
        """Set (rate per microsecond, burst) of the direct meter of an entry that `insert` returned."""
        entry.meter = TwoRateMarker(*committed, *peak, at_us=self.time_us)

    def _object(self, name: str, kind: type[Found]) -> Found:
        of_kind = {path: each for path, each in self.blocks.objects.items() if isinstance(each, kind)}
        return named(of_kind, name, kind.__name__.lower())


def named(known: Mapping[str, Found], name: str, what: str) -> Found:
    """Return what has this name, or the one whose name ends with it."""
    if name in known:
        return known[name]
    found = [each for each in known if each.endswith(f".{name}")]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise UserError(f"{what} {name} could be {' or '.join(sorted(found))}")
    raise UserError(f"there is no {what} {name}; there are: {', '.join(sorted(known)) or 'none'}")


def _of_type(value: int, type_: ValueType) -> Value:
    """Return a number from the control plane as a value of the program."""
    bits = bits_of(type_)
    if bits is None:
        return value
    wrapped = bits.wrap(int(value))
    return bool(wrapped) if str(base_of(type_)) == "bool" else wrapped


def _matcher(key: RuntimeKey, given: Any, table: RuntimeTable) -> Matcher:
    whole = (1 << (key.width or 0)) - 1
    if given is None:
        if key.match == "exact":
            raise UserError(f"key field {key.name} of {table.name} is matched exactly: give it a value")
        return MaskedMatcher(0, 0) if key.match == "lpm" else AnyValue()
    if isinstance(given, tuple):
        first, second = given
        if key.match == "lpm":
            return MaskedMatcher(first, whole & ~((1 << ((key.width or 0) - second)) - 1))
        if key.match == "range":
            return RangeMatcher(first, second)
        return MaskedMatcher(first, second)
    if key.match == "lpm":
        return MaskedMatcher(given, whole)
    return ExactMatcher(_of_type(given, key.typed.type))


def _at(record: Composite | None, path: tuple[int, ...]) -> Value:
    value: Value = record
    for index in path:
        value = value.parts[index]
    return value


def _restore(record: Composite | None, kept: Mapping[tuple[int, ...], Value]) -> None:
    for path, value in kept.items():
        owner = _at(record, path[:-1])
        held = owner.parts[path[-1]]
        if isinstance(held, Composite):
            held.assign(value)
        else:
            owner.parts[path[-1]] = copied(value)
