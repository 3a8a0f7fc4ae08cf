"""Chakra's traces as JSON: what its jsonizer prints, and the older form with a "workload_graph"."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradbed.hosts.systems.training.traces.chakra.records import BrokenFile, Record
from gradbed.hosts.systems.training.traces.chakra.schema import NodeType

TYPES = {
    "INVALID_NODE": NodeType.INVALID,
    "METADATA_NODE": NodeType.METADATA,
    "MEM_LOAD_NODE": NodeType.MEMORY_LOAD,
    "MEM_STORE_NODE": NodeType.MEMORY_STORE,
    "COMP_NODE": NodeType.COMPUTE,
    "COMM_SEND_NODE": NodeType.SEND,
    "COMM_RECV_NODE": NodeType.RECEIVE,
    "COMM_COLL_NODE": NodeType.COLLECTIVE,
}
"""As protobuf's JSON names them."""

OF_THE_GRAPH = {"Id", "Name", "NodeType", "ctrlDeps", "data_deps", "runtime"}
GRAPH = "workload_graph"
METADATA = {"version", "attr"}
WHITE_SPACE = re.compile(r"\s*")
OF_PYTORCH = {"schema", "nodes"}


def read_json_records(data: bytes, _known: dict[bytes, Record]) -> Iterator[Record]:
    """The nodes of a file. BrokenFile if it is none of these forms."""
    objects = _objects(data)
    if not objects:
        raise BrokenFile("it is empty")
    graph = objects[0].get(GRAPH)
    if graph is not None:
        if not isinstance(graph, list):
            raise BrokenFile(f'"{GRAPH}" is not a list')
        return _each(graph, _of_graph)
    if OF_PYTORCH.issubset(objects[0]):
        raise BrokenFile("it is PyTorch's own trace of one process: Chakra's trace_link and converter make one of it")
    if not METADATA.issuperset(objects[0]):
        raise BrokenFile("it is no JSON of Chakra: that begins with the file's metadata, or has a workload_graph")
    return _each(objects[1:], _of_protobuf)


def _objects(data: bytes) -> list[dict[str, Any]]:
    """One after the other, without anything between them but white space."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise BrokenFile("it is not JSON: no text") from None
    found = []
    decoder = json.JSONDecoder()
    place = _after_space(text, 0)
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise BrokenFile(f"it is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise BrokenFile("it is no sequence of JSON objects")
        found.append(value)
        place = _after_space(text, place)
    return found


def _after_space(text: str, place: int) -> int:
    found = WHITE_SPACE.match(text, place)
    return found.end() if found else place


def _each(nodes: Sequence[Any], read: Callable[[Mapping[str, Any]], Record]) -> Iterator[Record]:
    for place, node in enumerate(nodes):
        try:
            yield read(node)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else f"{error}"
            raise BrokenFile(f"node {place} of the file cannot be read: {reason[:80]}") from None


def _of_graph(node: Mapping[str, Any]) -> Record:
    """ctrlDeps are callers; as Chakra's reader of this form does, nobody waits for them."""
    return Record(
        number=_number(node["Id"]),
        name=str(node["Name"]),
        type=_number(node["NodeType"]),
        data=tuple(map(_number, node.get("data_deps", ()))),
        duration_us=_number(node.get("runtime", 0)),
        attributes={name: value for name, value in node.items() if name not in OF_THE_GRAPH},
    )


def _of_protobuf(node: Mapping[str, Any]) -> Record:
    kind = node.get("type", "INVALID_NODE")
    return Record(
        number=_number(node.get("id", 0)),
        name=str(node.get("name", "")),
        type=TYPES[kind] if isinstance(kind, str) else _number(kind),
        control=tuple(map(_number, node.get("ctrlDeps", ()))),
        data=tuple(map(_number, node.get("dataDeps", ()))),
        duration_us=_number(node.get("durationMicros", 0)),
        attributes=dict(map(_attribute, node.get("attr", ()))),
        values=str(node.get("inputs", {}).get("values", "")),
    )


def _attribute(attribute: Mapping[str, Any]) -> tuple[str, Any]:
    """Name and value; integers of 64 bits are texts in protobuf's JSON."""
    kind, value = next(
        ((key, value) for key, value in attribute.items() if key not in ("name", "docString")), ("", None)
    )
    if isinstance(value, dict):
        value = value.get("values", [])
    integral = "int" in kind.lower() or "fixed" in kind.lower()
    if integral and isinstance(value, list):
        value = list(map(_number, value))
    return str(attribute["name"]), _number(value) if integral and isinstance(value, str) else value


def _number(value: Any) -> int:
    """ValueError for what is no number from 0 on, or -1 and the like."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r:.40} is not a whole number")
    return int(value)
