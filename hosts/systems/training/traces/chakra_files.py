"""The files of MLCommons Chakra's execution traces, as protobuf messages and as JSON, and the records in them.

Versions 0.0.4 to 1.0.0 of the schema (github.com/mlcommons/chakra, schema/protobuf/et_def.proto). A file is a
GlobalMetadata and then Nodes, each behind its length as a varint.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from gradbed.hosts.collectives.schedule import Operation

# ---- Records: what a file says of a node, whichever way it is written down ----


@dataclass(frozen=True)
class Record:
    """A node of a file."""

    number: int
    name: str
    type: int
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    duration_us: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes by name, as they are."""
    values: str = ""
    """Values that the file gives of its inputs."""


class BrokenFile(ValueError):
    """A file that cannot be read; the message says why."""


# ---- The schema, as tables of fields ----


PACKAGE = "gradbed.training.chakra"

_INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS = ("double", "float", *_INTEGERS, "bool", "string", "bytes")
"""What an attribute may be, in the order of its fields: field 3 is one double, 4 a list of them, and so on."""

FIRST_VALUE_FIELD = 3

MESSAGES: Mapping[str, Mapping[int, tuple[str, str]]] = {
    **{f"{kind}_list": {1: ("values", f"repeated {kind}")} for kind in SCALARS},
    "attribute": {
        1: ("name", "string"),
        2: ("doc_string", "string"),
        **{FIRST_VALUE_FIELD + 2 * place: (f"{kind}_val", kind) for place, kind in enumerate(SCALARS)},
        **{
            FIRST_VALUE_FIELD + 2 * place + 1: (f"{kind}_list", f".{kind}_list") for place, kind in enumerate(SCALARS)
        },
    },
    "metadata": {1: ("version", "string"), 2: ("attr", "repeated .attribute")},
    "tensors": {1: ("values", "string"), 2: ("shapes", "string"), 3: ("types", "string")},
    "node": {
        1: ("id", "uint64"),
        2: ("name", "string"),
        3: ("type", "int32"),  # an enumeration, on the wire the same
        4: ("ctrl_deps", "repeated uint64"),
        5: ("data_deps", "repeated uint64"),
        6: ("start_time_micros", "uint64"),
        7: ("duration_micros", "uint64"),
        8: ("inputs", ".tensors"),
        9: ("outputs", ".tensors"),
        10: ("attr", "repeated .attribute"),
    },
}
"""By message: number of a field -> its name and type; a dot stands before messages."""


class NodeType(IntEnum):
    INVALID = 0
    METADATA = 1
    MEMORY_LOAD = 2
    MEMORY_STORE = 3
    COMPUTE = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7


COMMUNICATION_TYPES: Mapping[int, Operation] = {
    0: Operation.ALL_REDUCE,
    1: Operation.REDUCE,
    2: Operation.ALL_GATHER,
    3: Operation.GATHER,
    4: Operation.SCATTER,
    5: Operation.BROADCAST,
    6: Operation.ALL_TO_ALL,
    7: Operation.REDUCE_SCATTER,
    8: Operation.REDUCE_SCATTER,  # with equal parts, as all of ours
    9: Operation.BARRIER,
}
"""Values of the attribute comm_type."""

TYPE_OF_OPERATION: Mapping[Operation, int] = {
    operation: number for number, operation in sorted(COMMUNICATION_TYPES.items(), reverse=True)
}


def _made() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="gradbed/training/chakra.proto", package=PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, table in MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "attribute":
            message.oneof_decl.add(name="value")
        for number, (field_name, described) in table.items():
            kind = described.removeprefix("repeated ")
            field = message.field.add(
                name=field_name,
                number=number,
                label=kinds.LABEL_REPEATED if kind != described else kinds.LABEL_OPTIONAL,
                type=getattr(kinds, "TYPE_MESSAGE" if kind.startswith(".") else f"TYPE_{kind.upper()}"),
            )
            if kind.startswith("."):
                field.type_name = f".{PACKAGE}{kind}"
            if name == "attribute" and number >= FIRST_VALUE_FIELD:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES
    }


