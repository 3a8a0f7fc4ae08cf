"""PyTorch's operators of communication (c10d) as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradbed.hosts.systems.training.execution import Kind, Operation
from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile
from gradbed.hosts.systems.training.traces.recording.operators import Operator, tensors

SPACE = "c10d::"


@dataclass(frozen=True)
class Call:
    """What an operator does. argument: the one whose tensors are its size, as execution.Operation counts it; empty:
    none. times_group: so often, as each rank has one part in it."""

    what: Operation | Kind
    argument: str = ""
    times_group: bool = False


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
class Communication:
    """operator: that began it. node: the fields of its node but number, name and after. waits: the script did not go
    on before it was complete."""

    operator: Operator
    node: Mapping[str, Any]
    waits: bool


def is_communication(operator: Operator) -> bool:
    return operator.name.startswith(SPACE)


def communication_of(operator: Operator, group: tuple[int, ...]) -> Communication:
    """group: the ranks. BrokenFile for an operator that is not known."""
    call = CALLS.get(operator.name.removeprefix(SPACE))
    if call is None:
        raise BrokenFile(f"node {operator.number} ({operator.name}): this operator of communication is not known")
    size = sum(tensor.size_bytes for tensor in tensors(operator.argument(call.argument)))
    node: dict[str, Any] = {"size_bytes": size * (len(group) if call.times_group else 1)}
    if isinstance(call.what, Kind):
        node |= {"kind": call.what, "peer": _rank(operator, PEERS[call.what], group)}
        node["tag"] = operator.argument("tag") or 0
        return Communication(operator, node, waits=call.what is Kind.RECEIVE)
    node |= {"kind": Kind.COLLECTIVE, "operation": call.what, "group": group}
    if operator.argument("root_rank") is not None:
        node["root"] = _rank(operator, "root_rank", group)
    asynchronous = any(operator.argument(name) is True for name in ASYNCHRONOUS)
    return Communication(operator, node, waits=not asynchronous)


def _rank(operator: Operator, argument: str, group: tuple[int, ...]) -> int:
    """PyTorch's numbers of ranks count inside the group."""
    place = operator.argument(argument)
    if type(place) is not int or not 0 <= place < len(group):
        raise BrokenFile(f"node {operator.number} ({operator.name}): {argument} is {place!r:.20}, not in its group")
    return group[place]
