"""Chakra's execution traces, read from their files and written to them, which ASTRA-sim and others replay.

A trace is PREFIX.RANK.et, one file for each rank, and PREFIX.groups.json. What nodes mean is as ASTRA-sim takes them
(docs/traces.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.chakra_files import (
    COMMUNICATION_TYPES,
    TYPE_OF_OPERATION,
    BrokenFile,
    Metadata,
    NodeMessage,
    NodeType,
    Record,
    content,
    write_messages,
)
from gradbed.hosts.systems.training.traces.graph import BrokenGraph, Kind, Pool, RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace, TraceSettings

# ---- Groups of ranks by name: from a JSON file as ASTRA-sim's, and from what PyTorch left in a trace ----


EVERYBODY = ("", "0")
"""Names of the group of all ranks."""

Groups = Mapping[str, tuple[int, ...]]


def read_groups(file: Path, ranks: int) -> Groups:
    """Name -> ranks. UserError if the file is no such mapping, or a rank is not there."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not JSON: {error}") from None
    if not isinstance(read, dict):
        raise UserError(f"{file}: a mapping of names to lists of ranks is expected")
    found = {}
    for name, members in read.items():
        wrong = wrong_group(members, ranks)
        if wrong:
            raise UserError(f"{file}: group {name}: {wrong}")
        found[name] = tuple(members)
    return found


def wrong_group(members: Any, ranks: int) -> str | None:
    """Say what is wrong with a list of ranks."""
    if not isinstance(members, list) or not members or not all(type(rank) is int for rank in members):
        return "a list of ranks is expected"
    if len(set(members)) < len(members):
        return "a rank is in it twice"
    outside = [rank for rank in members if not 0 <= rank < ranks]
    return f"rank {outside[0]} is not there: the trace has ranks 0 to {ranks - 1}" if outside else None


def groups_of_pytorch(values: str, ranks: int) -> Groups:
    """Return the groups of a node "process_group:init", whose input is a list of groups as JSON in quotes; empty for
    other nodes.

    A group without ranks is one of all.
    """
    start, stop = values.find("[{"), values.rfind("}]")
    if "pg_name" not in values or start < 0 or stop < start:
        return {}
    text = values[start : stop + 2]
    for candidate in (text, text.replace('\\"', '"')):
        try:
            listed = json.loads(candidate)
            break
        except (ValueError, RecursionError):
            continue
    else:
        return {}
    found = {}
    for each in listed:
        if isinstance(each, dict) and "pg_name" in each:
            members = each.get("ranks") or list(range(ranks))
            if wrong_group(members, ranks) is None:
                found[str(each["pg_name"])] = tuple(members)
    return found


# ---- What nodes mean ----


LARGEST = 1 << 62
"""Of a duration in ns, a size, or a tag."""

DURATION_NS = "duration_ns"
"""An attribute of gradbed's own files: durations to the nanosecond, where the field has microseconds."""

OF_PYTORCH = "rf_id"
"""An attribute that Chakra's converter of PyTorch's traces writes."""

ROOTED = {Operation.BROADCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER}


