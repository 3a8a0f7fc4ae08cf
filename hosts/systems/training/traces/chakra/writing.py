"""Traces as Chakra's files, which ASTRA-sim and others replay: PREFIX.RANK.et and PREFIX.groups.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.execution import Kind, Node
from gradbed.hosts.systems.training.traces.chakra.messages import write_messages
from gradbed.hosts.systems.training.traces.chakra.nodes import DURATION_NS
from gradbed.hosts.systems.training.traces.chakra.reading import GROUPS_SUFFIX
from gradbed.hosts.systems.training.traces.chakra.schema import TYPE_OF_OPERATION, Metadata, NodeMessage, NodeType
from gradbed.hosts.systems.training.traces.trace import Trace

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


def _messages(rank: int, nodes: Sequence[Node], names: dict[tuple[int, ...], int]) -> Iterator[Any]:
    yield Metadata(version=VERSION)
    for node in nodes:
        yield _message(rank, node, names)


def _message(rank: int, node: Node, names: dict[tuple[int, ...], int]) -> Any:
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
