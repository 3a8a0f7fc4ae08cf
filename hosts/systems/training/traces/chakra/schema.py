"""The messages of MLCommons Chakra's execution traces, as tables of fields: versions 0.0.4 to 1.0.0 of the schema.

Source: github.com/mlcommons/chakra, schema/protobuf/et_def.proto. A file is a GlobalMetadata and then Nodes, each
behind its length as a varint.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gradbed.hosts.systems.training.execution import Operation

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
    """Of an attribute's message: a number, text, bytes, or a list of them; None if it has none."""
    field = attribute.WhichOneof("value")
    if field is None:
        return None
    value = getattr(attribute, field)
    return list(value.values) if field.endswith("_list") else value