class ChakraReader:
    """The reader that makes nodes of one rank's records."""

    def __init__(self, rank: int, ranks: int, settings: TraceSettings, groups: Groups) -> None:
        self._rank = rank
        self._ranks = ranks
        self._settings = settings
        self._groups = groups
        self._everybody = tuple(range(ranks))
        self._control: bool | None = None

    def nodes(self, records: Iterable[Record]) -> Iterator[TraceNode]:
        """BrokenGraph for a node that cannot be one."""
        listed = list(records)
        self._control = self._settings.control
        if self._control is None:
            # PyTorch's say who called whom: of callers that end later, or are not in the file.
            self._control = not any(OF_PYTORCH in record.attributes for record in listed)
        found: dict[str, tuple[int, ...]] = {}
        for record in listed:
            if record.type == NodeType.METADATA:
                found |= groups_of_pytorch(record.values, self._ranks)
        # A file of groups that somebody wrote goes before what PyTorch left.
        self._groups = {**found, **self._groups}
        return map(self._node, listed)

    def _node(self, record: Record) -> TraceNode:
        after = (*record.data, *record.control) if self._control else record.data
        common: dict[str, Any] = {"number": record.number, "name": record.name, "after": after}
        on_cpu = record.attributes.get("is_cpu_op") is True
        if record.type in (NodeType.INVALID, NodeType.METADATA):
            return TraceNode(**common, kind=Kind.COMPUTE)
        if record.type == NodeType.COMPUTE:
            return TraceNode(**common, kind=Kind.COMPUTE, duration_ns=self._compute_ns(record, on_cpu), on_cpu=on_cpu)
        if record.type in (NodeType.MEMORY_LOAD, NodeType.MEMORY_STORE):
            return TraceNode(**common, kind=Kind.MEMORY, duration_ns=self._memory_ns(record), on_cpu=on_cpu)
        if record.type not in (NodeType.SEND, NodeType.RECEIVE, NodeType.COLLECTIVE):
            raise _broken(record, f"nodes of type {record.type} are not known")
        if on_cpu and "comm_size" not in record.attributes:
            # Of PyTorch on GPUs: the processor's part, which starts the communication.
            return TraceNode(**common, kind=Kind.COMPUTE, duration_ns=_recorded_ns(record), on_cpu=True)
        return self._communication(record, common)

    def _communication(self, record: Record, common: Mapping[str, Any]) -> TraceNode:
        if record.type == NodeType.COLLECTIVE:
            return self._collective(record, common)
        own, other = ("comm_src", "comm_dst") if record.type == NodeType.SEND else ("comm_dst", "comm_src")
        if _number(record, own, self._rank) != self._rank:
            raise _broken(record, f"{own} is {record.attributes[own]}, not the rank whose file has it")
        peer = _number(record, other)
        if peer >= self._ranks:
            raise _broken(record, f"{other} is {peer}, but the trace has ranks 0 to {self._ranks - 1}")
        if peer == self._rank:
            raise _broken(record, f"{other} is the rank itself")
        return TraceNode(
            **common,
            kind=Kind.SEND if record.type == NodeType.SEND else Kind.RECEIVE,
            size_bytes=_number(record, "comm_size"),
            peer=peer,
            tag=_number(record, "comm_tag", 0),
        )

    def _collective(self, record: Record, common: Mapping[str, Any]) -> TraceNode:
        number = _number(record, "comm_type")
        if number not in COMMUNICATION_TYPES:
            raise _broken(record, f"comm_type {number} is not known")
        operation = COMMUNICATION_TYPES[number]
        group = self._group(record)
        root = None
        if operation in ROOTED:
            root = _number(record, "root", _number(record, "comm_src", (group or self._everybody)[0]))
            if root not in (group or self._everybody):
                raise _broken(record, f"its root {root} is not in its group")
        size = 0 if operation is Operation.BARRIER else _number(record, "comm_size")
        return TraceNode(**common, kind=Kind.COLLECTIVE, size_bytes=size, operation=operation, group=group, root=root)

    def _group(self, record: Record) -> tuple[int, ...]:
        """Return the group of a collective; empty: all ranks."""
        name = record.attributes.get("pg_name", "")
        if not isinstance(name, str):
            raise _broken(record, f"pg_name is {name!r}, not a text")
        if name not in EVERYBODY or name in self._groups:
            if name not in self._groups:
                raise _broken(record, f"its group {name!r} is not known: name a file of groups (--groups)")
            group = self._groups[name]
            if self._rank not in group:
                raise _broken(record, f"its group {name!r} is without rank {self._rank}")
        else:
            group = self._of_dimensions(record)
        return () if group == self._everybody else group

    def _of_dimensions(self, record: Record) -> tuple[int, ...]:
        """The ranks that differ from this one in the involved dimensions alone."""
        involved = record.attributes.get("involved_dim", [])
        if not isinstance(involved, list) or not all(type(each) is bool for each in involved):
            raise _broken(record, "involved_dim is not a list of truth values")
        if all(involved):
            return self._everybody
        sizes = self._settings.dimension_sizes
        if not sizes:
            raise _broken(record, f"involved_dim is {involved}: say how large the dimensions are (--dimensions)")
        if prod(sizes) != self._ranks:
            raise _broken(record, f"--dimensions: {'x'.join(map(str, sizes))} are not {self._ranks} ranks")
        group = [0]
        stride = 1
        for place, size in enumerate(sizes):
            own = self._rank // stride % size
            values = range(size) if place < len(involved) and involved[place] else (own,)
            group = [rank + value * stride for value in values for rank in group]
            stride *= size
        return tuple(sorted(group))

    def _compute_ns(self, record: Record, on_cpu: bool) -> int:
        operations = _number(record, "num_ops", 0)
        recorded = _recorded_ns(record)
        settings = self._settings
        if on_cpu or (recorded and not settings.roofline) or (not operations and not settings.roofline):
            return recorded
        if settings.peak_tflops is None:
            raise _broken(record, f"it has {operations:,} operations and no time: say how fast it is (--peak-tflops)")
        seconds = operations / (settings.peak_tflops * 1e12)
        if settings.roofline:
            moved = _number(record, "tensor_size", 0)
            if not moved:
                return 0  # as ASTRA-sim does
            if settings.memory_gbyte_per_s is None:
                raise _broken(record, "its roofline takes the memory's rate (--memory-gbyte-per-s)")
            seconds = max(seconds, moved / (settings.memory_gbyte_per_s * 1e9))
        return _within(record, "its time", round(seconds * 1e9))

    def _memory_ns(self, record: Record) -> int:
        settings = self._settings
        recorded = _recorded_ns(record)
        size = _number(record, "tensor_size", 0)
        if settings.remote_gbyte_per_s is None:
            if size and not recorded:
                raise _broken(record, f"it moves {size:,} bytes: say how fast (--remote-gbyte-per-s)")
            return recorded + settings.remote_delay_ns
        moving = round(size / settings.remote_gbyte_per_s)
        return _within(record, "its time", moving + settings.remote_delay_ns)


