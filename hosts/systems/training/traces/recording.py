"""What `gradbed run torch --trace` recorded, as a trace."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.chakra import write_trace
from gradbed.hosts.systems.training.traces.chakra_files import BrokenFile
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.graph import BrokenGraph, Kind, RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace

# ---- Operators, as PyTorch's ExecutionTraceObserver writes them: their tensors, and which of them called which ----


TENSOR_PARTS = 6
"""Tensor, storage, offset, number of values, bytes of each, device."""


@dataclass(frozen=True)
class RecordedTensor:
    """A tensor as the observer recorded it."""

    storage: int
    """Number of its storage; tensors of one storage share memory."""
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Operator:
    """A call of an operator of PyTorch, or an annotation or step of the autograd engine."""

    number: int
    name: str
    caller: int
    record: int
    """Its number in the profiler's time line."""
    schema: str
    """Schema; empty for an annotation or a step of the autograd engine."""
    inputs: list[Any]
    outputs: list[Any]
    start_us: float | None
    """Start; None if the time line does not have it."""
    duration_us: float

    @cached_property
    def storages(self) -> frozenset[int]:
        return frozenset(tensor.storage for tensor in tensors([self.inputs, self.outputs]))

    def argument(self, name: str) -> Any:
        """An input by its name in the schema; None if there is none."""
        names = _parameters(self.schema)
        return self.inputs[names.index(name)] if name in names and names.index(name) < len(self.inputs) else None


def _parameters(schema: str) -> list[str]:
    """Names of "space::name(Type[] first, Type second=1) -> ..."."""
    start, stop = schema.find("("), schema.find(") ->")
    return re.findall(r"([A-Za-z_]\w*)(?:=[^,]*)?(?:,|$)", schema[start + 1 : stop]) if 0 <= start < stop else []


def tensors(value: Any) -> Iterator[RecordedTensor]:
    """Yield the tensors in a value of the observer, at any depth."""
    if not isinstance(value, list):
        return
    if len(value) == TENSOR_PARTS and isinstance(value[-1], str) and all(type(each) is int for each in value[:-1]):
        _, storage, _, values, value_bytes, _ = value
        yield RecordedTensor(storage, values * value_bytes)
        return
    for each in value:
        yield from tensors(each)


class Operators:
    """The operators of one rank, by number."""

    def __init__(self, observed: Path, timeline: Path | None) -> None:
        """timeline: of the profiler, in Chrome's format. BrokenFile; OSError if a file cannot be read."""
        times = _times(_json(timeline)) if timeline else {}
        nodes = _json(observed).get("nodes")
        if not isinstance(nodes, list):
            raise BrokenFile("it is no execution trace of PyTorch: it has no list of nodes")
        self._all: dict[int, Operator] = {}
        for place, node in enumerate(nodes):
            try:
                made = _operator(node, times)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise BrokenFile(f"node {place} of the file is no node of an execution trace of PyTorch") from None
            self._all[made.number] = made
        self._called: dict[int, list[Operator]] = defaultdict(list)
        for number in sorted(self._all):
            self._called[self._all[number].caller].append(self._all[number])

    def roots(self) -> list[Operator]:
        """Return those that no other called."""
        return [each for each in self._all.values() if each.caller not in self._all or each.caller == each.number]

    def called(self, by: Operator) -> list[Operator]:
        return [each for each in self._called[by.number] if each is not by]

    def inside(self, of: Operator) -> Iterator[Operator]:
        """Yield an operator and all that were called until it ended, callers first."""
        waiting = [of]
        while waiting:
            each = waiting.pop()
            yield each
            waiting += reversed(self.called(each))

    def callers(self, of: Operator) -> Iterator[Operator]:
        """Yield an operator's callers from the nearest on; each once, even in a file where they are a circle."""
        seen = {of.number}
        while of.caller in self._all and of.caller not in seen:
            of = self._all[of.caller]
            seen.add(of.number)
            yield of


