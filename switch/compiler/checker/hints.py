"""What might help with an error: one line each, shown below the caret."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.conversions import castable
from gradbed.switch.compiler.source import SourceManager
from gradbed.switch.compiler.symbols import Applicable
from gradbed.switch.state.externs import EXTERNS

MAX_SHOWN = 40

_CORE_NAMES = frozenset(("packet_in", "packet_out", "NoAction", "verify"))
_V1MODEL_NAMES = frozenset(
    (
        *("standard_metadata_t", "V1Switch", "CounterType", "MeterType", "HashAlgorithm", "CloneType"),
        *("counter", "direct_counter", "meter", "direct_meter", "register", "action_profile"),
        *("action_selector", "random", "hash", "digest", "mark_to_drop", "truncate", "verify_checksum"),
        *("update_checksum", "clone", "clone_preserving_field_list", "resubmit_preserving_field_list"),
        *("recirculate_preserving_field_list", "log_msg"),
    )
)
_FOREIGN_TYPES = frozenset(
    (
        *("uint8", "uint16", "uint32", "uint64", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8"),
        *("int16", "int32", "int64", "int8_t", "int16_t", "int32_t", "int64_t", "unsigned", "short"),
        *("long", "char", "byte", "float", "double"),
    )
)


def of_unknown_name(name: str) -> str:
    """Return a hint for a name that nothing declares."""
    if name in _CORE_NAMES:
        return "write #include <core.p4> and #include <v1model.p4> at the top of the program"
    if name in _V1MODEL_NAMES:
        return "write #include <v1model.p4> at the top of the program"
    if name in EXTERNS:
        return "write #include <gradbed.p4> at the top of the program"
    if name in _FOREIGN_TYPES:
        return "numbers have types like bit<32> (without sign) and int<32> (with sign)"
    return ""


def text_of(sources: SourceManager, node: s.Node) -> str:
    """The node as written, or "..." if that is long or comes from a macro."""
    if sources.is_expanded(node.loc) or sources.is_expanded(node.end):
        return "..."
    source, start = sources.file_at(node.loc)
    other, end = sources.file_at(node.end)
    text = source.text[start:end]
    return text if source is other and 0 < len(text) <= MAX_SHOWN and "\n" not in text else "..."


def of_conversion(sources: SourceManager, node: s.Expression, source: t.Type, target: t.Type) -> str:
    """Return how to make a value of type `source` one of type `target`."""
    text = text_of(sources, node)
    if target is t.BOOL:
        if isinstance(source, t.Struct) and source.kind != "struct":
            return f"to ask whether a header is valid, write {text}.isValid()"
        if isinstance(source, (t.Bit, t.Int)) or source is t.INTEGER:
            return f"compare it, as in {text} != 0"
        return ""
    if source is t.BOOL and isinstance(target, t.Bit):
        return f"cast it: (bit<1>)({text})"
    if castable(source, target, node.value is not None):
        operand = text if isinstance(node, (s.Name, s.Member, s.Call, s.Index, s.Slice)) else f"({text})"
        return f"cast it: ({target}){operand}"
    return ""


def of_operands(sources: SourceManager, node: s.Binary) -> str:
    """Return a hint for two operands whose types do not go together."""
    left, right = node.left.type, node.right.type
    if t.BOOL in (left, right):
        for part in s.walk([node.left, node.right]):
            if isinstance(part, s.Binary) and part.operator in ("&", "|"):
                return f"'and' and 'or' are written '&&' and '||'; '{part.operator}' binds tighter than a comparison"
    if isinstance(left, (t.Bit, t.Int)) and isinstance(right, (t.Bit, t.Int)):
        narrow, wide = (node.left, right) if left.width < right.width else (node.right, left)
        assert narrow.type is not None
        return of_conversion(sources, narrow, narrow.type, wide)
    return ""


def of_block(wanted: t.Type, given: t.Type | None) -> str:
    """Return what makes a parser or control another one than the architecture wants."""
    if not isinstance(wanted, Applicable) or not isinstance(given, Applicable):
        return ""
    name = given.signature.name
    if type(wanted.signature.node) is not type(given.signature.node):
        return "V1Switch takes parser, verify checksum, ingress, egress, compute checksum, deparser, in this order"
    expected, actual = wanted.signature.parameters, given.signature.parameters
    if len(expected) != len(actual):
        return f"{wanted} has {len(expected)} parameters, but {name} has {len(actual)}"
    for one, other in zip(expected, actual, strict=True):
        if one.direction != other.direction:
            return f"parameter '{other.name}' of {name} must be {one.direction or 'without a direction'}"
        if not isinstance(one.type, t.Variable) and one.type != other.type:
            return f"parameter '{other.name}' of {name} must be of type {one.type}, not {other.type}"
    return f"the headers and the metadata of {name} must have the same types as in the other blocks"