def _recorded_ns(record: Record) -> int:
    if DURATION_NS in record.attributes:
        return _number(record, DURATION_NS)
    return _within(record, "its time", (record.duration_us or _number(record, "runtime", 0)) * 1000)


def _number(record: Record, name: str, default: int | None = None) -> int:
    """Return the number in an attribute; without a default it has to be there."""
    value = record.attributes.get(name)
    if value is None:
        if default is None:
            raise _broken(record, f"it has no {name}")
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise _broken(record, f"{name} is {value!r:.60}, not a whole number")
    return _within(record, name, value)


def _within(record: Record, name: str, value: int) -> int:
    if not 0 <= value <= LARGEST:
        raise _broken(record, f"{name} is {value}, not from 0 to 2^62")
    return value


def _broken(record: Record, what: str) -> BrokenGraph:
    return BrokenGraph(record.number, record.name, what)


# ---- Reading ----


NAME = re.compile(r"(?P<prefix>.+?)\.(?P<rank>\d{1,6})\.(?P<suffix>et|json)(?:\.gz)?")
GROUPS_SUFFIX = ".groups.json"
MOST_KNOWN_MESSAGES = 200_000
"""That are kept for the next rank's file."""

Parse = Callable[[bytes, dict[bytes, Record]], Iterator[Record]]