def _json(file: Path) -> Mapping[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BrokenFile(f"{file.name} is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise BrokenFile(f"{file.name} is no JSON object")
    return read


def _times(timeline: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """Record -> when it began and how long it took, in microseconds. BrokenFile."""
    found = {}
    try:
        for event in timeline.get("traceEvents", ()):
            record = event.get("args", {}).get("Record function id")
            if record and event.get("ph") == "X":
                found[int(record)] = (float(event["ts"]), float(event["dur"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BrokenFile("its time line is none of PyTorch's profiler") from None
    return found


def _operator(node: Mapping[str, Any], times: Mapping[int, tuple[float, float]]) -> Operator:
    attributes = {each["name"]: each["value"] for each in node["attrs"]}
    record = int(attributes.get("rf_id", 0))
    start_us, duration_us = times.get(record, (None, 0.0))
    return Operator(
        number=int(node["id"]),
        name=str(node["name"]),
        caller=int(node["ctrl_deps"]),
        record=record,
        schema=str(attributes.get("op_schema", "")),
        inputs=list(node["inputs"]["values"]),
        outputs=list(node["outputs"]["values"]),
        start_us=start_us,
        duration_us=duration_us,
    )


# ---- PyTorch's operators of communication (c10d) as nodes ----


SPACE = "c10d::"


@dataclass(frozen=True)
class Call:
    """The communication of an operator."""

    what: Operation | Kind
    argument: str = ""
    """Name of the argument whose tensors are its size, as Operation counts it; empty: none."""
    times_group: bool = False
    """Whether that size is taken once for each rank of the group, as each has one part in it."""


CALLS: Mapping[str, Call] = {
    "allreduce_": Call(Operation.ALL_REDUCE, "tensors"),
    "allreduce_coalesced_": Call(Operation.ALL_REDUCE, "tensors"),
    "allgather_": Call(Operation.ALL_GATHER, "input_tensors"),
    "_allgather_base_": Call(Operation.ALL_GATHER, "input_tensor"),
    "allgather_coalesced_": Call(Operation.ALL_GATHER, "input_list"),
    "allgather_into_tensor_coalesced_": Call(Operation.ALL_GATHER, "inputs"),
    "reduce_scatter_": Call(Operation.REDUCE_SCATTER, "input_tensors"),
    "_reduce_scatter_base_": Call(Operation.REDUCE_SCATTER, "input_tensor"),
    "reduce_scatter_tensor_coalesced_": Call(Operation.REDUCE_SCATTER, "inputs"),
    "alltoall_": Call(Operation.ALL_TO_ALL, "input_tensors"),
    "alltoall_base_": Call(Operation.ALL_TO_ALL, "input"),
    "broadcast_": Call(Operation.BROADCAST, "tensors"),
    "reduce_": Call(Operation.REDUCE, "tensors"),
    "gather_": Call(Operation.GATHER, "input_tensors"),
    "scatter_": Call(Operation.SCATTER, "output_tensors", times_group=True),
    "barrier": Call(Operation.BARRIER),
    "monitored_barrier_": Call(Operation.BARRIER),
    "send": Call(Kind.SEND, "tensors"),
    "recv_": Call(Kind.RECEIVE, "tensors"),
}
"""By the operator's name: torch/csrc/distributed/c10d/Ops.cpp declares them."""

PEERS = {Kind.SEND: "dst", Kind.RECEIVE: "src"}

ASYNCHRONOUS = ("async_op", "asyncOp")
"""What the argument is called in newer versions of PyTorch, and in older ones."""


@dataclass(frozen=True)
class RecordedCommunication:
    """A communication that an operator of c10d began."""

    operator: Operator
    """Operator that began it."""
    node: Mapping[str, Any]
    """Fields of its node but number, name and after."""
    waits: bool
    """Whether the script did not go on before it was complete."""


def is_communication(operator: Operator) -> bool:
    return operator.name.startswith(SPACE)


def communication_of(operator: Operator, group: tuple[int, ...]) -> RecordedCommunication:
    """group: the ranks. BrokenFile for an operator that is not known."""
    call = CALLS.get(operator.name.removeprefix(SPACE))
    if call is None:
        raise BrokenFile(f"node {operator.number} ({operator.name}): this operator of communication is not known")
    size = sum(tensor.size_bytes for tensor in tensors(operator.argument(call.argument)))
    node: dict[str, Any] = {"size_bytes": size * (len(group) if call.times_group else 1)}
    if isinstance(call.what, Kind):
        node |= {"kind": call.what, "peer": _rank(operator, PEERS[call.what], group)}
        node["tag"] = operator.argument("tag") or 0
        return RecordedCommunication(operator, node, waits=call.what is Kind.RECEIVE)
    node |= {"kind": Kind.COLLECTIVE, "operation": call.what, "group": group}
    if operator.argument("root_rank") is not None:
        node["root"] = _rank(operator, "root_rank", group)
    asynchronous = any(operator.argument(name) is True for name in ASYNCHRONOUS)
    return RecordedCommunication(operator, node, waits=not asynchronous)


def _rank(operator: Operator, argument: str, group: tuple[int, ...]) -> int:
    """PyTorch's numbers of ranks count inside the group."""
    place = operator.argument(argument)
    if type(place) is not int or not 0 <= place < len(group):
        raise BrokenFile(f"node {operator.number} ({operator.name}): {argument} is {place!r:.20}, not in its group")
    return group[place]


# ---- A rank as nodes: its operators in the order in which they ran, and communications beside them ----


GROUP = "gradbed group "
"""How an annotation begins that names the ranks of what it is around (hosts/torch_hook/recorder.py)."""


def nodes_of(operators: Operators, ranks: int, data_parallel: tuple[int, ...]) -> list[TraceNode]:
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
    """Return a key by time, where there is one: threads count apart."""
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
    nodes: list[TraceNode] = field(default_factory=list)
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
            TraceNode(
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
        self.nodes.append(TraceNode(operator.number, operator.name, after=tuple(dict.fromkeys(after)), **fields))
        self._begun(what, group)

    def _begun(self, what: RecordedCommunication, group: tuple[int, ...]) -> None:
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


# ---- Traces ----


class RecordedTrace(Trace):
    """The trace in a folder with operators.RANK.json and timeline.RANK.json of PyTorch, and ranks.RANK.json of the
    recorder (hosts/torch_hook/recorder.py).
    """

    def __init__(self, folder: Path, ranks: int) -> None:
        super().__init__()
        self.name = str(folder)
        self.ranks = ranks
        self._folder = folder

    def place(self, rank: int) -> str:
        return f"{self._folder / f'operators.{rank}.json'}: rank {rank}"

    def _read(self, rank: int) -> RankGraph:
        try:
            about = json.loads((self._folder / f"ranks.{rank}.json").read_text(encoding="utf-8"))
            operators = Operators(self._folder / f"operators.{rank}.json", self._folder / f"timeline.{rank}.json")
            return graph_of(nodes_of(operators, self.ranks, tuple(about["data_parallel"])))
        except (OSError, BrokenFile, BrokenGraph) as error:
            raise UserError(f"{self.place(rank)}: {error}") from None


def convert_recording(recorded: Path, ranks: int, folder: Path) -> str:
    """Make a Chakra trace in `folder` of what was recorded; what was made, in words. UserError if ranks do not agree,
    as where one of them used PyTorch's distributed package in a way that is not known."""
    trace = RecordedTrace(recorded, ranks)
    check_trace(trace)
    write_trace(trace, folder)
    communications = sum(sum(1 for _ in trace.nodes(rank).communications()) for rank in range(ranks))
    nodes = sum(len(trace.nodes(rank)) for rank in range(ranks))
    return f"{folder}/: {ranks} ranks, {nodes:,} nodes, {communications:,} of them communications"