_CLASSES = _made()
Metadata: Any = _CLASSES["metadata"]
NodeMessage: Any = _CLASSES["node"]
AttributeMessage: Any = _CLASSES["attribute"]


def attribute_value(attribute: Any) -> Any:
    """Return the value of an attribute's message: a number, text, bytes, or a list of them; None if it has none."""
    field = attribute.WhichOneof("value")
    if field is None:
        return None
    value = getattr(attribute, field)
    return list(value.values) if field.endswith("_list") else value


# ---- Files of messages ----


GZIP = b"\x1f\x8b"
MOST_VARINT_BYTES = 10
MOST_UNPACKED_BYTES = 1 << 31
BEGINS_METADATA = (b"", b"\x0a", b"\x12")
"""Nothing, or the first byte of its version or of an attribute; a node begins otherwise."""


def read_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(Where it begins, message) of each; BrokenFile where the file is no such sequence."""
    place = 0
    while place < len(data):
        start = place
        length, place = _varint(data, place)
        if place + length > len(data):
            left = len(data) - place
            raise BrokenFile(f"the message at byte {start} is cut short: of {length:,} bytes {left:,} are there")
        yield start, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = 0
    for step in range(MOST_VARINT_BYTES):
        if place + step >= len(data):
            raise BrokenFile(f"it ends inside the length at byte {place}")
        byte = data[place + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise BrokenFile(f"no length is at byte {place}: a varint has at most {MOST_VARINT_BYTES} bytes")


def length_prefix(length: int) -> bytes:
    made = bytearray()
    while length > 0x7F:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    return bytes(made)


def write_messages(file: Path, messages: Iterable[Any]) -> None:
    with file.open("wb") as stream:
        for message in messages:
            data = message.SerializeToString()
            stream.write(length_prefix(len(data)) + data)


def content(file: Path) -> bytes:
    """Return a file's content, unpacked if it is packed by gzip. BrokenFile; OSError if it cannot be read."""
    data = file.read_bytes()
    if not data.startswith(GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(data, MOST_UNPACKED_BYTES)
    except zlib.error as error:
        raise BrokenFile(f"it cannot be unpacked: {error}") from None
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise BrokenFile("it cannot be unpacked: it is cut short, or has more than 2 GiB")
    return unpacked


def read_records(data: bytes, known: dict[bytes, Record]) -> Iterator[Record]:
    """The nodes of a file. known: messages that were read before, which ranks often have alike; more are added."""
    messages = read_messages(data)
    first = next(messages, None)
    if first is None:
        raise BrokenFile("it is empty")
    if first[1][:1] not in BEGINS_METADATA:
        raise BrokenFile("it begins without metadata: traces of Chakra before its schema 0.0.4 (2023) are not read")
    _parsed(Metadata, *first, "the file's metadata")
    for start, message in messages:
        if message not in known:
            known[message] = _record(_parsed(NodeMessage, start, message, "a node"))
        yield known[message]


def _parsed(kind: Any, start: int, message: bytes, what: str) -> Any:
    parsed = kind()
    try:
        parsed.ParseFromString(message)
    except DecodeError as error:
        reason = str(error).partition(":")[0]
        raise BrokenFile(f"the message at byte {start} is not {what} ({reason})") from None
    return parsed


def _record(node: Any) -> Record:
    return Record(
        number=node.id,
        name=node.name,
        type=node.type,
        control=tuple(node.ctrl_deps),
        data=tuple(node.data_deps),
        duration_us=node.duration_micros,
        attributes={attribute.name: attribute_value(attribute) for attribute in node.attr},
        values=node.inputs.values if node.HasField("inputs") else "",
    )


# ---- JSON: what the jsonizer prints, and the older form with a "workload_graph" ----


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
    """Return JSON objects one after the other, without anything between them but white space."""
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
    """Read a node. Its ctrlDeps are callers, and are no dependencies, as in Chakra's own reader of this form."""
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