class ChakraTrace(Trace):
    """files: rank -> its file; every rank has one."""

    def __init__(self, name: str, files: Mapping[int, Path], parse: Parse, settings: TraceSettings) -> None:
        super().__init__()
        self.name = name
        self.ranks = len(files)
        self._files = files
        self._parse = parse
        self._settings = settings
        self._groups = self._read_groups()
        self._known: dict[bytes, Record] = {}
        self._pool = Pool()

    def place(self, rank: int) -> str:
        return f"{self._files[rank]}: rank {rank}"

    def _read(self, rank: int) -> RankGraph:
        file = self._files[rank]
        if len(self._known) > MOST_KNOWN_MESSAGES:
            self._known.clear()
        try:
            data = content(file)
            records = self._parse(data, self._known)
            graph = graph_of(ChakraReader(rank, self.ranks, self._settings, self._groups).nodes(records))
            return self._pool.shared(graph)
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
        except BrokenFile as error:
            raise UserError(f"{self.place(rank)}: {error}") from None
        except BrokenGraph as error:
            raise UserError(f"{self.place(rank)}, node {error.number} ({_shown(error.name)}): {error}") from None

    def _read_groups(self) -> Groups:
        file = self._settings.groups
        if file is None:
            folder = self._files[0].parent
            prefix = NAME.fullmatch(self._files[0].name)
            beside = folder / f"{prefix['prefix'] if prefix else ''}{GROUPS_SUFFIX}"
            file = beside if beside.is_file() else None
        return read_groups(file, self.ranks) if file is not None else {}


def _shown(name: str) -> str:
    """Return a value in one line of a message."""
    flat = " ".join(name.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."


# ---- Writing ----


VERSION = "0.0.4"

TYPES = {
    Kind.COMPUTE: NodeType.COMPUTE,
    Kind.MEMORY: NodeType.MEMORY_LOAD,
    Kind.SEND: NodeType.SEND,
    Kind.RECEIVE: NodeType.RECEIVE,
    Kind.COLLECTIVE: NodeType.COLLECTIVE,
}


def write_trace(trace: Trace, folder: Path, prefix: str = "trace") -> None:
    """A file for each rank and one of the groups, which count from 1. The folder is made; UserError if it cannot be
    written."""
    names: dict[tuple[int, ...], int] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(trace.ranks):
            write_messages(folder / f"{prefix}.{rank}.et", _messages(rank, trace.nodes(rank), names))
        listed = {str(number): list(group) for group, number in names.items()}
        (folder / f"{prefix}{GROUPS_SUFFIX}").write_text(json.dumps(listed) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {error.filename or folder}: {error.strerror}") from None


def _messages(rank: int, nodes: Sequence[TraceNode], names: dict[tuple[int, ...], int]) -> Iterator[Any]:
    yield Metadata(version=VERSION)
    for node in nodes:
        yield _message(rank, node, names)


def _message(rank: int, node: TraceNode, names: dict[tuple[int, ...], int]) -> Any:
    """names: number of every group so far; new ones are added."""
    message = NodeMessage(id=node.number, name=node.name, type=TYPES[node.kind], data_deps=node.after)
    message.duration_micros = -(-node.duration_ns // 1000)
    message.attr.add(name="is_cpu_op", bool_val=node.on_cpu)
    if node.duration_ns % 1000:
        message.attr.add(name=DURATION_NS, int64_val=node.duration_ns)
    if node.kind in (Kind.SEND, Kind.RECEIVE, Kind.COLLECTIVE):
        message.attr.add(name="comm_size", int64_val=node.size_bytes)
    if node.operation is not None:
        message.attr.add(name="comm_type", int64_val=TYPE_OF_OPERATION[node.operation])
        if node.group:
            message.attr.add(name="pg_name", string_val=str(names.setdefault(node.group, len(names) + 1)))
        if node.root is not None:
            message.attr.add(name="root", int32_val=node.root)
    elif node.peer is not None:
        source, target = (rank, node.peer) if node.kind is Kind.SEND else (node.peer, rank)
        message.attr.add(name="comm_src", int32_val=source)
        message.attr.add(name="comm_dst", int32_val=target)
        message.attr.add(name="comm_tag", int32_val=node.tag)
    return message
